"""`consilience serve`: refuses what is unsafe, says where it listens, ends when told."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.cli.conftest import Run, run
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
    assert beside == {"vote", "vote.reviews.sqlite"}


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


def test_a_folder_that_cannot_hold_answers_is_refused(run: Run, vote_result: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(vote_result, tmp_path / "other"))
    other.with_name("other.reviews.sqlite").mkdir()
    done = run("serve", other)
    assert done.exit_code == 2
    assert "cannot be stored" in done.stderr
