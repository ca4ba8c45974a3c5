"""Pages and JSON say what the fit says, and hostile text stays text."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from consilience.claims.reading import read_claims
from consilience.datasets.capitals import capitals
from consilience.models.vote import Vote
from consilience.results.storage import load
from tests.server.conftest import HOSTILE, LONG, SCRIPT, Client, Open, hostile, visited

PAGES = ["/", "/objects", "/sources", "/groups", "/review", "/api"]


@pytest.fixture(scope="module")
def hostile_client(hostile_result: Path) -> Iterator[Client]:
    with visited(hostile_result) as client:
        yield client


def texts(page: str) -> str:
    """What a reader sees of a page, roughly."""
    return html.unescape(re.sub(r"<[^>]*>", " ", page))


def test_the_lists_are_those_of_the_fit(client: Client, result: Path) -> None:
    fit = load(result)
    about = client.get("/api/result").json()
    assert (about["n_objects"], about["n_sources"], about["n_groups"]) == (60, 40, fit.n_groups)
    rows = client.get("/api/objects?size=200").json()["rows"]
    truths = fit.truths.to_pylist()
    assert [(r["object"], r["value"], r["probability"]) for r in rows] == [
        (t["object"], t["value"], t["probability"]) for t in truths
    ]
    sources = client.get("/api/sources?size=200").json()["rows"]
    assert [{k: r[k] for k in r if k != "number"} for r in sources] == fit.sources.to_pylist()
    assert client.get("/api/groups").json() == fit.groups.to_pylist()


def test_objects_are_filtered_ordered_and_paged(client: Client, result: Path) -> None:
    def found(query: str) -> list[dict[str, object]]:
        return list(client.get(f"/api/objects?size=200&{query}").json()["rows"])

    everything = found("")
    assert [r["object"] for r in found("text=AUS")] == [
        r["object"] for r in everything if "aus" in str(r["object"]).lower()
    ]
    assert {r["value"] for r in found("value=canb")} == {"Canberra"}
    differing = found("differs=true")
    assert 0 < len(differing) < 60
    assert len(differing) + len(found("differs=false")) == 60
    doubt = [r["probability"] for r in found("order=uncertainty")]
    assert doubt == sorted(doubt)  # type: ignore[type-var]
    assert found("text=%25") == []  # no pattern, just text
    pages = [client.get(f"/api/objects?size=25&page={page}").json() for page in (1, 2, 3, 4)]
    assert [len(page["rows"]) for page in pages] == [25, 25, 10, 0]
    assert [r for page in pages for r in page["rows"]] == everything
    assert {page["total"] for page in pages} == {60}

    client.post("/api/reviews", json={"id": "Australia", "value": "Canberra"})
    assert [(r["object"], r["answer"]) for r in found("reviewed=true")] == [("Australia", "Canberra")]
    assert len(found("reviewed=false")) == 59


def test_sources_are_filtered(reader: Client) -> None:
    def found(query: str) -> list[dict[str, object]]:
        return list(reader.get(f"/api/sources?size=200&{query}").json()["rows"])

    assert {r["group"] for r in found("group=1")} == {1}
    assert all(0.5 <= r["reliability"] <= 0.9 for r in found("least=0.5&most=0.9"))  # type: ignore[operator]
    assert len(found("least=0.5")) + len(found("most=0.5")) == 40
    name = str(found("")[0]["source"])
    assert name in [r["source"] for r in found(f"text={name[:4].upper()}")]


def test_an_object_is_explained_as_the_fit_explains_it(reader: Client, capitals_result: Path) -> None:
    why = load(capitals_result).explain("Australia")
    shape = reader.get("/api/object?id=Australia").json()
    assert shape == reader.get(f"/api/object?number={shape['number']}").json()
    assert shape["sentence"] == why.sentence
    assert [c["value"] for c in shape["candidates"]] == [c.value for c in why.candidates]
    for got, voice in zip(shape["voices"], why.voices, strict=True):
        assert got["nats"] == list(voice.contributions)
        assert [m["source"] for m in got["members"]] == [m.source for m in voice.members]
        assert got["otherwise"] is None or shape["candidates"][got["otherwise"]]["value"] == voice.otherwise
    page = reader.get("/object?id=Australia").text
    assert why.sentence in texts(page)
    assert "What each voice adds" in page
    assert page.count("<rect") >= 2


def test_what_there_is_not_is_not_found(reader: Client) -> None:
    for path in (
        "/object?id=Atlantis",
        "/object?number=60",
        "/source?id=nobody",
        "/group?number=999",
    ):
        for prefix in ("", "/api"):
            got = reader.get(prefix + path)
            assert got.status_code == 404, path
            assert "There is no" in texts(got.text)


@pytest.mark.parametrize("what", ["object", "source"])
def test_a_page_about_nothing_in_particular_says_what_is_missing(reader: Client, what: str) -> None:
    for prefix in ("", "/api"):
        got = reader.get(f"{prefix}/{what}")
        assert got.status_code == 422
        assert f"say which {what}: /{what}?id=…" in texts(got.text)


def test_truths_that_were_given_are_shown_as_given(visiting: Open, tmp_path: Path) -> None:
    fit = Vote().fit(
        read_claims(capitals(seed=0).claims), known={"Australia": "Canberra", "Canada": "Ottawa"}
    )
    client = visiting(fit.save(tmp_path / "r"))

    def found(query: str) -> list[str]:
        return [row["object"] for row in client.get(f"/api/objects?size=200&{query}").json()["rows"]]

    assert found("known=true") == ["Australia", "Canada"]
    assert len(found("differs=false")) + len(found("differs=true")) == 58
    assert not {"Australia", "Canada"} & {*found("differs=false"), *found("differs=true")}
    row = re.search(r"<tr>.*?</tr>", client.get("/objects?known=yes").text.partition("<tbody>")[2])
    assert row is not None
    assert "truth was given" in row[0]


def test_every_page_opens_for_a_model_without_groups(visiting: Open, vote_result: Path) -> None:
    client = visiting(vote_result)
    for path in (*PAGES, "/object?number=3", "/source?number=3"):
        assert client.get(path).status_code == 200, path


@pytest.mark.parametrize("path", PAGES)
def test_hostile_text_is_text_in_every_list(hostile_client: Client, path: str) -> None:
    page = hostile_client.get(path).text
    assert "<script>alert" not in page
    assert "<img" not in page
    if path in ("/objects", "/sources"):
        assert SCRIPT in texts(page)
        assert "{{ 7 * 7 }}" in texts(page)
    assert len(page) < 1_000_000


@pytest.mark.parametrize("kind", ["object", "source"])
def test_hostile_ids_have_pages_that_their_links_open(hostile_client: Client, kind: str) -> None:
    page = hostile_client.get(f"/{kind}s").text
    links = {html.unescape(each) for each in re.findall(rf'href="(/{kind}\?[^"]*)"', page)}
    assert len(links) == len(HOSTILE)
    opened = set()
    for link in links:
        got = hostile_client.get(link)
        assert got.status_code == 200
        assert "<script>alert" not in got.text
        assert "<img" not in got.text
        shape = hostile_client.get("/api" + link).json()
        opened.add(shape["object"] if kind == "object" else shape["row"]["source"])
    assert opened == set(HOSTILE)


def test_a_hundred_thousand_characters_are_shown_whole_where_one_asks_for_them(
    hostile_client: Client,
) -> None:
    rows = hostile_client.get("/api/objects").json()["rows"]
    number = next(r["number"] for r in rows if r["object"] == LONG)
    assert LONG in hostile_client.get(f"/object?number={number}").text


def test_hostile_answers_are_stored_as_they_are(visiting: Open, tmp_path: Path) -> None:
    client = visiting(hostile(tmp_path / "result"))
    number = {row["object"]: row["number"] for row in client.get("/api/objects").json()["rows"]}
    for value in HOSTILE:
        candidates = client.get(f"/api/object?number={number[value]}").json()["candidates"]
        assert value in [candidate["value"] for candidate in candidates]
        answer = {"number": number[value], "value": value}
        assert client.post("/api/reviews", json=answer).status_code == 201
        assert client.get(f"/api/object?number={number[value]}").json()["answer"] == value
    reviewed = client.get("/api/objects?reviewed=true").json()["rows"]
    assert {row["object"]: row["answer"] for row in reviewed} == {value: value for value in HOSTILE}


def test_the_queue_leaves_out_what_was_answered_or_skipped(client: Client) -> None:
    while not client.get("/api/queue").json()["ready"]:
        time.sleep(0.05)
    first, second, third = (task["number"] for task in client.get("/api/queue?size=3").json()["tasks"])
    value = client.get(f"/api/object?number={first}").json()["candidates"][0]["value"]
    client.post("/api/reviews", json={"number": first, "value": value})
    client.post("/api/reviews/skip", json={"number": second})
    assert client.get("/api/queue?size=1").json()["tasks"][0]["number"] == third
    entry = client.get(f"/api/object?number={second}").json()["entry"]
    assert client.post("/api/reviews/undo", json={"entry": entry}).json()["value"] is None
    assert client.post("/api/reviews/undo", json={"entry": entry}).status_code == 404
    assert client.get("/api/queue?size=1").json()["tasks"][0]["number"] == second


def test_a_value_that_cannot_be_is_refused(client: Client) -> None:
    assert client.post("/api/reviews", json={"id": "Australia", "value": "  "}).status_code == 400
    assert client.post("/api/reviews", json={"id": "Atlantis", "value": "x"}).status_code == 404
    assert client.post("/api/reviews", json={"id": "Australia"}).status_code == 422
    assert client.post("/api/reviews", json={"number": True, "value": "Canberra"}).status_code == 422
    assert client.post("/api/reviews", json={"id": "Australia", "value": "somewhere new"}).status_code == 201


def test_the_interface_is_described_without_loading_anything(reader: Client) -> None:
    described = reader.get("/api/openapi.json").json()
    page = reader.get("/api").text
    assert "`" not in page
    for path, methods in described["paths"].items():
        assert path in page
        for method in methods.values():
            assert all(parameter["description"] for parameter in method.get("parameters", []))
    assert "http://" not in page
    assert "https://" not in page
    assert reader.get("/docs").status_code == reader.get("/redoc").status_code == 404
