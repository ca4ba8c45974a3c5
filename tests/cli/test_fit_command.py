from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import Result

import consilience
from consilience.cli import fit as fit_command
from consilience.cli import output
from consilience.datasets.synthetic import bloc
from consilience.models.vote import Vote
from consilience.results.score import Score
from tests.cli.conftest import PROGRAM

Run = Callable[..., Result]

KEYS = [
    "model",
    "n_sources",
    "n_objects",
    "n_claims",
    "n_groups",
    "bound",
    "sweeps",
    "seconds",
    "converged",
    "seed",
    "warnings",
    "cautions",
]


def test_json_is_one_object_on_stdout_and_tables_go_to_stderr(run: Run, claims: Path, truth: Path) -> None:
    done = run("fit", claims, "--truth", truth, "--json", "--seed", 3)
    assert done.exit_code == 0, done.stderr
    record = json.loads(done.stdout)
    assert list(record) == [*KEYS, *(figure.name for figure in fields(Score))]
    assert (record["model"], record["n_claims"], record["n_gold"], record["seed"]) == ("mss", 35, 5, 3)
    assert record["converged"] is True
    assert "Read 35 claims by 7 sources on 5 objects" in done.stderr
    assert "Least certain truths" in done.stderr


def test_json_without_gold_or_groups(run: Run, claims: Path) -> None:
    record = json.loads(run("fit", claims, "--model", "vote", "--json", "--quiet").stdout)
    assert list(record) == KEYS
    assert record["n_groups"] is record["bound"] is None


def test_json_has_warnings_as_texts_and_beside_them_their_kinds_and_figures(run: Run, tmp_path: Path) -> None:
    table = tmp_path / "apart.csv"
    table.write_text("source,object,value\na,x,1\nb,x,2\nc,y,1\n")
    record = json.loads(run("fit", table, "--model", "vote", "--json", "--quiet").stdout)
    (caution,) = record["cautions"]
    assert (caution["kind"], caution["data"]) == ("disconnected", {"n_parts": 2, "sizes": [2, 1]})
    assert record["warnings"] == [caution["message"]]
    (compared,) = json.loads(run("compare", table, "--models", "vote", "--json", "--quiet").stdout)
    assert (compared["warnings"], compared["cautions"]) == (record["warnings"], record["cautions"])


def test_without_json_nothing_goes_to_stdout(run: Run, claims: Path) -> None:
    done = run("fit", claims, "--model", "vote")
    assert done.exit_code == 0
    assert done.stdout == ""


def test_quiet_says_nothing(run: Run, claims: Path, tmp_path: Path) -> None:
    done = run("fit", claims, "--model", "vote", "--quiet", "--out", tmp_path / "out")
    assert (done.exit_code, done.output) == (0, "")
    assert consilience.load(tmp_path / "out").model == "vote"


def test_a_person_is_told_what_was_read_found_and_saved(
    run: Run, claims: Path, truth: Path, tmp_path: Path
) -> None:
    with claims.open("a", encoding="utf-8") as table:
        table.write("atlas,Chile,Santiago\n")
    done = run("fit", claims, "--truth", truth, "--out", tmp_path / "out", "--engine", "numpy")
    assert done.exit_code == 0, done.stderr
    for expected in (
        "exact",  # the repeated claim
        "The answer is that of majority vote on all 5 objects",
        "the 7 are worth ",
        "Sources, the most and the least reliable",
        "Score: ",
        "converged after",
        f"Saved in {tmp_path / 'out'}",
    ):
        assert expected in done.stderr, expected
    assert pq.read_table(tmp_path / "out/truths.parquet").num_rows == 5
    assert "in place of an earlier result" not in done.stderr
    again = run("fit", claims, "--model", "vote", "--out", tmp_path / "out")
    assert f"Saved in {tmp_path / 'out'}, in place of an earlier result, the truths in " in again.stderr


