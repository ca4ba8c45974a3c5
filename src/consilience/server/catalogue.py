"""Lists of objects and sources: searched, filtered, ordered, page by page, by DuckDB in a file of its own.

The file is made from the saved tables when a result is opened, block by block, and goes with it. In it objects are in
their order, so that one is found by its id or its number without looking at the others.
"""

from __future__ import annotations

import os
import shutil
import threading
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from consilience.claims.id_types import TEXT, is_text
from consilience.results.fit import Fit
from consilience.server.shapes import ObjectRow, Objects, SourceRow, Sources, text_of

SECONDS = 10.0
"""What one query may take."""
ROWS_AT_A_TIME = 1 << 17
OBJECT_ORDERS = {"object": "number", "uncertainty": "probability, number", "claims": "n_claims DESC, number"}
SOURCE_ORDERS = {
    "reliability": "reliability DESC NULLS LAST, number",
    "unreliability": "reliability NULLS LAST, number",
    "source": "number",
    "claims": "n_claims DESC, number",
}


class QueryTimeoutError(Exception):
    """A query took too long and was stopped."""


@dataclass(frozen=True)
class ObjectQuery:
    """Which objects, in which order; `text` and `value` are parts of the id and of the decision, in any case. Where the
    truth was given, the majority neither differs nor agrees."""

    text: str = ""
    value: str = ""
    differs: bool | None = None
    reviewed: bool | None = None
    known: bool | None = None
    order: str = "object"


@dataclass(frozen=True)
class SourceQuery:
    """Which sources, in which order; `group` 0 are those on their own."""

    text: str = ""
    group: int | None = None
    least: float | None = None
    most: float | None = None
    order: str = "reliability"


class Catalogue:
    """The tables of one result. Any number of threads may ask."""

    def __init__(self, folder: Path, fit: Fit, source_number: Sequence[int]) -> None:
        place = Path(mkdtemp(prefix="consilience-"))
        self.close = weakref.finalize(self, shutil.rmtree, place, ignore_errors=True)
        """Gives the file back: when called, when nobody uses the catalogue any more, or when the program ends."""
        self._database = duckdb.connect(str(place / "catalogue.duckdb"))
        self._database.execute("SET enable_external_access = false")
        blocks = pa.RecordBatchReader.from_batches(OBJECTS, _object_blocks(folder, fit))
        # Letters are folded once: that takes longer than to search.
        self._create("objects", blocks, "*, lower(object) AS folded")
        self._create("sources", _sources(folder, source_number))
        groups = pq.read_table(folder / "groups.parquet").rename_columns({"group": "grp"})
        self._create("groups", groups)
        self._database.execute("CHECKPOINT")
        if os.name == "posix":  # an open file needs no name, and nothing is left behind by kill -9
            self.close()

    def n_differs(self) -> int:
        """Objects decided otherwise than by the majority of claims."""
        return int(self._rows("SELECT count(*) FROM objects WHERE differs", [])[0][0])

    def objects(self, query: ObjectQuery, page: int, size: int, answers: dict[str, str]) -> Objects:
        """A page of objects."""
        where, given = _nothing()
        for column, text in (("folded", query.text), ("lower(value)", query.value)):
            if text:
                where.append(f"contains({column}, lower(?))")
                given.append(text)
        if query.differs is not None:
            where.append("differs = ? AND NOT known")
            given.append(query.differs)
        if query.known is not None:
            where.append("known = ?")
            given.append(query.known)
        if query.reviewed is not None:
            where.append(f"object {'' if query.reviewed else 'NOT '}IN (SELECT unnest(?::VARCHAR[]))")
            given.append(list(answers))
        total, found = self._page(
            "objects", OBJECTS.names, where, given, OBJECT_ORDERS[query.order], page, size
        )
        return Objects(
            page, size, total, [replace(ObjectRow(*row), answer=answers.get(row[1])) for row in found]
        )

    def object_rows(self, numbers: Sequence[int]) -> dict[int, ObjectRow]:
        """These objects, by number."""
        sql = f"SELECT {', '.join(OBJECTS.names)} FROM objects WHERE number IN (SELECT unnest(?::BIGINT[]))"
        return {row[0]: ObjectRow(*row) for row in self._rows(sql, [list(numbers)])}

    def object_number(self, text: str) -> int | None:
        """The number of the object of this id."""
        found = self._rows("SELECT number FROM objects WHERE object = ?", [text])
        return found[0][0] if found else None

    def sources(self, query: SourceQuery, page: int, size: int) -> Sources:
        """A page of sources."""
        where, given = _nothing()
        if query.text:
            where.append("contains(lower(source), lower(?))")
            given.append(query.text)
        if query.group == 0:
            where.append("coalesce(grp, 0) NOT IN (SELECT grp FROM groups WHERE n_sources > 1)")
        elif query.group is not None:
            where.append("grp = ?")
            given.append(query.group)
        for bound, limit in ((">=", query.least), ("<=", query.most)):
            if limit is not None:
                where.append(f"reliability {bound} ?")
                given.append(limit)
        total, found = self._page("sources", ["*"], where, given, SOURCE_ORDERS[query.order], page, size)
        return Sources(page, size, total, [SourceRow(*row) for row in found])

    def source_row(self, number: int) -> SourceRow | None:
        """One source."""
        found = self._rows("SELECT * FROM sources WHERE number = ?", [number])
        return SourceRow(*found[0]) if found else None

    def source_number(self, text: str) -> int | None:
        """The number of the source of this name."""
        found = self._rows("SELECT number FROM sources WHERE source = ?", [text])
        return found[0][0] if found else None

    def groups(self, number: int | None = None) -> list[tuple[Any, ...]]:
        """All groups, the largest first, or one."""
        if number is None:
            return self._rows("SELECT * FROM groups ORDER BY grp LIMIT 1000", [])
        return self._rows("SELECT * FROM groups WHERE grp = ?", [number])

    def _create(self, name: str, content: Any, columns: str = "*") -> None:
        self._database.register("content", content)
        self._database.execute(f"CREATE TABLE {name} AS SELECT {columns} FROM content")
        self._database.unregister("content")

    def _page(
        self,
        table: str,
        columns: list[str],
        where: list[str],
        given: list[Any],
        order: str,
        page: int,
        size: int,
    ) -> tuple[int, list[tuple[Any, ...]]]:
        condition = " AND ".join(where)
        total = int(self._rows(f"SELECT count(*) FROM {table} WHERE {condition}", given)[0][0])
        sql = f"SELECT {', '.join(columns)} FROM {table} WHERE {condition} ORDER BY {order} LIMIT ? OFFSET ?"
        return total, self._rows(sql, [*given, size, (page - 1) * size])

    def _rows(self, sql: str, given: list[Any]) -> list[tuple[Any, ...]]:
        cursor = self._database.cursor()
        clock = threading.Timer(SECONDS, cursor.interrupt)
        clock.start()
        try:
            return cursor.execute(sql, given).fetchall()
        except duckdb.InterruptException:
            raise QueryTimeoutError(
                f"The query took more than {SECONDS:g} seconds and was stopped. Ask for less."
            ) from None
        finally:
            clock.cancel()
            cursor.close()


