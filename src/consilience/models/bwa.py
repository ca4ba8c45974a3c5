"""BWA: the truth as a weighted average of zeros and ones.

Y. Li, B. Rubinstein and T. Cohn, "Truth inference at scale: a Bayesian model for adjudicating highly redundant crowd
annotations", WWW (2019). Label by label: y_nm is 1 where source n says the label on object m, else 0, and is taken for
a measurement of a number z_m with noise of precision v_n:

    y_nm ~ N(z_m, 1 / v_n)          z_m ~ N(μ, 1 / λ)          v_n ~ Gamma(a / 2, b / 2)

EM with the precisions hidden, from z_m = the share of the label among the object's claims; N_n counts n's claims:

    μ   = mean_m z_m
    v_n = (a + N_n) / (b + Σ_{m of n} (y_nm - z_m)²)                   E:  the mean of v_n given z
    z_m = (λ μ + Σ_{n on m} v_n y_nm) / (λ + Σ_{n on m} v_n)           M:  the weighted average

λ = 1, a = 15, and b is such that the prior's mean variance is that of the votes, b = a · c · mean over claims of
z_m (1 - z_m) at the start, with the correction c = 4 (1 - 1/V) for V labels. An object's answer is the label with the
highest z. What the rounds climb is ln p(y, z | μ), the precisions integrated out:

    Σ_n [ln Γ((a + N_n) / 2) - ln Γ(a / 2) + a/2 ln b/2 - (a + N_n) / 2 · ln((b + Σ(y - z)²) / 2) - N_n / 2 · ln 2π]
    + Σ_m [ln(λ / 2π) - λ (z_m - μ)²] / 2
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import gammaln

from consilience.claims.encoding import Float
from consilience.errors import SettingsError
from consilience.kernels.segments import Segments
from consilience.models.base import Answer, Rival, Tell, common_labels, positive, repeat, whole_number

SMALLEST = 1e-9
"""The least b: where all agree on a label there is no variance to measure, and b = 0 would make precisions infinite."""


@dataclass(frozen=True)
class BWA(Rival):
    """Each label's score is an average of zeros and ones, weighted by each source's precision on it.

    Scores are made to sum to one for each object. A source's reliability is the mean score of what it claims.
    """

    name: ClassVar[str] = "bwa"
    cites: ClassVar[str] = "Li, Rubinstein and Cohn, WWW 2019"

    max_rounds: int = 500
    """Rounds of EM at the most."""
    tolerance: float = 1e-3
    """Converged when no z changes by more than this share of itself."""
    prior_precision: float = 1.0
    """λ: how strongly averages are drawn to their mean over all objects."""
    prior_claims: float = 15.0
    """a: how many claims the prior of a source's precision is worth."""
    correct_prior: bool = True
    """Whether b, the prior's variance, is multiplied by 4 (1 - 1/V)."""

    def __post_init__(self) -> None:
        whole_number("max_rounds", self.max_rounds, 1)
        for setting in ("tolerance", "prior_precision", "prior_claims"):
            positive(setting, getattr(self, setting))
        if not isinstance(self.correct_prior, bool):
            raise SettingsError("correct_prior", "True or False", self.correct_prior)

    def solve(self, table: Segments, seed: int, tell: Tell) -> Answer:
        """All labels a round; what is climbed is the sum of their ln p(y, z | μ)."""
        labels = common_labels(self.name, table)
        claims, first = table.claims, table.claims.first_claim[:-1]
        precision, a, n_claims = self.prior_precision, self.prior_claims, table.claims_of_source
        is_known = np.zeros(claims.n_objects, np.bool_) if table.is_known is None else table.is_known
        vote = labels.vote()
        correction = 4 * (1 - 1 / labels.n_labels) if self.correct_prior else 1.0
        spread = (table.claims_of_object @ (vote * (1 - vote))) / claims.n_claims
        b = np.maximum(a * correction * spread, SMALLEST)
        fixed = float(
            (gammaln((a + n_claims) / 2) - gammaln(a / 2) - n_claims / 2 * np.log(2 * np.pi)).sum()
            + claims.n_objects / 2 * np.log(precision / (2 * np.pi))
        )
        trace: list[dict[str, float]] = []
        said = labels.said

        def step(score: Float) -> Float:
            """(n_objects, n_labels) z from z"""
            new, height = np.empty_like(score), 0.0
            for label in range(labels.n_labels):
                z, says = score[:, label], (said == label).astype(np.float64)
                mean = z.mean()
                squares = b[label] + table.sum_by_source((says - z[table.claim_object]) ** 2)
                weight = ((a + n_claims) / squares)[claims.claim_source]
                average = (precision * mean + np.add.reduceat(weight * says, first)) / (
                    precision + np.add.reduceat(weight, first)
                )
                new[:, label] = np.where(is_known, labels.possible[:, label], average)
                height += fixed + claims.n_sources * a / 2 * np.log(b[label] / 2)
                height -= (
                    float((a + n_claims) @ np.log(squares / 2) + precision * ((z - mean) ** 2).sum()) / 2
                )
            trace.append({"bound": height})
            return new

        def distance(before: Float, after: Float) -> float:
            moved = np.abs(after - before)
            return float(np.divide(moved, after, out=np.zeros_like(moved), where=moved > 1e-8).max())

        score, rounds, converged = repeat(
            vote, step, distance, max_rounds=self.max_rounds, tolerance=self.tolerance, tell=tell
        )
        truth = table.shares(labels.to_candidates(score))
        return Answer(
            truth,
            table.sum_over_claims(labels.to_candidates(score)) / n_claims,
            rounds=rounds,
            converged=converged,
            trace=tuple(trace),
            learned={"prior_variance": (b / a).tolist()},
        )
