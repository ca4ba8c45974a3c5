from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from consilience.cli.main import app

COPIED = {
    "Australia": "Sydney",
    "Brazil": "Rio",
    "Canada": "Toronto",
    "Turkey": "Istanbul",
    "Chile": "Santiago",
}
TRUTH = {
    "Australia": "Canberra",
    "Brazil": "Brasília",
    "Canada": "Ottawa",
    "Turkey": "Ankara",
    "Chile": "Santiago",
}

Run = Callable[..., Result]
PROGRAM = [sys.executable, "-c", "from consilience.cli.main import main; main()"]
"""The command line in a process of its own."""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command line in this process; streams are kept apart."""
    monkeypatch.delenv("CONSILIENCE_DEBUG", raising=False)
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def claims(tmp_path: Path) -> Path:
    """Five sites copy one another; two others are right."""
    rows = [f"copier{i},{country},{city}" for i in range(5) for country, city in COPIED.items()]
    rows += [f"{site},{country},{city}" for site in ("atlas", "gazette") for country, city in TRUTH.items()]
    return written(tmp_path / "claims.csv", "source,object,value", *rows)


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    return written(tmp_path / "truth.csv", "object,value", *(f"{o},{v}" for o, v in TRUTH.items()))


@pytest.fixture
def result(run: Run, claims: Path, tmp_path: Path) -> Path:
    """A saved result."""
    done = run("fit", claims, "--model", "vote", "--out", tmp_path / "result", "--quiet")
    assert done.exit_code == 0, done.output
    return tmp_path / "result"


def written(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path
