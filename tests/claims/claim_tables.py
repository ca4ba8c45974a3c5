"""What tests of claims share: one table in every form it can take, and claims back as plain triples."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from consilience.claims.encoding import Claims

Triple = tuple[Any, Any, Any]
COLUMNS = ("source", "object", "value")
ARRAYS = ("claim_source", "claim_candidate", "first_claim", "first_candidate", "candidate_value")


def triples_of(claims: Claims) -> list[Triple]:
    """Claims decoded, sorted."""
    value = claims.candidate_value[claims.claim_candidate]
    return sorted(
        (claims.sources[int(s)].as_py(), claims.objects[int(o)].as_py(), claims.values[int(v)].as_py())
        for s, o, v in zip(claims.claim_source, claims.claim_object(), value, strict=True)
    )


def assert_same_claims(a: Claims, b: Claims) -> None:
    """The same vocabularies and the same bits in every array."""
    for name in ("sources", "objects", "values"):
        assert getattr(a, name).equals(getattr(b, name)), name
    for name in ARRAYS:
        assert getattr(a, name).dtype == getattr(b, name).dtype, name
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), name)
    assert a.domain == b.domain


def every_kind(rows: Sequence[Triple], folder: Path) -> Iterator[tuple[str, Any]]:
    """The same rows of text as a file, frame or query of every kind."""
    frame = pa.table({name: [row[i] for row in rows] for i, name in enumerate(COLUMNS)})
    with (folder / "a.csv").open("w", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([COLUMNS, *rows])
    with gzip.open(folder / "b.csv.gz", "wt", newline="") as text:
        csv.writer(text).writerows([COLUMNS, *rows])
    with (folder / "c.tsv").open("w", newline="") as file:
        csv.writer(file, delimiter="\t", quoting=csv.QUOTE_ALL).writerows([COLUMNS, *rows])
    with gzip.open(folder / "d.jsonl.gz", "wt") as text:
        text.writelines(json.dumps(dict(zip(COLUMNS, row, strict=True))) + "\n" for row in rows)
    with (folder / "e.ndjson").open("w") as file:
        lines = [json.dumps(dict(zip(COLUMNS, row, strict=True)), ensure_ascii=False) for row in rows]
        file.write("\n".join(lines))
    pq.write_table(frame, folder / "f.parquet", row_group_size=2)
    for name in ("a.csv", "b.csv.gz", "c.tsv", "d.jsonl.gz", "e.ndjson", "f.parquet"):
        yield name, str(folder / name)
    yield "path", folder / "a.csv"
    yield "query", f"SELECT * FROM '{folder / 'f.parquet'}'"
    yield "relation", duckdb.from_arrow(frame)
    yield "pyarrow", frame
    yield "chunks", pa.concat_tables([frame.slice(i, 1) for i in range(len(frame))])
    yield "dictionary", frame.set_column(2, "value", frame["value"].dictionary_encode())
    yield "record batch reader", frame.to_reader()
    yield "pandas", frame.to_pandas()
    yield "pandas categorical", frame.to_pandas().astype("category")
    yield "pandas object", pd.DataFrame(rows, columns=list(COLUMNS), dtype=object)
    yield "polars", pl.from_arrow(frame)
    yield "polars lazy", pl.DataFrame(pl.from_arrow(frame)).lazy()
    yield "triples", list(rows)
    yield "generator", (row for row in rows)
