from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import consilience as cs
from consilience.errors import ClaimsError
from consilience.results.score import calibration_error, score

TRIPLES = [
    ("a", "w", "1"), ("b", "w", "1"), ("c", "w", "2"), ("a", "x", "1"), ("b", "x", "1"), ("c", "x", "2"),
    ("a", "y", "1"), ("b", "y", "1"), ("c", "y", "2"), ("a", "z", "7"),
]  # fmt: skip


def voted() -> cs.Fit:
    return cs.Vote().fit(cs.read_claims(TRIPLES, domain="claimed"))


def test_every_figure_by_hand() -> None:
    # w right at 2/3, x wrong at 2/3, y's truth is claimed by nobody, z right at 1, q has no claims
    found = voted().score(truth={"w": "1", "x": "2", "y": "3", "z": "7", "q": "1"})
    assert (found.n_gold, found.n_unclaimed, found.n_outside) == (4, 1, 1)
    assert found.accuracy == 0.5
    assert found.log_loss == pytest.approx(-np.mean(np.log([2 / 3, 1 / 3, 1.0])))
    squares = [2 / 9, 8 / 9, 4 / 9 + 1 / 9 + 1, 0.0]
    assert found.brier == pytest.approx(np.mean(squares))
    # one bin holds the three at 2/3, of which one is right, another the one at 1
    assert found.calibration_error == pytest.approx((3 * (2 / 3) - 1) / 4)


def test_truths_that_were_given_are_not_scored() -> None:
    fit = cs.Vote().fit(cs.read_claims(TRIPLES, domain="claimed"), known={"x": "2", "z": "7"})
    found = fit.score({"w": "1", "x": "2", "y": "2", "z": "7", "q": "1"})
    assert (found.n_gold, found.n_known, found.n_unclaimed) == (2, 2, 1)
    assert found.accuracy == 0.5
    assert found == dataclasses.replace(fit.score({"w": "1", "y": "2"}), n_known=2, n_unclaimed=1)


def test_where_all_truths_were_given_nothing_can_be_scored() -> None:
    found = dataclasses.replace(voted(), known=np.ones(4, bool)).score({"w": "1", "x": "2"})
    assert (found.n_gold, found.n_known, found.n_outside) == (0, 2, 0)
    assert found.accuracy is found.log_loss is found.brier is found.calibration_error is None


def test_gold_may_be_any_table_and_score_is_one_function() -> None:
    gold = {"w": "1", "x": "1"}
    fit = voted()
    assert fit.score(truth=gold) == fit.score(cs.read_truths(list(gold.items()))) == score(fit, gold)
    with pytest.raises(dataclasses.FrozenInstanceError):
        fit.score(gold).accuracy = 1.0  # type: ignore[misc]


def test_certain_and_wrong_is_bad_but_finite() -> None:
    certain = dataclasses.replace(voted(), truth=np.array([1.0, 0.0] * 3 + [1.0]))
    found = certain.score({"w": "2"})
    assert found.log_loss == pytest.approx(-np.log(1e-12))
    assert found.brier == 2.0


def test_nothing_but_truths_outside_the_candidates_has_no_log_loss() -> None:
    found = voted().score({"w": "9"})
    assert (found.accuracy, found.log_loss, found.n_outside) == (0.0, None, 1)


def test_gold_of_other_objects_is_an_error() -> None:
    with pytest.raises(ClaimsError, match="none of the 1 objects with a truth has a claim") as error:
        voted().score({"W": "1"})
    assert "written the same way" in str(error.value)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from([0.3, 0.5, 0.8, 1.0]), st.booleans()), min_size=1, max_size=60))
def test_calibration_does_not_depend_on_order(pairs: list[tuple[float, bool]]) -> None:
    probability, right = (np.array(column) for column in zip(*pairs, strict=True))
    forward = calibration_error(probability, right)
    assert 0 <= forward <= 1
    assert forward == pytest.approx(calibration_error(probability[::-1], right[::-1]))


def test_a_calibrated_forecast_has_a_small_error_and_a_boastful_one_a_large_one() -> None:
    rng = np.random.default_rng(0)
    probability = rng.uniform(0.5, 1.0, 20_000)
    right = rng.random(20_000) < probability
    assert calibration_error(probability, right) < 0.02
    assert calibration_error(np.ones(20_000), right) == pytest.approx(1 - right.mean())
