"""Delimited text: commas, tabs, semicolons or bars, found from the header.

Cells are read as dictionaries of bytes and decoded after encoding, so that looking for bad bytes costs little
and their rows are known.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from consilience.claims.checks import empty_table
from consilience.claims.files import open_stream, read_bytes, unreadable
from consilience.claims.tables import Cells, Table
from consilience.claims.words import SHOWN, quantity, show
from consilience.errors import ClaimsError, Problem

HEAD_BYTES = 1 << 20
SMALLEST_BLOCK, LARGEST_BLOCK = 1 << 20, 1 << 30


@dataclass(frozen=True)
class Layout:
    """What the header tells."""

    delimiter: str
    names: list[str]
    n_lines: int
    """Lines that are not data: the header and blank lines above it."""


def open_delimited(path: str, place: Path) -> Table:
    """Open a delimited text file; its first line that is not blank names the columns."""
    layout = _layout(path, read_bytes(path, place, HEAD_BYTES))

    def load(wanted: Sequence[str]) -> Cells:
        table, ragged = _parse(path, place, layout, [layout.names.index(name) for name in wanted])
        columns = dict(zip(wanted, table.columns, strict=True))
        problems = [_ragged_rows(ragged, len(layout.names))] if ragged else []
        if table.num_rows and all(column[-1].as_py() is None for column in table.columns):
            columns = {name: column.slice(0, table.num_rows - 1) for name, column in columns.items()}
        else:
            problems.append(_unclosed_quote())
        rows = None
        if ragged:
            n_rows = len(next(iter(columns.values())))
            rows = np.setdiff1d(np.arange(1, n_rows + len(ragged) + 1), [row for row, _ in ragged])
        return Cells(columns, tuple(problems), rows)

    return Table(path, layout.names, load, is_raw=True)


def _layout(path: str, head: bytes) -> Layout:
    header = re.sub(rb'"[^"]*"', b"", head).lstrip(b"\r\n").splitlines()[:1]
    if not header:
        raise ClaimsError(path, [empty_table("The file is empty.")])
    delimiter = max(",\t;|", key=lambda mark: header[0].count(mark.encode()))
    text = io.StringIO(head.decode(errors="replace"), newline="")
    try:
        lines = enumerate(csv.reader(text, delimiter=delimiter), start=1)
        n_lines, names = next((n, names) for n, names in lines if names)
    except csv.Error as why:
        raise unreadable(path, why) from None
    return Layout(delimiter, names, n_lines)


class _Quoted(Exception):
    """There are quotes where none were expected."""


class _Ended(io.IOBase):
    """A stream with one more row at its end, of empty cells only.

    If that row is read back as the last one, every quote was closed. Otherwise an open quote swallowed it and
    all rows since, which the parser does not tell. Where no quotes are expected, one raises _Quoted.

    The parser reads ahead on a thread of its own, which an error does not end at once. A file must not be closed under
    it: the next file to be opened may get the same number, and its first bytes would be read by the wrong one.
    """

    def __init__(self, stream: Any, end: bytes, *, may_be_quoted: bool) -> None:
        self._stream = stream
        self._end = end
        self._may_be_quoted = may_be_quoted
        self._held = b""
        self._reading = Lock()

    def readable(self) -> bool:
        return True

    def read(self, size: int) -> bytes:
        with self._reading:
            return b"" if self.closed else self._read(size)

    def _read(self, size: int) -> bytes:
        data: bytes = self._held + self._stream.read(size - len(self._held))
        # After a block that ends in \r Arrow drops a \n, also from the middle of a quoted cell.
        self._held = b"\r" if 1 < len(data) == size and data.endswith(b"\r") else b""
        data = data[: len(data) - len(self._held)]
        if not self._may_be_quoted and b'"' in data:
            raise _Quoted
        if not data:
            data, self._end = self._end[:size], self._end[size:]
        return data

    def close(self) -> None:
        with self._reading:
            self._stream.close()
            super().close()


def _parse(
    path: str, place: Path, layout: Layout, wanted: Sequence[int]
) -> tuple[Any, list[tuple[int, str]]]:
    """The wanted columns and, apart, rows with a wrong number of cells: (row, what was found)."""
    width = len(layout.names)
    include = [str(i) for i in wanted]  # columns go by position: names may be repeated or undecodable
    converting = pa.csv.ConvertOptions(
        include_columns=include,
        column_types={name: pa.dictionary(pa.int32(), pa.binary()) for name in include},
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=True,
    )
    reading = pa.csv.ReadOptions(
        block_size=SMALLEST_BLOCK,
        column_names=[str(i) for i in range(width)],
        skip_rows_after_names=layout.n_lines,
    )
    # Without quotes every new line ends a row, and to find rows costs half of what it does with them.
    parsing = pa.csv.ParseOptions(delimiter=layout.delimiter, newlines_in_values=False)
    end = f"\n{layout.delimiter * (width - 1)}\n".encode()
    ragged: list[tuple[int, str]] = []

    def set_aside(row: Any) -> str:
        text = row.text.encode("latin-1").decode(errors="backslashreplace")
        ragged.append((row.number - layout.n_lines, f"{quantity(row.actual_columns, 'cell')}: {show(text)}"))
        return "skip"

    while True:
        ragged.clear()
        try:
            with _Ended(open_stream(place), end, may_be_quoted=parsing.newlines_in_values) as stream:
                table = pa.csv.read_csv(stream, reading, parsing, converting)
        except _Quoted:
            parsing.newlines_in_values = True
        except (OSError, pa.ArrowException) as why:
            if "straddling" in str(why) and reading.block_size < LARGEST_BLOCK:
                reading.block_size *= 32  # for a row longer than a block
            elif "columns, got" in str(why) and reading.use_threads:
                # Only one thread numbers the rows, and a row must be decodable to be handed out: any is as Latin-1.
                reading.use_threads, reading.encoding = False, "latin-1"
                parsing.invalid_row_handler = set_aside
            else:
                raise unreadable(path, why) from None
        else:
            return (_from_latin(table) if reading.encoding == "latin-1" else table), ragged


def _from_latin(table: Any) -> Any:
    """Dictionaries of the bytes that stood in the file, from what reading it as Latin-1 made of them."""

    def restored(chunk: Any) -> Any:
        raw = [cell.decode().encode("latin-1") for cell in chunk.dictionary.to_pylist()]
        return pa.DictionaryArray.from_arrays(chunk.indices, pa.array(raw, pa.binary()))

    columns = [pa.chunked_array(map(restored, column.chunks), column.type) for column in table.columns]
    return pa.table(columns, table.column_names)


def _ragged_rows(ragged: Sequence[tuple[int, str]], width: int) -> Problem:
    n = len(ragged)
    return Problem(
        "ragged-row",
        f"{quantity(n, 'row')} {'does' if n == 1 else 'do'} not have {width} cells, as the header has.",
        "Complete rows with too few cells; in those with too many, put a cell that holds the delimiter, a quote or a "
        "new line in double quotes. Row 1 is the first after the header.",
        n,
        tuple(f"row {row:,}: {text}" for row, text in ragged[:SHOWN]),
    )


def _unclosed_quote() -> Problem:
    found = "A double quote is opened and never closed: the rest of the file is inside it."
    return Problem("unclosed-quote", found, "Close it, or double every quote that is part of a value.")
