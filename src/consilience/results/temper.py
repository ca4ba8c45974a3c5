"""How sure independent groups may make us: in the model their errors are independent given the truth, in the world not
quite.

Objects differ by more than their kind, and a mistake that is easily made is made by many who never met. So groups say
the same, right or wrong, more often than the model allows, and what multiplies their evidence is too sure. Surveys have
the same trouble with people of one household, and correct it by the *design effect* (Kish, 1965; of answers with
several values Rao and Scott, 1981): n answers that correlate with ρ are worth n / (1 + (n - 1) ρ) independent ones.
With n_m groups on object m,

    ρ   = Σ_m E[Σ_{l≠l'} e_lm · e_l'm] / Σ_m (n_m - 1) E[Σ_l |e_lm|²]
    e_lm(k) = the share of l's claims on m that say k, less what is expected: where k is true the share of l's claims
              that is right, elsewhere an equal part of the rest
    T_m = 1 + (n_m - 1) ρ

with expectations under q(t_m). No gold is needed; where groups err independently, ρ is zero but for chance. Two things
follow. The posterior to the power of 1 / T_m, made to sum to one, is what is reported; which candidate is the most
probable does not change. And what sources share is evidence that they belong together only as far as it is more than
strangers share: `design_effect` is by how much that evidence is overstated. What is gained:
docs/decisions/0015-calibration.md, docs/decisions/0021-what-strangers-share.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consilience.claims.encoding import Encoded, Float, Int, Shard

INDEPENDENT_OBJECTS = 10.0
"""So many more objects on which groups toss coins: in a small table, chance is no evidence of shared errors."""
ENOUGH_CLAIMS = 200_000
"""Claims that are enough to tell how far groups err together, to a few percent: of larger tables, evenly spread objects
are looked at."""
SURELY = 1.645
"""Standard errors of ρ that are left off where groups are doubted: so much is shared with a probability of 95 %."""
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
    stride = -(-n_claims // ENOUGH_CLAIMS)
    chosen = (shard.first_object + np.arange(shard.n_objects)) % stride == 0
    return shard.of_objects(chosen), of_candidate[np.repeat(chosen, np.diff(shard.first_candidate))]


def shared_errors(claims: Encoded, group: Int, truth: Float, surely: float = 0.0) -> float:
    """ρ: how far groups say the same where the truth does not make them, from 0 (by chance) to 1 (always).

    group  : (n_sources,)    the group of each source
    truth  : (n_candidates,) q(t_m = z)
    surely : standard errors that are left off, for what they share at the least
    """
    pairs = Pairs.of(claims, group)
    n, owner = pairs.n, claims.candidate_object()
    right = np.bincount(pairs.group[pairs.pair], pairs.share * truth[pairs.candidate])
    n_objects = np.bincount(pairs.group)
    overall = right.sum() / n_objects.sum()
    mean = ((right + TYPICAL_OBJECTS * overall) / (n_objects + TYPICAL_OBJECTS))[pairs.group]
    n_wrong = np.maximum(np.diff(claims.first_candidate) - 1, 1)  # one, unknown, where all say the same
    wrong = (1 - mean) / n_wrong[pairs.object]

    def by_object(of: Int, x: Float) -> Float:
        return np.asarray(np.bincount(of, x, minlength=claims.n_objects), np.float64)

    def by_candidate(x: Float) -> Float:
        return np.asarray(np.bincount(pairs.candidate, x, minlength=claims.n_candidates), np.float64)

    # |said - expected|² = |said|² - 2 said · expected + |expected|², for each candidate as the truth: of all groups on
    # its object together, and of each.
    claimed = by_candidate(pairs.share)
    if_true, if_wrong = (by_object(pairs.object, x) for x in (mean, wrong))
    residual = (
        by_object(owner, claimed**2)
        + if_true**2 + n_wrong * if_wrong**2
        - 2 * n * if_wrong
    )[owner] - 2 * claimed * (if_true - if_wrong)[owner]  # fmt: skip
    squares = (
        by_object(pairs.object[pairs.pair], pairs.share**2)
        + by_object(pairs.object, mean**2 + n_wrong[pairs.object] * wrong**2 - 2 * wrong)
    )[owner] - 2 * by_candidate(pairs.share * (mean - wrong)[pairs.pair])  # fmt: skip
    together = by_object(owner, truth * (residual - squares))
    apart = by_object(owner, truth * squares) * (n - 1)
    by_chance = INDEPENDENT_OBJECTS * float(np.mean(n * (n - 1.0))) / 2  # |e|² of a coin
    if by_chance == 0:
        return 0.0
    whole = float(apart.sum()) + by_chance
    shared = max(float(together.sum()), 0.0) / whole
    # Objects are drawn, not claims: the error of a ratio of sums over objects.
    error = float(np.linalg.norm(together - shared * apart)) / whole
    return max(shared - surely * error, 0.0)


def design_effect(claims: Shard, group: Int, truth: Float) -> float:
    """By how much, at the least, what these claims say of groups is overstated.

    Each claim counts for one part in T_m of its object.

    group : (n_sources,)    the group of each source
    truth : (n_candidates,) q(t_m = z)
    """
    claims, truth = some_objects(claims, truth, claims.n_claims)
    n_claims = np.diff(claims.first_claim)
    effect = temperature(voices_by_object(claims, group), shared_errors(claims, group, truth, SURELY))
    return float(n_claims.sum() / np.sum(n_claims / effect))


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
