"""GLAD: sources differ in ability, objects in difficulty.

J. Whitehill, P. Ruvolo, T. Wu, J. Bergsma and J. Movellan, "Whose vote should count more: optimal integration of labels
from labelers of unknown expertise", NIPS 22 (2009). Source n has an ability α_n, which is negative where it misleads,
object m an easiness e^β_m. With x_nm = α_n e^β_m and σ the logistic function,

    p(y_nm = z | t_m = z) = σ(x_nm)          p(y_nm = any other | t_m) = (1 - σ(x_nm)) / (K_m - 1)             (1)
    α_n ~ N(1, 1)          β_m ~ N(1, 1)          t_m uniform

    E:  T_mz ∝ Π_{n on m} p(y_nm | t_m = z)
    M:  climb  Q(α, β) = Σ_claims [T_m,y x_nm - ln(1 + e^x_nm)] + ln p(α) + ln p(β)

The publication climbs Q along its gradient. Here: with w(x) = tanh(x / 2) / 2x, at x₀, what x is now,

    ln(1 + e^x) ≤ x / 2 + w(x₀) x² / 2 + constant, with equality at x₀,

(T. Jaakkola and M. Jordan, "Bayesian parameter estimation via variational methods", Statistics and Computing 10, 2000),
so that Q has a lower bound in which, given β, the best α_n has a closed form and, given α, β_m is alone in a function
of one variable. Both steps raise Q, whatever the table: no step length is searched over all parameters at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from consilience.claims.encoding import Float
from consilience.kernels.segments import Segments
from consilience.models.base import Answer, Rival, Tell, ascend, positive, whole_number

NEWTON_STEPS = 4
"""Steps of an object's own climb; they never pass over the claims, so they cost little."""
HALVINGS = 10
"""A step that lowers an object's function is halved this often, then given up."""


@dataclass(frozen=True, eq=False)
class Skills:
    """What GLAD learns.

    ability : (n_sources,) α
    ease    : (n_objects,) β: the logarithm of easiness
    """

    ability: Float
    ease: Float


