"""Tables in memory: frames of any library that Narwhals knows, queries, plain rows; and frames given back."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, time, timedelta
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from consilience.claims.checks import unconvertible, unusable_type
from consilience.claims.tables import Cells, Table
from consilience.claims.words import SHOWN, quantity, show
from consilience.errors import ClaimsError, EngineUnavailableError, Problem

KINDS = ("pandas", "polars", "pyarrow")
UNCONVERTIBLE = (pa.ArrowException, TypeError, ValueError, OverflowError)
UNMIXED = (date, time, timedelta, bytes, np.datetime64, np.timedelta64)
"""Where cells of these types stand among others, Arrow makes one of the other without a word, or crashes: bytes of
text, days of times, or of numbers the days since 1970."""


def is_query(text: str) -> bool:
    """Whether a string is a query rather than a path."""
    return re.match(r"\s*(select|with|from)\s", text, re.IGNORECASE) is not None


def open_query(query: str) -> Table:
    """Open a query for DuckDB's default connection; it may name files: SELECT … FROM 'claims.parquet'."""
    import duckdb  # takes long to load, and only queries need it

    try:
        relation = duckdb.sql(query)
        table = relation.to_arrow_table() if relation is not None else pa.table({})
    except duckdb.Error as why:
        advice = (
            "Correct the query. To query a frame or a table of your own, pass duckdb.sql(…) instead of text."
        )
        problem = Problem("bad-query", f"DuckDB cannot run it: {str(why).strip()}", advice)
        raise ClaimsError("The query", [problem]) from None
    return _open_arrow("The query", table)


def open_frame(table: Any) -> Table | None:
    """Open a frame, lazy or not, or what else offers itself as Arrow; None if it is nothing of the kind."""
    if isinstance(table, pa.Table):
        return _open_arrow(_label(table), table, in_memory=True)
    import narwhals as nw  # takes long to load, and only frames need it

    try:
        frame: Any = nw.from_native(table, pass_through=True)
    except nw.exceptions.DuplicateError:
        raise ClaimsError(_label(table), [_repeated_columns([str(name) for name in table.columns])]) from None
    if not isinstance(frame, nw.DataFrame | nw.LazyFrame):
        if not (hasattr(table, "__arrow_c_stream__") or hasattr(table, "__arrow_c_array__")):
            return None
        try:
            return _open_arrow(_label(table), pa.table(table), in_memory=True)
        except UNCONVERTIBLE:
            return None
    kind = frame.implementation.value
    # pandas allows names that are not text.
    found = frame.collect_schema().names()
    names = {str(name): name for name in found}

    def load(wanted: Sequence[str]) -> Cells:
        part = frame.select(*(nw.col(names[name]) for name in wanted))
        part = part.collect(backend="pyarrow") if isinstance(part, nw.LazyFrame) else part
        columns, problems = {}, []
        for name in wanted:
            kind_of_cells = part.schema[names[name]]
            if kind_of_cells == nw.Object and kind == "polars":
                problems.append(unusable_type(name, "Python objects"))
                continue
            try:
                if kind_of_cells == nw.Object:
                    _check_unmixed(part.get_column(names[name]).to_list())
                columns[name] = part.select(nw.col(names[name])).to_arrow().column(0)
            except UNCONVERTIBLE as why:
                problems.append(unconvertible(name, why))
        return Cells(columns, tuple(problems))

    columns = [str(name) for name in found]
    return Table(_label(table), columns, load, kind if kind in KINDS else "pyarrow", in_memory=True)


def open_rows(rows: Iterable[Any], roles: Sequence[str]) -> Table:
    """Open plain rows: (source, object, value) triples, or dicts, whose keys are columns as in JSON lines."""
    rows = list(rows)
    by_name = bool(rows) and isinstance(rows[0], Mapping)
    if by_name:
        label, form = "The rows", "{column: value} with column names that are text"
        bad = [i for i, row in enumerate(rows) if not _is_record(row)]
    else:
        label, form = f"The {'triples' if len(roles) == 3 else 'pairs'}", f"({', '.join(roles)})"
        bad = [i for i, row in enumerate(rows) if not _is_tuple(row, len(roles))]
    if bad:
        examples = tuple(f"row {i + 1:,}: {show(rows[i])}" for i in bad[:SHOWN])
        found = f"{quantity(len(bad), 'row')} of {len(rows):,} not of the form {form}."
        advice = f"Give {len(roles)} values a row, or a dict a row, or a path, a query or a frame."
        raise ClaimsError(label, [Problem("ragged-row", found, advice, len(bad), examples)])
    if not by_name:
        rows = [tuple(row) for row in rows]  # a row that is a Series is not indexed by position

    def load(wanted: Sequence[str]) -> Cells:
        columns, problems = {}, []
        for name in wanted:
            at = None if by_name else roles.index(name)
            cells = [row.get(name) if at is None else row[at] for row in rows]
            try:
                _check_unmixed(cells)
                columns[name] = pa.chunked_array([pa.array(cells, from_pandas=True)])
            except UNCONVERTIBLE as why:
                problems.append(unconvertible(name, why))
        return Cells(columns, tuple(problems))

    names = dict.fromkeys(chain.from_iterable(rows)) if by_name else roles
    return Table(label, list(names), load, in_memory=True)


def to_frame(table: Any, kind: str) -> Any:
    """A pyarrow Table as a frame of this kind: "pandas", "polars" or "pyarrow"."""
    if kind == "pyarrow":
        return table
    import narwhals as nw

    try:
        frame: Any = nw.from_native(table)
        return frame.to_pandas() if kind == "pandas" else frame.to_polars()
    except ImportError:
        what = f"The table came in as a {kind} frame, and {kind} is not installed here."
        raise EngineUnavailableError(f"{what} Run: pip install {kind}") from None


def _open_arrow(label: str, table: Any, *, in_memory: bool = False) -> Table:
    def load(wanted: Sequence[str]) -> Cells:
        return Cells({name: table.column(name) for name in wanted})

    return Table(label, table.column_names, load, in_memory=in_memory)


def _check_unmixed(cells: Sequence[Any]) -> None:
    """A TypeError, if cells that Arrow cannot take together are to become one column."""
    if any(issubclass(kind, UNMIXED) for kind in {type(cell) for cell in cells}):
        found = {_type_of(cell) for cell in cells if not _is_missing(cell)}
        if len(found) > 1:
            raise TypeError(f"it holds {' and '.join(sorted(found))}")


def _type_of(cell: Any) -> str:
    return f"{type(cell).__name__}{' with a time zone' if getattr(cell, 'tzinfo', None) else ''}"


def _is_missing(cell: Any) -> bool:
    """Whether it is None, NaN, or what pandas has for them."""
    if isinstance(cell, UNMIXED):
        return bool(cell != cell)
    return not pa.array([cell], from_pandas=True).is_valid()[0].as_py()


def _label(table: Any) -> str:
    return f"The {type(table).__module__.partition('.')[0]} {type(table).__name__}"


def _repeated_columns(names: Sequence[str]) -> Problem:
    twice = [name for name, times in Counter(names).items() if times > 1]
    found = f"More than one column is called {' and '.join(map(repr, twice))}."
    return Problem("duplicate-column", found, "Give each column its own name.")


def _is_record(row: Any) -> bool:
    return isinstance(row, Mapping) and all(isinstance(name, str) for name in row)


def _is_tuple(row: Any, width: int) -> bool:
    if isinstance(row, str | bytes | Mapping) or not (
        hasattr(row, "__len__") and hasattr(row, "__getitem__")
    ):
        return False
    return len(row) == width
