from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import Result

import consilience
from consilience.report import html as page_module

Run = Callable[..., Result]


def test_a_saved_result_has_a_report(run: Run, claims: Path, truth: Path, tmp_path: Path) -> None:
    done = run("fit", claims, "--truth", truth, "--out", tmp_path / "out", "--engine", "numpy")
    assert done.exit_code == 0, done.stderr
    page = tmp_path / "out/report.html"
    assert f"See it: {page}" in done.stderr
    text = page.read_text("utf-8")
    assert "7 sources make 35 claims about 5 objects" in text
    assert '<section id="gold">' in text
    assert consilience.load(tmp_path / "out").claims.n_claims == 35


def test_the_report_is_made_anew_and_never_damages_the_result(run: Run, result: Path) -> None:
    page = result / "report.html"
    before = page.read_text("utf-8")
    for change in (page.unlink, lambda: page.write_text("scribble")):
        change()
        assert consilience.load(result).model == "vote"
        done = run("report", result)
        assert done.exit_code == 0, done.stderr
        assert done.stdout == ""
        assert f"The report is in {page}" in done.stderr
        assert page.read_text("utf-8") == before
    assert sorted(path.name for path in result.parent.iterdir()) == ["claims.csv", "result"]


def test_a_result_with_a_report_is_replaced_whole(run: Run, claims: Path, result: Path) -> None:
    (result / ".report.html.saving-999999999-abcd").write_text("left by a process that was killed")
    done = run("fit", claims, "--model", "truthfinder", "--out", result, "--quiet")
    assert (done.exit_code, done.output) == (0, "")
    assert "What truthfinder found" in (result / "report.html").read_text("utf-8")
    assert not list(result.glob(".*"))


def test_gold_and_rivals(run: Run, result: Path, truth: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    done = run("report", result, "--truth", truth, "--rivals", "truthfinder, accu", "--out", out, "--json")
    assert done.exit_code == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["gold"]["n_gold"] == 5
    assert {rival["model"] for rival in summary["gold"]["rivals"]} == {"vote", "truthfinder", "accu"}
    assert '<th scope="row">accu</th>' in out.read_text("utf-8")


def test_json_alone_writes_nothing(run: Run, result: Path) -> None:
    (result / "report.html").unlink()
    done = run("report", result, "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["n_claims"] == 35
    assert done.stderr == ""
    assert not (result / "report.html").exists()


def test_open_shows_it_in_the_browser(run: Run, result: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(typer, "launch", opened.append)
    assert run("report", result, "--open").exit_code == 0
    assert opened == [(result / "report.html").as_uri()]


@pytest.mark.parametrize(
    ("extra", "complaint"),
    [
        (["--out", "claims.csv"], "does not end in .html"),
        (["--rivals", "votes"], "Did you mean 'vote'"),
        (["--truth", "nowhere.csv"], "nowhere.csv"),
    ],
)
def test_wrong_input_is_told(run: Run, result: Path, extra: list[str], complaint: str) -> None:
    done = run("report", result, *extra)
    assert done.exit_code == 2
    assert complaint in done.stderr


def test_a_folder_that_is_no_result(run: Run, tmp_path: Path) -> None:
    done = run("report", tmp_path)
    assert done.exit_code == 2
    assert "is not a consilience result" in done.stderr


def test_without_the_extra_a_fit_is_saved_and_says_so(
    run: Run, claims: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    done = run("fit", claims, "--model", "vote", "--out", tmp_path / "out")
    assert done.exit_code == 0
    assert "saved without a report.html" in done.stderr
    assert "pip install 'consilience[report]'" in done.stderr
    assert consilience.load(tmp_path / "out").model == "vote"
    done = run("report", tmp_path / "out")
    assert done.exit_code == 1
    assert "pip install 'consilience[report]'" in done.stderr


def test_what_is_no_result_has_no_report(run: Run, claims: Path, tmp_path: Path) -> None:
    for folder, found in (
        (tmp_path / "nowhere", "there is no such folder"),
        (claims, "it is a file, not a folder"),
    ):
        done = run("report", folder)
        assert done.exit_code == 2
        assert f"{folder} is not a consilience result: {found}" in done.stderr


def test_a_fault_of_the_report_does_not_cost_the_result(
    run: Run, claims: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("the unforeseen")

    monkeypatch.setattr(page_module, "charts", fail)
    done = run("fit", claims, "--model", "vote", "--out", tmp_path / "out")
    assert done.exit_code == 0
    assert "saved without a report.html. ZeroDivisionError: the unforeseen" in done.stderr
    assert consilience.load(tmp_path / "out").model == "vote"
