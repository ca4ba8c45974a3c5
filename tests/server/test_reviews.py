"""Answers: the last one counts, an undo brings the one before back, and they lie beside the result."""

from __future__ import annotations

from pathlib import Path

import pytest

from consilience.errors import InputError
from consilience.server.reviews import Reviews


@pytest.fixture
def reviews(tmp_path: Path) -> Reviews:
    return Reviews.beside(tmp_path / "result")


def test_the_last_answer_counts_and_an_undo_brings_the_one_before_back(reviews: Reviews) -> None:
    reviews.add("a", "1")
    reviews.add("b", "2")
    reviews.add("a", "3")
    assert reviews.answers() == {"a": "3", "b": "2"}
    assert reviews.answer_to("a") == "3"
    undone = reviews.undo()
    assert undone is not None
    assert (undone.object, undone.value) == ("a", "3")
    assert reviews.answers() == {"a": "1", "b": "2"}
    assert [reviews.undo(), reviews.undo(), reviews.undo()][-1] is None
    assert reviews.answers() == {}


def test_a_skip_is_no_answer(reviews: Reviews) -> None:
    reviews.add("a", "1")
    reviews.add("a", None)
    assert reviews.answers() == {}
    assert [(each.object, each.value) for each in reviews.latest()] == [("a", None)]
    reviews.undo()
    assert reviews.answers() == {"a": "1"}


def test_answers_are_still_there_when_the_file_is_opened_again(reviews: Reviews, tmp_path: Path) -> None:
    reviews.add("nul\0", "\r\n☃")
    reviews.apply(["nul\0"])
    again = Reviews.beside(tmp_path / "result" / "..." / ".." / "..." / "..")
    assert again.path.name == "result.reviews.sqlite"
    assert again.answers() == {"nul\0": "\r\n☃"}
    assert again.applied() == {"nul\0"}


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "result.reviews.sqlite").write_text(
        "something else entirely, and long enough to be looked at"
    )
    with pytest.raises(InputError, match="cannot be stored"):
        Reviews.beside(tmp_path / "result")
