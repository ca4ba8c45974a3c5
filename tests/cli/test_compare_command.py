from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import Result

from consilience.models.registry import HOMES
from consilience.models.vote import Vote

Run = Callable[..., Result]
KEYS = {
    "model", "n_sources", "n_objects", "n_claims", "n_groups", "bound", "sweeps", "seconds", "converged", "seed",
    "n_gold", "accuracy", "log_loss", "calibration_error", "peak_memory", "warnings", "cautions", "error",
}  # fmt: skip


def register(monkeypatch: pytest.MonkeyPatch, model: type[Vote]) -> None:
    """Let a model be known by its name."""
    module = ModuleType(f"consilience.models.{model.name}")
    setattr(module, model.__name__, model)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(HOMES, model.name, f"{model.name}:{model.__name__}")


def test_json_is_a_list_with_an_object_for_each_model(run: Run, claims: Path, truth: Path) -> None:
    done = run("compare", claims, "--truth", truth, "--models", "one-coin,vote", "--json", "--seed", "3")
    assert done.exit_code == 0, done.stderr
    listed = json.loads(done.stdout)
    assert [each["model"] for each in listed] == ["one-coin", "vote"]
    assert all(set(each) == KEYS and each["seed"] == 3 for each in listed)


def test_the_table_has_the_most_accurate_first_and_goes_to_stderr(
    run: Run, claims: Path, truth: Path
) -> None:
    done = run("compare", claims, "--truth", truth, "--models", "vote,one-coin")
    assert done.exit_code == 0, done.stderr
    assert done.stdout == ""
    assert "2 models on" in done.stderr
    table = done.stderr.split("2 models on")[1]
    accuracies = [float(share[:-1]) for share in re.findall(r"\d+\.\d%", table)]
    assert len(accuracies) == 2
    assert accuracies == sorted(accuracies, reverse=True)
    assert "objects with a gold truth" in done.stderr


def test_a_model_that_fails_is_named_and_the_others_go_on(
    run: Run, claims: Path, truth: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(Vote):
        name = "broken"

        def solve(self, table, seed, tell):  # type: ignore[no-untyped-def]
            raise MemoryError("too large")

    register(monkeypatch, Broken)
    done = run("compare", claims, "--truth", truth, "--models", "broken,vote", "--json")
    assert done.exit_code == 0, done.stderr
    broken, vote = json.loads(done.stdout)
    assert broken["error"] == "MemoryError: too large"
    assert vote["accuracy"] is not None
    assert "warning: broken failed: MemoryError: too large" in done.stderr
    assert run("compare", claims, "--models", "broken").exit_code == 1


def test_a_wrong_name_is_said_before_anything_is_read(run: Run, claims: Path) -> None:
    done = run("compare", claims, "--models", "vote,acu")
    assert done.exit_code == 2
    assert "There is no model 'acu'" in done.stderr


def test_without_gold_the_models_are_only_timed(run: Run, claims: Path) -> None:
    done = run("compare", claims, "--models", "vote", "--json")
    (vote,) = json.loads(done.stdout)
    assert vote["accuracy"] is None
    assert vote["seconds"] > 0


def test_what_of_the_gold_does_not_count_is_said(run: Run, claims: Path, truth: Path, tmp_path: Path) -> None:
    done = run("compare", claims, "--truth", truth, "--known", truth, "--models", "vote")
    assert "No score: every object with a gold truth was given as known." in done.stderr
    (tmp_path / "gold.csv").write_text("object,value\nAustralia,CANBERRA\nAtlantis,Atlantis\n", "utf-8")
    done = run("compare", claims, "--truth", tmp_path / "gold.csv", "--models", "vote")
    for expected in (
        "1 gold truth to be compared with",
        "1 of them has a truth that nobody claims, and counts as wrong",
        "in capitals or spaces alone",
        "1 more has no claims and is not scored",
        "1 model on 1 object with a gold truth",
    ):
        assert expected in done.stderr, expected


def test_an_interruption_keeps_what_is_done(
    run: Run, claims: Path, truth: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped(Vote):
        name = "stopped"

        def solve(self, table, seed, tell):  # type: ignore[no-untyped-def]
            raise KeyboardInterrupt

    register(monkeypatch, Stopped)
    done = run("compare", claims, "--truth", truth, "--models", "vote,stopped", "--json")
    assert done.exit_code == 130
    assert [each["model"] for each in json.loads(done.stdout)] == ["vote"]
