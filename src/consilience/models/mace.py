"""MACE: on each claim a source either knows the truth or spams.

D. Hovy, T. Berg-Kirkpatrick, A. Vaswani and E. Hovy, "Learning whom to trust with MACE", NAACL (2013). S_nm says
whether source n spams on object m; a spammer does not look at the object but draws from a distribution ξ_n of its own:

    t_m uniform          S_nm ~ Bernoulli(1 - θ_n)          y_nm = t_m where S_nm = 0, else ~ ξ_n
    θ_n ~ Beta(½, ½)     ξ_n ~ Dirichlet(10, …, 10)

Variational Bayes. With θ̃ = exp E ln θ, θ̃' = exp E ln(1 - θ), ξ̃ = exp E ln ξ:

    E:  T_mz ∝ Π_{n on m} (θ̃'_n ξ̃_n,y + θ̃_n [y = z])          k_nm = T_m,y θ̃_n / (θ̃'_n ξ̃_n,y + θ̃_n) = q(n knows)
    M:  q(θ_n) = Beta(½ + Σ k, ½ + Σ (1 - k))          q(ξ_n) = Dirichlet(10 + Σ (1 - k) [y = l])

EM instead of it takes θ and ξ as shares of the same counts, δ added to each: the posterior's highest point under priors
Beta(1 + δ, 1 + δ) and Dirichlet(1 + δ). Several random starts; the one with the highest bound is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import betaln, digamma, gammaln

from consilience.claims.encoding import Float, Int
from consilience.errors import SettingsError
from consilience.kernels.segments import Labels, Segments
from consilience.models.base import (
    Answer,
    Ascent,
    Rival,
    Tell,
    ascend,
    common_labels,
    positive,
    whole_number,
)
from consilience.models.order import structural_order
from consilience.results.decide import scatter_bits
from consilience.results.fit import FALL

NOISE = 0.5
"""A start's weights are uniform on 1 … 1 + this, before they are made to sum to one."""


@dataclass(frozen=True, eq=False)
class Weights:
    """What the truths are computed from.

    log_knows : (n_sources,) E ln θ
    log_spams : (n_habits,)  E ln(1 - θ) + E ln ξ: to spam, and to say this
    log_prior : what the bound owes to the priors
    knowing   : (n_sources,) the mean of θ
    """

    log_knows: Float
    log_spams: Float
    log_prior: float
    knowing: Float


@dataclass(frozen=True, eq=False)
class Counts:
    """What the weights are computed from.

    knows      : (n_habits,) Σ over the habit's claims of q(n knows)
    likelihood : Σ_m ln of what T_mz is made to sum to one by
    """

    knows: Float
    likelihood: float


@dataclass(frozen=True)
class MACE(Rival):
    """On each claim a source knows the truth or spams, from a distribution of its own; variational Bayes.

    A source's reliability is the mean of θ_n: how often it knows.
    """

    name: ClassVar[str] = "mace"
    cites: ClassVar[str] = "Hovy, Berg-Kirkpatrick, Vaswani and Hovy, NAACL 2013"
    probabilistic: ClassVar[bool] = True

    method: str = "vb"
    """Either "vb", variational Bayes with priors, or "em", expectation-maximisation with smoothed counts."""
    n_restarts: int = 10
    """Random starts."""
    max_rounds: int = 50
    """Rounds a start at the most."""
    tolerance: float = 1e-6
    """A start ends early when a round raises the bound by less than this share of it."""
    knowing_prior: tuple[float, float] = (0.5, 0.5)
    """Of the Beta prior on θ, for "vb": pseudo-counts of knowing and of spamming."""
    strategy_prior: float = 10.0
    """Of the Dirichlet prior on ξ, for "vb": pseudo-counts of each label."""
    smoothing: float = 0.01
    """δ times the number of labels, for "em"."""

    def __post_init__(self) -> None:
        if self.method not in ("vb", "em"):
            raise SettingsError("method", '"vb" or "em"', self.method)
        whole_number("n_restarts", self.n_restarts, 1)
        whole_number("max_rounds", self.max_rounds, 1)
        if not (isinstance(self.knowing_prior, tuple | list) and len(self.knowing_prior) == 2):
            raise SettingsError("knowing_prior", "two numbers greater than 0", self.knowing_prior)
        for count in self.knowing_prior:
            positive("knowing_prior", count)
        for setting in ("tolerance", "strategy_prior", "smoothing"):
            positive(setting, getattr(self, setting))

    def solve(self, table: Segments, seed: int, tell: Tell) -> Answer:
        """Climb from every start; what is climbed is the variational bound, or ln p(claims, θ, ξ) for "em"."""
        labels = common_labels(self.name, table)
        update = self.posterior if self.method == "vb" else self.smoothed
        ends: list[Ascent[Weights, Float]] = []
        for start in random_starts(labels, self.n_restarts, np.random.default_rng(seed)):
            before = len(ends) * self.max_rounds
            end: Ascent[Weights, Float] = ascend(
                update(labels, expect(labels, start)[1]),
                local_step=lambda given: expect(labels, given),
                global_step=lambda counts, given: update(labels, counts),
                bound=lambda counts, given: {"likelihood": counts.likelihood, "prior": given.log_prior},
                max_sweeps=self.max_rounds,
                tolerance=self.tolerance,
                progress=lambda i, bound, before=before: tell(before + i, bound),  # type: ignore[misc]
            )
            ends.append(end)
        best = ends[0]
        for end in ends[1:]:
            # A gain within rounding is none: else the order of sums could choose between equal starts.
            if end.bound > best.bound + FALL * abs(best.bound):
                best = end
        return Answer(
            best.locals,
            best.globals.knowing,
            rounds=len(best.trace),
            converged=best.converged,
            trace=best.trace,
            learned={"start_bounds": [end.bound for end in ends]},
        )

    def posterior(self, labels: Labels, counts: Counts) -> Weights:
        """The M step of "vb"; the priors' part of the bound is minus the divergence of q from them."""
        right, wrong = self.knowing_prior
        knows, spams, all_spams = _tally(labels, counts)
        a, b = right + knows, wrong + all_spams
        log_knows, log_not = digamma(a) - digamma(a + b), digamma(b) - digamma(a + b)
        total = self.strategy_prior * labels.n_labels + all_spams
        log_says = digamma(self.strategy_prior + spams) - digamma(total)[labels.habit_source]
        # Labels that a source never says have their prior still, and add nothing to the divergence.
        divergence = (
            (betaln(right, wrong) - betaln(a, b) + knows * log_knows + all_spams * log_not).sum()
            + (gammaln(total) - gammaln(self.strategy_prior * labels.n_labels)).sum()
            + (gammaln(self.strategy_prior) - gammaln(self.strategy_prior + spams) + spams * log_says).sum()
        )
        return Weights(log_knows, log_not[labels.habit_source] + log_says, -float(divergence), a / (a + b))

    def smoothed(self, labels: Labels, counts: Counts) -> Weights:
        """The M step of "em"; ln prior up to a constant."""
        extra = self.smoothing / labels.n_labels
        knows, spams, all_spams = _tally(labels, counts)
        right = (knows + extra) / (knows + all_spams + 2 * extra)
        total = all_spams + labels.n_labels * extra
        log_says = np.log(spams + extra) - np.log(total)[labels.habit_source]
        never_said = labels.n_labels - np.diff(labels.first_habit)
        log_prior = extra * (
            (np.log(right) + np.log1p(-right)).sum()
            + log_says.sum()
            + (never_said * (np.log(extra) - np.log(total))).sum()
        )
        return Weights(
            np.log(right), np.log1p(-right)[labels.habit_source] + log_says, float(log_prior), right
        )


