"""Votes weighted by how often a source agrees with the vote: once (Wawa) or again and again (zero-based skill).

Neither has a publication of its own; both are defined by Crowd-Kit: D. Ustalov, N. Pavlichenko and B. Tseitlin,
"Learning from crowds with Crowd-Kit", Journal of Open Source Software 9 (2024). With s_n the skill of source n,

    V_mz(s) = Σ_{n says z on m} s_n / Σ_{n on m} s_n          the weighted vote
    A_n(V)  = share of n's claims that are what V decides

    Wawa:              s = A(V(1))                             the answer is V(s)
    zero-based skill:  s ← s + r_i (A(V(s)) - s)               r_i = rate · reduction^⌊i / period⌋, from 1/K + 10⁻⁵

A step of the second is one of gradient descent on the squared distance between skill and agreement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from consilience.claims.encoding import Float
from consilience.errors import SettingsError
from consilience.kernels.segments import Segments
from consilience.models.base import Answer, Rival, Tell, positive, repeat, whole_number
from consilience.results.decide import TIED

ABOVE_CHANCE = 1e-5
"""How far above 1/K skills begin."""


@dataclass(frozen=True)
class Wawa(Rival):
    """A vote in which each source weighs as much as its share of agreement with the plain vote.

    A source's reliability is that share. Where the vote is tied, agreement with any of the tied counts in part.
    """

    name: ClassVar[str] = "wawa"
    cites: ClassVar[str] = "Worker agreement with aggregate, as in Crowd-Kit: Ustalov et al., JOSS 9, 2024"

    def solve(self, table: Segments, seed: int, tell: Tell) -> Answer:
        """Vote, weigh, vote."""
        skill = agreement(table, table.shares(table.votes))
        tell(1, float("nan"))
        return Answer(weighted_vote(table, skill), skill, rounds=1, converged=True)


@dataclass(frozen=True)
class ZeroBasedSkill(Rival):
    """Votes weighted by skill, skills moved towards agreement with the vote, until neither changes.

    A source's reliability is its skill at the end.
    """

    name: ClassVar[str] = "zero-based-skill"
    cites: ClassVar[str] = "Zero-based skill, as in Crowd-Kit: Ustalov et al., JOSS 9, 2024"

    max_rounds: int = 100
    """Rounds at the most."""
    rate: float = 1.0
    """Learning rate at first: how far a skill moves towards the agreement found."""
    period: int = 20
    """Rounds after which the learning rate is reduced, again and again."""
    reduction: float = 0.5
    """What the learning rate is multiplied by."""
    tolerance: float = 1e-5
    """Converged when no skill moves by more than this."""

    def __post_init__(self) -> None:
        whole_number("max_rounds", self.max_rounds, 1)
        whole_number("period", self.period, 1)
        positive("tolerance", self.tolerance)
        for setting in ("rate", "reduction"):
            positive(setting, getattr(self, setting))
            if getattr(self, setting) > 1:
                raise SettingsError(setting, "a number greater than 0, at most 1", getattr(self, setting))

    def solve(self, table: Segments, seed: int, tell: Tell) -> Answer:
        """Vote and move skills, in turn; the answer is the vote with the last skills."""
        start = np.full(table.claims.n_sources, 1 / table.domain_size.max() + ABOVE_CHANCE)

        def step(state: tuple[int, Float]) -> tuple[int, Float]:
            done, skill = state
            rate = self.rate * self.reduction ** ((done + 1) // self.period)
            return done + 1, skill + rate * (agreement(table, weighted_vote(table, skill)) - skill)

        (_, skill), rounds, converged = repeat(
            (0, start), step, lambda before, after: float(np.abs(after[1] - before[1]).max()),
            max_rounds=self.max_rounds, tolerance=self.tolerance, tell=tell,
        )  # fmt: skip
        return Answer(weighted_vote(table, skill), skill, rounds=rounds, converged=converged)


def weighted_vote(table: Segments, skill: Float) -> Float:
    """(n_candidates,) V. Somebody on each object has skill: whoever claims what its last vote decided."""
    return table.shares(table.sum_over_claimants(skill))


def agreement(table: Segments, vote: Float) -> Float:
    """(n_sources,) A; k tied candidates are each decided for with probability 1/k, as if by lot. A tie settled by
    names instead would make the skills depend on them."""
    best = (vote >= table.to_candidates(table.highest_by_object(vote) - TIED)).astype(np.float64)
    best /= table.to_candidates(table.sum_by_object(best))
    return table.sum_over_claims(best) / table.claims_of_source
