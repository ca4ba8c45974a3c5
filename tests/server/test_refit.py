"""Refits with answers: what is known afterwards; one at a time, cancelled, failed; the explorer shows the new one."""

from __future__ import annotations

import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from consilience.claims.reading import read_claims
from consilience.datasets.capitals import capitals
from consilience.errors import InputError
from consilience.models.mss.model import MSS
from consilience.models.vote import Vote
from consilience.results.storage import load
from consilience.server import refit as module
from consilience.server.explorer import Explorer
from consilience.server.pages import Pages
from consilience.server.refit import known_truths, refit
from tests.server.conftest import HEADERS, Client, Open, reviews_of
from tests.server.live import serving


def told(stage: str, sweep: int, bound: float) -> None:
    """Nobody listens."""


def ended(client: Client, url: str = "") -> dict[str, Any]:
    for _ in range(600):
        state = client.get(f"{url}/api/refit").json()
        if state["state"] != "running":
            return dict(state)
        time.sleep(0.1)
    raise AssertionError("the refit does not end")


def test_a_refit_is_the_same_model_with_the_answers_as_known_truths(result: Path) -> None:
    before = load(result)
    reviews = reviews_of(result)
    reviews.add("Australia", "Sydney")
    reviews.add("Brazil", "a place that nobody claims")
    reviews.add("nowhere", "nothing")
    reviews.add("Canada", None)
    refit(str(result), told)
    after = load(result)
    expected = MSS().fit(
        before.claims, known={"Australia": "Sydney", "Brazil": "a place that nobody claims"}, seed=before.seed
    )
    assert (after.truth == expected.truth).all()
    assert after.known is not None
    assert after.known.sum() == 2
    assert after.settings == before.settings
    assert after.explain("Brazil").decision == "a place that nobody claims"
    assert reviews_of(result).answers()["Australia"] == "Sydney"


def known_in(folder: Path) -> dict[str, str]:
    fit = load(folder)
    assert fit.known is not None
    rows = zip(fit.truths.to_pylist(), fit.known, strict=True)
    return {row["object"]: row["value"] for row, known in rows if known}


def test_a_given_truth_is_not_lost_to_an_answer_of_an_earlier_refit_in_the_same_place(tmp_path: Path) -> None:
    claims = read_claims(capitals(seed=0).claims)
    folder = Vote().fit(claims).save(tmp_path / "r")
    entry = reviews_of(folder).add("Australia", "Sydney").entry
    refit(str(folder), told)
    reviews_of(folder).undo(entry)
    Vote().fit(claims, known={"Australia": "Canberra"}).save(folder)  # given anew, by another fit
    refit(str(folder), told)
    assert known_in(folder) == {"Australia": "Canberra"}


def test_an_answer_that_was_taken_back_is_not_known_after_the_next_refit(tmp_path: Path) -> None:
    folder = Vote().fit(read_claims(capitals(seed=0).claims), known={"Canada": "Ottawa"}).save(tmp_path / "r")
    reviews = reviews_of(folder)
    entries = [reviews.add("Australia", "Sydney").entry, reviews.add("Canada", "Toronto").entry]
    refit(str(folder), told)
    assert known_in(folder) == {"Australia": "Sydney", "Canada": "Toronto"}
    refit(str(folder), told)
    for entry in entries:
        reviews.undo(entry)
    refit(str(folder), told)
    assert known_in(folder) == {"Canada": "Ottawa"}  # what was given before somebody answered
    refit(str(folder), told)
    assert known_in(folder) == {"Canada": "Ottawa"}


def test_answers_keep_the_type_of_the_claims(tmp_path: Path) -> None:
    triples = [(s, o, v) for s in range(3) for o, v in ((10, 1.5), (20, 2.0))] + [(9, 10, 7.25)]
    fit = Vote().fit(read_claims(triples))
    known = known_truths(fit, {}, {"10": "7.25"})
    assert known is not None
    assert known.to_pylist() == [{"object": 10, "value": 7.25}]
    assert known_truths(fit, {}, {}) is None
    with pytest.raises(InputError, match="undo"):
        known_truths(fit, {}, {"10": "99.0"})