@dataclass(frozen=True)
class GLAD(Rival):
    """Every source has an ability, every object a difficulty; EM with normal priors on both.

    A source's reliability is the probability that it is right on an object of mean β: σ(α_n e^mean β). Where an object
    has one candidate, claims on it count as right or wrong between two.
    """

    name: ClassVar[str] = "glad"
    cites: ClassVar[str] = "Whitehill, Ruvolo, Wu, Bergsma and Movellan, NIPS 2009"
    probabilistic: ClassVar[bool] = True

    max_rounds: int = 100
    """Rounds of EM at the most."""
    tolerance: float = 1e-5
    """Converged when a round raises the log posterior by less than this share of it."""
    steps: int = 5
    """How often a round climbs in all abilities, then in all difficulties."""
    prior_mean: float = 1.0
    """Mean of the normal priors on α and on β."""
    prior_variance: float = 1.0
    """Variance of the normal priors on α and on β."""

    def __post_init__(self) -> None:
        whole_number("max_rounds", self.max_rounds, 1)
        positive("tolerance", self.tolerance)
        whole_number("steps", self.steps, 1)
        positive("prior_mean", self.prior_mean, -np.inf)
        positive("prior_variance", self.prior_variance)

    def solve(self, table: Segments, seed: int, tell: Tell) -> Answer:
        """EM from the prior means; what is climbed is ln p(claims, α, β)."""
        claims = table.claims
        start = Skills(
            np.full(claims.n_sources, float(self.prior_mean)),
            np.full(claims.n_objects, float(self.prior_mean)),
        )

        def local_step(given: Skills) -> tuple[Float, tuple[Float, float]]:
            truth, likelihood = expect(table, given)
            return truth, (truth, likelihood)

        end = ascend(
            start,
            local_step=local_step,
            global_step=lambda stats, given: self.climb(table, stats[0], given),
            bound=lambda stats, given: {"likelihood": stats[1], "prior": self.log_prior(given)},
            max_sweeps=self.max_rounds,
            tolerance=self.tolerance,
            progress=tell,
        )
        mean_ease = float(end.globals.ease.mean())
        return Answer(
            end.locals,
            logistic(end.globals.ability * np.exp(mean_ease)),
            rounds=len(end.trace),
            converged=end.converged,
            trace=end.trace,
            learned={"mean_ability": float(end.globals.ability.mean()), "mean_ease": mean_ease},
        )

    def log_prior(self, given: Skills) -> float:
        """ln p(α) + ln p(β)"""
        both = np.concatenate([given.ability, given.ease])
        square = ((both - self.prior_mean) ** 2).sum() / self.prior_variance
        return float(-(square + len(both) * np.log(2 * np.pi * self.prior_variance)) / 2)

    def climb(self, table: Segments, truth: Float, given: Skills) -> Skills:
        """Skills with a higher Q: abilities, then difficulties, a few times over."""
        claims, ability, ease = table.claims, given.ability, given.ease
        first, object_, source = claims.first_claim[:-1], table.claim_object, claims.claim_source
        excess = truth[claims.claim_candidate] - 0.5
        for _ in range(self.steps):
            # One lower bound on Q, tight at the skills there are, is climbed in α and then in β.
            scale = np.exp(ease)[object_]
            bend = curvature(ability[source] * scale)
            ability = (table.sum_by_source(excess * scale) + self.prior_mean / self.prior_variance) / (
                table.sum_by_source(bend * scale * scale) + 1 / self.prior_variance
            )
            able = ability[source]
            slope, curve = np.add.reduceat(excess * able, first), np.add.reduceat(bend * able * able, first)
            ease = self._better_ease(slope, curve, ease)
        return Skills(ability, ease)

    def _better_ease(self, slope: Float, curve: Float, ease: Float) -> Float:
        """(n_objects,) β that raises slope e^β - curve e^2β / 2 + ln p(β), by guarded Newton steps."""

        def height(ease: Float) -> Float:
            easy = np.exp(ease)
            return (slope - curve * easy / 2) * easy - (ease - self.prior_mean) ** 2 / (
                2 * self.prior_variance
            )

        now = height(ease)
        for _ in range(NEWTON_STEPS):
            easy = np.exp(ease)
            rise = (slope - curve * easy) * easy - (ease - self.prior_mean) / self.prior_variance
            bend = (2 * curve * easy - slope) * easy + 1 / self.prior_variance
            # Where the function is not concave the prior's curvature stands in; e^β forbids steps beyond one.
            step = np.clip(rise / np.maximum(bend, 1 / self.prior_variance), -1, 1)
            for _ in range(HALVINGS):
                then = height(ease + step)
                falls = then < now
                if not falls.any():
                    break
                step = np.where(falls, step / 2, step)
            ease, now = np.where(falls, ease, ease + step), np.where(falls, now, then)
        return ease


def expect(table: Segments, given: Skills) -> tuple[Float, float]:
    """(n_candidates,) T, and ln p(claims | α, β)."""
    claims = table.claims
    x = given.ability[claims.claim_source] * np.exp(given.ease)[table.claim_object]
    # K_m = 1 has no wrong label to share 1 - σ: one label that nobody said stands in for it.
    log_wrong = np.log(np.maximum(table.domain_size - 1, 1))
    # ln σ(x) - ln (1 - σ(x)) = x: a claim for z adds x + ln(K_m - 1) to what a claim for another value would give.
    for_it = table.sum_by_candidate(x) + table.votes * table.to_candidates(log_wrong)
    truth, evidence = table.softmax(table.log_truth + for_it)
    missed = np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))
    return truth, float(evidence.sum() - missed.sum() - (table.claims_of_object * log_wrong).sum())


def curvature(x: Float) -> Float:
    """w(x) = tanh(x / 2) / 2x, which is even, and 1/4 at 0."""
    half = np.maximum(np.abs(x) / 2, 1e-8)
    w: Float = np.tanh(half) / (4 * half)
    return w


def logistic(x: Float) -> Float:
    """σ(x), without overflow."""
    return (1 + np.tanh(x / 2)) / 2
