from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import consilience as cs
from consilience.errors import ClaimsError, UnknownNameError
from consilience.evaluate.metrics import PrecisionRecall, precision_recall

GOLD = {"p": "yes", "q": "yes", "r": "yes", "s": "no", "t": "no", "u": "no"}
DECIDED = {"p": "yes", "q": "no", "r": "yes", "s": "yes", "t": "no", "v": "yes"}
"""Right on p, r and t; misses q, invents s; u is not decided, v has no gold."""


def voted(claims: list[tuple[str, str, str]], domain: str = "common", known: Any = None) -> cs.Fit:
    return cs.Vote().fit(cs.read_claims(claims, domain=domain), known=known)


def test_every_figure_by_hand() -> None:
    found = precision_recall(DECIDED, GOLD)
    assert found == PrecisionRecall(5, 3, 3, 2, precision=2 / 3, recall=2 / 3, f1=2 / 3)
    found = precision_recall(DECIDED, {**GOLD, "v": "no"})
    assert found == PrecisionRecall(6, 3, 4, 2, precision=1 / 2, recall=2 / 3, f1=4 / 7)


def test_the_other_label_has_figures_of_its_own() -> None:
    assert precision_recall(DECIDED, GOLD, positive="no") == PrecisionRecall(5, 2, 2, 1, 1 / 2, 1 / 2, 1 / 2)


def test_a_fit_counts_as_its_decisions() -> None:
    fit = voted([("a", o, v) for o, v in DECIDED.items()] + [("b", o, v) for o, v in DECIDED.items()])
    assert precision_recall(fit, GOLD) == precision_recall(DECIDED, GOLD)
    assert precision_recall(fit, GOLD) == precision_recall(fit.truths, pa.table(read(GOLD)))
    assert precision_recall(fit, cs.read_truths(GOLD)) == precision_recall(DECIDED, GOLD)


def read(truth: dict[str, str]) -> dict[str, list[str]]:
    return {"object": list(truth), "value": list(truth.values())}


def test_truths_that_were_given_do_not_count() -> None:
    claims = [("a", o, v) for o, v in DECIDED.items()]
    given_some = voted(claims, known={"p": "yes", "q": "yes"})
    assert precision_recall(given_some, GOLD) == PrecisionRecall(3, 1, 2, 1, 1 / 2, 1.0, 2 / 3)
    all_given = dataclasses.replace(given_some, known=np.ones(len(DECIDED), bool))
    assert precision_recall(all_given, GOLD) == PrecisionRecall(0, 0, 0, 0, None, None, None)


def test_a_label_that_nobody_claims_for_an_object_is_a_miss() -> None:
    fit = voted([("a", "p", "yes"), ("a", "q", "no")], domain="claimed")
    assert precision_recall(fit, {"p": "yes", "q": "yes"}) == PrecisionRecall(2, 2, 1, 1, 1.0, 0.5, 2 / 3)


def test_what_has_no_figure_is_none() -> None:
    nothing_said = precision_recall({"p": "no", "q": "no"}, {"p": "yes", "q": "no"})
    assert nothing_said == PrecisionRecall(2, 1, 0, 0, precision=None, recall=0.0, f1=0.0)
    nothing_there = precision_recall({"p": "yes", "q": "no"}, {"p": "no", "q": "no"})
    assert nothing_there == PrecisionRecall(2, 0, 1, 0, precision=0.0, recall=None, f1=0.0)
    # Others have the label, and somebody claims it: nothing to find here is an answer, not a slip.
    fit = voted([("a", "p", "no"), ("b", "p", "no"), ("c", "p", "yes")])
    assert precision_recall(fit, {"p": "no"}) == PrecisionRecall(1, 0, 0, 0, None, None, None)


def test_numbers_are_labels_too() -> None:
    assert precision_recall({1: 1, 2: 0}, {1: 1, 2: 1}, positive=1) == PrecisionRecall(
        2, 2, 1, 1, 1.0, 0.5, 2 / 3
    )


def test_a_label_that_does_not_occur_is_an_error() -> None:
    with pytest.raises(UnknownNameError, match=r"no label 'Yes'.*'yes'"):
        precision_recall(DECIDED, GOLD, positive="Yes")
    with pytest.raises(UnknownNameError, match="Known: 1, 0"):
        precision_recall({1: 1, 2: 0}, {1: 1, 2: 1})


@pytest.mark.parametrize("gold", [{"P": "yes"}, {1: "yes"}, {}])
def test_gold_of_other_objects_is_an_error(gold: dict[object, str]) -> None:
    with pytest.raises(ClaimsError, match="has a decision"):
        precision_recall(DECIDED, gold)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30),
    st.randoms(use_true_random=False),
)
def test_slow_counting_agrees_and_order_does_not_matter(pairs: list[tuple[bool, bool]], random: Any) -> None:
    word = {True: "yes", False: "no"}
    decided = [(f"o{i:02d}", word[said]) for i, (said, _) in enumerate(pairs)]
    gold = [(f"o{i:02d}", word[true]) for i, (_, true) in enumerate(pairs)]
    if not any(said or true for said, true in pairs):
        return
    found = precision_recall(decided, gold)
    hits = sum(said and true for said, true in pairs)
    misses = sum(true and not said for said, true in pairs)
    false_alarms = sum(said and not true for said, true in pairs)
    assert found.n_gold == len(pairs)
    assert found.precision == (hits / (hits + false_alarms) if hits + false_alarms else None)
    assert found.recall == (hits / (hits + misses) if hits + misses else None)
    assert found.f1 == pytest.approx(hits / (hits + (misses + false_alarms) / 2))
    random.shuffle(decided)
    random.shuffle(gold)
    assert precision_recall(decided, gold) == found
