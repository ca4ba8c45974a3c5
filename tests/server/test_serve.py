"""`consilience serve`: refuses what is unsafe, says where it listens, ends when told."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from consilience.server import app, guard
from tests.cli.conftest import Run, run
from tests.server.conftest import Open
from tests.server.live import serving

__all__ = ["run"]
TOKEN = "a token that is long enough"


@pytest.fixture(autouse=True)
def _no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONSILIENCE_TOKEN", raising=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_another_address_needs_a_token(run: Run, capitals_result: Path, host: str) -> None:
    done = run("serve", capitals_result, "--host", host)
    assert done.exit_code == 2
    assert "a token is needed" in done.stderr
    done = run("serve", capitals_result, "--host", host, "--token", "short")
    assert done.exit_code == 2
    assert "at least 16" in done.stderr


def test_what_is_no_result_and_a_port_that_is_taken_are_refused(
    run: Run, tmp_path: Path, vote_result: Path
) -> None:
    done = run("serve", tmp_path / "nowhere")
    assert done.exit_code == 2
    assert "not a consilience result" in done.stderr
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run("serve", vote_result, "--port", taken.getsockname()[1])
    assert done.exit_code == 2
    assert "--port" in done.stderr


def test_it_ends_when_told_and_leaves_nothing_behind(vote_result: Path) -> None:
    with serving(vote_result, "--token", TOKEN) as (url, server):
        assert httpx.get(url).status_code == 401
        assert httpx.get(url, headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
        assert server.stderr is not None
        server.send_signal(signal.SIGINT)
        said = server.stderr.read()
        assert server.wait(20) == 0
        assert "Traceback" not in said
    beside = {path.name for path in vote_result.parent.iterdir()}
    assert beside == {"vote"}


def test_without_the_extra_the_command_says_how_to_install_it(vote_result: Path) -> None:
    code = (
        "import sys; sys.modules['fastapi'] = None; sys.argv = ['consilience', 'serve', sys.argv[1]];"
        "from consilience.cli.main import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code, str(vote_result)], capture_output=True, text=True)
    assert done.returncode == 1
    assert "pip install 'consilience[server]'" in done.stderr
    assert not re.search("Traceback", done.stderr)


def test_the_server_is_not_loaded_unless_asked_for() -> None:
    code = "import sys, consilience.cli.main; print({'fastapi', 'uvicorn', 'jinja2'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_connections_that_say_nothing_keep_nobody_out(
    visiting: Open, vote_result: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Silent ones, one that stops in the middle of a head, one in the middle of a body, one that was answered."""
    monkeypatch.setattr(app, "IDLE", 1)
    monkeypatch.setattr(guard, "SLOWEST_BODY", 1)
    address = visiting(vote_result).base_url
    head = b"POST /api/reviews HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Consilience: 1\r\nContent-Length: 9\r\n\r\n{"
    words = [b"GET / HTT", head, b"GET /static/icon.svg HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"]
    with ExitStack() as stack:
        idle = [
            stack.enter_context(socket.create_connection((address.host, address.port), timeout=20))
            for _ in range(app.CONNECTIONS + 1)
        ]
        for each, said in zip(idle, words, strict=False):
            each.sendall(said)
        assert httpx.get(str(address)).status_code == 503
        ends = [b"".join(iter(lambda each=each: each.recv(1 << 16), b"")) for each in idle]  # each is closed
        assert httpx.get(str(address)).status_code == 200
    assert ends[0] == b""
    assert b" 408 " in ends[1] or b" 503 " in ends[1]
    assert ends[3:] == [b""] * len(ends[3:])
