from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

import consilience
from consilience.cli.main import VERBS
from consilience.datasets import fetch as fetching
from consilience.datasets.synthetic import CASES
from consilience.errors import DatasetError
from tests.cli.conftest import PROGRAM

Run = Callable[..., Result]


def test_the_version_is_said_at_once() -> None:
    seconds = []
    for _ in range(3):  # the machine is shared: the quickest counts
        started = time.perf_counter()
        done = subprocess.run([*PROGRAM, "--version"], capture_output=True, text=True, check=True)
        seconds.append(time.perf_counter() - started)
        assert done.stdout == f"consilience {consilience.__version__}\n"
    assert min(seconds) < 1.0


@pytest.mark.parametrize("verb", [verb.__name__ for verb in VERBS])
def test_every_help_text_has_an_example(run: Run, verb: str) -> None:
    done = run(verb, "--help")
    assert done.exit_code == 0
    assert f"Example:\n    consilience {verb}" in done.stdout


def test_without_arguments_there_is_help(run: Run) -> None:
    done = run()
    assert "Usage: consilience" in done.output
    assert "fit" in done.output


def test_models(run: Run) -> None:
    listed = json.loads(run("models", "--json").stdout)
    assert {"mss", "vote"} <= {model["name"] for model in listed}
    assert all(model["description"] for model in listed)
    assert "mss" in run("models").stdout


def test_explain(run: Run, result: Path) -> None:
    done = run("explain", result, "Australia")
    assert done.exit_code == 0
    assert done.stdout.startswith("Australia: Sydney")
    assert "copier0" in done.stdout


def test_simulate_lists_its_cases(run: Run) -> None:
    done = run("simulate")
    assert done.exit_code == 0
    assert all(name in done.stdout for name in CASES)


def test_simulate_writes_three_tables_that_fit_reads(run: Run, tmp_path: Path) -> None:
    for name in ("one", "two"):
        done = run("simulate", "copied-leader", "--objects", 50, "--seed", 5, "--out", tmp_path / name)
        assert done.exit_code == 0, done.stderr
        assert str(tmp_path / name / "claims.csv") in done.stderr
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == [
        "claims.csv",
        "groups.csv",
        "truth.csv",
    ]
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()
    done = run(
        "fit", tmp_path / "one/claims.csv", "--truth", tmp_path / "one/truth.csv", "--model", "vote", "--json"
    )
    assert json.loads(done.stdout)["n_gold"] == 50


def test_simulate_leaves_other_files_alone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert run("simulate", "guessers", "--objects", 5, "--out", tmp_path).exit_code == 0
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_demo_ends_with_truths_and_the_path_of_the_result(run: Run, tmp_path: Path) -> None:
    done = run("demo", "--out", tmp_path / "demo")
    assert done.exit_code == 0, done.stderr
    assert "differs from majority vote on" in done.stderr
    assert "Majority vote is right on" in done.stderr
    assert f"The result is in {tmp_path / 'demo'}" in done.stderr
    assert consilience.load(tmp_path / "demo").claims.n_objects == 60


def test_datasets_lists_them(run: Run) -> None:
    done = run("datasets")
    assert done.exit_code == 0
    assert "book" in done.stdout


def test_a_data_set_that_cannot_be_had_is_exit_code_1(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(name: str) -> None:
        raise DatasetError(f"{name}: could not download it. Is there a network?")

    monkeypatch.setattr(fetching, "fetch", no_network)
    done = run("datasets", "rte")
    assert done.exit_code == 1
    assert "Is there a network?" in done.stderr


def test_a_data_set_that_was_had_says_how_to_use_it(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tables = fetching.Tables(tmp_path / "claims.csv", tmp_path / "truth.csv")
    monkeypatch.setattr(fetching, "fetch", lambda name: tables)
    done = run("datasets", "rte")
    assert done.exit_code == 0
    assert f"consilience fit {tables.claims} --truth {tables.truth}" in done.stdout
