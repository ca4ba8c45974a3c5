"""Models × data sets × seeds, on data sets of our own making; a peer that is a small program."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest
from typer.testing import CliRunner

from consilience.cli.main import app
from consilience.datasets.synthetic import planted
from consilience.errors import InputError, UnknownNameError
from consilience.evaluate import bench as module
from consilience.evaluate.bench import bench, find_tables, key, read_records
from consilience.evaluate.compare import named
from consilience.evaluate.metrics import bootstrap
from consilience.evaluate.peers import CrowdKit
from consilience.report.benchmark import html, markdown, not_run, summarise


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two data sets, one of them with a second cleaning, and a folder that is none."""
    folder = tmp_path_factory.mktemp("data")
    for name, case in (("copied", "copied-leader"), ("plain", "independent")):
        made = planted(case, n_objects=60, seed=0)
        (folder / name).mkdir()
        pyarrow.csv.write_csv(pyarrow.table(made.claims), folder / name / "claims.csv")
        pyarrow.csv.write_csv(pyarrow.table(made.truth), folder / name / "truth.csv")
    for kind in ("claims", "truth"):
        (folder / "plain" / f"{kind}_other.csv").write_text((folder / "plain" / f"{kind}.csv").read_text())
    (folder / "plain" / "claims_alone.csv").write_text("source,object,value\n")
    (folder / "notes").mkdir()
    return folder


@pytest.fixture(scope="module")
def records(data: Path) -> list[dict]:
    return list(bench(find_tables(data), named(["vote", "dawid-skene", "one-coin"]), seeds=[0, 1]))


def test_data_sets_are_found_with_their_other_cleanings(data: Path) -> None:
    assert [table.name for table in find_tables(data)] == ["copied", "plain", "plain/other"]
    assert [table.name for table in find_tables(data, ["plain"])] == ["plain"]
    with pytest.raises(UnknownNameError, match="Did you mean 'copied'"):
        find_tables(data, ["copyed"])
    with pytest.raises(InputError, match="No data sets in"):
        find_tables(data / "notes")


def test_every_combination_has_a_record_with_its_provenance(records: list[dict]) -> None:
    assert len(records) == len({key(record) for record in records}) == 3 * 3 * 2
    for record in records:
        assert record["error"] is None
        assert record["low"] <= record["accuracy"] <= record["high"]
        assert record["gain_low"] <= record["gain"] <= record["gain_high"]
        assert record["seconds"] > 0
        assert record["peak_memory"] >= 0
        assert record["provenance"]["code"]
        assert record["digest"]
    assert all(record["gain"] == 0 for record in records if record["model"] == "vote")
    json.dumps(records, allow_nan=False)


def test_what_is_done_is_not_done_again(data: Path, records: list[dict]) -> None:
    done = {key(record) for record in records if record["data"] != "plain"}
    again = list(bench(find_tables(data), named(["vote", "dawid-skene"]), seeds=[0], done=done))
    assert {(record["data"], record["model"]) for record in again} == {
        ("plain", "vote"),
        ("plain", "dawid-skene"),
    }


