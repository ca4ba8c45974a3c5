"""Reading: every kind of table gives the same claims; columns are recognised; text survives."""

from __future__ import annotations

import datetime
import io
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from threading import Event, Thread
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from claim_tables import ARRAYS, Triple, assert_same_claims, every_kind, triples_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from consilience.claims import delimited
from consilience.claims.frames import to_frame
from consilience.claims.reading import read_claims, read_truths
from consilience.claims.vocabulary import TEXT
from consilience.errors import ClaimsError

NEW_YEAR = datetime.datetime(2024, 1, 1)
HOSTILE = [
    ("Ünïcode ✓ 𝔘", "o1", " a"),
    ("a,b;c|d\te", "o1", "a"),
    ('say "x"', "o1", "=1+1"),
    ("line\nbreak\r\nand\rmore", "o1", "None"),
    ("nul\x00inside", "o1", "NA"),
    ("NULL", "o2", "null"),
    ("'; DROP TABLE claims; --", "o2", "nan"),
    ("long", "o2", "x" * 5_000_000),
    ("\u202eright to left", "o2", "e\u0301"),
    ("\u202eright to left", "o1", "é"),
    ("0", "007", "7.0"),
    ("00", "7", "7"),
    ("true", "007", "\\N"),
]

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4)
few = st.sampled_from(["a", "b", "A", " a", "é", "None", '"', "\n", ",", "\x00"])
names = st.one_of(few, texts)


@st.composite
def tables(draw: st.DrawFn) -> list[Triple]:
    """Rows in which no source contradicts itself."""
    said = draw(st.dictionaries(st.tuples(names, names), names, min_size=1, max_size=12))
    return [(source, object_, value) for (source, object_), value in said.items()]


@given(tables())
def test_triples_come_back(rows: list[Triple]) -> None:
    claims = read_claims(rows)
    assert triples_of(claims) == sorted(rows)
    assert claims.notes == ()


@given(tables(), st.randoms(use_true_random=False), st.integers(1, 5))
def test_order_and_chunks_of_rows_do_not_matter(rows: list[Triple], random: Any, size: int) -> None:
    claims = read_claims(rows)
    shuffled = random.sample(rows, len(rows))
    assert_same_claims(claims, read_claims(shuffled))
    frame = pa.table([[row[i] for row in shuffled] for i in range(3)], names=["source", "object", "value"])
    chunks = pa.concat_tables([frame.slice(i, size) for i in range(0, len(frame), size)])
    assert_same_claims(claims, read_claims(chunks))


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables())
def test_kind_of_table_does_not_matter(rows: list[Triple]) -> None:
    expected = read_claims(rows)
    with tempfile.TemporaryDirectory() as folder:
        for kind, table in every_kind(rows, Path(folder)):
            try:
                assert_same_claims(expected, read_claims(table))
            except AssertionError as why:
                raise AssertionError(f"as {kind}") from why


def test_hostile_text_survives_every_kind_of_table(tmp_path: Path) -> None:
    for kind, table in every_kind(HOSTILE, tmp_path):
        assert triples_of(read_claims(table)) == sorted(HOSTILE), kind


