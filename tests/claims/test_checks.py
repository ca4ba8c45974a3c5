"""Bad input: each kind ends in one error that names what was found and what to do."""

from __future__ import annotations

import gzip
from collections import Counter
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from claim_tables import Triple, triples_of
from hypothesis import given
from hypothesis import strategies as st

from consilience.claims import delimited, parquet
from consilience.claims.reading import read_claims, read_truths
from consilience.errors import ClaimsError, SettingsError
from consilience.models.vote import Vote

HEADER = b"source,object,value\n"
GOOD = HEADER + b"".join(b"s%d,o%d,v%d\n" % (i, i * 7919, i % 3) for i in range(2000))

BAD_FILES: list[tuple[str, bytes, str, list[str]]] = [
    ("a.csv", b"", "empty-table", ["empty", "at least one row"]),
    ("a.csv", b"\n\n", "empty-table", ["empty"]),
    ("a.csv", HEADER, "empty-table", ["no rows"]),
    ("a.csv", b"source,object,valeu\na,b,c\n", "missing-column", ["'valeu'", 'value="valeu"', "Did you mean"]),
    ("a.csv", b"x\na\n", "missing-column", ["Columns found: 'x'", "worker", "task", "label"]),
    ("a.csv", b"worker,rater,object,value\na,b,c,d\n", "ambiguous-column", ["'worker'", "source='rater'"]),
    ("a.csv", b"source,object,value,value\na,b,c,d\n", "duplicate-column", ["'value'", "2 times", "own name"]),
    ("a.csv", HEADER + b"a,b,c\na,,c\n", "missing-cells", ["1 row of 2", "row 2: no object", 'on_missing="drop"']),
    ("a.csv", HEADER + b'a,b,""\n', "missing-cells", ["row 1: no value"]),
    ("a.csv", HEADER + b"a,b,c\na,d,caf\xe9\n", "undecodable", ["row 2", "caf\\xe9", "UTF-8"]),
    ("a.csv", "source,object,value\na,b,c\n".encode("utf-16"), "undecodable", ["UTF-16", "Save the file as UTF-8"]),
    ("a.csv", HEADER + b"a,b,c\na,d\nx,y,z,w\n", "ragged-row", ["2 rows", "row 2: 2 cells", "row 3: 4 cells"]),
    ("a.csv", HEADER + b"a,b,c\na,d\xe9\n", "ragged-row", ["row 2: 2 cells: 'a,d\\\\xe9'"]),
    ("a.csv", HEADER + b'a,b,"c\nd,e,f\n', "unclosed-quote", ["never closed", "double every quote"]),
    ("a.csv", b'source,object,value,x\na,b,c,"d\ne,f,g,h\n', "unclosed-quote", ["never closed"]),
    ("a.csv", HEADER + b"a,b,c\na,b,d\n", "conflicting-claims", ["'c' (row 1)", "'d' (row 2)", "on_conflict="]),
    ("a.csv.gz", gzip.compress(GOOD)[:-500], "unreadable-file", ["Truncated", "fetch it again"]),
    ("a.csv.gz", gzip.compress(GOOD)[:200] + b"x" * 50, "unreadable-file", ["cannot be read"]),
    ("a.csv.gz", GOOD, "unreadable-file", ["cannot be read", "not what its ending says"]),
    ("a.parquet", b"PAR1", "unreadable-file", ["cannot be read", "check it"]),
    ("a.jsonl", b"", "empty-table", ["empty"]),
    ("a.jsonl", b'{"source": 1}\nnope\n[1]\n', "bad-json", ["row 2: 'nope'", "row 3: '[1]'", "one object a line"]),
    ("a.jsonl", b'{"source": 1, "object": 2, "value": "\xff"}\n', "undecodable", ["row 1", "UTF-8"]),
    ("a.jsonl", b'{"source": 1, "object": 2, "value": [3]}\n', "nested-type", ["'value'", "row 1: '[3]'"]),
    ("a.jsonl", b'{"source": 1, "object": 2, "value": 3}\n{"value": 1}', "missing-cells", ["no source and no object"]),
    ("a.jsonl", b'{"source": 1, "object": 2, "value": null}\n', "missing-cells", ["row 1: no value"]),
    ("a.xlsx", b"PK", "unknown-format", ["'a.xlsx'", ".parquet", "pass the frame"]),
]  # fmt: skip


