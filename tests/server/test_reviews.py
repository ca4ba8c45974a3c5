"""Answers: the last one counts, any can be undone, they lie beside the result and belong to its claims alone."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from consilience.claims.reading import read_claims
from consilience.models.vote import Vote
from consilience.results.fingerprint import fingerprint
from consilience.results.mapped import open_mapped
from consilience.server import reviews as module
from consilience.server.refit import refit
from consilience.server.reviews import AnswersUnavailableError, Reviews
from tests.server.conftest import Open, reviews_of

TRIPLES = [("a", "x", "1"), ("b", "x", "2"), ("a", "y", "1"), ("b", "y", "1")]


@pytest.fixture
def reviews(tmp_path: Path) -> Reviews:
    return Reviews.beside(tmp_path / "result", "these claims")


def test_the_last_answer_counts_and_an_undo_brings_the_one_before_back(reviews: Reviews) -> None:
    first = reviews.add("a", "1")
    second = reviews.add("b", "2")
    third = reviews.add("a", "3")
    assert reviews.answers() == {"a": "3", "b": "2"}
    assert reviews.answer_to("a") == third
    assert reviews.undo(third.entry) == third
    assert reviews.undo(third.entry) is None
    assert reviews.answers() == {"a": "1", "b": "2"}
    assert reviews.undo(first.entry) == first  # any of them, not the last alone
    assert reviews.answers() == {"b": "2"}
    assert reviews.undo(second.entry) == second
    assert reviews.answers() == {}


def test_a_skip_is_no_answer(reviews: Reviews) -> None:
    reviews.add("a", "1")
    skip = reviews.add("a", None)
    assert reviews.answers() == {}
    assert [(each.object, each.value) for each in reviews.latest()] == [("a", None)]
    reviews.undo(skip.entry)
    assert reviews.answers() == {"a": "1"}


def test_answers_are_still_there_when_the_file_is_opened_again(reviews: Reviews, tmp_path: Path) -> None:
    reviews.add("nul\0", "\r\n☃")
    reviews.replace("a refit", {"nul\0": None, "b": "1"})
    again = Reviews.beside(tmp_path / "result" / "..." / ".." / "..." / "..", "these claims")
    assert again.path.name == "result.reviews.sqlite"
    assert again.answers() == {"nul\0": "\r\n☃"}
    assert again.replaced("a refit") == {"nul\0": None, "b": "1"}
    assert again.replaced("another") == {}


def test_who_only_looks_leaves_nothing_behind(reviews: Reviews) -> None:
    assert reviews.latest() == []
    assert reviews.answer_to("a") is None
    assert reviews.n_elsewhere() == 0
    assert not reviews.path.exists()


def test_answers_about_other_claims_are_kept_and_never_used(tmp_path: Path, visiting: Open) -> None:
    folder = Vote().fit(read_claims(TRIPLES)).save(tmp_path / "r")
    answer = reviews_of(folder).add("x", "2")
    Vote().fit(read_claims([*TRIPLES[:-1], ("b", "y", "2")])).save(folder)
    other = reviews_of(folder)
    assert (other.answers(), other.answer_to("x"), other.n_elsewhere()) == ({}, None, 1)
    assert other.undo(answer.entry) is None
    refit(str(folder), lambda *told: None)
    client = visiting(folder)
    assert client.get("/api/result").json()["n_known"] == 0
    assert "1 answer beside this result was given about other claims" in client.get("/").text
    assert client.post("/api/refit").status_code == 400
    Vote().fit(read_claims(TRIPLES[::-1]), known={"y": "nobody says this"}).save(folder)
    assert reviews_of(folder).answers() == {
        "x": "2"
    }  # the first table again, though a known truth adds a value


def test_a_fingerprint_is_of_who_claims_what_about_what(tmp_path: Path) -> None:
    claims = read_claims(TRIPLES)
    saved = open_mapped(Vote().fit(claims).save(tmp_path / "r"))
    assert fingerprint(saved.claims) == fingerprint(claims) == fingerprint(read_claims(TRIPLES[::-1]))
    swapped = [("b", o, v) if s == "a" else ("a", o, v) for s, o, v in TRIPLES]
    others = [
        TRIPLES[1:],
        swapped,
        [(s, o + "z", v) for s, o, v in TRIPLES],
        [(s, o, "9") for s, o, _ in TRIPLES],
    ]
    assert len({fingerprint(read_claims(each)) for each in [TRIPLES, *others]}) == 5


def test_without_answers_a_result_can_be_looked_at_and_nothing_else_breaks(
    visiting: Open, vote_result: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Locked by another program, no database, not to be opened: a clear 503, and pages that say so."""
    monkeypatch.setattr(module, "READING", 0.05)
    monkeypatch.setattr(module, "STORING", 0.05)
    client, path = visiting(vote_result), reviews_of(vote_result).path
    assert client.post("/api/reviews", json={"id": "Australia", "value": "Canberra"}).status_code == 201
    holder = sqlite3.connect(path)
    holder.execute("BEGIN EXCLUSIVE")

    def check(why: str) -> None:
        about = client.get("/api/result").json()
        assert about["n_reviewed"] is None
        assert why in about["trouble"]
        for page in (
            "/",
            "/objects",
            "/object?id=Australia",
            "/sources",
            "/source?number=0",
            "/groups",
            "/api",
        ):
            got = client.get(page)
            assert got.status_code == 200, page
            assert "Everything else can be looked at" in got.text
        asked = [
            client.get(each)
            for each in ("/review", "/api/queue", "/api/objects?reviewed=true", "/api/reviews")
        ]
        asked.append(client.post("/api/reviews", json={"id": "Australia", "value": "Canberra"}))
        asked += [client.post("/api/reviews/undo", json={"entry": 1}), client.post("/api/refit")]
        for each in asked:
            assert each.status_code == 503, each.url
            assert "Answers cannot be" in each.text

    check("database is locked. Close the program that holds it")
    holder.close()
    assert client.get("/api/result").json()["n_reviewed"] == 1
    path.write_text("something else entirely, and long enough to be looked at")
    check("not a database")
    path.unlink()
    path.mkdir()
    check("unable to open")


def test_a_folder_that_is_read_only_can_be_looked_at(
    visiting: Open, vote_result: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = visiting(vote_result)
    client.post("/api/reviews", json={"id": "Australia", "value": "Canberra"})
    connect = sqlite3.connect

    def read_only(address: str, **how: object) -> sqlite3.Connection:  # as the system does, also for root
        return connect(address.partition("?")[0] + "?mode=ro", **how)  # type: ignore[call-overload,no-any-return]

    monkeypatch.setattr("sqlite3.connect", read_only)
    monkeypatch.setattr("os.access", lambda *asked: False)
    about = client.get("/api/result").json()
    assert about["n_reviewed"] == 1
    assert "read-only" in about["trouble"]
    assert "Your answer: " in client.get("/object?id=Australia").text
    assert client.get("/review").status_code == 200
    refused = client.post("/api/reviews", json={"id": "Canada", "value": "Ottawa"})
    assert refused.status_code == 503
    assert "Copy the result to a folder that you may write to" in refused.json()["detail"]


def test_reads_and_writes_of_a_store_that_is_no_database_are_refused(tmp_path: Path) -> None:
    reviews = Reviews.beside(tmp_path / "result", "these claims")
    reviews.path.write_text("something else entirely, and long enough to be looked at")
    for ask in (reviews.answers, lambda: reviews.add("a", "1")):
        with pytest.raises(AnswersUnavailableError, match="not a database"):
            ask()
