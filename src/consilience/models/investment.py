"""Fact-finders: sources are trusted for believed claims, claims are believed for trusted sources.

J. Pasternack and D. Roth, "Knowing what to believe (when you already know something)", COLING 2010. With T_n the trust
in source n, C_n its claims, B_mz the belief in value z of object m, S_mz the sources that claim it:

    Sums               T_n = Σ_{mz in C_n} B_mz                            B_mz = Σ_{n in S_mz} T_n
    Average·Log        T_n = ln|C_n| · Σ_{mz in C_n} B_mz / |C_n|          B_mz = Σ_{n in S_mz} T_n
    Investment         T_n = Σ_{mz in C_n} B_mz · (T_n / |C_n|) / H_mz     B_mz = G(H_mz)
    PooledInvestment   T_n as for Investment                               B_mz = H_mz · G(H_mz) / Σ_z' G(H_mz')

    H_mz = Σ_{n in S_mz} T_n / |C_n|      G(x) = x^g, g = 1.2 for Investment, 1.4 for PooledInvestment

A round takes trusts from the beliefs (and, for the investments, the trusts) of the round before, then beliefs from the
new trusts. Rounds are fixed in number: there is no test of convergence. After every round trusts and beliefs are
divided by their maximum. For the investments too: a common factor of all trusts or all beliefs only passes through, and
without the division x^1.2, twenty times over, leaves the range of floating-point numbers.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from consilience.claims.encoding import Float
from consilience.kernels.segments import Segments
from consilience.models.base import Answer, Rival, Tell, positive, repeat, whole_number

CITATION = "Pasternack and Roth, COLING 2010"


class FactFinder(Rival):
    """What the four have in common: rounds of trust and belief. A subclass says how each comes from the other."""

    rounds: int

    @abstractmethod
    def first_belief(self, table: Segments) -> Float:
        """(n_candidates,) beliefs before the first round."""

    @abstractmethod
    def trust(self, table: Segments, trust: Float, belief: Float) -> Float:
        """(n_sources,) new trusts, of any scale, from those of the round before and the beliefs."""

    @abstractmethod
    def belief(self, table: Segments, trust: Float) -> Float:
        """(n_candidates,) new beliefs, of any scale."""

    def solve(self, table: Segments, seed: int, tell: Tell) -> Answer:
        """The rounds. A known truth has belief 1, the most there is, and its rivals have none, in every round."""

        def step(state: tuple[Float, Float]) -> tuple[Float, Float]:
            trust = _by_maximum(self.trust(table, *state))
            return trust, table.clamp(_by_maximum(self.belief(table, trust)))

        start = np.ones(table.claims.n_sources), table.clamp(self.first_belief(table))
        (trust, belief), rounds, _ = repeat(
            start, step, lambda before, after: np.inf, max_rounds=self.rounds, tolerance=0.0, tell=tell
        )
        # Objects that only sources without trust speak about have no belief to share out. Their votes still say more
        # than an even choice among all candidates, claimed or not.
        believed = table.to_candidates(table.sum_by_object(belief)) > 0
        truth = table.shares(np.where(believed, belief, table.votes))
        return Answer(truth, trust, rounds=rounds, converged=True)


@dataclass(frozen=True)
class Sums(FactFinder):
    """Trust is the sum of a source's beliefs, belief the sum of a claim's trusts: hubs and authorities.

    A source's reliability is its trust as a share of the greatest: it grows with the number of claims.
    """

    name: ClassVar[str] = "sums"
    cites: ClassVar[str] = f"{CITATION} (Sums, from the hubs and authorities of Kleinberg)"

    rounds: int = 20
    """Rounds of trust and belief: a fixed number."""

    def __post_init__(self) -> None:
        whole_number("rounds", self.rounds, 1)

    def first_belief(self, table: Segments) -> Float:
        """Shares of the votes."""
        return table.shares(table.votes)

    def trust(self, table: Segments, trust: Float, belief: Float) -> Float:
        """Σ B"""
        return table.sum_over_claims(belief)

    def belief(self, table: Segments, trust: Float) -> Float:
        """Σ T"""
        return table.sum_over_claimants(trust)


@dataclass(frozen=True)
class AverageLog(FactFinder):
    """Like sums, but trust is the mean belief of a source's claims times the log of their number.

    A source's reliability is its trust as a share of the greatest. ln 1 = 0: a source with one claim has no trust.
    """

    name: ClassVar[str] = "average-log"
    cites: ClassVar[str] = f"{CITATION} (Average·Log)"

    rounds: int = 20
    """Rounds of trust and belief: a fixed number."""

    def __post_init__(self) -> None:
        whole_number("rounds", self.rounds, 1)

    def first_belief(self, table: Segments) -> Float:
        """Shares of the votes."""
        return table.shares(table.votes)

    def trust(self, table: Segments, trust: Float, belief: Float) -> Float:
        """ln|C| times the mean of B"""
        mean = table.sum_over_claims(belief) / table.claims_of_source
        return np.log(table.claims_of_source) * mean

    def belief(self, table: Segments, trust: Float) -> Float:
        """Σ T"""
        return table.sum_over_claimants(trust)


@dataclass(frozen=True)
class Investment(FactFinder):
    """Sources invest their trust in their claims; belief grows faster than that and pays it back.

    A source's reliability is its trust as a share of the greatest.
    """

    name: ClassVar[str] = "investment"
    cites: ClassVar[str] = f"{CITATION} (Investment)"

    growth: float = 1.2
    """g: belief is the investment to this power."""
    rounds: int = 20
    """Rounds of trust and belief: a fixed number."""

    def __post_init__(self) -> None:
        positive("growth", self.growth)
        whole_number("rounds", self.rounds, 1)

    def first_belief(self, table: Segments) -> Float:
        """Shares of the votes."""
        return table.shares(table.votes)

    def trust(self, table: Segments, trust: Float, belief: Float) -> Float:
        """What the claims pay back."""
        return _returns(table, trust, belief)

    def belief(self, table: Segments, trust: Float) -> Float:
        """G(H)"""
        invested: Float = _invested(table, trust) ** self.growth
        return invested


@dataclass(frozen=True)
class PooledInvestment(FactFinder):
    """Like investment, but what an object's values received is pooled and dealt out anew among them.

    A source's reliability is its trust as a share of the greatest.
    """

    name: ClassVar[str] = "pooled-investment"
    cites: ClassVar[str] = f"{CITATION} (PooledInvestment)"

    growth: float = 1.4
    """g: an object's pool is dealt out in proportion to the investments to this power."""
    rounds: int = 20
    """Rounds of trust and belief: a fixed number."""

    def __post_init__(self) -> None:
        positive("growth", self.growth)
        whole_number("rounds", self.rounds, 1)

    def first_belief(self, table: Segments) -> Float:
        """1 / K, with K the number of values that somebody claims of the object."""
        return table.shares((table.votes > 0).astype(np.float64))

    def trust(self, table: Segments, trust: Float, belief: Float) -> Float:
        """What the claims pay back."""
        return _returns(table, trust, belief)

    def belief(self, table: Segments, trust: Float) -> Float:
        """H · G(H) / Σ G(H)"""
        invested = _invested(table, trust)
        # G is taken of the share of the object's best: the quotient is the same, and G cannot come out 0 for all.
        best = table.to_candidates(table.highest_by_object(invested))
        grown = np.divide(invested, best, out=np.zeros_like(invested), where=best > 0) ** self.growth
        pool = table.to_candidates(table.sum_by_object(grown))
        return invested * np.divide(grown, pool, out=np.zeros_like(grown), where=pool > 0)


def _invested(table: Segments, trust: Float) -> Float:
    """(n_candidates,) H: what each candidate receives when every source spreads its trust evenly over its claims."""
    return table.sum_over_claimants(trust / table.claims_of_source)


def _returns(table: Segments, trust: Float, belief: Float) -> Float:
    """(n_sources,) beliefs paid back to the sources, each in proportion to what it invested in the claim.

    A trust can fall below the smallest number there is: who invests nothing gets nothing, and not 0 / 0.
    """
    invested = (trust / table.claims_of_source)[table.claims.claim_source]
    received = table.sum_by_candidate(invested)[table.claims.claim_candidate]
    share = np.divide(invested, received, out=np.zeros_like(invested), where=received > 0)
    return table.sum_by_source(share * belief[table.claims.claim_candidate])


def _by_maximum(x: Float) -> Float:
    """Divided by its maximum; as it is where all are 0."""
    highest = x.max()
    return x / highest if highest > 0 else x