def expect(labels: Labels, given: Weights) -> tuple[Float, Counts]:
    """The E step. Claims of one habit have the same weights, so only sums of T_m,y pass over the claims."""
    table, claim_habit = labels.segments, labels.claim_habit
    log_knows = given.log_knows[labels.habit_source]
    log_either = np.logaddexp(given.log_spams, log_knows)
    # A claim for z adds this to what the same claim gives any other truth.
    gain = table.sum_by_candidate((log_either - given.log_spams)[claim_habit])
    truth, evidence = table.softmax(table.log_truth + gain)
    spams = float(labels.claims_of_habit @ given.log_spams)
    right: Float = np.bincount(claim_habit, truth[table.claims.claim_candidate]).astype(np.float64)
    return truth, Counts(right * np.exp(log_knows - log_either), float(evidence.sum()) + spams)


def _tally(labels: Labels, counts: Counts) -> tuple[Float, Float, Float]:
    """(n_sources,) claims that know, (n_habits,) claims that spam, (n_sources,) the same by source."""
    spams = np.maximum(labels.claims_of_habit - counts.knows, 0.0)  # rounding may take it below
    return labels.sum_by_source(counts.knows), spams, labels.sum_by_source(spams)


def random_starts(labels: Labels, n: int, rng: np.random.Generator) -> Iterator[Weights]:
    """Weights a little off from even. Sources and labels draw in an order that their names have no part in."""
    source_rank, label_rank = _ranks(labels)
    for _ in range(n):
        spams = rng.uniform(1, 1 + NOISE, (len(source_rank), 2))[source_rank]
        says = rng.uniform(1, 1 + NOISE, (len(source_rank), labels.n_labels))[source_rank]
        spams /= spams.sum(axis=1, keepdims=True)
        says /= says.sum(axis=1, keepdims=True)
        source, label = labels.habit_source, label_rank[labels.habit_label]
        log_spams = np.log(spams[source, 0]) + np.log(says[source, label])
        yield Weights(np.log(spams[:, 1]), log_spams, 0.0, spams[:, 1])


def _ranks(labels: Labels) -> tuple[Int, Int]:
    """(n_sources,) each source's place in the structural order; (n_labels,) each label's, by who says it with whom."""
    claims = labels.segments.claims
    source_rank = np.argsort(structural_order(claims))
    candidate = np.zeros(claims.n_candidates, np.uint64)
    np.add.at(
        candidate, claims.claim_candidate, scatter_bits(source_rank.astype(np.uint64))[claims.claim_source]
    )
    label = np.zeros(labels.n_labels, np.uint64)
    np.add.at(label, claims.candidate_value, scatter_bits(candidate))
    return source_rank, np.argsort(np.argsort(label, kind="stable"))
