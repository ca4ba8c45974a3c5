"""The report as a reader meets it: on a phone and on a desk, by day and by night, by mouse and by keyboard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

import consilience as cs
from consilience.datasets.capitals import capitals
from tests.browser.looking import faint, sticking_out, tab_stops
from tests.report.hostile import SCRIPT, triples

Visit = Callable[..., Page]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Addresses of three reports: the bundled example with gold, a model without groups, and hostile names."""
    made, folder = capitals(seed=0), tmp_path_factory.mktemp("reports")
    claims = cs.read_claims(made.claims)
    found = cs.MSS(n_starts=1).fit(claims)
    found.report(folder / "groups.html", truth=made.truth, rivals=["vote", "truthfinder"])
    cs.Vote().fit(claims).report(folder / "vote.html")
    cs.MSS(n_starts=1, max_sweeps=20).fit(triples()).report(folder / "hostile.html")
    return {path.stem: path.as_uri() for path in folder.iterdir()}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("name", ["groups", "vote", "hostile"])
def test_nothing_sticks_out_and_everything_can_be_read(
    visit: Visit, pages: dict[str, str], name: str, width: int, dark: bool
) -> None:
    page = visit(pages[name], width=width, dark=dark)
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert sticking_out(page) == []
    assert faint(page) == []
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(20, 23, 26)") == dark
    ink = page.evaluate("getComputedStyle(document.querySelector('figure svg')).color")
    assert (ink == "rgb(230, 231, 233)") == dark


@pytest.mark.parametrize("name", ["groups", "hostile"])
def test_names_in_charts_are_whole(visit: Visit, pages: dict[str, str], name: str) -> None:
    page = visit(pages[name], width=1440)
    cut = page.evaluate(
        """() => [...document.querySelectorAll('figure svg')].flatMap(svg => {
          const frame = svg.getBoundingClientRect();
          return [...svg.querySelectorAll('text')].filter(text => {
            const box = text.getBoundingClientRect();
            return box.width && (box.left < frame.left - 1 || box.right > frame.right + 1);
          }).map(text => text.textContent); })"""
    )
    assert cut == []


def test_the_keyboard_reaches_everything_and_shows_where_it_is(visit: Visit, pages: dict[str, str]) -> None:
    page = visit(pages["groups"])
    stops = tab_stops(page)
    assert stops[0]["text"] == "Skip to the contents"
    assert [stop["text"] for stop in stops[1:3]] == ["Found", "Against majority vote"]
    assert all(stop["outlined"] for stop in stops)
    assert len([stop for stop in stops if stop["tag"] == "summary"]) == page.locator("summary").count()


def test_the_skip_link_leads_past_the_menu(visit: Visit, pages: dict[str, str]) -> None:
    page = visit(pages["groups"])
    page.keyboard.press("Tab")
    assert page.locator(".skip").bounding_box()["y"] >= 0  # type: ignore[index]
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.querySelector('main').contains(document.activeElement)")


def test_details_open_by_key_and_say_why(visit: Visit, pages: dict[str, str]) -> None:
    page = visit(pages["groups"])
    second = page.locator("#majority details").nth(1)
    words = second.locator("p")
    assert not words.is_visible()
    second.locator("summary").focus()
    page.keyboard.press("Enter")
    assert words.is_visible()
    assert "whose claims count as one voice" in words.inner_text()


def test_wide_tables_scroll_by_key_on_a_phone(visit: Visit, pages: dict[str, str]) -> None:
    page = visit(pages["groups"], width=390)
    table = page.locator("#majority .wide")
    table.focus()
    page.keyboard.press("ArrowRight")
    scrolled = 0.0
    for _ in range(100):  # wait_for_function would use eval, which the page's policy forbids
        scrolled = table.evaluate("element => element.scrollLeft")
        if scrolled:
            break
        page.wait_for_timeout(50)
    assert scrolled > 0
    assert page.evaluate("window.scrollX") == 0


def test_hostile_names_are_shown_as_they_are(visit: Visit, pages: dict[str, str]) -> None:
    page = visit(pages["hostile"])
    assert page.locator("script, img, iframe").count() == 0
    assert page.locator("bdi", has_text=SCRIPT).count() > 0
    assert page.locator("figure svg text", has_text="<script>").count() > 0
    assert "\\u202eevil" in page.inner_text("body")


def test_the_report_of_a_result_opens_from_its_folder(visit: Visit, tmp_path: Path) -> None:
    fit = cs.Vote().fit([("a", "x", "1"), ("b", "x", "2"), ("c", "x", "2")])
    path = fit.save(tmp_path / "a result with spaces & ümlauts")
    page = visit(fit.report(path / "report.html").as_uri())
    assert page.title() == "What vote found in 3 claims"