def problem_of(error: ClaimsError, kind: str) -> str:
    """What is said of the problems of this kind, of which there must be one."""
    said = [str(problem) for problem in error.problems if problem.kind == kind]
    assert said, str(error)
    assert all(text in str(error) for text in said)
    return "\n".join(said)


@pytest.mark.parametrize(("name", "content", "kind", "said"), BAD_FILES)
def test_bad_files(tmp_path: Path, name: str, content: bytes, kind: str, said: list[str]) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ClaimsError) as caught:
        read_claims(path)
    message = problem_of(caught.value, kind)
    assert [part for part in said if part not in message] == [], message
    assert "→" in message
    assert str(path) in str(caught.value)


BAD_TABLES: list[tuple[Any, dict[str, Any], str, list[str]]] = [
    ([], {}, "empty-table", ["no rows"]),
    ([("a", "b"), "abc", 3], {}, "ragged-row", ["3 rows of 3", "(source, object, value)", "row 2: 'abc'"]),
    ([("a", "b", None)], {}, "missing-cells", ["row 1: no value"]),
    ([("a", "b", float("nan"))], {"on_missing": "drop"}, "empty-table", ["Every row"]),
    ([("a", "b", 1), ("a", "c", "x")], {}, "mixed-types", ["'value'", "text, or all numbers"]),
    ([("a", "b", b"x"), ("c", "b", "x")], {}, "mixed-types", ["'value'", "it holds bytes and str"]),
    ([("a", date(2026, 1, 2), "x"), ("a", datetime(2026, 1, 2, 3), "y")], {}, "mixed-types", ["date and datetime"]),
    ([("a", datetime(2026, 1, 2), "x"), ("a", datetime(2026, 1, 2, tzinfo=UTC), "y")], {}, "mixed-types", ["zone"]),
    ([("a", "b", time(5)), ("c", "b", 10**17)], {}, "mixed-types", ["int and time"]),
    ([("a", "b", np.datetime64(1, "ns")), ("c", "b", np.float32(1.5))], {}, "mixed-types", ["datetime64 and float32"]),
    (pd.DataFrame({"source": ["a", "b"], "object": "c", "value": [b"x", "x"]}), {}, "mixed-types", ["bytes and str"]),
    ([("a", "b", "\ud800")], {}, "undecodable", ["'value'", "surrogates", "UTF-8"]),
    ([("a", "b", 2**80)], {}, "large-numbers", ["'value'", "too large", "Give them as text"]),
    ([("a", "b", 2**53 + 1), ("a", "c", 0.5)], {}, "large-numbers", ["'value'", "Give them as text"]),
    (pl.DataFrame({"source": [2**80], "object": ["b"], "value": ["c"]}), {}, "large-numbers", ["'source'", "as text"]),
    ([{"source": "a", "object": "b"}], {}, "missing-column", ["'value'", "Columns found: 'source', 'object'"]),
    ([{"source": "a", "object": "b", "value": "c"}, {"source": "a"}], {}, "missing-cells", ["row 2: no object"]),
    ([{"source": "a", "object": "b", "value": "c"}, ("a", "b", "c")], {}, "ragged-row", ["1 row of 2", "row 2"]),
    ([{0: "a", 1: "b", 2: "c"}], {}, "ragged-row", ["row 1", "column names"]),
    ([{"a", "b", "c"}], {}, "ragged-row", ["row 1"]),
    ([("a", "b", [1])], {}, "nested-type", ["'value'", "list", "into text"]),
    (pd.DataFrame({"source": ["a", 1], "object": ["b", "c"], "value": ["x", "y"]}), {}, "mixed-types", ["'source'"]),
    (pd.DataFrame([[1, 2, 3]], columns=["source", "value", "value"]), {}, "duplicate-column", ["'value'", "own name"]),
    (pd.DataFrame({"source": ["a"], "object": ["b"], "value": [None]}), {}, "missing-cells", ["row 1"]),
    (pl.DataFrame({"source": ["a"], "object": ["b"], "value": [{"x": 1}]}), {}, "nested-type", ["'value'", "struct"]),
    (pl.DataFrame({"source": ["a"], "object": ["b"], "value": [object()]}), {}, "nested-type", ["Python objects"]),
    (pl.DataFrame({"source": ["a"], "object": ["b"], "value": [float("nan")]}), {}, "missing-cells", ["row 1"]),
    (pa.table({"source": ["a"], "object": ["b"]}), {}, "missing-column", ["'value'", "'source', 'object'"]),
    (pa.table([["a"], ["b"], ["c"], ["d"]], ["source", "object", "value", "value"]), {}, "duplicate-column", ["times"]),
    ([("a", "b", "c")], {"source": "sauce"}, "missing-column", ["'sauce'", "Did you mean 'source'"]),
    ([("a", "b", "c")], {"source": "object"}, "duplicate-column", ["source and as object", "different column"]),
    ([("a", "b", "c")], {"domain": ["x", "y"]}, "outside-domain", ["row 1", "'a'", "'c'", 'domain="claimed"']),
    ([("a", "b", "c")], {"domain": []}, "bad-domain", ["empty"]),
    ([("a", "b", "c")], {"domain": ["c", "d", "c"]}, "bad-domain", ["'c' more than once"]),
    ([("a", "b", "c")], {"domain": ["c", None]}, "bad-domain", ["empty label"]),
    ([("a", "b", "c")], {"domain": [1, 2]}, "bad-domain", ["int64", "text"]),
    ([("a", "b", "c")], {"domain": {"x": ["c"]}}, "bad-domain", ["1 object of 1 has no domain", "'b'"]),
    ([("a", "b", "c")], {"domain": {"b": "c"}}, "bad-domain", ["'b'", "a list of labels"]),
    ([("a", "b", "c")], {"domain": {"b": ["d"]}}, "outside-domain", ["1 claim", "'c'"]),
    ("SELECT nothing", {}, "bad-query", ["nothing", "Correct the query"]),
    ("SELECT 1 AS source, 2 AS object, [3] AS value", {}, "nested-type", ["'value'", "list"]),
    (42, {}, "unknown-format", ["int", "a path", ".csv", "a frame"]),
    ({"source": ["a"]}, {}, "unknown-format", ["dict", "rows"]),
    ("", {}, "missing-file", ["path is empty", ".csv"]),
]  # fmt: skip


