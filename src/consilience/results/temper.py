"""How sure independent groups may make us: in the model their errors are independent given the truth, in the world not
quite.

Objects differ by more than their kind, and a mistake that is easily made is made by many who never met. So groups are
right, or wrong, together more often than the model allows, and a posterior that multiplies their evidence is too sure.
Surveys have the same trouble with people of one household, and correct it by the *design effect* (Kish, 1965): n votes
whose errors correlate with ρ are worth n / (1 + (n - 1) ρ) independent ones. With n_m groups on object m,

    ρ   = Σ_m E[Σ_{l≠l'} e_lm e_l'm] / Σ_m (n_m - 1) E[Σ_l e_lm²]     e_lm = the share of l's claims on m that is right,
                                                                             less its mean over l's objects
    T_m = 1 + (n_m - 1) ρ               the posterior to the power of 1 / T_m, made to sum to one, is what is reported

with expectations under q(t_m). No gold is needed; where groups err independently, ρ is zero but for chance. Which
candidate is the most probable does not change. What it gains: docs/decisions/0015-calibration.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consilience.claims.encoding import Encoded, Float, Int, Shard

INDEPENDENT_OBJECTS = 10.0
"""So many more objects on which groups toss coins: in a small table, chance is no evidence of shared errors."""
MANY_CLAIMS = 1_000_000
"""Claims that are enough to tell how far groups err together: of larger tables, evenly spread objects are looked at."""
TYPICAL_OBJECTS = 2.0
"""So many more objects on which a group is as right as all of them."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Groups with claims on an object, and their cells: the values that a group claims on it.

    object    : (n_pairs,)
    group     : (n_pairs,)
    pair      : (n_cells,) the pair of each cell
    candidate : (n_cells,)
    share     : (n_cells,) of the pair's claims
    """

    claims: Encoded
    object: Int
    group: Int
    pair: Int
    candidate: Int
    share: Float

    @classmethod
    def of(cls, claims: Encoded, group: Int) -> Pairs:
        """Who speaks on what, where sources of one group speak together; group : (n_sources,)."""
        n_groups = int(group.max(initial=0)) + 1
        said = claims.claim_candidate.astype(np.int64) * n_groups + group[claims.claim_source]
        cells, n_claims = np.unique(said, return_counts=True)
        candidate, speaker = np.divmod(cells, n_groups)
        owner = claims.candidate_object()[candidate]
        pairs, pair = np.unique(owner * n_groups + speaker, return_inverse=True)
        share = n_claims / np.bincount(pair, n_claims)[pair]
        return cls(claims, pairs // n_groups, pairs % n_groups, pair, candidate, share)

    @property
    def n(self) -> Int:
        """(n_objects,) how many groups claim something about each object."""
        return np.bincount(self.object, minlength=self.claims.n_objects)


def voices_by_object(claims: Encoded, group: Int) -> Int:
    """(n_objects,) how many groups claim something about each object; group : (n_sources,)."""
    n, n_groups = np.empty(claims.n_objects, np.int64), int(group.max(initial=0)) + 1
    for objects, here in claims.runs():
        n_objects, first = objects.stop - objects.start, claims.first_claim[objects] - here.start
        of = np.int32 if n_objects * n_groups < 2**31 else np.int64  # half as wide is sorted in half the time
        pair = np.repeat(np.arange(n_objects, dtype=of), np.diff(claims.first_claim)[objects])
        pair *= of(n_groups)
        pair += group.astype(of)[claims.claim_source[here]]
        pair.sort()
        is_new = np.ones(len(pair), np.int8)
        is_new[1:] = pair[1:] != pair[:-1]
        n[objects] = np.add.reduceat(is_new, first, dtype=np.int64)
    return n


def some_objects(shard: Shard, of_candidate: NDArray[Any], n_claims: int) -> tuple[Shard, NDArray[Any]]:
    """Of a table with very many claims those of this shard on evenly spread objects, and what is said of their
    candidates; n_claims : of the whole table."""
    stride = -(-n_claims // MANY_CLAIMS)
    chosen = (shard.first_object + np.arange(shard.n_objects)) % stride == 0
    return shard.of_objects(chosen), of_candidate[np.repeat(chosen, np.diff(shard.first_candidate))]


def shared_errors(claims: Encoded, group: Int, truth: Float) -> float:
    """ρ: how far groups are right and wrong together, from 0 (by chance) to 1 (always).

    group : (n_sources,)    the group of each source
    truth : (n_candidates,) q(t_m = z)
    """
    pairs = Pairs.of(claims, group)
    n = pairs.n
    right = np.bincount(pairs.group[pairs.pair], pairs.share * truth[pairs.candidate])
    n_objects = np.bincount(pairs.group)
    overall = right.sum() / n_objects.sum()
    mean = ((right + TYPICAL_OBJECTS * overall) / (n_objects + TYPICAL_OBJECTS))[pairs.group]

    # For each candidate as the truth, sums over the groups on its object; who does not claim it has the share 0.
    owner = claims.candidate_object()
    claimed = np.bincount(pairs.candidate, pairs.share, minlength=claims.n_candidates)
    square = pairs.share * (pairs.share - 2 * mean[pairs.pair])
    squared = np.bincount(pairs.candidate, square, minlength=claims.n_candidates)
    expected, of_mean = (np.bincount(pairs.object, x, minlength=claims.n_objects) for x in (mean, mean**2))
    residual, squares = claimed - expected[owner], squared + of_mean[owner]
    together = float(np.sum(truth * (residual**2 - squares)))
    apart = float(np.sum(truth * (n[owner] - 1) * squares))
    by_chance = INDEPENDENT_OBJECTS * float(np.mean(n * (n - 1.0))) / 4
    return max(together, 0.0) / (apart + by_chance) if by_chance > 0 else 0.0


def temperature(n_voices: Int, shared: float) -> Float:
    """T_m: the design effect of so many groups whose errors correlate with `shared`."""
    effect: Float = 1.0 + np.maximum(n_voices - 1, 0) * shared
    return effect


def tempered(truth: Float, first_candidate: Int, temperature: Float) -> Float:
    """(n_candidates,) each object's posterior to the power of 1 / T_m; what is certain stays certain.

    temperature : (n_objects,) T_m
    """
    sizes, starts = np.diff(first_candidate), first_candidate[:-1]
    with np.errstate(divide="ignore"):
        log_truth = np.log(truth) / np.repeat(temperature, sizes)
    weight = np.exp(log_truth - np.repeat(np.maximum.reduceat(log_truth, starts), sizes))
    calm: Float = weight / np.repeat(np.add.reduceat(weight, starts), sizes)
    return calm
