"""What tells sources and candidates apart but for their names."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from consilience.claims.encoding import Claims, Int, Shard
from consilience.results.decide import scatter_bits


def structural_order(claims: Claims | Shard) -> Int:
    """Sources in an order that depends on the claims alone: renaming or reshuffling does not change who comes first."""
    return np.argsort(colours(claims)[0], kind="stable")


def colours(
    claims: Claims | Shard, possible: NDArray[np.bool_] | None = None, rounds: int = 4
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """(n_sources,) and (n_candidates,) hashes that depend on the claims alone, and on what known truths leave possible.

    Colour refinement: a candidate is coloured by the sources that claim it, an object by its candidates, a source by
    its claims' candidates and objects, a few rounds over. Colours mix by addition modulo 2**64, which does not care
    about order.
    """
    first, domain_size = claims.first_candidate[:-1], np.diff(claims.first_candidate)
    source = np.ones(claims.n_sources, np.uint64)
    for _ in range(rounds):
        candidate = (
            np.zeros(claims.n_candidates, np.uint64) if possible is None else possible.astype(np.uint64)
        )
        np.add.at(candidate, claims.claim_candidate, scatter_bits(source)[claims.claim_source])
        candidate = scatter_bits(candidate)
        candidate += np.repeat(scatter_bits(np.add.reduceat(candidate, first)), domain_size)
        source = np.zeros(claims.n_sources, np.uint64)
        np.add.at(source, claims.claim_source, scatter_bits(candidate)[claims.claim_candidate])
    return source, candidate