@pytest.mark.parametrize(("table", "options", "kind", "said"), BAD_TABLES)
def test_bad_tables(table: Any, options: dict[str, Any], kind: str, said: list[str]) -> None:
    with pytest.raises(ClaimsError) as caught:
        read_claims(table, **options)
    message = problem_of(caught.value, kind)
    assert [part for part in said if part not in message] == [], message
    assert "→" in message


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("claims.cvs", ["'claims.cvs'", "Did you mean 'claims.csv'"]),
        ("no/claims.csv", ["no folder"]),
        ("*.pq", ["no Parquet"]),
    ],
)
def test_missing_files(tmp_path: Path, path: str, said: list[str]) -> None:
    (tmp_path / "claims.csv").write_bytes(GOOD)
    with pytest.raises(ClaimsError) as caught:
        read_claims(str(tmp_path / path))
    message = problem_of(caught.value, "missing-file")
    assert [part for part in said if part not in message] == [], message


def test_a_link_to_nothing_is_not_taken_for_a_misspelling(tmp_path: Path) -> None:
    (tmp_path / "claims.csv").symlink_to("gone.csv")
    with pytest.raises(
        ClaimsError, match=r"'claims\.csv' in .* is a link to 'gone\.csv', which does not exist"
    ):
        read_claims(tmp_path / "claims.csv")


def test_a_file_that_goes_while_it_is_read_is_said_to_be_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "claims.parquet"
    pq.write_table(pa.table({"source": ["a"], "object": ["x"], "value": ["1"]}), path)
    opened = parquet.open_parquet

    def open_and_vanish(*of: Any) -> Any:
        table = opened(*of)
        path.unlink()
        return table

    monkeypatch.setattr(parquet, "open_parquet", open_and_vanish)
    with pytest.raises(ClaimsError, match="was there and is gone"):
        read_claims(path)


