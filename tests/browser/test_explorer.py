"""The explorer in a browser: every page keeps to itself, fits a phone, works by keyboard; hostile text stays text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from consilience.claims.reading import read_claims
from consilience.datasets.capitals import capitals
from consilience.models.mss.model import MSS
from consilience.models.vote import Vote
from tests.browser.looking import faint, sticking_out, tab_stops
from tests.server.conftest import hostile, reviews_of
from tests.server.live import serving

Visit = Callable[..., Page]
PAGES = [
    "/", "/objects", "/object?number=2", "/sources", "/source?number=2", "/groups", "/group?number=1", "/review",
    "/api",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("explorer") / "capitals"
    return MSS().fit(read_claims(capitals(seed=0).claims), seed=0).save(place)


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with serving(folder) as (address, _):
        yield address


@pytest.fixture(scope="module")
def hostile_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(hostile(tmp_path_factory.mktemp("hostile") / "<b>&amp;")) as (address, _):
        yield address


@pytest.mark.parametrize("path", PAGES)
def test_every_page_fits_and_can_be_read_in_light_and_dark(visit: Visit, url: str, path: str) -> None:
    for width, dark in ((390, True), (1440, False)):
        page = visit(url + path, width=width, dark=dark)
        assert sticking_out(page) == []
        assert faint(page) == []
        assert page.locator("h1").count() == 1


@pytest.mark.parametrize("path", PAGES)
def test_hostile_text_is_text_and_breaks_no_page(visit: Visit, hostile_url: str, path: str) -> None:
    """A dialog, an error in the console or a request to another place would fail the test."""
    page = visit(hostile_url + path, width=390)
    assert sticking_out(page) == []
    assert page.locator("main script, main img").count() == 0


def test_links_to_hostile_objects_can_be_seen_and_open_their_pages(visit: Visit, hostile_url: str) -> None:
    page = visit(f"{hostile_url}/objects", width=390)
    links = page.locator("tbody th a").all()
    assert all(link.is_visible() and link.inner_text().strip() for link in links)
    for shown, address in [(link.inner_text(), link.get_attribute("href")) for link in links]:
        page.goto(f"{hostile_url}{address}")
        expect(page.locator("h2", has_text="Who claims what")).to_be_visible()
        assert page.locator("h1").inner_text()[:10] == shown[:10]
        assert sticking_out(page) == []


def test_the_object_page_explains_in_words_and_bars(visit: Visit, url: str) -> None:
    page = visit(f"{url}/objects")
    page.get_by_label("Id contains").fill("austral")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Australia", exact=True).click()
    expect(page.locator("h1")).to_have_text("Australia")
    expect(page.locator(".lead").first).to_contain_text("Canberra is the most probable value")
    expect(page.locator(".lead").first).to_contain_text("count as one voice")
    bars = page.locator(".waterfall rect")
    assert bars.count() >= 3
    assert all(bars.nth(i).bounding_box()["width"] > 0 for i in range(bars.count()))  # type: ignore[index]
    assert page.locator(".without").inner_text().startswith("Without")
    page.set_viewport_size({"width": 390, "height": 900})
    box = page.locator("#waterfall .wide")
    assert box.evaluate("box => box.scrollWidth <= box.clientWidth")  # on a phone the bars are seen whole


def test_the_keyboard_reaches_everything_and_shows_where_it_is(visit: Visit, url: str) -> None:
    stops = tab_stops(visit(f"{url}/review"))
    assert all(stop["outlined"] for stop in stops)
    texts = [str(stop["text"]) for stop in stops]
    assert texts[0] == "Skip to the contents"
    for wanted in ("Objects", "Skip", "Refit with my answers"):
        assert any(wanted in text for text in texts), wanted


def test_a_reviewer_answers_skips_and_undoes_with_keys(visit: Visit, url: str, folder: Path) -> None:
    reviews = reviews_of(folder)
    page = visit(f"{url}/review")

    def asked() -> str:
        return page.locator("section h2 a").inner_text()

    def press(key: str) -> None:
        page.locator("[data-review][data-ready]").wait_for()
        with page.expect_navigation():
            page.keyboard.press(key)

    elsewhere = reviews.add("Zambia", "Lusaka")  # of another reviewer: no key here takes it back
    page.reload(wait_until="commit")
    page.evaluate(
        "document.dispatchEvent(new KeyboardEvent('keydown', {key: '1', bubbles: true}))"
    )  # too early
    page.locator("[data-review][data-ready]").wait_for()
    page.evaluate(
        "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: '1', bubbles: true, repeat: true}))"
    )
    expect(page.locator("[data-undo]")).to_be_hidden()
    page.keyboard.press("u")
    first = asked()
    assert reviews.answers() == {"Zambia": "Lusaka"}
    reviews.undo(elsewhere.entry)
    choice = page.locator("[data-value]").first.locator("bdi").inner_text()
    press("1")
    assert reviews.answers() == {first: choice}
    second = asked()
    assert second != first
    expect(page.locator("[data-undo]")).to_have_text(f"u Undo {first}: {choice}")
    press("s")
    assert asked() not in (first, second)
    press("u")
    assert asked() == second
    page.get_by_label("Another value").fill("12su")  # keys in a field are text
    press("Enter")
    assert reviews.answers() == {first: choice, second: "12su"}
    press("u")
    press("u")
    assert reviews.answers() == {}

    reviews.add(first, choice)
    page.goto(f"{url}/object?id={second}")
    expect(page.locator("[data-undo]")).to_have_count(0)  # nothing was answered here
    page.goto(f"{url}/object?id={first}")
    expect(page.locator("[data-undo]")).to_have_text("u Undo this answer")
    press("u")
    assert reviews.answers() == {}


def test_the_refit_shows_its_progress_and_then_the_new_result(visit: Visit, tmp_path: Path) -> None:
    folder = Vote().fit(read_claims(capitals(seed=0).claims), seed=0).save(tmp_path / "capitals")
    with serving(folder) as (url, _):
        page = visit(f"{url}/object?id=Australia")
        with page.expect_navigation():
            page.locator("[data-value]").nth(1).click()
        page.goto(f"{url}/review")
        page.get_by_role("button", name="Refit with my answers").click()
        expect(page.locator("progress")).to_be_visible()
        expect(page.get_by_role("button", name="Cancel")).to_be_enabled()
        told = page.locator("[data-refit] .told")
        expect(told).to_have_text("The result now knows your answers.", timeout=90_000)
        page.goto(f"{url}/object?id=Australia")
        expect(page.locator(".lead").first).to_contain_text("was given as the truth")
        page.close()  # it asks for news of refits, and the server is about to go
