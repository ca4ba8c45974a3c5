"""Dawid and Skene's observer error-rates by EM, and the variant with one error rate a source.

A. P. Dawid and A. M. Skene, "Maximum likelihood estimation of observer error-rates using the EM algorithm", Applied
Statistics 28 (1979). With T_mz the probability that z is the truth of object m, π_nzl the probability that source n
says l where z is true, p_z the share of z:

    M:  π_nzl = Σ_{m: n says l} T_mz / Σ_{m: n says anything} T_mz        p_z = mean_m T_mz          (2.3), (2.4)
    E:  T_mz ∝ p_z Π_{n on m} π_nz,y_nm                                                              (2.5)

With one coin a source is right with probability u_n and else says any other value of the domain, all alike:

    M:  u_n = mean over its claims of T_m,y_nm          E:  T_mz ∝ p_z Π_n u_n or (1 - u_n) / (K_m - 1)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from consilience.claims.encoding import Float
from consilience.kernels.segments import Segments
from consilience.models.base import Answer, Rival, Tell, common_labels, em, positive, whole_number

SMALLEST = 1e-12
"""Probabilities are at least this: what was never seen is not impossible."""


@dataclass(frozen=True)
class DawidSkene(Rival):
    """Every source has a confusion matrix, every label a share; EM from majority vote."""

    name: ClassVar[str] = "dawid-skene"
    cites: ClassVar[str] = "Dawid and Skene, Applied Statistics 28, 1979"
    probabilistic: ClassVar[bool] = True

    max_rounds: int = 100
    """Rounds of EM at the most."""
    tolerance: float = 1e-7
    """Converged when a round raises the likelihood by less than this share of it."""

    def __post_init__(self) -> None:
        whole_number("max_rounds", self.max_rounds, 1)
        positive("tolerance", self.tolerance)

    def solve(self, table: Segments, seed: int, tell: Tell) -> Answer:
        """EM; what is climbed is the likelihood of the claims."""
        labels = common_labels(self.name, table)

        def maximise(truth: Float) -> tuple[Float, Float]:
            """(n_habits, n_labels) ln π of what each source said, by truth; (n_labels,) ln p."""
            said = labels.sum_by_habit(truth)
            total = labels.sum_by_source(said)[labels.habit_source]
            confusion = np.divide(said, total, out=np.zeros_like(said), where=total > 0)
            return np.log(np.maximum(confusion, SMALLEST)), np.log(np.maximum(truth.mean(axis=0), SMALLEST))

        def expect(given: tuple[Float, Float]) -> tuple[Float, float]:
            log_confusion, log_share = given
            truth, evidence = labels.softmax(log_share + labels.sum_by_object(log_confusion))
            return truth, float(evidence.sum())

        end = em(
            labels.vote(), maximise=maximise, expect=expect,
            max_rounds=self.max_rounds, tolerance=self.tolerance, tell=tell,
        )  # fmt: skip
        truth = labels.to_candidates(end.locals)
        return Answer(
            truth,
            table.sum_over_claims(truth) / table.claims_of_source,
            rounds=len(end.trace),
            converged=end.converged,
            trace=end.trace,
            learned={"share": np.exp(end.globals[1]).tolist()},
        )


@dataclass(frozen=True)
class OneCoin(Rival):
    """Every source is right with a probability of its own and errs evenly; EM from majority vote."""

    name: ClassVar[str] = "one-coin"
    cites: ClassVar[str] = "Dawid and Skene, Applied Statistics 28, 1979, with one error rate a source"
    probabilistic: ClassVar[bool] = True

    max_rounds: int = 100
    """Rounds of EM at the most."""
    tolerance: float = 1e-7
    """Converged when a round raises the likelihood by less than this share of it."""

    def __post_init__(self) -> None:
        whole_number("max_rounds", self.max_rounds, 1)
        positive("tolerance", self.tolerance)

    def solve(self, table: Segments, seed: int, tell: Tell) -> Answer:
        """EM; labels that recur have shares, which are learned, else every candidate is as likely as another."""
        claims = table.claims
        common = table.has_common_labels
        log_wrong = -np.log(np.maximum(table.domain_size - 1, 1))[table.claim_object]

        def maximise(truth: Float) -> tuple[Float, Float]:
            """(n_sources,) u and (n_candidates,) ln p"""
            right = table.sum_over_claims(truth) / table.claims_of_source
            log_share = table.log_truth
            if common:
                share = np.bincount(claims.candidate_value, truth, minlength=claims.n_values)
                log_share = np.log(np.maximum(share / claims.n_objects, SMALLEST))[claims.candidate_value]
            return np.clip(right, SMALLEST, 1 - SMALLEST), log_share

        def expect(given: tuple[Float, Float]) -> tuple[Float, float]:
            right, log_share = given
            log_miss = np.log1p(-right)[claims.claim_source] + log_wrong
            gain = table.sum_by_candidate(np.log(right)[claims.claim_source] - log_miss)
            missed = np.add.reduceat(log_miss, claims.first_claim[:-1])
            truth, evidence = table.softmax(log_share + gain)
            return truth, float((evidence + missed).sum())

        end = em(
            table.shares(table.votes), maximise=maximise, expect=expect,
            max_rounds=self.max_rounds, tolerance=self.tolerance, tell=tell,
        )  # fmt: skip
        return Answer(
            end.locals, end.globals[0], rounds=len(end.trace), converged=end.converged, trace=end.trace
        )