def test_a_model_that_fails_is_recorded_and_ranked_last(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(model, *given, **how):
        if model.name == "one-coin":
            raise ValueError("too hard")
        return examine(model, *given, **how)

    examine = module.examine
    monkeypatch.setattr(module, "examine", fail)
    found = list(bench(find_tables(data, ["plain"]), named(["vote", "one-coin"])))
    assert [record["error"] for record in found] == [None, "ValueError: too hard"]
    summary = summarise(found)
    assert [row.model for row in summary.rows] == ["vote"]
    assert summary.rows[0].rank == 1
    assert not_run(summary) == ["one-coin on plain (ValueError: too hard)"]


def test_the_summary_ranks_and_averages(records: list[dict]) -> None:
    summary = summarise(records)
    assert summary.seeds == [0, 1]
    assert [row.n_sets for row in summary.rows] == [3, 3, 3]
    assert sum(row.rank for row in summary.rows) == pytest.approx(1 + 2 + 3)
    vote = next(row for row in summary.rows if row.model == "vote")
    of_vote = [record["accuracy"] for record in records if record["model"] == "vote"]
    assert vote.accuracy == pytest.approx(np.mean(of_vote))
    assert (vote.gain, vote.low, vote.high) == (0, 0, 0)
    later = [{**records[0], "accuracy": 0.0, "seed": 0}]
    assert (
        summarise([*records, *later]).cells["vote", "copied"].accuracy
        < summary.cells["vote", "copied"].accuracy
    )


def test_pages_show_the_summary(records: list[dict]) -> None:
    text = markdown(summarise(records))
    assert "| dawid-skene | 3 |" in text
    assert "| model | copied | plain | plain/other |" in text
    page = html(summarise(records))
    assert page.count("<svg") == 4
    assert "<b>" in page
    assert "**" not in page.split("<svg")[0]


def test_the_bootstrap_is_that_of_drawing_objects_again() -> None:
    scores = np.random.default_rng(1).choice([-1.0, 0.0, 1.0], size=200, p=[0.1, 0.6, 0.3])
    draws = np.random.default_rng(2).choice(scores, size=(20_000, 200)).mean(axis=1)
    np.testing.assert_allclose(bootstrap(scores), np.quantile(draws, [0.025, 0.975]), atol=0.006)


def test_a_peer_answers_beside_ours(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(self, path, wanted, longest=0.0):
        (name,) = wanted
        rows = pyarrow.csv.read_csv(path).to_pylist()
        if name == "glad":
            raise RuntimeError("no GLAD today")
        return {
            name: {"seconds": 1.5, "rounds": 7, "answer": {str(r["object"]): str(r["value"]) for r in rows}}
        }

    monkeypatch.setattr(CrowdKit, "run", answer)
    found = list(bench(find_tables(data, ["copied"]), [], peer=CrowdKit(Path("python"), "9.9")))
    assert {record["model"] for record in found} == {f"crowd-kit/{name}" for name in module.PEERS}
    glad = next(record for record in found if record["model"] == "crowd-kit/glad")
    assert glad["error"] == "RuntimeError: no GLAD today"
    for record in found:
        assert record["provenance"]["crowd-kit"] == "9.9"
        if record is not glad:
            assert 0 < record["accuracy"] < 1
            assert (record["seconds"], record["sweeps"]) == (1.5, 7)


def test_the_command_keeps_records_and_goes_on(data: Path, tmp_path: Path) -> None:
    command = ["bench", "--data", str(data), "--sets", "copied", "--models", "vote,wawa", "--peers", "none"]
    command += ["--out", str(tmp_path / "out"), "--json"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert {row["model"] for row in json.loads(done.stdout)} == {"vote", "wawa"}
    assert len(read_records(tmp_path / "out" / "records.jsonl")) == 2
    done = CliRunner().invoke(app, [*command, "--seeds", "0,1"])
    assert done.exit_code == 0, done.output
    assert len(read_records(tmp_path / "out" / "records.jsonl")) == 4
    assert (tmp_path / "out" / "bench.md").exists()
    assert (tmp_path / "out" / "bench.html").exists()


def test_other_data_under_the_same_name_are_run_anew_and_failures_are_tried_again(
    data: Path, tmp_path: Path
) -> None:
    shutil.copytree(data / "plain", tmp_path / "data" / "plain")
    command = [
        "bench",
        "--data",
        str(tmp_path / "data"),
        "--sets",
        "plain",
        "--models",
        "vote",
        "--peers",
        "none",
    ]
    command += ["--out", str(tmp_path / "out"), "--json"]
    records = tmp_path / "out" / "records.jsonl"
    assert CliRunner().invoke(app, command).exit_code == 0
    with (tmp_path / "data" / "plain" / "claims.csv").open("a") as file:
        file.write("new,o0,0\n")
    assert CliRunner().invoke(app, command).exit_code == 0
    assert len(read_records(records)) == 2
    failed = [{**record, "error": "too hard"} for record in read_records(records)]
    records.write_text("\n".join(map(json.dumps, failed)))  # and without a newline at the end
    assert CliRunner().invoke(app, command).exit_code == 0
    assert [record["error"] for record in read_records(records)] == ["too hard", "too hard", None]


def test_a_data_set_that_cannot_be_used_is_told_and_the_others_go_on(data: Path, tmp_path: Path) -> None:
    shutil.copytree(data / "plain", tmp_path / "data" / "a|<b>")
    shutil.copytree(data / "plain", tmp_path / "data" / "other gold")
    (tmp_path / "data" / "other gold" / "truth.csv").write_text("object,value\nnobody knows,1\n")
    command = ["bench", "--data", str(tmp_path / "data"), "--models", "vote", "--peers", "none"]
    done = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "warning: other gold: truth: 1 problem found" in done.output
    text = (tmp_path / "out" / "bench.md").read_text()
    assert "| a\\|\\<b> |" in text
    assert "a|&lt;b&gt;" in (tmp_path / "out" / "bench.html").read_text()


def test_pages_are_made_also_where_every_model_fails(data: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(module, "examine", lambda *given, **how: 1 / 0)
    command = ["bench", "--data", str(data), "--sets", "plain", "--models", "vote,wawa", "--peers", "none"]
    done = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "not run: vote, wawa on plain (ZeroDivisionError: division by zero)" in done.output


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--seeds", "a"], "--seeds must be whole numbers"),
        (["--models", "vot"], "Did you mean 'vote'"),
        (["--sets", ","], "names nothing"),
        (["--peers", sys.executable], "is no Python with Crowd-Kit"),
        (["--data", "nowhere"], "There is no folder nowhere"),
    ],
)
def test_wrong_input_is_told(data: Path, tmp_path: Path, options: list[str], complaint: str) -> None:
    command = ["bench", "--data", str(data), "--peers", "none", "--out", str(tmp_path), *options]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 2
    assert complaint in done.output


def test_a_damaged_line_of_records_is_told(tmp_path: Path) -> None:
    (tmp_path / "records.jsonl").write_text('{"provenance": {"code": "a"}}\n{"da')
    with pytest.raises(InputError, match="Line 2"):
        read_records(tmp_path / "records.jsonl")