def test_a_folder_without_parquet_and_a_pattern_of_other_files(tmp_path: Path) -> None:
    (tmp_path / "claims.csv").write_bytes(GOOD)
    with pytest.raises(ClaimsError, match="no Parquet file"):
        read_claims(tmp_path)
    with pytest.raises(ClaimsError, match=r"claims\.csv' is not a Parquet file"):
        read_claims(str(tmp_path / "*.csv"))


def write_parquet(folder: Path, **columns: list[Any]) -> None:
    """A file of claims for each, called a, b, c …; what is given is its column "value", None leaves it out."""
    for name, values in columns.items():
        cells: dict[str, Any] = {"source": [name], "object": ["o"]}
        pq.write_table(
            pa.table(cells if values is None else cells | {"value": values}), folder / f"{name}.parquet"
        )


@pytest.mark.parametrize("pattern", ["", "*.parquet"])
def test_every_parquet_file_must_have_the_columns(tmp_path: Path, pattern: str) -> None:
    write_parquet(tmp_path, a=None, b=["x"], c=None)
    with pytest.raises(ClaimsError) as caught:
        read_claims(str(tmp_path / pattern))
    message = problem_of(caught.value, "missing-column")
    for part in ("2 files of 3 have no column 'value'", "a.parquet", "c.parquet", "same columns"):
        assert part in message
    assert "b.parquet" not in message


@pytest.mark.parametrize(
    ("clashing", "said"),
    [
        (pa.array([1]), ["'value'", "text", "int64"]),
        (pa.array([b"x"]), ["'value'", "text", "binary"]),
        (pa.array([["x"]]), ["'value'", "text", "list"]),
    ],
)
def test_types_that_clash_between_parquet_files_are_no_damage(
    tmp_path: Path, clashing: Any, said: list[str]
) -> None:
    write_parquet(tmp_path, a=["x"], b=["y"], c=clashing)
    with pytest.raises(ClaimsError) as caught:
        read_claims(tmp_path)
    message = problem_of(caught.value, "mixed-types")
    assert [part for part in [*said, "a.parquet", "c.parquet"] if part not in message] == [], message
    assert "b.parquet" not in message
    assert "damaged" not in str(caught.value)


def test_a_number_that_one_type_cannot_hold_is_no_damage(tmp_path: Path) -> None:
    write_parquet(tmp_path, a=[0.5], b=[2**53 + 1])
    with pytest.raises(ClaimsError) as caught:
        read_claims(tmp_path)
    message = problem_of(caught.value, "mixed-types")
    assert [part for part in ("'value'", "b.parquet", "double", "as text") if part not in message] == [], (
        message
    )


def test_a_damaged_parquet_file_among_others_is_named(tmp_path: Path) -> None:
    write_parquet(tmp_path, a=["x"], c=["x"])
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    with pytest.raises(ClaimsError, match=r"b\.parquet: 1 problem"):
        read_claims(tmp_path)


def test_a_saved_result_is_not_a_folder_of_claims(tmp_path: Path) -> None:
    rows = [("a", "o", "x"), ("b", "o", "y")]
    Vote().fit(read_claims(rows)).save(tmp_path / "out")
    with pytest.raises(ClaimsError) as caught:
        read_claims(tmp_path / "out")
    message = problem_of(caught.value, "saved-result")
    assert "result" in message
    assert str(tmp_path / "out" / "claims.parquet") in message
    assert triples_of(read_claims(tmp_path / "out" / "claims.parquet")) == rows
    with pytest.raises(ClaimsError, match=r"files of 5 have no column 'source'"):
        read_claims(tmp_path)


@pytest.mark.parametrize("manifest", ["", "[]", '{"format": "web app"}', "\xff"])
def test_a_manifest_of_something_else_is_no_result(tmp_path: Path, manifest: str) -> None:
    write_parquet(tmp_path, a=["x"])
    (tmp_path / "manifest.json").write_text(manifest, "latin-1")
    assert triples_of(read_claims(tmp_path)) == [("a", "o", "x")]


def test_a_path_that_no_disk_allows_is_a_missing_file() -> None:
    for path in ("x" * 5000 + ".csv", "nul\0.csv"):
        with pytest.raises(ClaimsError, match="no file"):
            read_claims(path)


