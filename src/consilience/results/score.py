"""How good an answer is, against truths that the model did not see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from consilience.claims.encoding import Claims, Float, Int
from consilience.errors import ClaimsError, Problem
from consilience.results.tables import is_found

if TYPE_CHECKING:
    from consilience.claims.truths import Truths
    from consilience.results.fit import Fit


SMALLEST = 1e-12
"""Probabilities are clipped here, so that one miss with certainty does not make the log loss infinite."""
BINS = 10


@dataclass(frozen=True)
class Score:
    """Decisions and probabilities against gold truths, over the objects that have both gold and claims.

    Where no such object is left, every figure is None.

    n_gold            : objects with a gold truth and at least one claim, without those of n_known; every
                        figure below is over these
    n_known           : gold objects whose truth the model was given: not scored
    n_unclaimed       : gold objects that nobody claims anything about: not scored
    n_outside         : of n_gold, objects whose gold value is none of the candidates: nobody could get them
                        right
    accuracy          : share of right decisions; an object of n_outside counts as wrong
    log_loss          : mean of -ln probability of the gold value (clipped at 1e-12), without the objects of
                        n_outside, where it is not defined; None if no others are left
    brier             : mean squared distance between the probabilities and the truth, from 0 to 2; a gold
                        value outside the candidates is one more candidate of probability 0
    calibration_error : mean distance between the probability of the decision and the share of right
                        decisions, over ten bins of equally many objects (equal probabilities stay together)
    """

    n_gold: int
    n_known: int
    n_unclaimed: int
    n_outside: int
    accuracy: float | None
    log_loss: float | None
    brier: float | None
    calibration_error: float | None


def is_right(fit: Fit, truth: Any) -> NDArray[np.bool_]:
    """(n_gold,) whether the decision is right, for every object that counts in `Score`, in the order of objects."""
    gold, _ = gold_candidates(truth, fit.claims)
    counts = (gold != -1) & is_found(fit)
    right: NDArray[np.bool_] = fit.decision[counts] == gold[counts]
    return right


def scorable(truth: Any, claims: Claims, known: Any = None) -> tuple[Score, str]:
    """What a score would count, before there is any fit: no figures; and a sentence on truths that are written
    otherwise than claims, where there are."""
    from consilience.claims.truths import written_otherwise

    gold, n_unclaimed = gold_candidates(truth, claims)
    given = np.zeros(len(gold), bool) if known is None else gold_candidates(known, claims, "known")[0] != -1
    has_gold = gold != -1
    counts, n_outside = has_gold & ~given, int(np.count_nonzero((gold < -1) & ~given))
    numbers = int(counts.sum()), int(np.sum(has_gold & given)), n_unclaimed, n_outside
    otherwise = written_otherwise(truth, claims, given) if n_outside else ""
    return Score(*numbers, None, None, None, None), otherwise


def score(fit: Fit, truth: Any) -> Score:
    """Compare a fit with gold truths: whatever `read_truths` understands, or what it gave."""
    gold, n_unclaimed = gold_candidates(truth, fit.claims)
    found = is_found(fit)
    has_gold = np.flatnonzero((gold != -1) & found)
    n_known = int(np.count_nonzero((gold != -1) & ~found))
    if not len(has_gold):
        return Score(0, n_known, n_unclaimed, 0, None, None, None, None)
    right = fit.decision[has_gold] == gold[has_gold]
    inside = gold[has_gold] >= 0
    of_truth = np.where(inside, fit.truth[gold[has_gold]], 0.0)

    squares = np.bincount(fit.claims.candidate_object(), fit.truth**2, minlength=fit.claims.n_objects)
    log_loss = -np.log(np.clip(of_truth[inside], SMALLEST, None))
    return Score(
        n_gold=len(has_gold),
        n_known=n_known,
        n_unclaimed=n_unclaimed,
        n_outside=int(np.count_nonzero(~inside)),
        accuracy=float(right.mean()),
        log_loss=float(log_loss.mean()) if len(log_loss) else None,
        brier=float(np.mean(squares[has_gold] - 2 * of_truth + 1)),
        calibration_error=calibration_error(fit.truth[fit.decision[has_gold]], right),
    )


def gold_candidates(truth: Any, claims: Claims, table: str = "truth") -> tuple[Int, int]:
    """(n_objects,) the gold candidate (-1: no gold, -2: not a candidate), and the number of gold objects
    without claims.

    Gold of which no object is claimed is an error: it belongs to another table, or its ids are written
    otherwise. `table` is what the error calls it.
    """
    from consilience.claims.reading import align_truths, read_truths

    truths = read_truths(truth)
    gold = align_truths(truths, claims)
    n_gold = int(np.count_nonzero(gold != -1))
    if not n_gold:
        raise no_overlap(truths, table, claims.objects)
    return gold, len(truths.objects) - n_gold


def no_overlap(truths: Truths, table: str, objects: Sequence[Any] = ()) -> ClaimsError:
    """The error that truths are of other objects than the claims, of which some are shown."""
    theirs, ours = (", ".join(str(name) for name in names[:3]) for names in (truths.objects, objects))
    shown = f"truth has {theirs} …" + (f"; claims have {ours} …" if ours else "")
    return ClaimsError(
        table,
        [
            Problem(
                "no-overlap",
                f"none of the {len(truths.objects):,} objects with a truth has a claim ({shown})",
                "give the truths of these claims, with objects written the same way",
            )
        ],
    )


def calibration_error(probability: Float, right: NDArray[np.bool_], bins: int = BINS) -> float:
    """Expected calibration error; equal probabilities share a bin, so that order cannot matter."""
    edges = np.quantile(probability, np.linspace(0, 1, bins + 1)[1:-1])
    bin_of = np.searchsorted(edges, probability)
    gap = np.bincount(bin_of, probability - right, minlength=bins)
    return float(np.abs(gap).sum() / len(probability))