def _nothing() -> tuple[list[str], list[Any]]:
    """No condition yet, and nothing that it needs."""
    return ["true"], []


OBJECTS = pa.schema(
    [
        ("number", pa.int64()), ("object", TEXT), ("value", TEXT), ("probability", pa.float64()),
        ("runner_up", TEXT), ("margin", pa.float64()), ("n_claims", pa.int64()), ("differs", pa.bool_()),
        ("known", pa.bool_()),
    ]
)  # fmt: skip


def _object_blocks(folder: Path, fit: Fit) -> Iterator[pa.RecordBatch]:
    """truths.parquet with the objects' numbers, and whether the majority says otherwise, a block at a time."""
    start = 0
    for batch in pq.ParquetFile(folder / "truths.parquet").iter_batches(ROWS_AT_A_TIME):
        stop = start + len(batch)
        columns = {name: batch.column(name) for name in batch.schema.names}
        texts = {name: _texts(columns[name]) for name in ("object", "value", "runner_up")}
        numbers = pa.array(np.arange(start, stop))
        known = np.zeros(stop - start, np.bool_) if fit.known is None else fit.known[start:stop]
        made = columns | texts | {"number": numbers, "known": pa.array(known)}
        made["differs"] = pa.array(_differs(fit, start, stop) & ~known)
        yield pa.record_batch([made[name] for name in OBJECTS.names], schema=OBJECTS)
        start = stop


def _differs(fit: Fit, start: int, stop: int) -> Any:
    """(stop - start,) whether another value has more claims than the decision."""
    claims = fit.claims
    first = claims.first_candidate[start : stop + 1] - claims.first_candidate[start]
    here = claims.claim_candidate[claims.first_claim[start] : claims.first_claim[stop]]
    votes = np.bincount(here - claims.first_candidate[start], minlength=int(first[-1]))
    most = np.maximum.reduceat(votes, first[:-1])
    return votes[fit.decision[start:stop] - claims.first_candidate[start]] < most


def _sources(folder: Path, number: Sequence[int]) -> pa.Table:
    table = pq.read_table(folder / "sources.parquet")
    names = _texts(table.column("source").combine_chunks())
    columns = ["reliability", "low", "high", "group", "n_claims"]
    made = {"number": pa.array(number, pa.int64()), "source": names}
    made |= {("grp" if name == "group" else name): table.column(name) for name in columns}
    return pa.table(made)


def _texts(ids: pa.Array) -> pa.Array:
    if is_text(ids.type):
        return ids.cast(TEXT)
    return pa.array([None if each is None else text_of(each) for each in ids.to_pylist()], TEXT)
