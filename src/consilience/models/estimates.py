"""2-Estimates, 3-Estimates and Cosine: sources affirm facts and deny others, and have errors to be estimated.

A. Galland, S. Abiteboul, A. Marian and P. Senellart, "Corroborating information from disagreeing views", WSDM (2010).
A *fact* f is a claimed value of an object. A source that claims one value affirms it and denies the object's other
facts; of what it says nothing about, it says nothing. T_n, F_n are the facts that n affirms and denies, T_f, F_f the
sources that affirm and deny f; a mean is over all of both.

2-Estimates: W_f the truth of a fact, ε_n the error of a source.

    W_f = mean over T_f of (1 - ε_n), over F_f of ε_n            ε_n = mean over T_n of (1 - W_f), over F_n of W_f

3-Estimates: φ_f the difficulty of a fact too; n errs on f with probability ε_n φ_f. What is divided by 0 is left out.

    W_f = mean over T_f of (1 - ε_n φ_f), over F_f of ε_n φ_f
    φ_f = mean over T_f of (1 - W_f) / ε_n, over F_f of W_f / ε_n
    ε_n = mean over T_n of (1 - W_f) / φ_f, over F_n of W_f / φ_f

Every estimate is normalised at once, for the equations alone drift to where all is equal, or out of [0, 1]:

    x ← λ (x - min) / (max - min) + (1 - λ) round(x)

Cosine: θ_n in [-1, 1] the trust in a source, the cosine of its statements, 1 and -1, and the facts' E_f in [-1, 1].

    E_f = (Σ_{T_f} θ_n³ - Σ_{F_f} θ_n³) / Σ_{T_f, F_f} |θ_n|³
    θ_n = (1 - η) θ_n + η (Σ_{T_n} E_f - Σ_{F_n} E_f) / sqrt(|T_n ∪ F_n| Σ_{T_n, F_n} E_f²)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from consilience.claims.encoding import Float
from consilience.errors import SettingsError
from consilience.kernels.segments import Segments
from consilience.models.base import Answer, Rival, Tell, positive, repeat, whole_number

Bool = NDArray[np.bool_]

DIGITS = 9
"""Normalised estimates are kept to this many decimals: scaling, rounding and division by small errors would blow up
the last digits of a sum, which depend on the order of its terms, until they decide."""
TIED = 1e-9
"""What is nearer than this to a half is not rounded either way; what is nearer to 0 is not divided by."""
SMALLEST = 1e-12
"""The weight of a fact that nothing speaks for: more than that of a value nobody claims."""


@dataclass(frozen=True)
class TwoEstimates(Rival):
    """Truths of facts and errors of sources, each the mean of the other, with values not claimed denied.

    A source's reliability is 1 minus its error: 0 and 1 belong to the worst and the best, not to always and never.
    """

    name: ClassVar[str] = "2-estimates"
    cites: ClassVar[str] = "Galland, Abiteboul, Marian and Senellart, WSDM 2010"

    scaling: float = 0.5
    """λ: weight of the linear scaling to [0, 1]; the rest is rounding to 0 or 1."""
    max_rounds: int = 100
    """Rounds at the most."""
    tolerance: float = 1e-4
    """Converged when no source's error changes by more than this."""

    def __post_init__(self) -> None:
        _share("scaling", self.scaling)
        whole_number("max_rounds", self.max_rounds, 1)
        positive("tolerance", self.tolerance)

    def solve(self, table: Segments, seed: int, tell: Tell) -> Answer:
        """Start from no errors, which is majority vote."""
        views = Views(table)

        def believe(error: Float) -> Float:
            """(n_candidates,) W"""
            right = views.of_facts(1 - error, error) / views.n_sources
            return views.clamp(_normalised(right, views.is_fact, self.scaling))

        def step(error: Float) -> Float:
            """(n_sources,) ε"""
            true = believe(error)
            wrong = views.of_sources(1 - true, true) / views.n_facts
            return _normalised(wrong, np.ones(len(wrong), np.bool_), self.scaling)

        error, rounds, converged = repeat(
            np.zeros(table.claims.n_sources), step, _largest_change,
            max_rounds=self.max_rounds, tolerance=self.tolerance, tell=tell,
        )  # fmt: skip
        return Answer(views.shares(believe(error)), 1 - error, rounds=rounds, converged=converged)


