"""The system's Chromium, driven by Playwright, and a check that every page keeps to itself."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Chromium without a window; where there is none, a skip, or a failure on the machine that decides about merges.

    It goes when the tests of this folder are over: as long as it runs, nothing else in the process can use asyncio.
    """
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        missing = f"none of {', '.join(NAMES)} is installed; scripts/chromium.sh installs it"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program)
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens an address: `visit(url, width=390, dark=True)`.

    When the test ends, no page may have had an error in its console or asked for anything but its own origin; a file's
    origin is that file.
    """
    contexts, troubles = [], []

    def opened(url: str, *, width: int = 1440, height: int = 900, dark: bool = False) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        origin = origin_of(url)
        page.on("console", lambda m: troubles.append(f"console: {m.text}") if m.type == "error" else None)
        page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (troubles.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on(
            "request", lambda r: None if origin_of(r.url) == origin else troubles.append(f"asked {r.url}")
        )
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not troubles


def origin_of(url: str) -> str:
    """Scheme, host and port; of a file its whole path."""
    parts = urlsplit(url)
    return f"file://{parts.path}" if parts.scheme == "file" else f"{parts.scheme}://{parts.netloc}"
