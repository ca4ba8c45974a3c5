"""Whatever the user gets wrong ends in exit code 2 with one message: what was found and what to do."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

GOOD = "source,object,value\na,x,1\nb,x,2\n"

Run = Callable[..., Result]
Arguments = list[object]


def table(content: str | bytes, *flags: str, name: str = "claims.csv") -> Callable[[Path, Path], Arguments]:
    """Fit a table with this content."""

    def arguments(folder: Path, _: Path) -> Arguments:
        path = folder / "given" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return ["fit", path, *flags]

    return arguments


def with_truth(content: str, flag: str = "--truth") -> Callable[[Path, Path], Arguments]:
    """Fit a good table with these truths."""

    def arguments(folder: Path, result: Path) -> Arguments:
        (folder / "gold.csv").write_text(content, "utf-8")
        return [*table(GOOD)(folder, result), flag, folder / "gold.csv"]

    return arguments


def into(prepare: Callable[[Path], object]) -> Callable[[Path, Path], Arguments]:
    """Fit a good table into a folder prepared like this."""

    def arguments(folder: Path, result: Path) -> Arguments:
        prepare(folder / "out")
        return [*table(GOOD)(folder, result), "--out", folder / "out"]

    return arguments


def harmed(harm: Callable[[Path], object]) -> Callable[[Path, Path], Arguments]:
    """Explain an object of a saved result after harming it."""

    def arguments(_: Path, result: Path) -> Arguments:
        harm(result)
        return ["explain", result, "Australia"]

    return arguments


def newer(result: Path) -> None:
    manifest = json.loads((result / "manifest.json").read_text("utf-8"))
    (result / "manifest.json").write_text(json.dumps(manifest | {"schema": 99}), "utf-8")


def thesis(folder: Path) -> None:
    folder.mkdir()
    (folder / "thesis.txt").write_text("x")


BAD: dict[str, tuple[Callable[[Path, Path], Arguments], list[str]]] = {
    "no such file": (lambda d, _: ["fit", d / "claim.csv"], ["no file 'claim.csv'", "'claims.csv'"]),
    "unknown ending": (table(GOOD, name="claims.docx"), ["docx", "parquet"]),
    "missing column": (table("source,object,valeu\na,x,1\n"), ["'valeu'", "--value"]),
    "no column of ours": (table("a,b,c\n1,2,3\n"), ["'source'", "'object'", "'value'", "--source"]),
    "named column missing": (table(GOOD, "--source", "seller"), ["'seller'", "--source"]),
    "one column for two": (
        table(GOOD, "--source", "object", "--object", "object"),
        ["object", "different column"],
    ),
    "empty file": (table(""), ["claims.csv", "→"]),
    "header only": (table("source,object,value\n"), ["no rows", "at least one row"]),
    "empty cell": (table(GOOD + "c,,1\n"), ["empty cell", "row 3", "--on-missing"]),
    "two values of one source": (table(GOOD + "a,x,2\n"), ["'a'", "--on-conflict"]),
    "value outside the domain": (table(GOOD, "--domain", "1, 3"), ["'2'", "given: '1', '3'", "--domain"]),
    "empty label in the domain": (table(GOOD, "--domain", "1, ,2"), ["empty label", "'1, ,2'", "yes,no"]),
    "domain misspelt": (table(GOOD, "--domain", "comon"), ["'common'", "commas"]),
    "label twice in the domain": (table(GOOD, "--domain", "1,2,1"), ["'1'", "once"]),
    "not UTF-8": (table(b"source,object,value\na,x,caf\xe9\n"), ["row 1", "UTF-8"]),
    "ragged row": (table(GOOD + "c,x\n"), ["row 3", "→"]),
    "broken gzip": (
        table(gzip.compress(GOOD.encode() * 99)[:40], name="claims.csv.gz"),
        ["cannot be read", "damaged"],
    ),
    "broken Parquet": (
        table(b"PAR1 and then nonsense", name="claims.parquet"),
        ["cannot be read", "damaged"],
    ),
    "broken JSON lines": (table('{"source": "a",\n', name="claims.jsonl"), ["claims.jsonl", "→"]),
    "bad query": (lambda d, _: ["fit", "SELECT * FROM nowhere"], ["nowhere", "query"]),
    "unknown model": (table(GOOD, "--model", "ms"), ["no model 'ms'", "'mss'"]),
    "unknown engine": (table(GOOD, "--engine", "nunpy"), ["no engine 'nunpy'", "'numpy'"]),
    "unknown engine for any model": (
        table(GOOD, "--engine", "abacus", "--model", "vote"),
        ["abacus", "numpy"],
    ),
    "unknown runner": (table(GOOD, "--runner", "inlin"), ["no runner 'inlin'", "'inline'"]),
    "negative seed": (table(GOOD, "--seed", "-1"), ["--seed", "-1 is not in the range"]),
    "seed that is no number": (table(GOOD, "--seed", "lucky"), ["--seed", "'lucky' is not a valid int"]),
    "unknown on-conflict": (table(GOOD, "--on-conflict", "any"), ["--on-conflict must", '"first"', "'any'"]),
    "unknown on-missing": (table(GOOD, "--on-missing", "keep"), ["--on-missing must", '"drop"', "'keep'"]),
    "out is another folder": (into(thesis), ["must not be overwritten", "Choose a new folder"]),
    "out is a file": (into(Path.touch), ["a file, not a folder", "another name"]),
    "out is the folder one is in": (table(GOOD, "--out", "."), ["folder you are in", "'result'"]),
    "out is empty": (table(GOOD, "--out", ""), ["folder you are in", "'result'"]),
    "out has too long a name": (table(GOOD, "--out", "x" * 300), ["too long", "Choose another folder"]),
    "truth of other objects": (with_truth("object,value\nX,1\n"), ["none of the 1 objects", "the same way"]),
    "known truths of other objects": (
        with_truth("object,value\nX,1\n", "--known"),
        ["known: ", "none of the 1 objects", "the same way"],
    ),
    "two truths": (with_truth("object,value\nx,1\nx,2\n"), ["one truth"]),
    "truth without values": (with_truth("object\nx\n"), ["value", "Columns found"]),
    "known truths without objects": (with_truth("value\n1\n", "--known"), ["object", "Columns found"]),
    "no such truth": (lambda d, r: [*table(GOOD)(d, r), "--truth", d / "none.csv"], ["no file 'none.csv'"]),
    "explain an unknown object": (
        lambda _, r: ["explain", r, "Austria"],
        ["no object 'Austria'", "'Australia'"],
    ),
    "explain nothing": (lambda d, _: ["explain", d / "nothing", "x"], ["no such folder", "fit --out"]),
    "explain another folder": (lambda d, _: ["explain", d, "x"], ["not a consilience result", "fit --out"]),
    "result altered": (
        harmed(lambda r: (r / "state.npz").write_bytes(b"")),
        ["state.npz was altered", "again"],
    ),
    "result incomplete": (harmed(lambda r: (r / "truths.parquet").unlink()), ["truths.parquet is missing"]),
    "result newer": (harmed(newer), ["schema 99", "pip install -U consilience"]),
    "unknown case": (lambda d, _: ["simulate", "guesser", "--out", d], ["no case 'guesser'", "'guessers'"]),
    "simulate over claims": (
        lambda d, _: ["simulate", "guessers", "--out", d],
        ["already has claims.csv", "a new folder"],
    ),
    "a setting without a value": (
        lambda d, _: ["fit", d / "claims.csv", "--set", "n_starts"],
        ["NAME=VALUE"],
    ),
    "an unknown setting": (
        lambda d, _: ["fit", d / "claims.csv", "--set", "n_start=3"],
        ["no setting of mss", "'n_starts'"],
    ),
    "a setting out of range": (lambda d, _: ["fit", d / "claims.csv", "--set", "n_starts=0"], ["at least 1"]),
    "simulate to nowhere": (lambda *_: ["simulate", "guessers"], ["--out DIR"]),
    "simulate no objects": (
        lambda d, _: ["simulate", "guessers", "--objects", 0, "--out", d / "new"],
        ["--objects must", "above 0"],
    ),
    "simulate objects of a case that has its own": (
        lambda d, _: ["simulate", "capitals", "--objects", 3, "--out", d / "new"],
        ["--objects must", "left out"],
    ),
    "simulate into a file": (
        lambda d, r: ["simulate", "guessers", "--out", r / "state.npz"],
        ["Cannot write", "exists", "Choose another folder"],
    ),
    "unknown data set": (lambda *_: ["datasets", "boook"], ["no data set 'boook'", "'book'"]),
    "unknown verb": (lambda *_: ["fot"], ["fot"]),
    "unknown flag": (table(GOOD, "--sed", "1"), ["--sed"]),
    "nothing to fit": (lambda *_: ["fit"], ["CLAIMS"]),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_input_is_exit_code_2_and_one_clear_message(
    kind: str, run: Run, tmp_path: Path, result: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments, expected = BAD[kind]
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    done = run(*arguments(tmp_path, result))
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    for text in expected:
        assert text in done.stderr


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a file system that takes no folders")
@pytest.mark.parametrize("verb", [["fit", "does-not-exist.csv"], ["simulate", "guessers"]])
@pytest.mark.parametrize("out", ["/proc/x", "/proc/x/y"])
def test_a_place_that_cannot_be_written_is_refused(run: Run, verb: list[str], out: str) -> None:
    done = run(*verb, "--out", out)
    assert done.exit_code == 2, done.output
    assert f"Cannot write '{out}'" in done.stderr
    assert "Choose another folder" in done.stderr


def test_only_our_own_words_are_put_into_those_of_the_command_line(run: Run, tmp_path: Path) -> None:
    rows = "source,object,value\na,\"the object='x'\",1\na,\"the object='x'\",2\n"
    (tmp_path / "claims.csv").write_text(rows, "utf-8")
    done = run("fit", tmp_path / "claims.csv")
    assert done.exit_code == 2
    assert "the object='x'" in done.stderr
    assert '--on-conflict "first"' in done.stderr


def test_twenty_kinds_at_least() -> None:
    assert len(BAD) >= 20