@dataclass(frozen=True)
class ThreeEstimates(Rival):
    """2-Estimates with a difficulty for every fact: an error counts by how easy the fact is.

    A source's reliability is 1 minus its error: 0 and 1 belong to the worst and the best, not to always and never.
    """

    name: ClassVar[str] = "3-estimates"
    cites: ClassVar[str] = "Galland, Abiteboul, Marian and Senellart, WSDM 2010"

    scaling: float = 0.5
    """λ: weight of the linear scaling to [0, 1]; the rest is rounding to 0 or 1."""
    initial_difficulty: float = 0.1
    """φ of every fact at the start."""
    max_rounds: int = 20
    """Rounds at the most: it seldom comes to rest, and more rounds do not make it better."""
    tolerance: float = 1e-4
    """Converged when no source's error changes by more than this."""

    def __post_init__(self) -> None:
        _share("scaling", self.scaling)
        positive("initial_difficulty", self.initial_difficulty)
        _share("initial_difficulty", self.initial_difficulty)
        whole_number("max_rounds", self.max_rounds, 1)
        positive("tolerance", self.tolerance)

    def solve(self, table: Segments, seed: int, tell: Tell) -> Answer:
        """Start from no errors, which is majority vote, and equal difficulties."""
        views = Views(table)

        def believe(state: tuple[Float, Float]) -> Float:
            """(n_candidates,) W"""
            error, difficulty = state
            right = (table.votes - difficulty * views.of_facts(error, -error)) / views.n_sources
            return views.clamp(_normalised(right, views.is_fact, self.scaling))

        def step(state: tuple[Float, Float]) -> tuple[Float, Float]:
            """(n_sources,) ε and (n_candidates,) φ"""
            true, (error, difficulty) = believe(state), state
            by_error, counts = _inverse(error)
            none = np.zeros_like(by_error)
            wrong = (1 - true) * views.of_facts(by_error, none) + true * views.of_facts(none, by_error)
            number = views.of_facts(counts, counts)
            difficulty = _renewed(difficulty, wrong, number, views.is_fact, self.scaling)

            by_difficulty, counts = _inverse(np.where(views.is_fact, difficulty, 0.0))
            wrong = views.of_sources((1 - true) * by_difficulty, true * by_difficulty)
            number = views.of_sources(counts, counts)
            error = _renewed(error, wrong, number, np.ones(len(error), np.bool_), self.scaling)
            return error, difficulty

        start = np.zeros(table.claims.n_sources), np.full(table.claims.n_candidates, self.initial_difficulty)
        state, rounds, converged = repeat(
            start, step, lambda before, now: _largest_change(before[0], now[0]),
            max_rounds=self.max_rounds, tolerance=self.tolerance, tell=tell,
        )  # fmt: skip
        return Answer(views.shares(believe(state)), 1 - state[0], rounds=rounds, converged=converged)


@dataclass(frozen=True)
class Cosine(Rival):
    """Trust in a source is the cosine of what it affirms and denies and what all others make of it.

    A source's reliability is (1 + θ) / 2: a half for one whose statements have nothing to do with the answers.
    """

    name: ClassVar[str] = "cosine"
    cites: ClassVar[str] = "Galland, Abiteboul, Marian and Senellart, WSDM 2010"

    eta: float = 0.2
    """η: how much of a source's trust is renewed in a round."""
    max_rounds: int = 200
    """Rounds at the most."""
    tolerance: float = 1e-4
    """Converged when no source's trust changes by more than this."""

    def __post_init__(self) -> None:
        positive("eta", self.eta)
        _share("eta", self.eta)
        whole_number("max_rounds", self.max_rounds, 1)
        positive("tolerance", self.tolerance)

    def solve(self, table: Segments, seed: int, tell: Tell) -> Answer:
        """Start from full trust in all, which is majority vote: from all facts true, as a start is also described,
        every trust is (2 - K) / K, and with two values a fact there is none."""
        views = Views(table)

        def believe(trust: Float) -> Float:
            """(n_candidates,) E; 0 where nobody who speaks has any trust"""
            weight = trust**3
            total = views.of_facts(np.abs(weight), np.abs(weight))
            # |θ|³: with the signs, a trust and a distrust would cancel, and E leave [-1, 1].
            balance = views.of_facts(weight, -weight)
            estimate: Float = np.divide(balance, total, out=np.zeros_like(balance), where=total > SMALLEST)
            return views.clamp(estimate, wrong=-1.0)

        def step(trust: Float) -> Float:
            """(n_sources,) θ"""
            estimate = believe(trust)
            length = np.sqrt(views.n_facts * views.of_sources(estimate**2, estimate**2))
            product = views.of_sources(estimate, -estimate)
            cosine = np.divide(product, length, out=np.zeros_like(product), where=length > SMALLEST)
            return (1 - self.eta) * trust + self.eta * cosine

        trust, rounds, converged = repeat(
            np.ones(table.claims.n_sources), step, _largest_change,
            max_rounds=self.max_rounds, tolerance=self.tolerance, tell=tell,
        )  # fmt: skip
        truth = views.shares((1 + believe(trust)) / 2)
        return Answer(truth, (1 + trust) / 2, rounds=rounds, converged=converged)


