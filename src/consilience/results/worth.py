"""Which truth is most worth checking: the expected number of decisions, over the whole table, that an answer moves.

An answer on object m corrects m itself with probability 1 - p, p being the probability of the decision. It also tells
how reliable the groups that claim there are, and so moves every decision in which they have a say. With

    ρ_lm(z) = q(r_lm = 1 | t_m = z)           whether group l is reliable on m, were z the truth
    ρ_lm    = Σ_z p_m(z) ρ_lm(z)
    τ_l     = a₀ a₁ / (a₀ + a₁)               q(u_l) = Beta(a₁, a₀): an answer that makes l reliable on m for certain
                                              adds 1 - ρ_lm to a₁, and moves logit E u_l by that over τ_l
    e_lm    = Σ_z p_m(z) |ρ_lm(z) - ρ_lm| / τ_l         how far logit u_l is expected to move
    h_lm    = p_m(z*) |ρ_lm(z*) - ρ_lm|                 |d p_m(z*) / d logit u_l|, z* being the decision: exactly that,
                                                        as d S_lm(z) / d logit u_l is ρ_lm(z) less a constant

    worth_m = 1 - p_m(z*) + Σ_l e_lm Σ_{i ≠ m} h_li

A model is surer than it should be: where all hinges on one story about a group, it is sure of every object and would
never ask about it. So outside the first term p is mixed with the shares of the claims, DOUBT of them.
docs/decisions/0013-review-queue.md has what else was tried, and figures.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from consilience.claims.encoding import Float, Shard
from consilience.kernels.state import Beliefs
from consilience.results.evidence import evidence_of, shard_of

if TYPE_CHECKING:
    from consilience.kernels.state import Evidence
    from consilience.results.fit import Fit

DOUBT = 0.1
"""Probability that the story as a whole is wrong, and counting heads tells as much."""
CLAIMS_AT_A_TIME = 1 << 15
"""So many, or by so many times fewer as there are lures: what is said of each is worked out for every one."""


def worth(fit: Fit) -> Float:
    """(n_objects,) the worth of checking each object's truth; none where it was given."""
    claims, found, prior = fit.claims, fit.groups_found, fit.prior
    value: Float = 1.0 - fit.truth[fit.decision]
    if found is not None and prior is not None:
        known_of = found.group_reliability.prod(axis=1) / found.group_reliability.sum(axis=1)
        hinge, parts = np.zeros(found.n_groups), []
        n_classes = prior.n_labels if isinstance(prior, Beliefs) and prior.lured.any() else 1
        wanted = np.arange(0, claims.n_claims, max(1, CLAIMS_AT_A_TIME // n_classes))
        edges = np.unique(np.append(np.searchsorted(claims.first_claim, wanted), claims.n_objects))
        for start, stop in pairwise(edges.tolist()):
            shard = shard_of(fit, start, stop)
            told = evidence_of(shard, found, prior)
            moved, moves = _movement(fit, start, shard, told)
            moved /= known_of[told.pair_group]
            hinge += np.bincount(told.pair_group, moves, minlength=found.n_groups)
            value[start:stop] -= np.bincount(told.pair_object, moved * moves, minlength=stop - start)
            small = [part.astype(np.int32) for part in (told.pair_object, told.pair_group)]
            parts.append((start, stop, *small, moved.astype(np.float32)))
        for start, stop, object_, group, shifts in parts:
            value[start:stop] += np.bincount(object_, shifts * hinge[group], minlength=stop - start)
    return value if fit.known is None else np.where(fit.known, 0.0, value)


def _movement(fit: Fit, start: int, shard: Shard, told: Evidence) -> tuple[Float, Float]:
    """Of each pair (group, object): τ_l e_lm, how far the object's truth moves the group, and h_lm, the reverse."""
    n_pairs = len(told.pair_group)
    pair = np.repeat(np.arange(n_pairs), np.diff(told.first_cell))
    truth = _doubted(fit, start, shard)[told.cell_candidate]
    mean = np.bincount(pair, truth * told.cell_reliability, minlength=n_pairs)
    off = np.abs(told.cell_reliability - mean[pair])
    moved: Float = np.bincount(pair, truth * off, minlength=n_pairs).astype(np.float64)
    first = shard.first_candidate[:-1][told.pair_object]
    decided = fit.decision[start : start + shard.n_objects] - fit.claims.first_candidate[start]
    cell = told.first_cell[:-1] + decided[told.pair_object] - first
    return moved, truth[cell] * off[cell]


def _doubted(fit: Fit, start: int, shard: Shard) -> Float:
    """(n_candidates,) truths mixed with shares of the claims, unless they were given."""
    size, n_claims = np.diff(shard.first_candidate), np.diff(shard.first_claim)
    first = int(fit.claims.first_candidate[start])
    truth = np.asarray(fit.truth[first : first + shard.n_candidates])
    votes = np.bincount(shard.claim_candidate, minlength=shard.n_candidates)
    share = votes / np.repeat(np.maximum(n_claims, 1), size)
    doubt = np.full(shard.n_objects, DOUBT)
    if fit.known is not None:
        doubt[fit.known[start : start + shard.n_objects]] = 0.0
    of_candidate = np.repeat(doubt, size)
    mixed: Float = (1 - of_candidate) * truth + of_candidate * share
    return mixed