def test_a_file_is_not_closed_while_the_parser_reads_ahead() -> None:
    """Its number would be given to the next file that is opened, and the parser would read on in that."""
    reading, go_on, told = Event(), Event(), []

    class Slow(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            reading.set()
            assert go_on.wait(10)
            told.append("read")
            return super().read(size)

        def close(self) -> None:
            told.append("closed")
            super().close()

    stream = delimited._Ended(Slow(b"a,b,c\n" * 9), b"\n,,\n", may_be_quoted=True)
    ahead = Thread(target=stream.read, args=(10,))
    ahead.start()
    assert reading.wait(10)
    closing = Thread(target=stream.close)
    closing.start()
    closing.join(0.1)
    go_on.set()
    ahead.join(10)
    closing.join(10)
    assert told == ["read", "closed"]
    assert stream.read(10) == b""


def test_claims_are_canonical() -> None:
    claims = read_claims([("s2", "o2", "x"), ("s1", "o2", "y"), ("s2", "o1", "z")])
    assert claims.sources.to_pylist() == ["s1", "s2"]
    assert claims.objects.to_pylist() == ["o1", "o2"]
    assert claims.values.to_pylist() == ["x", "y", "z"]
    assert claims.first_claim.tolist() == [0, 1, 3]
    assert claims.claim_source.tolist() == [1, 0, 1]
    assert claims.first_candidate.tolist() == [0, 1, 3]
    assert claims.candidate_value.tolist() == [2, 0, 1]
    assert claims.claim_candidate.tolist() == [0, 2, 1]
    assert [getattr(claims, name).dtype for name in ARRAYS] == [
        np.int32,
        np.int32,
        np.int64,
        np.int64,
        np.int32,
    ]


def test_claims_come_back_unchanged() -> None:
    claims = read_claims([("a", "b", "c")])
    assert read_claims(claims) is claims
    truths = read_truths({"b": "c"})
    assert read_truths(truths) is truths


@pytest.mark.parametrize(
    "header",
    [
        "task,worker,label",
        "item,rater,rating",
        "Task,Annotator,Label",
        "ITEM,JUDGE,VERDICT",
        "entity,labeler,answer",
    ],
)
def test_names_of_other_packages_are_understood(tmp_path: Path, header: str) -> None:
    path = tmp_path / "claims.csv"
    path.write_text(f"{header}\no,s,v\n")
    claims = read_claims(path)
    assert triples_of(claims) == [("s", "o", "v")]
    object_, source, value = header.split(",")
    assert claims.columns == (source, object_, value)


def test_our_own_names_win_over_others(tmp_path: Path) -> None:
    path = tmp_path / "claims.csv"
    path.write_text("worker,source,task,object,Value,value\nno,s,no,o,no,v\n")
    assert triples_of(read_claims(path)) == [("s", "o", "v")]


@pytest.mark.parametrize("header", [" source , object,value ", "\tTask, Worker , LABEL "])
def test_spaces_around_names_do_not_matter(tmp_path: Path, header: str) -> None:
    path = tmp_path / "claims.csv"
    object_first = "Task" in header
    path.write_text(f"{header}\n{'o,s,v' if object_first else 's,o,v'}\n")
    assert triples_of(read_claims(path)) == [("s", "o", "v")]


def test_spaces_around_names_given_do_not_matter_where_one_column_is_meant(tmp_path: Path) -> None:
    path = tmp_path / "claims.csv"
    path.write_text(" seller ,label,authors , authors\ns,o,v,w\n")
    claims = read_claims(path, source="seller", object="label", value=" authors")
    assert triples_of(claims) == [("s", "o", "w")]
    with pytest.raises(ClaimsError, match=r"More than one column may be the value: 'authors ', ' authors'"):
        read_claims(path, source="seller", object="label", value="authors")


def test_an_empty_text_is_missing_only_in_delimited_text(tmp_path: Path) -> None:
    (tmp_path / "claims.csv").write_text('source,object,value\ns,o,""\n')
    with pytest.raises(ClaimsError, match="row 1: no value"):
        read_claims(tmp_path / "claims.csv")
    (tmp_path / "claims.jsonl").write_text('{"source": "s", "object": "o", "value": ""}\n')
    rows = [("s", "o", "")]
    for table in (tmp_path / "claims.jsonl", rows, pd.DataFrame(rows, columns=["source", "object", "value"])):
        assert triples_of(read_claims(table)) == rows


def test_any_name_by_argument(tmp_path: Path) -> None:
    path = tmp_path / "claims.csv"
    path.write_text("seller,isbn,authors,value\ns,o,v,9.99\n")
    claims = read_claims(path, source="seller", object="isbn", value="authors")
    assert triples_of(claims) == [("s", "o", "v")]
    assert claims.columns == ("seller", "isbn", "authors")


def test_a_column_named_for_one_role_is_not_taken_for_another() -> None:
    frame = pa.table({"label": ["o"], "worker": ["s"], "answer": ["v"]})
    assert triples_of(read_claims(frame, object="label")) == [("s", "o", "v")]


def test_frame_columns_need_not_be_named_by_text() -> None:
    frame = pd.DataFrame([["s", "o", "v"]])
    assert triples_of(read_claims(frame, source="0", object="1", value="2")) == [("s", "o", "v")]


@pytest.mark.parametrize(
    "text",
    [
        "source;object;value\ns;o;v\n",
        "source\tobject\tvalue\ns\to\tv\n",
        "source|object|value\ns|o|v\n",
        "\ufeffsource,object,value\ns,o,v\n",
        '"source","object","value"\n"s","o","v"\n',
        "source,object,value\r\ns,o,v\r\n",
        "source,object,value\rs,o,v\r",
        "source,object,value\ns,o,v",
        "\n\nsource,object,value\n\ns,o,v\n\n\n",
        'source,object,value,"a\nnote; or; two"\ns,o,v,x\n',
    ],
    ids=[
        "semicolon",
        "tab",
        "bar",
        "BOM",
        "quotes",
        "CRLF",
        "CR",
        "no last newline",
        "blank lines",
        "newline in header",
    ],
)
def test_dialects_of_delimited_text(tmp_path: Path, text: str) -> None:
    path = tmp_path / "claims.txt"
    path.write_bytes(text.encode())
    assert triples_of(read_claims(path)) == [("s", "o", "v")]


def test_quotes_may_begin_anywhere_in_delimited_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "SMALLEST_BLOCK", 256)
    rows = [("s", f"o{i:02}", "v" if i < 50 else "two\n,lines\n" * (i % 5 + 1)) for i in range(99)]
    quoted = [f"{s},{o},{v}" if v == "v" else f'{s},{o},"{v}"' for s, o, v in rows]
    (tmp_path / "claims.csv").write_text("\n".join(["source,object,value", *quoted]))
    assert triples_of(read_claims(tmp_path / "claims.csv")) == rows


