from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from consilience.claims.reading import read_claims
from consilience.datasets.capitals import capitals
from consilience.models.mss.model import MSS
from consilience.models.vote import Vote
from consilience.results.fingerprint import fingerprint
from consilience.results.storage import load
from consilience.server import app
from consilience.server.explorer import Explorer
from consilience.server.reviews import Reviews

HEADERS = {"X-Consilience": "1"}
SCRIPT = "<script>alert(1)</script>"
LONG = "long " * 20_000
"""A hundred thousand characters."""
HOSTILE = [
    SCRIPT, LONG, "a/b/../../etc", "?x=1&y=2#z", "..", "%2e%2e%2f", "snow ☃ 雪 \u202eabc", " ", "\t", "line\r\nbreak",
    "nul\0byte", "'; DROP TABLE objects; --", '"><img src=x onerror=alert(1)>', "{{ 7 * 7 }}", "None",
]  # fmt: skip
"""Ids and values that somebody may have in a table."""

Client = httpx.Client
Open = Callable[..., Client]


@pytest.fixture(scope="session")
def capitals_result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small result with groups; for reading only."""
    folder = tmp_path_factory.mktemp("capitals") / "result"
    MSS().fit(read_claims(capitals(seed=0).claims), seed=0).save(folder)
    return folder


@pytest.fixture(scope="session")
def hostile_result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every hostile text as a source, an object and a value; for reading only."""
    return hostile(tmp_path_factory.mktemp("hostile") / "result")


def hostile(folder: Path) -> Path:
    triples = [
        (source, object_, HOSTILE[(i + (j % 3 == 0)) % len(HOSTILE)])
        for i, object_ in enumerate(HOSTILE)
        for j, source in enumerate(HOSTILE)
    ]
    MSS(n_starts=1).fit(read_claims(triples), seed=0).save(folder)
    return folder


def reviews_of(folder: Path) -> Reviews:
    """The answers beside a result."""
    return Reviews.beside(folder, fingerprint(load(folder).claims))


@pytest.fixture
def result(capitals_result: Path, tmp_path: Path) -> Path:
    """The small result, to be changed."""
    return Path(shutil.copytree(capitals_result, tmp_path / "result"))


@pytest.fixture
def vote_result(tmp_path: Path) -> Path:
    """A result without groups, whose refit takes no time."""
    return Vote().fit(read_claims(capitals(seed=0).claims), seed=0).save(tmp_path / "vote")


@pytest.fixture
def visiting() -> Iterator[Open]:
    """Opens a result: a client of the explorer, which listens on this machine as long as the test runs."""
    with ExitStack() as stack:
        yield lambda folder, **how: stack.enter_context(visited(folder, **how))


@contextmanager
def visited(folder: Path, **how: Any) -> Iterator[Client]:
    explorer = Explorer(folder)
    server = app.server(app.guarded(explorer, **how))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        base = f"http://127.0.0.1:{listener.getsockname()[1]}"
        try:
            with Client(base_url=base, headers=HEADERS, timeout=30) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join()
            explorer.close()


@pytest.fixture
def client(visiting: Open, result: Path) -> Client:
    return visiting(result)


@pytest.fixture(scope="session")
def reader(capitals_result: Path) -> Iterator[Client]:
    """The small result, opened once; nothing must be stored."""
    with visited(capitals_result) as client:
        yield client
