"""A record names the code that made it, and one that names the wrong commit is found out."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from consilience.evaluate.provenance import (
    CODE,
    ROOT,
    digest,
    doubt,
    provenance,
    working_files,
)

RECORDS = sorted(ROOT.glob("benchmarks/*/records/*.jsonl"))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A checkout with one commit."""
    (tmp_path / CODE[0] / "models").mkdir(parents=True)
    (tmp_path / CODE[0] / "models" / "vote.py").write_text("answer = 42\n")
    (tmp_path / CODE[1]).mkdir()
    (tmp_path / CODE[1] / "run.py").write_text("print(42)\n")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    commit(tmp_path)
    return tmp_path


def git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(root: Path) -> str:
    git(
        root,
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.org",
        "commit",
        "--quiet",
        "--all",
        "--message=x",
    )
    return git(root, "rev-parse", "HEAD")


def record_of(root: Path) -> dict[str, dict[str, str]]:
    return {"provenance": {"commit": git(root, "rev-parse", "HEAD"), "code": digest(working_files(root))}}


def test_a_record_of_its_commit_is_not_doubted(repository: Path) -> None:
    assert doubt(record_of(repository), repository) is None


@pytest.mark.parametrize("changed", [f"{CODE[0]}/models/vote.py", f"{CODE[1]}/run.py", f"{CODE[0]}/new.py"])
def test_a_record_made_with_other_code_than_its_commits_is_detected(repository: Path, changed: str) -> None:
    (repository / changed).write_text("answer = 43\n")
    assert "made by other code" in (doubt(record_of(repository), repository) or "")


def test_later_commits_do_not_matter(repository: Path) -> None:
    record = record_of(repository)
    (repository / CODE[0] / "models" / "vote.py").write_text("answer = 43\n")
    commit(repository)
    assert doubt(record, repository) is None
    assert doubt(
        {"provenance": {**record["provenance"], "commit": git(repository, "rev-parse", "HEAD")}}, repository
    )


@pytest.mark.parametrize(
    ("of", "complaint"),
    [
        ({}, "does not say which code"),
        ({"commit": None, "code": "1234"}, "no commit holds"),
        ({"commit": "0" * 40, "code": "1234"}, "not in this repository"),
        ({"commit": "HEAD", "code": "1234"}, "no commit's whole name"),
        ({"commit": 7, "code": "1234"}, "no commit's whole name"),
        (["a list"], "does not say which code"),
    ],
)
def test_a_record_that_cannot_be_traced_is_detected(
    repository: Path, of: dict[str, str], complaint: str
) -> None:
    assert complaint in (doubt({"provenance": of}, repository) or "")


def test_files_that_are_no_code_do_not_count(repository: Path) -> None:
    before = digest(working_files(repository))
    (repository / CODE[1] / "records").mkdir()
    (repository / CODE[1] / "records" / "made.jsonl").write_text("{}\n")
    (repository / CODE[0] / "__pycache__").mkdir()
    (repository / CODE[0] / "__pycache__" / "vote.pyc").write_bytes(b"\0")
    assert digest(working_files(repository)) == before


def test_this_code_is_named() -> None:
    of = provenance()
    assert of["code"] == digest(working_files(ROOT))
    assert {"commit", "consilience", "numpy", "machine", "cores", "date"} <= set(of)


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: f"{path.parts[-3]}/{path.stem}")
def test_every_committed_record_was_made_by_the_commit_that_it_names(path: Path) -> None:
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        if os.environ.get("CI"):
            pytest.fail("no Git history to check records against")
        pytest.skip("no Git history to check records against")
    seen: dict[str, str | None] = {}
    for number, line in enumerate(path.read_text("utf-8").strip().split("\n"), 1):
        record = json.loads(line)
        of = json.dumps(record.get("provenance"), sort_keys=True)
        if of not in seen:
            seen[of] = doubt(record)
        assert seen[of] is None, f"line {number}: {seen[of]}"


def test_there_are_records_to_check() -> None:
    assert RECORDS
