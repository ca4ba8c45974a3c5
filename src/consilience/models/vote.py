"""Majority voting: every claim is one vote. The yardstick, not a method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from consilience.kernels.segments import Segments
from consilience.models.base import Answer, Rival, Tell
from consilience.results.decide import decide


@dataclass(frozen=True)
class Vote(Rival):
    """The value with the most claims is the truth; equal counts are decided by the seed and counted as ties.

    The probability of a candidate is its share of the object's claims, a source's reliability its mean share of
    agreement with the decisions. `known` truths overrule the votes.
    """

    name: ClassVar[str] = "vote"
    cites: ClassVar[str] = "nobody in particular; the yardstick"
    probabilistic: ClassVar[bool] = True

    def solve(self, table: Segments, seed: int, tell: Tell) -> Answer:
        """Count the votes."""
        truth = table.shares(table.votes)
        decision, _ = decide(truth, table.claims.first_candidate, seed)
        decided = np.zeros(table.claims.n_candidates)
        decided[decision] = 1.0
        reliability = table.sum_over_claims(decided) / table.claims_of_source
        return Answer(truth, reliability, rounds=1, converged=True)