def test_known_truths_are_used_and_may_have_the_columns_names_of_the_claims(
    run: Run, claims: Path, tmp_path: Path
) -> None:
    renamed = tmp_path / "renamed.csv"
    renamed.write_text(
        claims.read_text("utf-8").replace("source,object,value", "site,country,city", 1), "utf-8"
    )
    (tmp_path / "known.csv").write_text("country,city\nAustralia,Canberra\n", "utf-8")
    (tmp_path / "gold.csv").write_text("object,value\nAustralia,Canberra\nBrazil,Rio\n", "utf-8")
    names = ["--source", "site", "--object", "country", "--value", "city"]
    files = ["--known", tmp_path / "known.csv", "--truth", tmp_path / "gold.csv"]
    for extra, n_known, accuracy in ((files, 1, 1.0), (files[2:], 0, 0.5)):
        done = run("fit", renamed, "--model", "vote", "--json", *names, *extra)
        assert done.exit_code == 0, done.stderr
        record = json.loads(done.stdout)
        assert (record["n_gold"], record["n_known"]) == (2 - n_known, n_known)
        assert record["accuracy"] == accuracy
        assert ("1 object was given as known and is not scored" in done.stderr) == bool(n_known)


def test_gold_under_other_names_is_not_sent_to_the_options_of_the_claims(
    run: Run, claims: Path, tmp_path: Path
) -> None:
    (tmp_path / "gold.csv").write_text("country,city\nAustralia,Canberra\n", "utf-8")
    done = run("fit", claims, "--truth", tmp_path / "gold.csv")
    assert done.exit_code == 2
    assert "Columns found: 'country', 'city'" in done.stderr
    assert "Rename a column of this file" in done.stderr
    assert "--object" not in done.stderr


def test_of_gold_whose_objects_are_named_as_in_the_claims_only_the_value_is_missed(
    run: Run, claims: Path, tmp_path: Path
) -> None:
    renamed = claims.read_text("utf-8").replace("object", "country", 1)
    (tmp_path / "claims.csv").write_text(renamed, "utf-8")
    (tmp_path / "gold.csv").write_text("country,gold\nAustralia,Canberra\n", "utf-8")
    done = run("fit", tmp_path / "claims.csv", "--object", "country", "--truth", tmp_path / "gold.csv")
    assert done.exit_code == 2
    assert "1 problem found" in done.stderr
    assert "No column is called 'value'" in done.stderr


