"""An order of sources that depends on the claims alone."""

from __future__ import annotations

import numpy as np

from consilience.claims.encoding import Claims, Int
from consilience.results.decide import scatter_bits


def structural_order(claims: Claims, rounds: int = 4) -> Int:
    """Sources in an order that depends on the claims alone: renaming or reshuffling does not change who comes first.

    Colour refinement: a candidate is coloured by the sources that claim it, an object by its candidates, a source by
    its claims' candidates and objects, a few rounds over. Colours are hashes and mix by addition modulo 2**64, which
    does not care about order.
    """
    first, domain_size = claims.first_candidate[:-1], np.diff(claims.first_candidate)
    colour = np.ones(claims.n_sources, np.uint64)
    for _ in range(rounds):
        candidate = np.zeros(claims.n_candidates, np.uint64)
        np.add.at(candidate, claims.claim_candidate, scatter_bits(colour)[claims.claim_source])
        candidate = scatter_bits(candidate)
        candidate += np.repeat(scatter_bits(np.add.reduceat(candidate, first)), domain_size)
        colour = np.zeros(claims.n_sources, np.uint64)
        np.add.at(colour, claims.claim_source, scatter_bits(candidate)[claims.claim_candidate])
    return np.argsort(colour, kind="stable")
