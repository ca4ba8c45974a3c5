"""What kernels take and give: frozen, with documented shapes. Of the model nothing is computed here but E ln and ln B.

Statistics are kept in fixed point, as 64-bit integers: integer addition does not care about order, so a sum over
objects has the same bits for any number of shards, threads or machines. Scores are in units of 2**-30 nats. The bound's
terms have two words, one of 2**-20 and one of 2**-50 nats: the bound of a billion claims fits, and that of ten is fine
enough to see whether it falls.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from consilience.claims.encoding import Float, Int

Fixed = NDArray[np.int64]

UNIT = 2.0**-30
LARGEST_SCORE = 2.0**32
"""A sum of scores in nats that surely fits 64 bits in these units."""
COARSE, FINE = 2.0**-20, 2.0**-50
KINDS = 2
"""Kinds of objects in the partition inference."""
MANY_PARAMETERS = 2_000
"""Of fewer, compiled special functions save less than it takes to load them."""
LOCAL_TERMS = ("claims", "answers", "reliability", "truth")
"""The parts of the bound that are sums over objects, in the order of `Stats.terms`."""


def to_fixed(x: Float) -> Fixed:
    """Nats to fixed point."""
    return np.rint(x / UNIT).astype(np.int64)


def from_fixed(x: Fixed) -> Float:
    """Fixed point to nats."""
    return x.astype(np.float64) * UNIT


def to_two_words(x: Float) -> Fixed:
    """Nats to fixed point in a coarse and a fine word, along a new last axis."""
    coarse = np.rint(x / COARSE)
    return np.stack([coarse, np.rint((x - coarse * COARSE) / FINE)], axis=-1).astype(np.int64)


def from_two_words(x: Fixed) -> Float:
    """Two words to nats."""
    return x[..., 0] * COARSE + x[..., 1] * FINE


@dataclass(frozen=True, eq=False)
class Prior:
    """The model's settings as numbers.

    true_count    : (2,) η^(r), soft count of the true value when r = 0, 1
    false_count   : (2,) θ^(r), soft count of each false value when r = 0, 1
    reliability   : (2,) b0, b1: u ~ Beta(b1, b0)
    concentration : κ of the sticks
    """

    true_count: Float
    false_count: Float
    reliability: Float
    concentration: float


@dataclass(frozen=True, eq=False)
class Globals:
    """What every object must know: who belongs where, and how reliable each group is.

    A source keeps a few groups (its *support*); rows are padded with group -1 at membership 0. Under mean-field the
    support is every group and, as group `n_groups`, the infinite tail of groups beyond the truncation.

    group             : (n_sources, width) int32    the groups a source may belong to
    membership        : (n_sources, width) float64  q(g_n = group), rows sum to one
    group_reliability : (n_groups, 2) float64       Beta parameters of q(u_l): column r holds the count of r = 0, 1
    sticks            : (n_groups, 2) float64       Beta parameters of q(ρ_l): break here, go on
    """

    group: Int
    membership: Float
    group_reliability: Float
    sticks: Float

    def __post_init__(self) -> None:
        if self.group.shape != self.membership.shape or self.group.ndim != 2:
            raise ValueError(
                f"group {self.group.shape} and membership {self.membership.shape} must be (n_sources, width)"
            )
        if self.group_reliability.shape != self.sticks.shape or self.sticks.shape[1:] != (2,):
            raise ValueError(
                f"group_reliability {self.group_reliability.shape} and sticks must be (n_groups, 2)"
            )

    @property
    def n_groups(self) -> int:
        """Number of groups, the tail not counted."""
        return len(self.group_reliability)


@dataclass(frozen=True, eq=False)
class Beliefs:
    """What the partition inference believes before it looks at a group or an object; learned from all of them.

    Objects come in KINDS kinds (axis d below; for a local step in more, which are classes: `lures`): the sources'
    reliability, and the shares of the labels, may differ between kinds. On a common label set an unreliable group
    answers by a habit of its own, a distribution over labels; elsewhere any value of the domain is as likely as
    another, and there is one label.

    true_count    : η, soft count of the group's opinion
    false_count   : θ, soft count of each other value
    reliability   : (n_kinds, 2) b: u_ld ~ Beta(b[d, 1], b[d, 0])
    habit         : (n_kinds,) strength h of habits: ξ_ld ~ Dirichlet(h / n_labels, …)
    share         : (n_kinds, n_labels) p(kind) and, on a common label set, p(kind, truth); 0 of a kind that does not
                    occur
    concentration : κ of the partition
    lured         : (n_kinds,) f, on a common label set: how probable it is that an unreliable group falls for the lure
                    of an object (`lures`); 0 where there are none
    """

    true_count: float
    false_count: float
    reliability: Float
    habit: Float
    share: Float
    concentration: float
    lured: Float = field(default_factory=lambda: np.zeros(KINDS))

    @property
    def n_kinds(self) -> int:
        """Number of kinds of objects."""
        return len(self.share)

    @property
    def occurring(self) -> slice:
        """From the first kind that occurs to the last: all of them, or those of one."""
        occurs = np.flatnonzero(self.share.any(axis=1))
        return slice(int(occurs[0]), int(occurs[-1]) + 1)

    @property
    def n_labels(self) -> int:
        """Number of labels that habits are about; 1 where there are none."""
        return int(self.share.shape[1])

    @property
    def log_share(self) -> Float:
        """(n_kinds, n_labels) ln p(kind, truth): -inf of a kind that does not occur."""
        with np.errstate(divide="ignore"):
            log_share: Float = np.log(self.share)
        return log_share

    @property
    def habit_prior(self) -> Float:
        """(n_kinds, n_labels) the Dirichlet parameters of habits."""
        return np.repeat(self.habit[:, None] / self.n_labels, self.n_labels, axis=1)


def expected_log(parameters: Float) -> Float:
    """E ln of a Beta or Dirichlet along the last axis."""
    from scipy.special import digamma  # what only knows claims does without SciPy

    if parameters.shape[-1] == 1:
        return np.zeros_like(parameters)
    logs: Float = digamma(parameters) - digamma(total(parameters)[..., None])
    return logs


def dirichlets(parameters: Float) -> tuple[Float, Float]:
    """Of Betas or Dirichlets along the last axis E ln, and ln of what normalises them, B. Of very many it is compiled,
    where it can be."""
    if parameters.shape[-1] == 1:
        return np.zeros_like(parameters), np.zeros(parameters.shape[:-1])
    if parameters.size >= MANY_PARAMETERS:
        try:
            from consilience.kernels.compiled import gammas_of_rows
        except ImportError:
            pass
        else:
            return gammas_of_rows(parameters)
    from scipy.special import gammaln

    return expected_log(parameters), total(gammaln(parameters)) - gammaln(total(parameters))


def total(parts: Float) -> Float:
    """The sum along the last axis. Of two, as most are, NumPy would spend most of the time on getting there."""
    if parts.shape[-1] == 2:
        return parts[..., 0] + parts[..., 1]
    summed: Float = parts.sum(axis=-1)
    return summed


@dataclass(frozen=True, eq=False)
class Grouping:
    """The globals of the partition inference: every source in one group. A group without sources is at its prior.

    group       : (n_sources,) int64                      the group of each source
    reliability : (n_groups, n_kinds, 2) float64          Beta parameters of q(u_ld): column r holds the count of r
    habit       : (n_groups, n_kinds, n_labels) float64   Dirichlet parameters of q(ξ_ld)
    """

    group: Int
    reliability: Float
    habit: Float

    @cached_property
    def size(self) -> Int:
        """(n_groups,) how many sources each group has."""
        return np.bincount(self.group, minlength=len(self.reliability))

    @cached_property
    def of_reliability(self) -> tuple[Float, Float]:
        """(n_groups, n_kinds, 2) E ln(1 - u) and E ln u, and (n_groups, n_kinds) ln B."""
        return dirichlets(self.reliability)

    @cached_property
    def of_habit(self) -> tuple[Float, Float]:
        """(n_groups, n_kinds, n_labels) E ln ξ, and (n_groups, n_kinds) ln B."""
        return dirichlets(self.habit)

    @property
    def log_reliability(self) -> Float:
        """(n_groups, n_kinds, 2) E ln(1 - u) and E ln u."""
        return self.of_reliability[0]

    @property
    def log_habit(self) -> Float:
        """(n_groups, n_kinds, n_labels) E ln ξ."""
        return self.of_habit[0]

    def of_groups(self, groups: Int) -> Grouping:
        """These groups alone, numbered in this order; every source is in one of them."""
        number = np.empty(len(self.reliability), np.int64)
        number[groups] = np.arange(len(groups))
        return Grouping(number[self.group], self.reliability[groups], self.habit[groups])


@dataclass(frozen=True, eq=False)
class GroupingStats:
    """Additive statistics of the partition inference's local step, in fixed point.

    reliable   : (n_groups, n_kinds, 2)        Σ_m q(r_lm = r, d_m = d)
    habit      : (n_groups, n_kinds, n_labels) Σ_m q(opinion = label, r_lm = 0, d_m = d), less what `habit_rest` adds
    habit_rest : (n_groups, n_kinds)           factor of exp(E ln ξ) to be added to every label
    share      : (n_kinds, n_labels)           Σ_m q(d_m, t_m), or Σ_m q(d_m)
    counts     : (4, 2)                        Σ E[ψ(η+n) - ψ(η)], Σ [ψ(A+n) - ψ(A)] and the same for the θs: what
                                               learning the counts needs, in two words
    terms      : (1, 2)                        the objects' part of the bound, in two words
    lured      : (n_kinds,), or none           Σ_lm q(r_lm = 0, the group falls for the lure, d_m = d)
    single     : (n_groups, n_labels, 2 n_kinds), or none: of pairs with one claim, which a kernel may leave to
                                               its `completed`, Σ_m q(d_m, the claim is true) and Σ_m q(d_m)
    """

    reliable: Fixed
    habit: Fixed
    habit_rest: Fixed
    share: Fixed
    counts: Fixed
    terms: Fixed
    lured: Fixed = field(default_factory=lambda: np.zeros(0, np.int64))
    single: Fixed = field(default_factory=lambda: np.zeros((0, 0, 0), np.int64))

    def __add__(self, other: GroupingStats) -> GroupingStats:
        return GroupingStats(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def among(self, groups: Int, n_groups: int) -> GroupingStats:
        """Those of `groups`, in this order, as those of all groups."""

        def rows(part: Fixed) -> Fixed:
            whole = np.zeros((n_groups, *part.shape[1:]), np.int64)
            whole[groups] = part
            return whole

        by_group = {name: rows(getattr(self, name)) for name in ("reliable", "habit", "habit_rest")}
        return replace(self, **by_group)


@dataclass(frozen=True, eq=False)
class Partition(Globals):
    """Globals of a finished partition inference: memberships are certain, reliabilities also known by kind.

    kind_reliability : (n_groups, n_kinds, 2)
    habit            : (n_groups, n_kinds, n_labels)
    """

    kind_reliability: Float
    habit: Float

    def grouping(self) -> Grouping:
        """The same as the local step takes it."""
        return Grouping(self.group[:, 0].astype(np.int64), self.kind_reliability, self.habit)


@dataclass(frozen=True, eq=False)
class Locals:
    """What one shard knows of its own objects after a local step.

    truth              : (n_candidates,) q(t_m = z)
    object_reliability : (n_objects, n_groups) q(r_lm = 1) under mean-field, where it is carried from sweep to sweep;
                         None under structured inference, which derives it afresh
    """

    truth: Float
    object_reliability: Float | None = None


@dataclass(frozen=True, eq=False)
class Stats:
    """Additive statistics of a local step, in fixed point. `a + b` is the whole distributed protocol.

    score    : (n_sources, width)  Σ_m E ln π_lm[y_nm] for each group l of the source's support
    reliable : (n_groups, 2)       Σ_m q(r_lm = 0), Σ_m q(r_lm = 1)
    terms    : (4, 2)              the local parts of the bound, by LOCAL_TERMS, in two words
    """

    score: Fixed
    reliable: Fixed
    terms: Fixed

    def __add__(self, other: Stats) -> Stats:
        return Stats(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@dataclass(frozen=True, eq=False)
class Evidence:
    """What each group says about each object: the numbers behind an explanation.

    A *pair* is a group with claims on an object; its *cells* are the object's candidates.

    pair_object, pair_group : (P,)
    pair_reliability        : (P,) q(r_lm = 1)
    first_cell              : (P + 1,) cells of pair p are first_cell[p] : first_cell[p + 1]
    cell_candidate          : (cells,)
    cell_count              : (cells,) n_lmk
    cell_nats               : (cells,) S_lm(z), what the group adds to the candidate's log probability; under partition
                              inference the mean over the kinds, or classes, that it may be of, so weighed that
                              groups add up
    cell_reliability        : (cells,) q(r_lm = 1 | t_m = z)
    before                  : (n_candidates,) ln p(z), before anybody speaks; with the nats of all groups it is the
                              candidate's log probability, but for what is the same for all of the object's
    """

    pair_object: Int
    pair_group: Int
    pair_reliability: Float
    first_cell: Int
    cell_candidate: Int
    cell_count: Float
    cell_nats: Float
    cell_reliability: Float
    before: Float
