"""`fit --resume`, in processes that are really stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pyarrow.csv
import pytest

import consilience
from consilience.datasets.synthetic import bloc
from tests.cli.conftest import PROGRAM, Run


def files(folder: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads((folder / "manifest.json").read_text("utf-8"))["files"]
    return found


@pytest.mark.parametrize(("signal_", "code", "how"), [
    (signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated"),
])  # fmt: skip
def test_a_stopped_fit_leaves_a_checkpoint_and_goes_on_from_it(
    tmp_path: Path, run: Run, signal_: signal.Signals, code: int, how: str
) -> None:
    pyarrow.csv.write_csv(bloc(n_sources=100, n_objects=800).claims, tmp_path / "claims.csv")
    kept, out = tmp_path / "out.checkpoint", tmp_path / "out"
    command = ["fit", str(tmp_path / "claims.csv"), "--out", str(out)]
    environment = {**os.environ, "CONSILIENCE_CHECKPOINT_EVERY": "0.1"}
    with subprocess.Popen(
        [*PROGRAM, *command], stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        while process.poll() is None and not kept.exists():
            time.sleep(0.01)
        process.send_signal(signal_)
        assert process.stderr is not None
        said = process.stderr.read()
    assert process.returncode == code, said
    assert f"{how}; nothing is left half-written\nWhat was found so far is in {kept}" in said
    assert "Traceback" not in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["claims.csv", "out.checkpoint"]

    refused = run(*command, "--resume", "--seed", 1)
    assert refused.exit_code == 2
    assert "is of another fit: seed 0, now 1." in refused.stderr
    consilience.MSS().fit(tmp_path / "claims.csv").save(tmp_path / "whole")
    done = run(*command, "--resume")
    assert done.exit_code == 0, done.stderr
    assert f"Going on from {kept}." in done.stderr
    assert files(out) == files(tmp_path / "whole")
    assert not kept.exists()


def test_stopped_before_its_first_checkpoint_a_fit_says_that_nothing_was_kept(
    run: Run, claims: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(consilience.MSS, "_partition", interrupt)
    done = run("fit", claims, "--out", tmp_path / "out")
    assert done.exit_code == 130
    assert (
        "nothing is left half-written\nNothing was kept: a checkpoint is left from 10 seconds on."
        in done.stderr
    )


def test_without_resume_it_is_left_alone_and_told_of(run: Run, claims: Path, tmp_path: Path) -> None:
    kept = tmp_path / "out.checkpoint"
    kept.write_bytes(b"hours of work")
    done = run("fit", claims, "--out", tmp_path / "out", "--quiet")
    assert done.exit_code == 0
    assert f"{kept} is left from a fit that was stopped. It is not used without --resume" in done.stderr
    assert kept.read_bytes() == b"hours of work"


def test_resume_begins_at_the_start_where_there_is_none(run: Run, claims: Path, tmp_path: Path) -> None:
    done = run("fit", claims, "--out", tmp_path / "out", "--resume")
    assert done.exit_code == 0
    assert "There is no " in done.stderr
    assert "out.checkpoint to go on from: beginning at the start." in done.stderr


def test_resume_needs_to_know_what(run: Run, claims: Path) -> None:
    done = run("fit", claims, "--resume")
    assert done.exit_code == 2
    assert "--out DIR says which" in done.stderr


def test_a_report_that_takes_the_process_with_it_does_not_cost_the_result(
    claims: Path, tmp_path: Path
) -> None:
    """As the program that draws does where memory is short: no exception, the process is gone."""
    prelude = "import os; from consilience.report import html; html.html = lambda *_: os.abort()"
    program = [PROGRAM[0], "-c", f"{prelude}\n{PROGRAM[2]}"]
    done = subprocess.run(
        [*program, "fit", str(claims), "--out", str(tmp_path / "out"), "--quiet"],
        capture_output=True,
        check=False,
    )
    assert done.returncode == -signal.SIGABRT
    assert consilience.load(tmp_path / "out").model == "mss"


def test_a_wrong_number_of_seconds_is_refused(
    run: Run, claims: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONSILIENCE_CHECKPOINT_EVERY", "often")
    done = run("fit", claims, "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert "CONSILIENCE_CHECKPOINT_EVERY must be a number of seconds. Got 'often'." in done.stderr
