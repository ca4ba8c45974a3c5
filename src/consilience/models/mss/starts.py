"""Where the ascent begins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from consilience.claims.encoding import Claims, Int
from consilience.kernels.state import Globals, Prior
from consilience.models.mss.updates import update_sticks


def random_start(
    claims: Claims, prior: Prior, n_groups: int, rng: np.random.Generator, *, tail: bool
) -> Globals:
    """Memberships drawn from a sparse Dirichlet; the draw follows what sources claim, not what they are called."""
    width = n_groups + tail
    weight = np.empty((claims.n_sources, width))
    weight[structural_order(claims)] = rng.dirichlet(np.full(width, 0.3), claims.n_sources)
    group = np.tile(np.arange(width, dtype=np.int32), (claims.n_sources, 1))
    return Globals(
        group=group,
        weight=weight,
        reliability=np.tile(prior.reliability, (n_groups, 1)),
        sticks=update_sticks(group, weight, n_groups, prior),
    )


def structural_order(claims: Claims, rounds: int = 4) -> Int:
    """Sources in an order that depends on the claims alone: renaming or reshuffling does not change who comes first.

    Colour refinement: a candidate is coloured by the sources that claim it, an object by its candidates, a source by
    its claims' candidates and objects, a few rounds over. Colours are hashes and mix by addition modulo 2**64, which
    does not care about order.
    """
    first, last = claims.first_candidate[:-1], np.diff(claims.first_candidate)
    colour = np.ones(claims.n_sources, np.uint64)
    for _ in range(rounds):
        candidate = np.zeros(claims.n_candidates, np.uint64)
        np.add.at(candidate, claims.claim_candidate, _mix(colour)[claims.claim_source])
        candidate = _mix(candidate)
        candidate += np.repeat(_mix(np.add.reduceat(candidate, first)), last)
        colour = np.zeros(claims.n_sources, np.uint64)
        np.add.at(colour, claims.claim_source, _mix(candidate)[claims.claim_candidate])
    return np.argsort(colour, kind="stable")


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scatter the bits of x (the finaliser of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