def test_json_cells_are_text(tmp_path: Path) -> None:
    path = tmp_path / "claims.jsonl"
    rows = [{"source": 1, "object": "o", "value": True}, {"source": 1.5, "object": "o", "value": "true"}]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    assert triples_of(read_claims(path)) == [("1", "o", "true"), ("1.5", "o", "true")]


def test_json_keys_may_hold_any_character(tmp_path: Path) -> None:
    path = tmp_path / "claims.jsonl"
    path.write_text(json.dumps({"a/b~c": "s", 'say "x"': "o", "$.v": "v"}) + "\n")
    assert triples_of(read_claims(path, source="a/b~c", object='say "x"', value="$.v")) == [("s", "o", "v")]


def test_folder_and_pattern_of_parquet_files(tmp_path: Path) -> None:
    for i in range(3):
        frame = pa.table({"source": [f"s{i}"], "object": ["o"], "value": ["v"]})
        pq.write_table(frame, tmp_path / f"part-{i}.parquet")
    expected = [(f"s{i}", "o", "v") for i in range(3)]
    assert triples_of(read_claims(tmp_path)) == expected
    assert triples_of(read_claims(str(tmp_path / "part-*.parquet"))) == expected
    assert triples_of(read_claims(str(tmp_path / "part-[12].parquet"))) == expected[1:]


def test_folders_of_parquet_files_may_nest_and_have_any_name(tmp_path: Path) -> None:
    folder = tmp_path / "claims [1].parquet"
    (folder / "more.parquet").mkdir(parents=True)
    for name in ("a.pq", "more.parquet/b.PARQUET"):
        pq.write_table(pa.table({"source": [name], "object": ["o"], "value": ["v"]}), folder / name)
    assert triples_of(read_claims(folder)) == [("a.pq", "o", "v"), ("more.parquet/b.PARQUET", "o", "v")]


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        ([pa.array(["x"]), pa.array(["y"], pa.large_string()), pa.array(["z"]).dictionary_encode()], TEXT),
        ([pa.array([1, 2], pa.int32()), pa.array([3])], pa.int64()),
        ([pa.array([1, 2]), pa.array([0.5])], pa.float64()),
        ([pa.array([None, "x"]), pa.array(["y"])], TEXT),
        (
            [pa.array([NEW_YEAR], pa.timestamp("us")), pa.array([10**18 + 1], pa.timestamp("ns"))],
            pa.timestamp("ns"),
        ),
    ],
    ids=["text", "integers", "numbers", "null", "times"],
)
def test_parquet_files_may_write_one_type_in_several_ways(
    tmp_path: Path, parts: list[Any], kind: Any
) -> None:
    for i, values in enumerate(parts):
        ids = [f"s{i}"] * len(values)
        table = pa.table({"source": ids, "object": ids, "value": values, f"other {i}": ids})
        pq.write_table(table, tmp_path / f"{i}.parquet")
    claims = read_claims(tmp_path, on_missing="drop", on_conflict="first")
    assert claims.values.type == kind


@pytest.mark.parametrize(
    "row", [{"source": "s", "object": "o", "value": "v"}, {"label": "v", "x": 1, "task": "o", "Worker": "s"}]
)
def test_rows_may_be_dicts(row: dict[str, Any]) -> None:
    assert triples_of(read_claims([row])) == [("s", "o", "v")]
    assert triples_of(read_claims(MappingProxyType(row) for _ in range(2))) == [("s", "o", "v")]
    truths = read_truths([row])
    assert (truths.objects.to_pylist(), truths.values.to_pylist()) == (["o"], ["v"])


def test_rows_of_dicts_are_numbered_as_they_came() -> None:
    rows = [
        {"source": "a", "object": "o", "value": "x"},
        {"seller": "b", "object": "o", "source": None, "value": "y"},
    ]
    assert triples_of(read_claims(rows, on_missing="drop")) == [("a", "o", "x")]
    assert triples_of(read_claims(rows, source="seller", on_missing="drop")) == [("b", "o", "y")]