@dataclass(frozen=True, eq=False)
class Views:
    """What sources affirm and deny: sums over statements, from sums over claims."""

    table: Segments

    @cached_property
    def is_fact(self) -> Bool:
        """(n_candidates,) claimed by somebody, or known to be true. What nobody claims is no fact for anyone to deny:
        else the size of a label set would change the answers."""
        return (self.table.votes > 0) | (self.table.clamp(np.zeros(self.table.claims.n_candidates)) > 0)

    @cached_property
    def n_sources(self) -> Float:
        """(n_candidates,) how many sources affirm or deny each."""
        return self.table.to_candidates(self.table.claims_of_object)

    @cached_property
    def n_facts(self) -> Float:
        """(n_sources,) how many facts each affirms or denies."""
        each = self.is_fact.astype(np.float64)
        return self.of_sources(each, each)

    def of_facts(self, affirming: Float, denying: Float) -> Float:
        """(n_candidates,) Σ over those who affirm a fact of `affirming`, over those who deny it of `denying`, both
        (n_sources,)."""
        denied = self.table.sum_over_claimants(denying)
        all_ = self.table.to_candidates(self.table.sum_by_object(denied))
        return self.table.sum_over_claimants(affirming) + (all_ - denied)

    def of_sources(self, affirmed: Float, denied: Float) -> Float:
        """(n_sources,) Σ over the facts a source affirms of `affirmed`, over those it denies of `denied`, both
        (n_candidates,) and `denied` 0 where there is no fact."""
        said = self.table.claims.claim_candidate
        all_ = self.table.sum_by_object(denied)[self.table.claim_object]
        return self.table.sum_by_source(affirmed[said] + (all_ - denied[said]))

    def clamp(self, estimate: Float, wrong: float = 0.0) -> Float:
        """(n_candidates,) 1 for known truths, `wrong` for what they rule out, 0 for what is no fact."""
        return np.where(self.is_fact, self.table.clamp(estimate, 1.0, wrong), 0.0)

    def shares(self, estimate: Float) -> Float:
        """(n_candidates,) estimates of facts made to sum to one for each object."""
        return self.table.shares(np.where(self.is_fact, np.maximum(estimate, SMALLEST), 0.0))


def _normalised(x: Float, counts: Bool, scaling: float) -> Float:
    """λ of a linear scaling of all that counts to [0, 1], and of rounding the rest.

    Rounding is to 0 or 1, also from outside [0, 1], and leaves a half alone. Where all are equal there is nothing to
    scale: x stays, within [0, 1].
    """
    low, high = x[counts].min(), x[counts].max()
    scaled = (x - low) / (high - low) if high - low > TIED else np.clip(x, 0.0, 1.0)
    rounded = 0.5 + 0.5 * np.sign(np.where(np.abs(x - 0.5) > TIED, x - 0.5, 0.0))
    return np.round(scaling * scaled + (1 - scaling) * rounded, DIGITS)


def _renewed(old: Float, total: Float, number: Float, counts: Bool, scaling: float) -> Float:
    """The normalised means of what counts; as it was where there is nothing to take the mean of."""
    counts = counts & (number > 0)
    if not counts.any():
        return old
    mean = np.divide(total, number, out=np.zeros_like(total), where=counts)
    return np.where(counts, _normalised(mean, counts, scaling), old)


def _inverse(x: Float) -> tuple[Float, Float]:
    """1 / x, and 1 as a count; 0 and 0 where x is 0."""
    counts = x > TIED
    return np.divide(1.0, x, out=np.zeros_like(x), where=counts), counts.astype(np.float64)


def _largest_change(before: Float, now: Float) -> float:
    return float(np.abs(now - before).max())


def _share(setting: str, given: Any) -> None:
    """A number from 0 to 1, or a SettingsError."""
    if isinstance(given, bool) or not isinstance(given, Real) or not 0 <= float(given) <= 1:
        raise SettingsError(setting, "a number from 0 to 1", given)