@pytest.mark.parametrize(
    "setting",
    [
        {"source": "s"},
        {"domain": ["x", "y"]},
        {"domain": "claimed"},
        {"domain": np.array(["x", "y"])},
        {"on_conflict": "first"},
        {"on_missing": "drop"},
    ],
)
def test_claims_already_read_take_no_choices(setting: dict[str, Any]) -> None:
    claims = read_claims([("a", "o", "x")])
    (name,) = setting
    with pytest.raises(SettingsError, match=f"'{name}' must be left out: .* already read"):
        read_claims(claims, **setting)


def test_truths_already_read_take_no_choices() -> None:
    with pytest.raises(SettingsError, match="'object' must be left out"):
        read_truths(read_truths({"o": "x"}), object="o")


@pytest.mark.parametrize(
    "setting", [{"on_conflict": "vote"}, {"on_missing": "keep"}, {"domain": "open"}, {"domain": 7}]
)
def test_bad_settings_are_refused_before_the_table_is_read(setting: dict[str, Any]) -> None:
    with pytest.raises(SettingsError) as caught:
        read_claims("no such file", **setting)
    (name,) = setting
    assert name in str(caught.value)
    assert repr(setting[name]) in str(caught.value)


def test_all_problems_come_at_once_with_the_rows_as_the_user_counts_them(tmp_path: Path) -> None:
    path = tmp_path / "claims.csv"
    rows = [b"a,b", b"a,c,x", b"", b"b,c,\xff", b"q", b"r,,z", b"a,c,y", b"a,d,e"]
    path.write_bytes(b"\n" + HEADER + b"\n".join(rows))
    with pytest.raises(ClaimsError) as caught:
        read_claims(path, domain=["x", "y"])
    error = caught.value
    kinds = [problem.kind for problem in error.problems]
    assert kinds == ["ragged-row", "undecodable", "missing-cells", "conflicting-claims", "outside-domain"]
    for part in (
        "row 1: 2 cells",
        "row 4: 1 cell",
        "row 3: b'\\xff'",
        "row 5: no object",
        "'x' (row 2), 'y' (row 6)",
        "row 7",
    ):
        assert part in str(error)
    assert "5 problems" in str(error)


def test_problems_of_all_columns_come_at_once(tmp_path: Path) -> None:
    path = tmp_path / "claims.csv"
    path.write_bytes(b"sorce,object,rating,label\n,b,c,d\ne,,f,g\n")
    with pytest.raises(ClaimsError) as caught:
        read_claims(path)
    assert [problem.kind for problem in caught.value.problems] == [
        "missing-column",
        "ambiguous-column",
        "missing-cells",
    ]


def test_counts_are_whole_and_examples_few() -> None:
    rows = [("s", f"o{i:02}", v) for i in range(10) for v in "xy"] + [("s", None, "x")] * 7
    with pytest.raises(ClaimsError) as caught:
        read_claims(rows)
    found = {problem.kind: (problem.count, len(problem.examples)) for problem in caught.value.problems}
    assert found == {"missing-cells": (7, 3), "conflicting-claims": (10, 3)}
    assert "… and 7 more" in str(caught.value)


def test_long_values_are_cut_in_messages() -> None:
    with pytest.raises(ClaimsError) as caught:
        read_claims([("s", "o", "x" * 10_000), ("s", "o", "y")])
    assert len(str(caught.value)) < 600
    assert "10,000 long" in str(caught.value)


def test_missing_rows_are_dropped_and_counted() -> None:
    claims = read_claims([("a", "o", "x"), ("b", "o", None), ("c", None, None)], on_missing="drop")
    assert triples_of(claims) == [("a", "o", "x")]
    assert claims.sources.to_pylist() == ["a"]
    assert claims.notes == ("2 rows with an empty cell dropped.",)


def test_exact_repetitions_are_merged_and_counted() -> None:
    claims = read_claims([("a", "o", "x"), ("b", "o", "x"), ("a", "o", "x"), ("a", "o", "x")])
    assert triples_of(claims) == [("a", "o", "x"), ("b", "o", "x")]
    assert claims.notes == ("2 exact repetitions merged.",)