def test_a_fit_whose_gold_was_all_known_says_that_nothing_is_scored(
    run: Run, claims: Path, truth: Path, tmp_path: Path
) -> None:
    done = run("fit", claims, "--known", truth, "--truth", truth, "--json", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.stderr
    record = json.loads(done.stdout)
    assert (record["n_gold"], record["n_known"], record["accuracy"]) == (0, 5, None)
    assert "No score: every object with a gold truth was given as known." in done.stderr
    assert "5 truths were given, and none was left to find" in done.stderr
    assert "Least certain truths" not in done.stderr
    why = run("explain", tmp_path / "out", "Australia").stdout
    assert "Canberra was given as the truth, not found. 2 of 7 sources claim it." in why


def test_what_became_of_known_truths_is_said(run: Run, claims: Path, tmp_path: Path) -> None:
    (tmp_path / "known.csv").write_text("object,value\nBrazil,Salvador\nAtlantis,Poseidonis\n", "utf-8")
    done = run("fit", claims, "--model", "vote", "--known", tmp_path / "known.csv")
    assert done.exit_code == 0, done.stderr
    assert "1 truth of 2 about objects without claims, not used." in done.stderr
    assert "1 truth that nobody claimed added to the domains." in done.stderr
    assert "is that of majority vote on all 4 objects (1 more was given)" in done.stderr


def test_the_result_is_saved_before_anything_is_shown(
    run: Run, claims: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(fit_command, "show_fit", closed)
    done = run("fit", claims, "--model", "vote", "--out", tmp_path / "out")
    assert done.exit_code == 130
    assert "nothing was written" not in done.stderr
    assert consilience.load(tmp_path / "out").model == "vote"


@pytest.mark.parametrize(("domain", "n_candidates"), [("common", 45), ("claimed", 9), ("auto", 9)])
def test_domains_by_name(run: Run, claims: Path, tmp_path: Path, domain: str, n_candidates: int) -> None:
    assert run("fit", claims, "--model", "vote", "--domain", domain, "--out", tmp_path / "out").exit_code == 0
    assert consilience.load(tmp_path / "out").claims.n_candidates == n_candidates


def test_domains_by_labels(run: Run, tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text("source,object,value\na,x,yes\nb,x,no\n", "utf-8")
    done = run(
        "fit",
        tmp_path / "votes.csv",
        "--domain",
        "yes, no ,maybe",
        "--model",
        "vote",
        "--out",
        tmp_path / "out",
    )
    assert done.exit_code == 0, done.stderr
    assert consilience.load(tmp_path / "out").claims.n_candidates == 3


def test_a_wrong_folder_is_refused_before_anything_is_read(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("x")
    done = run("fit", tmp_path / "does-not-exist.csv", "--out", tmp_path / "mine")
    assert done.exit_code == 2
    assert "must not be overwritten" in done.stderr


def test_values_cannot_write_on_the_terminal(run: Run, tmp_path: Path) -> None:
    rows = "a,x,[bold]one\x1b[2J\nb,x,:smile:\nc,x,[bold]one\x1b[2J\n"
    (tmp_path / "claims.csv").write_text(f"source,object,value\n{rows}", "utf-8")
    done = run("fit", tmp_path / "claims.csv", "--model", "vote")
    assert done.exit_code == 0
    assert "\x1b[2J" not in done.stderr
    assert "[bold]one\\x1b[2J" in done.stderr
    assert ":smile:" in done.stderr


def test_an_interrupted_fit_writes_nothing(
    run: Run, claims: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Vote, "fit", interrupt)
    done = run("fit", claims, "--model", "vote", "--out", tmp_path / "out", "--json")
    assert (done.exit_code, done.stdout) == (130, "")
    assert "interrupted; nothing is left half-written" in done.stderr
    assert not (tmp_path / "out").exists()


def test_ctrl_c_in_the_middle_of_a_real_fit(tmp_path: Path) -> None:
    pyarrow.csv.write_csv(bloc(n_objects=20_000).claims, tmp_path / "claims.csv")
    command = [*PROGRAM, "fit", str(tmp_path / "claims.csv"), "--out", str(tmp_path / "out")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("Read 200,000 claims")
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        rest, stdout = process.stderr.read(), process.stdout.read() if process.stdout else ""
    assert process.returncode == 130, rest
    assert "interrupted; nothing is left half-written" in rest
    assert "Traceback" not in rest
    assert stdout == ""
    assert [path.name for path in tmp_path.iterdir()] == ["claims.csv"]


def test_what_nobody_foresaw_is_a_short_message_and_exit_code_1(
    run: Run, claims: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        error = ZeroDivisionError("the unforeseen")
        error.add_note("and what became of it")
        raise error

    monkeypatch.setattr(Vote, "fit", fail)
    done = run("fit", claims, "--model", "vote")
    assert done.exit_code == 1
    assert "ZeroDivisionError: the unforeseen\nand what became of it" in done.stderr
    assert "CONSILIENCE_DEBUG=1" in done.stderr
    assert "Traceback" not in done.stderr
    monkeypatch.setenv("CONSILIENCE_DEBUG", "1")
    assert isinstance(run("fit", claims, "--model", "vote").exception, ZeroDivisionError)


def test_progress_is_lines_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "EVERY", 0.0)
    with output.Screen().progress() as progress:
        assert progress is not None
        progress("start 1/4", 7, -12.345)
        progress("counting", 1, float("nan"))
    assert capsys.readouterr().err == "start 1/4: sweep 7, bound -12.35\ncounting: sweep 1\n"
    with output.Screen(quiet=True).progress() as progress:
        assert progress is None


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
def test_on_a_terminal_progress_is_redrawn_and_json_stays_clean(claims: Path) -> None:
    leader, follower = os.openpty()
    done = subprocess.run(
        [*PROGRAM, "fit", str(claims), "--json"],
        stdout=subprocess.PIPE,
        stderr=follower,
        text=True,
        check=False,
    )
    os.close(follower)
    shown = b""
    while chunk := _read(leader):
        shown += chunk
    os.close(leader)
    assert done.returncode == 0, shown
    assert json.loads(done.stdout)["model"] == "mss"
    assert b"Least certain truths" in shown


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # Linux says so at the end of a pseudo-terminal
        return b""
