"""Accuracy of sources by Bayes' rule, with copiers found among pairs of sources and their votes counted less.

X. L. Dong, L. Berti-Equille and D. Srivastava, "Integrating conflicting data: the role of source dependence", PVLDB 2
(2009): its model ACCU (here `accu`) and ACCU without dependence (here `accu-independent`). A source is right with
probability A_n, else it says one of n false values, all alike. A copier copies a value with probability c.

Pairs of sources. Of the objects that two sources both speak of, k_t have the same true value, k_f the same false value
and k_d different values, by what is decided now. With P_t = A_1 A_2 and P_f = (1 - A_1)(1 - A_2) / n, Bayes' rule gives

    ln P(1 → 2 | Φ) / P(1 ⊥ 2 | Φ) = ln (α / 2) / (1 - α) + k_d ln (1 - c)
        + k_t ln (c A_2 + (1 - c) P_t) / P_t + k_f ln (c (1 - A_2) + (1 - c) P_f) / P_f

where 1 → 2 is that 1 copies from 2, and 1 ~ 2 that either copies from the other. Before anything is decided a shared
value may be true or false: with P_s = (1 - ε)³ + ε³ / n each adds ln (c + (1 - c) P_s) / P_s.

Values. The sources of a value z count one after the other, less by what each may have copied from those before it:

    C(z) = Σ_n ln (n A_n / (1 - A_n)) · I_n(z)        I_n(z) = Π_{n' before n} (1 - c P(n ~ n' | Φ))
    P(z) = exp C(z) / Σ_{z' of the n + 1 values} exp C(z')         A_n = mean of P over the claims of n

The publication lets the source go first that is most surely dependent, then always the one that is most surely
dependent on one before it (here `order="dependence"`). By default the more accurate source goes first.

Time and memory grow with the co-claims, the pairs of claims for the same value of the same object: Σ_z v_z² / 2 where
v_z sources claim z. Pairs of sources that share no value are never looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_array, triu
from scipy.special import expit

from consilience.claims.encoding import Float, Int
from consilience.errors import SettingsError, UnsuitableTableError
from consilience.kernels.segments import Segments
from consilience.models.base import Answer, Rival, Tell, positive, repeat, whole_number
from consilience.models.order import structural_order
from consilience.results.cautions import Caution
from consilience.results.decide import TIED

SMALLEST = 1e-6
"""Accuracies are at least this and at most one less this: else one source outvotes any number of others."""
MOST_CO_CLAIMS = 200_000_000
"""Co-claims beyond which copiers are not looked for: they would take more than a gigabyte."""
BLOCK = 1 << 18
"""Co-claims handled at once."""
DIGITS = 9
"""Accuracies that agree in so many digits are equal where sources are put in order: rounding must not decide it."""


@dataclass(frozen=True, eq=False)
class Belief:
    """Where a round ends.

    accuracy   : (n_sources,)    A
    confidence : (n_candidates,) C
    decided    : (n_candidates,) 1 for the best candidate of an object, in equal parts where several are the best
    before     : (n_candidates,) the same, a round earlier

    The last three are empty before the first round.
    """

    accuracy: Float
    confidence: Float
    decided: Float
    before: Float


@dataclass(frozen=True, eq=False)
class CoClaims:
    """Pairs of sources that claim a value in common, and the pairs of claims with which they do.

    one, other      : (n_pairs,)      sources, one < other
    same, different : (n_pairs,)      how many objects they claim the same value of, k_t + k_f; different ones, k_d
    claim           : (n_claims,)     claims in the order of their candidates, then sources
    source          : (n_claims,)     their sources
    candidate       : (n_claims,)     their candidates
    n_before        : (n_claims,)     how many of them come before for the same candidate
    pair            : (n_co_claims,)  for each of them, with each that comes before: the pair of sources
    """

    one: Int
    other: Int
    same: Float
    different: Float
    claim: Int
    source: Int
    candidate: Int
    n_before: Int
    pair: Int

    @classmethod
    def of(cls, model: str, table: Segments) -> CoClaims:
        """Found through the candidates that sources have in common, not by trying all pairs."""
        claims = table.claims
        n_co_claims = int((table.votes * (table.votes - 1) / 2).sum())
        if n_co_claims > MOST_CO_CLAIMS:
            raise UnsuitableTableError(
                model,
                f"at most {MOST_CO_CLAIMS:,} pairs of claims for the same value",
                f"{n_co_claims:,} of them",
                "use accu-independent, or fewer claims an object",
            )
        one, other, same, different = (np.concatenate(part) for part in zip(*_pairs(table), strict=True))
        claim = np.argsort(claims.claim_candidate, kind="stable")
        votes = table.votes.astype(np.int64)
        found = cls(
            one, other, same, different, claim,
            source=claims.claim_source[claim].astype(np.int64),
            candidate=claims.claim_candidate[claim],
            n_before=np.arange(claims.n_claims) - np.repeat(np.cumsum(votes) - votes, votes),
            pair=np.empty(n_co_claims, np.int32),
        )  # fmt: skip
        key = one * claims.n_sources + other
        for at, late, early in found.blocks():
            # Claims for one candidate lie in the order of sources: the earlier is that of `one`.
            found.pair[at] = np.searchsorted(key, found.source[early] * claims.n_sources + found.source[late])
        return found

    def blocks(self) -> Iterator[tuple[slice, Int, Int]]:
        """Co-claims, a block at a time: where they lie in `pair`, the places of the later and of the earlier claims."""
        last = np.cumsum(self.n_before)
        for start, stop in _cuts(self.n_before):
            n_before = self.n_before[start:stop]
            late = np.repeat(np.arange(start, stop), n_before)
            begin = int(last[start] - self.n_before[start])
            within = np.arange(len(late)) - np.repeat(last[start:stop] - n_before - begin, n_before)
            yield (
                slice(begin, begin + len(late)),
                late,
                np.repeat(np.arange(start, stop) - n_before, n_before) + within,
            )

    def same_truth(self, decided: Float) -> Float:
        """(n_pairs,) k_t"""
        total = np.zeros(len(self.one))
        for at, late, _ in self.blocks():
            np.add.at(total, self.pair[at], decided[self.candidate[late]])
        return total

    def product_by_rank(self, log_factor: Float, rank: Int) -> Float:
        """(n_claims,) for each claim of the table, the product of the factors, (n_pairs,) in logarithms, of its
        source with the sources that claim the same and rank before it, (n_sources,)."""
        total = np.zeros(len(self.claim))
        rank = rank[self.source]
        for at, late, early in self.blocks():
            np.add.at(total, np.where(rank[late] > rank[early], late, early), log_factor[self.pair[at]])
        return self._in_table(np.exp(total))

    def product_by_dependence(self, log_factor: Float, dependence: Float, rank: Int) -> Float:
        """(n_claims,) the same, where that source goes next that is most surely dependent, (n_pairs,), on one that
        went before; first, on any. Rank decides where several are."""
        total, nearest = np.zeros(len(self.claim)), np.zeros(len(self.claim))
        for at, late, early in self.blocks():
            np.maximum.at(nearest, late, dependence[self.pair[at]])
            np.maximum.at(nearest, early, dependence[self.pair[at]])
        begin = np.cumsum(self.n_before) - self.n_before
        rank, left, is_first = rank[self.source], np.arange(len(self.claim)), True
        while len(left):
            # All candidates at once: one of the claims that are left for each of them goes next.
            start = np.flatnonzero(np.diff(self.candidate[left], prepend=-1))
            n_left = np.diff(start, append=len(left))
            best = np.repeat(np.maximum.reduceat(nearest[left], start), n_left)
            standing = np.where(nearest[left] >= best - TIED, rank[left], len(rank))
            goes = standing == np.repeat(np.minimum.reduceat(standing, start), n_left)
            chosen, left = np.repeat(left[goes], n_left - 1), left[~goes]
            late, early = np.maximum(chosen, left), np.minimum(chosen, left)
            pair = self.pair[begin[late] + early - late + self.n_before[late]]
            total[left] += log_factor[pair]
            nearest[left] = np.maximum(0.0 if is_first else nearest[left], dependence[pair])
            is_first = False
        return self._in_table(np.exp(total))

    def _in_table(self, on_places: Float) -> Float:
        """(n_claims,) in the order of the table, from the order of candidates."""
        on_claims = np.empty_like(on_places)
        on_claims[self.claim] = on_places
        return on_claims


@dataclass(frozen=True)
class Accu(Rival):
    """Sources have accuracies and copy from each other; copied votes count less.

    The probability of a candidate is P, made to sum to one over the candidates; a source's reliability is its accuracy.
    """

    name: ClassVar[str] = "accu"
    cites: ClassVar[str] = "Dong, Berti-Equille and Srivastava, PVLDB 2(1), 2009, model ACCU"
    probabilistic: ClassVar[bool] = True

    dependence: float = 0.2
    """α: how probable it is, before the claims are seen, that one of two sources copies from the other."""
    copy_rate: float = 0.8
    """c: the probability that a copier copies a value instead of finding it on its own."""
    n_false: int = 100
    """n: how many false values an object has, claimed or not. Where objects share a label set, that set says it."""
    error_rate: float = 0.2
    """ε: the error rate of every source before the first round."""
    order: str = "accuracy"
    """Which source of a value goes first and counts in full: "accuracy", or "dependence" as in the publication."""
    from_start: bool = False
    """Whether copiers are looked for in the first round already, when nothing is decided, as in the publication."""
    max_rounds: int = 100
    """Rounds at the most."""
    tolerance: float = 1e-4
    """Converged when no accuracy changes by more than this."""

    def __post_init__(self) -> None:
        _share("dependence", self.dependence)
        _share("copy_rate", self.copy_rate)
        if self.order not in ("accuracy", "dependence"):
            raise SettingsError("order", "accuracy or dependence", self.order)
        if not isinstance(self.from_start, bool):
            raise SettingsError("from_start", "True or False", self.from_start)
        _check(self)

    def solve(self, table: Segments, seed: int, tell: Tell) -> Answer:
        """Find copiers, count votes, measure accuracies; again until these stay the same."""
        found = CoClaims.of(self.name, table)
        standing = np.argsort(structural_order(table.claims))

        def independence(given: Belief) -> Float:
            """(n_claims,) I"""
            if not len(given.decided) and not self.from_start:
                return np.ones(table.claims.n_claims)
            dependence = self.copying(found, given, _n_false(self, table))
            log_factor = np.log1p(-self.copy_rate * dependence)
            # Where accuracies are equal, what sources claim decides who goes first, not what they are called.
            rank = np.lexsort((standing, -np.round(given.accuracy, DIGITS))).argsort()
            if self.order == "accuracy":
                return found.product_by_rank(log_factor, rank)
            return found.product_by_dependence(log_factor, dependence, rank)

        return _solve(self, table, tell, independence)

    def copying(self, found: CoClaims, given: Belief, n: int) -> Float:
        """(n_pairs,) P(1 ~ 2 | Φ)"""
        c = self.copy_rate
        if len(given.decided):
            # The accuracy of the origin is a factor above and below: only that of the copier is left.
            copier = np.clip(given.accuracy, SMALLEST, 1 - SMALLEST)[np.stack([found.one, found.other])]
            if_true, if_false = np.log(c / copier + 1 - c), np.log(c * n / (1 - copier) + 1 - c)
            true = found.same_truth(given.decided)
            shared = true * if_true + (found.same - true) * if_false
        else:
            same = (1 - self.error_rate) ** 3 + self.error_rate**3 / n
            shared = np.tile(found.same * np.log(c / same + 1 - c), (2, 1))
        log_prior = np.log(self.dependence / 2 / (1 - self.dependence))
        probability: Float = expit(np.logaddexp(*shared) + found.different * np.log1p(-c) + log_prior)
        return probability


@dataclass(frozen=True)
class AccuIndependent(Rival):
    """Sources have accuracies, learned with the truths, and never copy.

    The probability of a candidate is P, made to sum to one over the candidates; a source's reliability is its accuracy.
    """

    name: ClassVar[str] = "accu-independent"
    cites: ClassVar[str] = (
        "Dong, Berti-Equille and Srivastava, PVLDB 2(1), 2009, model ACCU without dependence"
    )
    probabilistic: ClassVar[bool] = True

    n_false: int = 100
    """n: how many false values an object has, claimed or not. Where objects share a label set, that set says it."""
    error_rate: float = 0.2
    """ε: the error rate of every source before the first round."""
    max_rounds: int = 100
    """Rounds at the most."""
    tolerance: float = 1e-4
    """Converged when no accuracy changes by more than this."""

    def __post_init__(self) -> None:
        _check(self)

    def solve(self, table: Segments, seed: int, tell: Tell) -> Answer:
        """Count votes, measure accuracies; again until these stay the same."""
        return _solve(self, table, tell, lambda given: np.ones(1))


def _solve(
    model: Accu | AccuIndependent,
    table: Segments,
    tell: Tell,
    independence: Callable[[Belief], Float],
) -> Answer:
    """The rounds, given how independent each claim is, (n_claims,)."""
    claims = table.claims
    n_false = _n_false(model, table)
    n_unclaimed = np.maximum(n_false + 1 - table.domain_size, 0)

    def step(given: Belief) -> Belief:
        right = np.clip(given.accuracy, SMALLEST, 1 - SMALLEST)
        score = np.log(n_false * right / (1 - right))[claims.claim_source]
        confidence = table.sum_by_candidate(score * independence(given))
        highest = np.maximum(table.highest_by_object(confidence), 0.0)
        weight = np.exp(confidence - table.to_candidates(highest))
        # A value that nobody claims has C = 0.
        total = table.sum_by_object(weight) + n_unclaimed * np.exp(-highest)
        probability = table.clamp(weight / table.to_candidates(total))
        accuracy = table.sum_over_claims(probability) / table.claims_of_source
        possible = np.where(table.possible, confidence, -np.inf)
        is_best = possible >= table.to_candidates(table.highest_by_object(possible)) - TIED
        return Belief(accuracy, confidence, table.shares(is_best.astype(np.float64)), given.decided)

    def distance(before: Belief, after: Belief) -> float:
        is_back = np.array_equal(after.decided, before.before)
        if is_back and not np.array_equal(after.decided, before.decided):
            return 0.0
        return float(np.abs(after.accuracy - before.accuracy).max())

    nothing = np.zeros(0)
    start = Belief(np.full(claims.n_sources, 1.0 - model.error_rate), nothing, nothing, nothing)
    end, rounds, converged = repeat(
        start, step, distance, max_rounds=model.max_rounds, tolerance=model.tolerance, tell=tell
    )
    swings = converged and rounds > 1 and not np.array_equal(end.decided, end.before)
    truth, _ = table.softmax(end.confidence)
    return Answer(
        truth,
        end.accuracy,
        rounds=rounds,
        converged=converged,
        warnings=(Caution("Decisions swing between two answers; the later one is given."),) if swings else (),
    )


def _n_false(model: Accu | AccuIndependent, table: Segments) -> int:
    """n: as set where domains are open. A label set is closed: all of its labels but one are false."""
    if table.claims.domain == "claimed":
        return model.n_false
    return max(int(table.domain_size.max()) - 1, 1)


def _pairs(table: Segments) -> Iterator[tuple[Int, Int, Float, Float]]:
    """Pairs of sources with a value in common, a run of sources at a time: one, other, same, different."""
    claims = table.claims
    ones = np.ones(claims.n_claims)
    says = csr_array(
        (ones, (claims.claim_source, claims.claim_candidate)), shape=(claims.n_sources, claims.n_candidates)
    )
    speaks = csr_array(
        (ones, (claims.claim_source, table.claim_object)), shape=(claims.n_sources, claims.n_objects)
    )
    told, heard = says.T.tocsr(), speaks.T.tocsr()
    for start, stop in _cuts(table.sum_by_source(table.claims_of_object[table.claim_object])):
        same = triu(says[start:stop] @ told, k=start + 1, format="csr")
        same.sort_indices()
        is_pair = same.astype(np.bool_).astype(np.float64)
        both = is_pair.multiply(speaks[start:stop] @ heard).tocsr()
        both.sort_indices()
        one = np.repeat(np.arange(start, stop), np.diff(same.indptr))
        yield one, same.indices.astype(np.int64), same.data, both.data - same.data


def _cuts(work: Float | Int) -> Iterator[tuple[int, int]]:
    """Runs of consecutive items of about a BLOCK of work each, at least one item."""
    done = np.cumsum(work)
    edges = np.searchsorted(done, np.arange(BLOCK, done[-1] + BLOCK, BLOCK)) + 1
    yield from pairwise(np.unique(np.concatenate([[0], np.minimum(edges, len(work))])).tolist())


def _check(model: Accu | AccuIndependent) -> None:
    whole_number("n_false", model.n_false, 1)
    _share("error_rate", model.error_rate)
    whole_number("max_rounds", model.max_rounds, 1)
    positive("tolerance", model.tolerance)


def _share(setting: str, given: float) -> None:
    positive(setting, given)
    if given >= 1:
        raise SettingsError(setting, "a number between 0 and 1", given)
