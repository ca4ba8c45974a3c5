"""Precision and recall, for questions of yes or no where "yes" is rare; and how sure an accuracy is, by bootstrap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from consilience.claims.id_types import comparable
from consilience.claims.reading import read_truths
from consilience.claims.truths import Truths
from consilience.claims.vocabulary import Codes, positions
from consilience.errors import ClaimsError, Problem, UnknownNameError
from consilience.results.fit import Fit
from consilience.results.tables import ids, is_found, values_of

RESAMPLES = 10_000
LEVEL = (0.025, 0.975)


def bootstrap(scores: Any, seed: int = 0) -> tuple[float, float]:
    """The 95 % interval of a mean: scores drawn again with replacement, many times.

    Scores that are few distinct numbers, such as right or wrong, are drawn by how often each occurs: the same, faster.
    """
    value, count = np.unique(np.asarray(scores, np.float64), return_counts=True)
    n = int(count.sum())
    drawn = np.random.default_rng(seed).multinomial(n, count / n, size=RESAMPLES)
    low, high = np.quantile(drawn @ value / n, LEVEL)
    return float(low), float(high)


@dataclass(frozen=True)
class PrecisionRecall:
    """Decisions for one label, over the objects that have both gold and a decision.

    n_gold     : objects with gold and a decision, without those whose truth the model was given
    n_positive : of these, objects whose gold is the label
    n_decided  : of these, objects decided for the label
    n_right    : objects that are both
    precision  : n_right / n_decided; None where nothing was decided for the label
    recall     : n_right / n_positive; None where no gold is the label
    f1         : 2 n_right / (n_decided + n_positive), the harmonic mean of the two; None where both are
    """

    n_gold: int
    n_positive: int
    n_decided: int
    n_right: int
    precision: float | None
    recall: float | None
    f1: float | None


def precision_recall(decisions: Any, truth: Any, positive: Any = "yes") -> PrecisionRecall:
    """Precision, recall and F1 of one label. Accuracy says little where nine in ten objects are a plain "no".

    decisions : a Fit, or one value for each object: anything `read_truths` takes
    truth     : gold, likewise; objects without a decision do not count
    positive  : the label to be found, in the type that the values have

    A gold label that is none of an object's candidates is a miss: nobody says "yes", and recall pays for it.
    """
    gold = read_truths(truth)
    labels: list[Any] = []
    if isinstance(decisions, Fit):
        claims, found = decisions.claims, is_found(decisions)
        decided = Truths(ids(claims.objects), values_of(claims, decisions.decision))
        labels = ids(claims.values).to_pylist()
    else:
        decided = read_truths(decisions)
        found = np.ones(len(decided.objects), np.bool_)
    place = _places(decided, gold)
    counted = (place >= 0) & found
    said, labels_said = _is(decided.values, positive)
    true, labels_true = _is(gold.values, positive)
    if positive not in [*labels, *labels_said, *labels_true]:
        known = dict.fromkeys(map(str, [*labels, *labels_said, *labels_true]))
        raise UnknownNameError("label", str(positive), known, "Say which one is to be found: `positive`.")

    said, true = said[counted], true[place[counted]]
    n_positive, n_decided, n_right = (int(np.count_nonzero(which)) for which in (true, said, true & said))
    return PrecisionRecall(
        n_gold=len(said),
        n_positive=n_positive,
        n_decided=n_decided,
        n_right=n_right,
        precision=n_right / n_decided if n_decided else None,
        recall=n_right / n_positive if n_positive else None,
        f1=2 * n_right / (n_decided + n_positive) if n_decided + n_positive else None,
    )


def _places(decided: Truths, gold: Truths) -> Codes:
    """(n_decided,) where the gold of each object decided stands; -1 where it has none. Some must have one."""
    place = np.full(len(decided.objects), -1, dtype=np.int32)
    if comparable(decided.objects.type, gold.objects.type):
        place = positions(decided.objects, gold.objects)
    if np.any(place >= 0):
        return place
    theirs, ours = (", ".join(map(str, each.objects[:3].to_pylist())) for each in (gold, decided))
    found = f"none of the {len(gold.objects):,} objects with a truth has a decision (truth has {theirs} …; "
    advice = "give the truths of these objects, written the same way"
    raise ClaimsError("truth", [Problem("no-overlap", f"{found}decisions have {ours} …)", advice)])


def _is(values: pa.Array, label: Any) -> tuple[NDArray[np.bool_], list[Any]]:
    """(n,) where the value is this label, and all values that occur."""
    encoded = values.dictionary_encode()
    occurring = encoded.dictionary.to_pylist()
    wanted = [i for i, value in enumerate(occurring) if value == label]
    return np.isin(encoded.indices.to_numpy(zero_copy_only=False), wanted), occurring
