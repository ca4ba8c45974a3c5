"""JSON lines: one object a line. DuckDB takes the lines apart; numbers and truth values are taken as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from consilience.claims.checks import empty_table, undecodable
from consilience.claims.files import read_bytes
from consilience.claims.tables import Cells, Table
from consilience.claims.vocabulary import decode_text
from consilience.claims.words import SHOWN, quantity, show
from consilience.errors import ClaimsError, Problem

KIND_OF_LINE = r"""
    SELECT CASE WHEN line IS NULL OR trim(line, E' \t\r') = '' THEN 'blank'
                WHEN json_valid(line) THEN json_type(line) ELSE 'invalid' END AS kind FROM lines
"""
KEYS = "SELECT DISTINCT unnest(json_keys(line)) AS key FROM objects ORDER BY key"
CELLS = "SELECT line ->> $at AS cell, json_type(line, $at) IN ('ARRAY', 'OBJECT') AS is_nested FROM objects"


def open_json_lines(path: str, place: Path) -> Table:
    """Open a file of JSON objects, one a line; keys are columns, a key left out is a missing cell."""
    raw = pa.array([read_bytes(path, place)], pa.large_binary())
    lines, bad_bytes = decode_text(pc.split_pattern(raw, "\n").flatten())
    database = duckdb.connect()
    database.register("lines", pa.table({"line": lines}))
    kind = database.sql(KIND_OF_LINE).to_arrow_table().column("kind").to_numpy()
    is_object = kind == "OBJECT"
    problems = _bad_lines(lines, np.flatnonzero(~is_object & (kind != "blank")))
    if bad_bytes:
        examples = [(f"row {i + 1:,}", cell) for i, cell in bad_bytes.items()]
        problems.append(undecodable("The file", len(bad_bytes), examples))
    if not is_object.any():
        raise ClaimsError(path, problems or [empty_table("The file is empty.")])
    database.register("objects", pa.table({"line": lines.filter(pa.array(is_object))}))

    def load(wanted: Sequence[str]) -> Cells:
        columns, found = {}, list(problems)
        rows = np.flatnonzero(is_object) + 1
        for name in wanted:
            at = "/" + name.replace("~", "~0").replace("/", "~1")
            table = database.sql(CELLS, params={"at": at}).to_arrow_table()
            columns[name] = table.column("cell")
            nested = np.flatnonzero(table.column("is_nested").fill_null(False).to_numpy())
            if len(nested):
                found.append(_nested(name, columns[name], nested, rows))
        return Cells(columns, tuple(found), rows)

    return Table(path, database.sql(KEYS).to_arrow_table().column("key").to_pylist(), load)


def _bad_lines(lines: Any, bad: Any) -> list[Problem]:
    if not len(bad):
        return []
    return [
        Problem(
            "bad-json",
            f"{quantity(len(bad), 'line')} {'is' if len(bad) == 1 else 'are'} not a JSON object.",
            'Write one object a line: {"source": "…", "object": "…", "value": "…"}.',
            len(bad),
            tuple(f"row {i + 1:,}: {show(lines[int(i)].as_py())}" for i in bad[:SHOWN]),
        )
    ]


def _nested(name: str, cells: Any, nested: Any, rows: Any) -> Problem:
    return Problem(
        "nested-type",
        f"Column {name!r} holds lists or objects; expected one text, number or truth value a cell.",
        "Write one claim a line, or join the parts into one text.",
        len(nested),
        tuple(f"row {rows[i]:,}: {show(cells[int(i)].as_py())}" for i in nested[:SHOWN]),
    )
