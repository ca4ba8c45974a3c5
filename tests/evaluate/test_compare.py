"""Models side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import polars
import pytest

import consilience as cs
from consilience.datasets.synthetic import planted
from consilience.errors import ClaimsError, InputError, UnknownNameError
from consilience.evaluate.compare import SCHEMA, named, run
from consilience.models.vote import Vote


@pytest.fixture(scope="module")
def data():
    return planted("guessers", n_objects=100, seed=0)


@dataclass(frozen=True)
class Broken(Vote):
    name: ClassVar[str] = "broken"

    def solve(self, table, seed, tell):
        raise ZeroDivisionError("on purpose")


@dataclass(frozen=True)
class Hungry(Vote):
    """A vote that allocates much."""

    name: ClassVar[str] = "hungry"

    def solve(self, table, seed, tell):
        import numpy as np

        wasted = np.ones(10_000_000)
        assert wasted.sum() > 0
        return super().solve(table, seed, tell)


def test_every_model_has_a_row_in_the_order_asked_for(data):
    rows = cs.compare(data.claims, truth=data.truth, models=["one-coin", "vote"]).to_pylist()
    assert [row["model"] for row in rows] == ["one-coin", "vote"]
    for row in rows:
        alone = cs.model(row["model"]).fit(data.claims)
        assert row["accuracy"] == alone.score(data.truth).accuracy
        assert row["log_loss"] == alone.score(data.truth).log_loss
        assert row["sweeps"] == alone.sweeps
        assert row["n_gold"] == 100
        assert row["seconds"] > 0
        assert row["error"] is None


def test_a_model_that_fails_stops_no_other(data):
    rows = cs.compare(data.claims, truth=data.truth, models=[Broken(), Vote()]).to_pylist()
    assert rows[0]["error"] == "ZeroDivisionError: on purpose"
    assert rows[0]["accuracy"] is None
    assert rows[1]["accuracy"] > 0.5


def test_memory_is_that_of_the_fit(data):
    plain, hungry = run(data.claims, [Vote(), Hungry()])
    assert hungry.peak_memory > 70_000_000 > 10 * plain.peak_memory


def test_scores_that_are_no_probabilities_have_no_log_loss(data):
    @dataclass(frozen=True)
    class Score(Vote):
        name: ClassVar[str] = "score"
        probabilistic: ClassVar[bool] = False

    score, vote = run(data.claims, [Score(), Vote()], truth=data.truth)
    assert score.accuracy == vote.accuracy
    assert score.log_loss is None is score.calibration_error
    assert vote.log_loss > 0 < vote.calibration_error


def test_without_gold_there_is_time_and_no_accuracy(data):
    (row,) = cs.compare(data.claims, models="vote").to_pylist()
    assert row["accuracy"] is None is row["n_gold"]
    assert row["seconds"] > 0


def test_a_frame_comes_back_as_the_kind_that_came_in(data):
    for claims in (data.claims.to_pandas(), polars.from_arrow(data.claims)):
        frame = cs.compare(claims, truth=data.truth, models="vote")
        assert type(frame) is type(claims)
        assert list(frame.columns) == SCHEMA.names


def test_wrong_names_and_wrong_gold_are_errors_at_once(data):
    with pytest.raises(UnknownNameError, match="Did you mean 'vote'"):
        named(["vot"])
    with pytest.raises(ClaimsError, match="none of the 1 objects"):
        cs.compare(data.claims, truth={"elsewhere": "1"}, models="vote")
    for wrong in ({"seed": -1}, {"known": {"elsewhere": "1"}}, {"engine": "nonsense"}, {"models": [None]}):
        with pytest.raises(InputError):
            cs.compare(data.claims, **{"models": "vote", **wrong})
    assert [model.name for model in named("all")] == cs.models()
    assert named(Vote()) == named("vote") == [Vote()]


def test_known_truths_reach_every_model(data):
    known = dict(
        list(zip(data.truth["object"].to_pylist(), data.truth["value"].to_pylist(), strict=True))[:50]
    )
    (row,) = cs.compare(data.claims, truth=data.truth, known=known, models=["vote"]).to_pylist()
    assert row["n_gold"] == 50


def test_progress_names_the_model(data):
    heard = []
    cs.compare(data.claims, models=["one-coin"], progress=lambda *told: heard.append(told))
    assert {stage for stage, _, _ in heard} == {"one-coin"}
