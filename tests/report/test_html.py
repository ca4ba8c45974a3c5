"""The page: all sections, in order, and nothing but text of whatever the data holds."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import consilience as cs
from consilience.errors import EngineUnavailableError, InputError
from consilience.kernels.state import Globals
from consilience.report import figures
from consilience.report.gold import run_rivals
from consilience.report.html import html
from consilience.report.summarise import summarise
from consilience.report.summary import Link
from tests.report.hostile import LONG, SCRIPT, triples
from tests.results.made_fits import capitals_fit, random_fit, random_triples

GOLD = pa.table({"object": ["Australia", "Brazil", "Canada"], "value": ["Canberra", "Brasília", "Ottawa"]})
OURS = {
    "html", "head", "meta", "title", "style", "body", "a", "div", "header", "main", "nav", "ul", "li", "h1", "h2",
    "section", "p", "dl", "dt", "dd", "strong", "table", "caption", "thead", "tbody", "tr", "th", "td", "bdi", "span",
    "details", "summary", "figure", "figcaption", "svg", "g", "path", "text", "rect", "line", "tspan",
}  # fmt: skip


class Elements(HTMLParser):
    """Tags and attributes of a page, as a browser would see them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name in ("href", "src", "xlink:href"):
                self.links.add(value or "")


def charts(page: str) -> list[str]:
    return re.findall(r"<svg.*?</svg>", page, re.DOTALL)


def sections(page: str) -> list[str]:
    return re.findall(r'<section id="(\w+)">', page)


def test_sections_stand_in_the_order_of_what_people_ask() -> None:
    fit = capitals_fit()
    page = html(summarise(fit, GOLD, run_rivals(fit, ["vote"])))
    every = ["found", "majority", "sources", "worth", "groups", "doubt", "gold", "course", "provenance"]
    assert sections(page) == every
    assert re.findall(r'<li><a href="#(\w+)"', page) == every
    assert len(charts(page)) == 7
    assert "Careful:</strong> close call" in page
    assert "copier0, copier1" in re.sub(r"</?bdi>", "", page)


def test_a_model_without_groups_and_gold_has_a_shorter_page() -> None:
    page = html(summarise(cs.Vote().fit(random_triples(np.random.default_rng(0)))))
    assert sections(page) == ["found", "majority", "sources", "worth", "doubt", "course", "provenance"]
    assert len(charts(page)) == 1
    assert "vote counts each of 8 sources in full" in page
    assert "90% interval" not in page


@pytest.mark.parametrize("name", cs.models())
def test_every_model_has_a_page(name: str) -> None:
    fit = cs.model(name).fit(random_triples(np.random.default_rng(0)))
    assert sections(html(summarise(fit)))[0] == "found"


def test_sources_that_are_in_no_group_and_an_object_with_one_claim() -> None:
    lone = cs.MSS().fit([("a", "x", "1")])
    assert "1 source makes 1 claim about 1 object" in html(summarise(lone))
    fit = random_fit(0)
    assert fit.groups_found is not None
    unseen = np.full((fit.claims.n_sources, 1), fit.groups_found.n_groups, np.int32)
    tail = Globals(unseen, np.ones(unseen.shape), fit.groups_found.group_reliability, fit.groups_found.sticks)
    page = html(summarise(cs.Fit(**{**vars(fit), "groups_found": tail})))
    assert "No two sources share a group" in page


def test_ties_are_told() -> None:
    page = html(summarise(cs.Vote().fit([("a", "x", "1"), ("b", "x", "2")], seed=7)))
    assert "1 decision has a probability below 90%. 1 tie was decided by seed 7." in page


def test_hostile_text_is_text() -> None:
    fit = cs.MSS(n_starts=1, max_sweeps=20).fit(triples())
    gold = pa.table({"object": fit.claims.objects, "value": ["1"] * fit.claims.n_objects})
    page = html(summarise(fit, gold, run_rivals(fit, ["vote"])))
    seen = Elements(page)
    assert not seen.tags - OURS
    assert not [name for name in seen.attributes if name.startswith("on")]
    assert all(link.startswith("#") for link in seen.links)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "49" not in re.findall(r"<bdi>(\d+)", page)  # {{ 7 * 7 }} is not computed
    assert LONG[:200] not in page
    assert len(page) < 1_000_000
    for character in "\x00\x1b\x07\u202e\u200f\u2028\u2029":
        assert character not in page
    assert len(charts(page)) == 7
    for svg in charts(page):
        tree = ET.fromstring(svg)
        assert {element.tag.rpartition("}")[2] for element in tree.iter()} <= OURS
    drawn = "".join(charts(page))
    assert "&lt;script" in drawn  # its name stands in a chart, shortened