def test_the_report_in_the_result_is_made_anew(vote_result: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reviews_of(vote_result).add("Australia", "Canberra")
    refit(str(vote_result), told)
    assert not (vote_result / "report.html").exists()
    (vote_result / "report.html").write_text("old")
    monkeypatch.setattr(module, "write_report", lambda summary, path: path.write_text("new"))
    assert refit(str(vote_result), told) == ""
    assert (vote_result / "report.html").read_text() == "new"


def test_a_report_that_cannot_be_made_is_told_of(vote_result: Path) -> None:
    reviews_of(vote_result).add("Australia", "Canberra")
    (vote_result / "report.html").write_text("old")
    fails = "import consilience.server.refit as m; m.write_report = lambda *given: 1 / 0; m.main()"
    explorer = Explorer(vote_result)
    explorer.refitting._command = [sys.executable, "-P", "-c", fails, str(vote_result)]
    assert explorer.refit() is not None
    while explorer.refitting.state().state == "running":
        time.sleep(0.05)
    assert explorer.refitting.state().state == "done"
    assert not (vote_result / "report.html").exists()
    assert "Its report could not be made (division by zero)" in Pages(explorer).review()
    explorer.close()


def test_the_explorer_shows_the_new_result_when_a_refit_is_done(result: Path) -> None:
    with serving(result) as (url, _), Client(headers=HEADERS, timeout=30) as client:
        assert client.post(f"{url}/api/refit").status_code == 400  # nothing to learn from
        client.post(f"{url}/api/reviews", json={"id": "Australia", "value": "Sydney"})
        assert client.get(f"{url}/api/object?id=Australia").json()["candidates"][0]["value"] == "Canberra"
        started = client.post(f"{url}/api/refit")
        assert started.status_code == 202
        assert started.json()["n_answers"] == 1
        assert client.post(f"{url}/api/refit").status_code == 409
        while client.get(f"{url}/api/refit").json()["state"] == "running":  # also while it is replaced
            for path in (
                "/objects",
                "/object?id=Australia",
                "/source?number=3",
                "/group?number=1",
                "/review",
            ):
                assert client.get(url + path).status_code == 200
            time.sleep(0.1)  # the refit needs a processor too
        state = ended(client, url)
        assert (state["state"], state["stage"] != "") == ("done", True), state
        shape = client.get(f"{url}/api/object?id=Australia").json()
        assert shape["candidates"][0]["value"] == "Sydney"
        assert shape["known"]
        assert client.get(f"{url}/api/result").json()["n_known"] == 1
        assert "Australia" not in [t["object"] for t in client.get(f"{url}/api/queue").json()["tasks"]]


def test_a_refit_can_be_cancelled(visiting: Open, result: Path) -> None:
    manifest = json.loads((result / "manifest.json").read_text())
    client = visiting(result)
    client.post("/api/reviews", json={"id": "Australia", "value": "Sydney"})
    client.post("/api/refit")
    assert client.delete("/api/refit").json()["state"] == "cancelled"
    assert json.loads((result / "manifest.json").read_text()) == manifest
    assert client.delete("/api/refit").json()["state"] == "cancelled"  # once more does no harm
    assert not [path.name for path in result.parent.iterdir() if "saving" in path.name]


def test_why_a_refit_failed_is_shown(visiting: Open, result: Path) -> None:
    client = visiting(result)
    client.post("/api/reviews", json={"id": "Australia", "value": "Sydney"})
    (result / "mine.txt").write_text("keep me")
    client.post("/api/refit")
    state = ended(client)
    assert state["state"] == "failed"
    assert "mine.txt" in state["message"]
    assert "mine.txt" in client.get("/review").text
    assert client.get("/object?id=Australia").status_code == 200
    shutil.rmtree(result)
    client.post("/api/refit")
    assert "is not a consilience result" in ended(client)["message"]
    assert client.get("/object?id=Australia").status_code == 200


def test_what_lies_beside_a_result_is_not_imported(vote_result: Path) -> None:
    (vote_result.parent / "pyarrow.py").write_text("raise SystemExit('imported what lies beside the result')")
    reviews_of(vote_result).add("Australia", "Canberra")
    with serving(vote_result) as (url, _), Client(headers=HEADERS, timeout=30) as client:
        assert client.post(f"{url}/api/refit").status_code == 202
        state = ended(client, url)
    assert state["state"] == "done", state


def test_half_a_character_is_refused(vote_result: Path) -> None:
    with serving(vote_result) as (url, _), Client(headers=HEADERS, timeout=30) as client:
        for body in (b'{"id": "\\ud800", "value": "a"}', b'{"number": 0, "value": "\\ud800"}'):
            sent = client.post(
                f"{url}/api/reviews", content=body, headers={"Content-Type": "application/json"}
            )
            assert sent.status_code in (400, 422), sent.text
