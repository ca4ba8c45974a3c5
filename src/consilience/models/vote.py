"""Majority voting: every claim is one vote. The yardstick, not a method."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from consilience.kernels.choose import choose as choose_kernel
from consilience.models.base import Progress, as_claims, provenance, settings_of, truth_prior, whole_number
from consilience.results.decide import decide
from consilience.results.fit import Fit
from consilience.runners.base import Runner
from consilience.runners.choose import choose as choose_runner


@dataclass(frozen=True)
class Vote:
    """The value with the most claims is the truth; equal counts are decided by the seed and counted as ties.

    The probability of a candidate is its share of the object's claims, a source's reliability its mean share of
    agreement with the decisions.
    """

    name: ClassVar[str] = "vote"

    def fit(
        self,
        claims: Any,
        *,
        known: Any = None,
        seed: int = 0,
        engine: str = "auto",
        runner: str | Runner = "inline",
        progress: Progress | None = None,
    ) -> Fit:
        """Count the votes. `known` truths overrule them."""
        seed = whole_number("seed", seed, 0)
        choose_kernel(engine), choose_runner(runner)
        claims, log_truth, is_known = truth_prior(as_claims(claims), known)
        started = time.perf_counter()
        votes = np.bincount(claims.claim_candidate, minlength=claims.n_candidates).astype(np.float64)
        possible = np.isfinite(log_truth)
        certain = log_truth == 0.0
        votes = np.where(possible, np.where(certain, np.maximum(votes, 1.0), votes), 0.0)
        total = np.add.reduceat(votes, claims.first_candidate[:-1])
        truth = votes / np.repeat(total, np.diff(claims.first_candidate))
        decision, ties = decide(truth, claims.first_candidate, seed)

        agrees = claims.claim_candidate == decision[claims.claim_object()]
        right = np.bincount(claims.claim_source, agrees, minlength=claims.n_sources)
        made = np.bincount(claims.claim_source, minlength=claims.n_sources)
        reliability = np.full((claims.n_sources, 3), np.nan)
        reliability[:, 0] = right / made
        return Fit(
            model=self.name,
            settings=settings_of(self),
            learned={},
            claims=claims,
            truth=truth,
            decision=decision,
            source_reliability=reliability,
            known=is_known,
            seed=seed,
            ties=ties,
            sweeps=1,
            converged=True,
            seconds=time.perf_counter() - started,
            provenance=provenance("numpy", "inline"),
        )