def test_rows_may_be_series() -> None:
    frame = pd.DataFrame({"x": ["s", "t"], "y": ["o", "o"], "z": ["v", "w"]})
    assert triples_of(read_claims(row for _, row in frame.iterrows())) == [("s", "o", "v"), ("t", "o", "w")]


@pytest.mark.parametrize(
    "ids",
    [
        [3, 1, 2],
        [2.5, -1.0, 0.0],
        [True, False],
        [datetime.date(2024, 2, 29), datetime.date(1999, 1, 1)],
        [b"\xff", b"\x00"],
    ],
    ids=["int", "float", "bool", "date", "bytes"],
)
def test_typed_ids_keep_their_type(tmp_path: Path, ids: list[Any]) -> None:
    frame = pa.table({"source": ids, "object": ids, "value": ids})
    pq.write_table(frame, tmp_path / "claims.parquet")
    for table in (frame, tmp_path / "claims.parquet"):
        claims = read_claims(table)
        assert claims.objects.to_pylist() == sorted(ids)
        assert claims.objects.type == frame["object"].type
        assert triples_of(claims) == sorted((i, i, i) for i in ids)


def test_zero_has_one_sign() -> None:
    claims = read_claims([("a", "o", 0.0), ("b", "o", -0.0)])
    assert claims.values.to_pylist() == [0.0]


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        (pd.DataFrame({"source": ["s"], "object": ["o"], "value": ["v"]}), "pandas"),
        (pl.DataFrame({"source": ["s"], "object": ["o"], "value": ["v"]}), "polars"),
        (pl.LazyFrame({"source": ["s"], "object": ["o"], "value": ["v"]}), "polars"),
        (pa.table({"source": ["s"], "object": ["o"], "value": ["v"]}), "pyarrow"),
        ("SELECT 's' AS source, 'o' AS object, 'v' AS value", "pyarrow"),
        ([("s", "o", "v")], "pyarrow"),
    ],
)
def test_kind_of_frame_is_remembered(table: Any, kind: str) -> None:
    assert read_claims(table).frame == kind


@pytest.mark.parametrize(
    ("kind", "type_"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame), ("pyarrow", pa.Table)]
)
def test_frames_are_given_back_as_they_came(kind: str, type_: type) -> None:
    back = to_frame(pa.table({"a": ["x", None], "b": [1, 2]}), kind)
    assert isinstance(back, type_)
    assert list(back["b"]) == [1, 2] if kind != "pyarrow" else back["b"].to_pylist() == [1, 2]


@pytest.mark.parametrize(
    "query",
    [
        "select 's' source, 'o' object, 'v' value",
        "\n WITH t AS (SELECT 1) FROM t SELECT 's' AS source, 'o' AS object, 'v' AS value;",
    ],
)
def test_queries_are_told_from_paths(query: str) -> None:
    assert triples_of(read_claims(query)) == [("s", "o", "v")]


def test_a_file_may_be_called_like_a_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "select.csv").write_text("source,object,value\ns,o,v\n")
    monkeypatch.chdir(tmp_path)
    assert triples_of(read_claims("select.csv")) == [("s", "o", "v")]


@pytest.mark.parametrize("name", ["with errors.csv", "from x.csv", "Select me.CSV"])
def test_an_existing_file_wins_over_a_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / name).write_text("source,object,value\ns,o,v\n")
    monkeypatch.chdir(tmp_path)
    assert triples_of(read_claims(name)) == [("s", "o", "v")]


def test_a_query_may_be_long() -> None:
    query = f"SELECT 's' AS source, 'o' AS object, '{'v' * 10_000}' AS value"
    assert triples_of(read_claims(query)) == [("s", "o", "v" * 10_000)]


def test_encoding_needs_numpy_alone_and_files_need_neither_a_database_nor_frames(tmp_path: Path) -> None:
    (tmp_path / "claims.csv").write_text("source,object,value\ns,o,é\n", "utf-8")
    pq.write_table(pa.table({"source": ["s"], "object": ["o"], "value": ["v"]}), tmp_path / "claims.parquet")
    program = f"""
import sys, consilience.claims.encoding
loaded = {{"pyarrow", "duckdb", "narwhals", "pandas", "polars"}} & set(sys.modules)
assert not loaded, loaded
from consilience.claims.reading import read_claims
read_claims({str(tmp_path / "claims.csv")!r})
read_claims({str(tmp_path / "claims.parquet")!r})
loaded = {{"duckdb", "narwhals", "pandas", "polars"}} & set(sys.modules)
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", program], check=True)