def test_the_graph_names_groups_members_and_what_groups_share() -> None:
    summary = summarise(capitals_fit())
    assert summary.groups is not None
    groups = replace(summary.groups, links=(Link(1, 3, 0.42),))
    svg = figures.graph(groups)
    drawn = ET.fromstring(svg)
    said = ["".join(each.itertext()) for each in drawn.iter("{http://www.w3.org/2000/svg}text")]
    titles = {each.text for each in drawn.iter("{http://www.w3.org/2000/svg}title")}
    for wanted in (
        "careless, 5 sources, 38% reliable",
        "copier0",
        "copier4",
        "reliable, on its own, 94% reliable",
    ):
        assert any(wanted in each for each in said), wanted
    assert any((each or "").startswith("group 1: careless, 5 sources, 38% reliable (") for each in titles)
    assert "groups 1 and 3: the same mistake on 42% of objects" in titles
    assert "aria-label" not in svg
    assert "group 2" not in " ".join(map(str, titles))  # on its own, and not joined
    assert "No two groups make the same mistake" in html(summary)
    assert "A bow on the left joins groups" in html(replace(summary, groups=groups))


def test_charts_are_see_through_and_have_words() -> None:
    page = html(summarise(capitals_fit()))
    for svg in charts(page):
        assert 'fill="white"' not in svg
        assert "currentColor" in svg
        assert " id=" not in svg  # two charts on a page would share it
    assert len(re.findall(r'role="img" aria-label="[^"]+"><div aria-hidden="true"><svg', page)) == len(
        charts(page)
    )


def test_nothing_is_loaded_and_no_script_may_run() -> None:
    page = html(summarise(capitals_fit()))
    assert "default-src 'none'; style-src 'unsafe-inline'" in page
    assert not re.search(r"(?:src|href)=\"(?!#)|url\(|@import", page)


def test_a_loaded_fit_has_the_same_page(tmp_path: Path) -> None:
    fit = random_fit(5)
    fit.save(tmp_path / "saved")
    assert html(summarise(cs.load(tmp_path / "saved"))) == html(summarise(fit))


def test_a_fit_writes_its_report(tmp_path: Path) -> None:
    path = capitals_fit().report(tmp_path / "page.html", truth=GOLD, rivals=["vote", "truthfinder"])
    page = path.read_text("utf-8")
    assert '<th scope="row">truthfinder</th>' in page
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.parametrize(
    ("path", "complaint"),
    [("claims.csv", "does not end in .html"), ("nowhere/page.html", "there is no folder")],
)
def test_a_report_does_not_write_just_anywhere(tmp_path: Path, path: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        capitals_fit().report(tmp_path / path)
    assert not list(tmp_path.iterdir())


def test_without_the_extra_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from consilience.report.environment import environment

    summary = summarise(capitals_fit())
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(EngineUnavailableError, match=r"pip install 'consilience\[report\]'"):
        html(summary)
    monkeypatch.delitem(sys.modules, "altair")
    environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(EngineUnavailableError, match=r"pip install 'consilience\[report\]'"):
        html(summary)


def test_a_notebook_shows_a_fit_without_any_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("altair", "vl_convert", "jinja2"):
        monkeypatch.setitem(sys.modules, name, None)
    shown = capitals_fit()._repr_html_()
    assert "7 sources make 21 claims" in shown
    assert "<td>Canberra</td><td>Sydney</td>" in shown
    assert "close call" in shown
    hostile = cs.Vote().fit([(SCRIPT, "x", SCRIPT), ("b", "x", SCRIPT), ("c", "x", "2")])
    assert "<script" not in hostile._repr_html_()