@pytest.mark.parametrize(
    ("on_conflict", "kept", "dropped", "merged"),
    [("first", "x", 3, 0), ("last", "y", 2, 1), ("most frequent", "y", 2, 1)],
)
def test_conflicts_are_settled_as_asked_and_counted(
    on_conflict: str, kept: str, dropped: int, merged: int
) -> None:
    rows = [("a", "o", "x"), ("a", "o", "y"), ("a", "o", "z"), ("a", "o", "y"), ("b", "o", "w")]
    claims = read_claims(rows, on_conflict=on_conflict)
    assert triples_of(claims) == [("a", "o", kept), ("b", "o", "w")]
    assert claims.values.to_pylist() == ["w", kept]
    assert f"{dropped} rows dropped from 1 pair of source and object" in claims.notes[-1]
    assert (f"{merged} exact repetition merged." in claims.notes) == bool(merged)


few_names = st.sampled_from("ab")


@given(
    st.lists(st.tuples(few_names, few_names, st.sampled_from("xyz")), min_size=1),
    st.sampled_from(["first", "last", "most frequent"]),
)
def test_settling_agrees_with_plain_loops(rows: list[Triple], on_conflict: str) -> None:
    said: dict[tuple[str, str], list[str]] = {}
    for source, object_, value in rows:
        said.setdefault((source, object_), []).append(value)
    # Counter.most_common keeps the order of first sight among equals.
    choose = {
        "first": lambda v: v[0],
        "last": lambda v: v[-1],
        "most frequent": lambda v: Counter(v).most_common(1)[0][0],
    }
    expected = sorted(
        (source, object_, choose[on_conflict](values)) for (source, object_), values in said.items()
    )
    claims = read_claims(rows, on_conflict=on_conflict)
    assert triples_of(claims) == expected
    counted = sum(int(note.split()[0].replace(",", "")) for note in claims.notes)
    assert counted == len(rows) - len(expected)


def test_truths_are_checked_too() -> None:
    with pytest.raises(ClaimsError) as caught:
        read_truths([("o1", "x"), ("o1", "y"), (None, "z")])
    assert [problem.kind for problem in caught.value.problems] == ["missing-cells", "conflicting-truths"]
    assert "object 'o1': 'x' (row 1), 'y' (row 2)" in str(caught.value)
    assert "on_missing" not in str(caught.value)
    with pytest.raises(ClaimsError, match="not of the form"):
        read_truths([("o1", "x", "y")])


def test_a_bad_row_in_a_large_file_is_found(tmp_path: Path) -> None:
    n = 300_000  # several blocks of the parser, and a row that does not fit in one
    lines = [b"s%d,o%d,v" % (i % 7, i) for i in range(n)]
    lines[n - 10] = b"s,o"
    lines[n - 5] = b's,o,"' + b"x" * 9_000_000 + b'"'
    lines[n - 2] = b"s,,v"
    path = tmp_path / "claims.csv"
    path.write_bytes(HEADER + b"\n".join(lines))
    with pytest.raises(ClaimsError) as caught:
        read_claims(path)
    assert f"row {n - 9:,}: 2 cells" in str(caught.value)
    assert f"row {n - 1:,}: no object" in str(caught.value)
    assert [problem.count for problem in caught.value.problems] == [1, 1]


def test_numpy_rows_are_rows() -> None:
    assert triples_of(read_claims(np.array([["a", "b", "c"], ["d", "e", "f"]]))) == [
        ("a", "b", "c"),
        ("d", "e", "f"),
    ]


def test_text_that_is_none_is_refused_where_the_file_says_that_it_is(tmp_path: Path) -> None:
    raw = pa.array([b"a", b"caf\xe9"], pa.binary())
    text = pa.StringArray.from_buffers(2, *raw.buffers()[1:])
    table = pa.table({"source": ["s", "t"], "object": ["o", "o"], "value": text})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(ClaimsError) as refused:
        read_claims(tmp_path / "a.parquet")
    assert [problem.kind for problem in refused.value.problems] == ["undecodable"]
    assert "row 2" in str(refused.value)


def test_a_line_end_in_a_cell_stays_whole_wherever_blocks_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "SMALLEST_BLOCK", 64)
    rows = "".join(f'source {"x" * (n % 13)},{n},"one\r\ntwo"\r\n' for n in range(300))
    (tmp_path / "a.csv").write_bytes(f"source,object,value\r\n{rows}".encode())
    claims = read_claims(tmp_path / "a.csv")
    assert claims.values.to_pylist() == ["one\r\ntwo"]
