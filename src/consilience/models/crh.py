"""Weighted votes, the weights from the sources' distances to the truths: CRH, and CATD for sources with few claims.

Q. Li, Y. Li, J. Gao, B. Zhao, W. Fan and J. Han, "Resolving conflicts in heterogeneous data by truth discovery and
source reliability estimation", SIGMOD 2014. With w_n the weight of source n, y_nm its claim on object m and t_m the
truth, categorical data and 0-1 loss:

    minimise   f(t, w) = Σ_n w_n L_n,  L_n = Σ_m [y_nm ≠ t_m]        such that Σ_n exp(-w_n) = 1           (1), (4)
    weights    w_n = -ln(L_n / Σ_n' L_n')                              the minimum over w, given t          (2), (5)
    truths     t_m = the value with the greatest Σ_{n: y_nm = z} w_n   the minimum over t, given w          (3)

Both steps are exact, so the objective never rises.

Q. Li, Y. Li, J. Gao, L. Su, B. Zhao, M. Demirbas, W. Fan and J. Han, "A confidence-aware approach for truth discovery
on long-tail data", PVLDB 8(4), 2014. The errors of source n are normal with variance σ²_n. Its weight is one over the
upper end of the (1 - α) confidence interval of σ²_n, not over its estimate: a source with few claims weighs little.

    weights    w_n ∝ χ²_{α/2, |C_n|} / Σ_{m in C_n} (y_nm - t_m)²      truths as for CRH

with χ²_{p, k} the p-quantile of the chi-squared distribution with k degrees of freedom, C_n the claims of n. The error
of a categorical claim is 0 or 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import gammaincinv

from consilience.claims.encoding import Float
from consilience.errors import SettingsError
from consilience.kernels.segments import Segments
from consilience.models.base import Answer, Rival, Tell, ascend, positive, repeat, whole_number

TIED = 1e-12
"""Shares of an object closer than this are equal: sums of weights in another order differ by less."""


@dataclass(frozen=True)
class CRH(Rival):
    """Weighted votes; a source weighs the negative log of its share of all disagreement with the truths.

    A candidate's share of its object's weight takes the place of a probability, a source's reliability is its weight
    as a share of the greatest.
    """

    name: ClassVar[str] = "crh"
    cites: ClassVar[str] = "Li et al., SIGMOD 2014"

    scale: str = "sum"
    """What a source's loss is divided by: "sum", that of all sources; "max", the greatest, which tells sources apart
    more sharply but follows no objective."""
    per_claim: bool = False
    """Whether losses are counted per claim, for sources that differ much in how many claims they make. There is no
    objective then."""
    smoothing: float = 0.5
    """Disagreements added to those of every source: without any its weight would be infinite."""
    max_rounds: int = 100
    """Rounds at the most. It has converged when a round changes nothing."""

    def __post_init__(self) -> None:
        if self.scale not in ("sum", "max"):
            raise SettingsError("scale", '"sum" or "max"', self.scale)
        if not isinstance(self.per_claim, bool):
            raise SettingsError("per_claim", "True or False", self.per_claim)
        positive("smoothing", self.smoothing)
        whole_number("max_rounds", self.max_rounds, 1)

    def solve(self, table: Segments, seed: int, tell: Tell) -> Answer:
        """Block coordinate descent from even weights, that is from majority vote."""
        n_sources = table.claims.n_sources
        even = np.full(n_sources, np.log(n_sources))  # keeps Σ exp(-w) = 1, so its objective can be compared

        def losses(weight: Float) -> Float:
            # Added, not a floor: the objective with all losses raised by a constant still never rises.
            loss = disagreements(table, weighted_vote(table, weight)) + self.smoothing
            return loss / table.claims_of_source if self.per_claim else loss

        def weights(loss: Float) -> Float:
            """(5)"""
            whole = float(loss.sum() if self.scale == "sum" else loss.max())
            return np.log(whole / loss)

        if self.scale == "sum" and not self.per_claim:
            end = ascend(
                even,
                local_step=lambda weight: (None, losses(weight)),
                global_step=lambda loss, weight: weights(loss),
                bound=lambda loss, weight: {"objective": -float(weight @ loss)},
                max_sweeps=self.max_rounds, tolerance=0.0, progress=tell,
            )  # fmt: skip
            return _answer(table, end.globals, len(end.trace), end.converged, end.trace)
        weight, rounds, converged = repeat(
            even, lambda weight: weights(losses(weight)), _moved,
            max_rounds=self.max_rounds, tolerance=0.0, tell=tell,
        )  # fmt: skip
        return _answer(table, weight, rounds, converged)


@dataclass(frozen=True)
class CATD(Rival):
    """Weighted votes; a source weighs what its errors allow with confidence, so little if it says little.

    A candidate's share of its object's weight takes the place of a probability, a source's reliability is its weight
    as a share of the greatest.
    """

    name: ClassVar[str] = "catd"
    cites: ClassVar[str] = "Li et al., PVLDB 8(4), 2014"

    alpha: float = 0.05
    """The confidence interval of a source's error variance covers 1 - alpha."""
    least_errors: float = 0.5
    """Errors counted for a source that has fewer: without any its weight would be infinite."""
    max_rounds: int = 100
    """Rounds at the most. It has converged when a round changes nothing."""

    def __post_init__(self) -> None:
        positive("alpha", self.alpha)
        if self.alpha >= 1:
            raise SettingsError("alpha", "a number less than 1", self.alpha)
        positive("least_errors", self.least_errors)
        whole_number("max_rounds", self.max_rounds, 1)

    def solve(self, table: Segments, seed: int, tell: Tell) -> Answer:
        """Weights and truths in turn, from majority vote. It climbs nothing, and may go round in a circle."""
        # The quantiles of the chi-squared distribution are twice those of the gamma distribution with half the shape.
        quantile = 2 * gammaincinv(table.claims_of_source / 2, self.alpha / 2)

        def step(weight: Float) -> Float:
            errors = disagreements(table, weighted_vote(table, weight))
            return quantile / np.maximum(errors, self.least_errors)

        weight, rounds, converged = repeat(
            np.ones(table.claims.n_sources), step, _moved,
            max_rounds=self.max_rounds, tolerance=0.0, tell=tell,
        )  # fmt: skip
        return _answer(table, weight, rounds, converged)


def weighted_vote(table: Segments, weight: Float) -> Float:
    """(n_candidates,) shares of the weight of each object's claims.

    Where no source of an object has any weight its votes count: every choice costs the same, and what is claimed is
    better than what is not.
    """
    score = table.sum_over_claimants(weight)
    weighed = table.to_candidates(table.sum_by_object(np.where(table.possible, score, 0.0))) > 0
    return table.shares(np.where(weighed, score, table.votes))


def disagreements(table: Segments, share: Float) -> Float:
    """(n_sources,) how many claims differ from the truths, which are the candidates with the greatest shares.

    Tied candidates are the truth in equal parts. That costs what each of them would, and does not depend on names.
    """
    best = share >= table.to_candidates(table.highest_by_object(share)) - TIED
    truth = table.shares(best.astype(np.float64))
    return table.sum_by_source(1.0 - truth[table.claims.claim_candidate])


def _moved(before: Float, after: Float) -> float:
    """By how much the weight changed most."""
    return float(np.abs(after - before).max())


def _answer(
    table: Segments, weight: Float, rounds: int, converged: bool, trace: tuple[Mapping[str, float], ...] = ()
) -> Answer:
    highest = weight.max()
    reliability = weight / highest if highest > 0 else np.ones_like(weight)  # one source, or all alike
    return Answer(weighted_vote(table, weight), reliability, rounds, converged, trace)
