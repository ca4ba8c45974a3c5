"""The paper's tables and figure, on book files of our own making."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from consilience.cli.main import app
from consilience.evaluate import reproduce as module
from consilience.evaluate.reproduce import OUR_MSS, PAPER, PAPER_MSS, PARTS, contenders, reproduce
from consilience.report.reproduction import html, markdown

NAMES = [
    f"{first} {last}" for first in ("Ada", "Bo", "Cy", "Di") for last in ("North", "South", "East", "West")
]


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """Thirty books; six good stores and six that copy a bad one."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("books")
    rows, gold = [], []
    for book in range(30):
        author, other = rng.choice(NAMES, size=2, replace=False)
        leader = author if rng.random() < 0.3 else other
        gold.append(f"isbn{book}\t{author}")
        for store in range(6):
            said = author if rng.random() < 0.9 else rng.choice(NAMES)
            rows.append(f"Good {store}\tisbn{book}\tTitle\t{said}")
            rows.append(f"Copy {store}\tisbn{book}\tTitle\t{leader}")
    (folder / "book.txt").write_text("\r\n".join(rows), "utf-8")
    (folder / "book_golden.txt").write_text("\r\n".join(gold), "utf-8")
    return folder


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(module, "QUICK_IMAGES", 60)
    monkeypatch.setattr(module, "QUICK_KAPPAS", (1e-300, 5.0, 1e300))
    monkeypatch.setattr(module, "TAGS", dict(list(module.TAGS.items())[:2]))
    monkeypatch.setattr(module, "RANKED", 3)


@pytest.fixture(scope="module")
def found(files):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "QUICK_IMAGES", 60)
        patch.setattr(module, "QUICK_KAPPAS", (1e-300, 5.0, 1e300))
        patch.setattr(module, "TAGS", dict(list(module.TAGS.items())[:2]))
        patch.setattr(module, "RANKED", 3)
        return reproduce(PARTS, files / "book.txt", files / "book_golden.txt", quick=True)


def test_every_cell_is_there_ours_and_the_papers(found):
    assert [row["model"] for row in found["table1"]] == [row.name for row in contenders(quick=True)]
    for row in found["table1"]:
        assert all(0 <= figure <= 1 for figure in row["ours"].values())
        assert set(row["ours"]) == set(row["paper"]) == {"accuracy", "precision", "recall"}
        assert row["paper"]["accuracy"] == PAPER.get(row["model"], {}).get("accuracy")
    for row in found["table3"]:
        assert row["ours"]["book_rounds"] >= 1
        assert row["ours"]["book_seconds"] > 0
        assert set(row["ours"]) == set(row["paper"])
    assert [row["kappa"] for row in found["figure4"]["ours"]] == [1e-300, 5.0, 1e300]
    assert found["data"]["images"] == 60
    json.dumps(found, allow_nan=False)


def test_the_default_beats_what_is_fooled_by_copies(found):
    right = {row["model"]: row["ours"]["accuracy"] for row in found["table1"]}
    assert right[OUR_MSS] > right["Voting"]
    assert right[OUR_MSS] > 0.9


def test_stores_are_ranked_by_reliability_with_their_accuracy_on_gold(found, files):
    part = found["table2"]
    assert all(row["store"].startswith("Good") for row in part["top"])
    assert all(row["store"].startswith("Copy") for row in part["bottom"])
    assert part["ours"]["top"] > part["ours"]["bottom"] + 0.3
    gold = dict(line.split("\t") for line in (files / "book_golden.txt").read_text("utf-8").split("\n"))
    rows = [line.split("\t") for line in (files / "book.txt").read_text("utf-8").split("\n")]
    best = part["top"][0]
    mine = [author.strip() == gold[isbn].strip() for store, isbn, _, author in rows if store == best["store"]]
    assert best["accuracy"] == pytest.approx(np.mean(mine))
    assert best["n_gold"] == len(mine) == 30


def test_a_known_truth_is_not_scored(files):
    part = reproduce(["table1"], files / "book.txt", files / "book_golden.txt", quick=True)
    sstf = next(row for row in part["table1"] if row["model"] == "SSTF")
    assert (sstf["ours"]["accuracy"] * 24) % 1 == pytest.approx(0, abs=1e-9)  # 6 of 30 are known


def test_pages_show_every_figure_and_escape_names(found):
    text, page = markdown(found), html(found)
    for title in ("Table 1", "Table 2", "Table 3", "Figure 4"):
        assert title in text
        assert title in page
    assert PAPER_MSS in text
    assert page.count("<svg") == 2
    assert "http" not in page.replace("http://www.w3.org/", "")
    named = {
        **found,
        "table2": {**found["table2"], "top": [dict(found["table2"]["top"][0], store="<b>|")] * 3},
    }
    assert "&lt;b&gt;|" in html(named)
    assert "<b>\\|" in markdown(named)


def test_the_command_writes_three_files(files, tmp_path):
    out = tmp_path / "paper"
    command = ["reproduce", "figure4", "--data", str(files), "--out", str(out), "--quick", "--json"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.stderr
    assert {path.name for path in out.iterdir()} == {"paper.json", "paper.md", "paper.html"}
    assert json.loads(done.stdout) == json.loads((out / "paper.json").read_text("utf-8"))
    assert "Figure 4" in done.stderr


def test_wrong_parts_and_missing_data_are_said(tmp_path, monkeypatch):
    done = CliRunner().invoke(app, ["reproduce", "table9"])
    assert done.exit_code == 2
    assert "There is no part 'table9'" in done.stderr
    monkeypatch.setenv("CONSILIENCE_DATA", str(tmp_path))
    monkeypatch.setenv("CONSILIENCE_CACHE", str(tmp_path / "cache"))
    done = CliRunner().invoke(app, ["reproduce", "table2"])
    assert done.exit_code == 2
    assert "consilience datasets book" in done.stderr
