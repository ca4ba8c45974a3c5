"""Semi-supervised truth finding: known truths spread their scores over a graph of facts.

X. Yin and W. Tan, "Semi-supervised truth discovery", WWW 2011. A fact is a candidate: an object with a value that
somebody claims for it. Facts have scores from -1, false, to 1, true. Two facts that a source claims both should have
similar scores; two facts of one object contradict each other and should have opposite ones. Known truths keep 1, what
they rule out keeps -1, and a neutral fact of score 0 is tied to all others by a weak edge. What is minimised is

    E(c) = ½ Σ_ij |w_ij| (c_i - sign(w_ij) c_j)² + μ Σ_i c_i²

    w_ij = α × how many sources claim both       where i and j are facts of different objects
    w_ij = -1                                    where i and j are facts of the same object

With D_i = μ + Σ_j |w_ij| the minimum solves (D - W) c = W c_known over the facts that are not known: the fixed point of
c ← D⁻¹ W c. A product with W is made of sums over the facts of each source and of each object; W is never built:

    (W c)_i = α Σ_{n claims i} (Σ_{j that n claims} c_j - c_i) - (Σ_{j of the same object} c_j - c_i)

The minimum is found by conjugate gradients with D as preconditioner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from consilience.claims.encoding import Float
from consilience.kernels.segments import Segments
from consilience.models.base import Answer, Rival, Tell, positive, whole_number
from consilience.results.cautions import Caution


@dataclass(frozen=True)
class SSTF(Rival):
    """Scores spread from known truths over facts that share a source or contradict each other.

    The share of a candidate is (1 + score) / 2, made to sum to one for each object; a source's reliability is the mean
    of (1 + score) / 2 over what it claims. Where no truth is known the neutral fact takes scores from the votes.
    """

    name: ClassVar[str] = "sstf"
    cites: ClassVar[str] = "Yin and Tan, WWW 2011"

    same_source: float = 0.01
    """α: the weight between two facts of one source; that between two values of an object is 1."""
    neutral: float = 0.1
    """μ: the weight between a fact and the neutral fact."""
    max_rounds: int = 1000
    """Rounds of conjugate gradients at the most."""
    tolerance: float = 1e-6
    """Converged when one more round of c ← D⁻¹ W c would change no score by more than this."""

    def __post_init__(self) -> None:
        positive("same_source", self.same_source)
        positive("neutral", self.neutral)
        whole_number("max_rounds", self.max_rounds, 1)
        positive("tolerance", self.tolerance)

    def solve(self, table: Segments, seed: int, tell: Tell) -> Answer:
        """Minimise E; what is climbed is -E."""
        claims = table.claims
        label = table.clamp(np.zeros(claims.n_candidates), 1.0, -1.0)
        is_fact = (table.votes > 0) | (label > 0)  # what nobody says contradicts nobody
        label = np.where(is_fact, label, 0.0)
        is_free = is_fact & (label == 0)
        # The publication needs known truths: without one all scores are 0. Votes then stand in for the neutral fact.
        lean = np.zeros(claims.n_candidates) if label.any() else is_fact * (2 * table.shares(table.votes) - 1)

        n_others = table.sum_over_claimants(table.claims_of_source - 1)
        n_rivals = table.to_candidates(table.sum_by_object(is_fact.astype(np.float64))) - is_fact
        weight = self.same_source * n_others + n_rivals + self.neutral

        def spread(score: Float) -> Float:
            """(n_candidates,) W c"""
            same = table.sum_over_claimants(table.sum_over_claims(score)) - table.votes * score
            against = table.to_candidates(table.sum_by_object(score)) - score
            return self.same_source * same - against

        pull = spread(label)
        score, trace, converged = _minimise(
            lambda free: np.where(is_free, weight * free - spread(free), 0.0),
            np.where(is_free, pull + self.neutral * lean, 0.0),
            weight,
            start=-float(label @ (weight * label - pull) + self.neutral * lean @ lean),
            max_rounds=self.max_rounds,
            tolerance=self.tolerance,
            tell=tell,
        )
        belief = is_fact * (1 + np.clip(np.where(is_free, score, label), -1.0, 1.0)) / 2
        return Answer(
            table.shares(belief),
            table.sum_over_claims(belief) / table.claims_of_source,
            rounds=len(trace),
            converged=converged,
            trace=trace,
            warnings=()
            if label.any()
            else (Caution("No truth is known: scores spread from the votes instead."),),
        )


def _minimise(
    times: Callable[[Float], Float],
    target: Float,
    weight: Float,
    *,
    start: float,
    max_rounds: int,
    tolerance: float,
    tell: Tell,
) -> tuple[Float, tuple[Mapping[str, float], ...], bool]:
    """Conjugate gradients on A x = target, preconditioned with the diagonal: x, the climb of -E = start + 2 target·x
    - x·A x round by round, and whether it came to rest."""
    x, rest = np.zeros_like(target), target.copy()
    move = rest / weight
    ahead, trace = move.copy(), [{"bound": start}]
    tell(1, start)
    while np.abs(move).max() > tolerance and len(trace) < max_rounds:
        reach = float(rest @ move)
        if reach == 0.0:  # too near to tell
            break
        bent = times(ahead)
        step = reach / float(ahead @ bent)
        x += step * ahead
        rest -= step * bent
        move = rest / weight
        ahead = move + float(rest @ move) / reach * ahead
        trace.append({"bound": start + float(x @ (target + rest))})
        tell(len(trace), trace[-1]["bound"])
    return x, tuple(trace), bool(np.abs(move).max() <= tolerance)
