"""Parquet: one file or many as one table, read batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.dataset

from consilience.claims.checks import SHOWN, quantity
from consilience.claims.files import unreadable
from consilience.claims.id_types import is_text, joint_type, name_of
from consilience.claims.tables import Cells, Table
from consilience.errors import ClaimsError, Problem

ROWS_AT_A_TIME = 1 << 20


@dataclass(frozen=True, eq=False)
class _Part:
    """One file; `data` is a pyarrow Dataset."""

    file: str
    data: Any


def open_parquet(path: str, files: Sequence[str]) -> Table:
    """Open Parquet files as one table, in the order given; each must have the columns that are wanted."""
    parts = []
    names: Counter[str] = Counter()
    for file in files:
        try:
            parts.append(_Part(file, pa.dataset.dataset(file, format="parquet")))
        except (OSError, pa.ArrowException) as why:
            raise unreadable(file, why) from None
        names |= Counter(parts[-1].data.schema.names)

    def load(wanted: Sequence[str]) -> Cells:
        found = {name: _joint(name, parts) for name in wanted}
        problems = tuple(kind for kind in found.values() if isinstance(kind, Problem))
        kinds = {name: kind for name, kind in found.items() if not isinstance(kind, Problem)}
        chunks: dict[str, list[Any]] = {name: [] for name in kinds}
        for part in parts:
            try:
                # Files keep a text once for each run of rows, and so do we: it is several times faster than all texts.
                types = {name: part.data.schema.field(name).type for name in kinds}
                texts = [
                    name for name, t in types.items() if pa.types.is_string(t) or pa.types.is_large_string(t)
                ]
                options = pa.dataset.ParquetReadOptions(dictionary_columns=texts)
                data = pa.dataset.dataset(
                    part.file, format=pa.dataset.ParquetFileFormat(read_options=options)
                )
                for batch in data.to_batches(
                    columns=list(kinds), batch_size=ROWS_AT_A_TIME, use_threads=False
                ):
                    for name, kind in kinds.items():
                        chunks[name].append(_cells(batch.column(name), kind, name, part))
            except (OSError, pa.ArrowException) as why:
                raise unreadable(part.file, why) from None
        columns = {}
        for name, kind in kinds.items():
            kind = chunks[name][0].type if chunks[name] else kind
            columns[name] = pa.chunked_array(chunks[name], type=kind)
        return Cells(columns, problems)

    return Table(path, list(names.elements()), load)


def _joint(name: str, parts: Sequence[_Part]) -> Any:
    """The type of a column, over all files; or the Problem that it is not in all, or not of one type."""
    without = [part.file for part in parts if name not in part.data.schema.names]
    if without:
        n = len(without)
        found = f"{quantity(n, 'file')} of {len(parts):,} {'has' if n == 1 else 'have'} no column {name!r}."
        advice = "Give only files of claims, all with the same columns."
        return Problem("missing-column", found, advice, n, tuple(without[:SHOWN]))
    kinds = {part.file: part.data.schema.field(name).type for part in parts}
    first = next((file for file, kind in kinds.items() if not pa.types.is_null(kind)), parts[0].file)
    joint = kinds[first]
    for file, kind in kinds.items():
        joint = joint_type(joint, kind)
        if joint is None:
            found = f"Column {name!r} is of types that cannot be compared."
            examples = tuple(f"{f}: {name_of(kinds[f])}" for f in (first, file))
            return Problem("mixed-types", found, f"Write {name!r} as one type in all files.", 2, examples)
    return joint


def _cells(cells: Any, kind: Any, name: str, part: _Part) -> Any:
    """One batch of a column, as the type that the column has over all files."""
    if pa.types.is_dictionary(cells.type) and cells.type.value_type == kind:
        return cells
    if cells.type != kind:
        try:
            cells = cells.cast(kind)
        except pa.ArrowInvalid:
            found = f"Column {name!r} of {part.file} holds values that have no form as {name_of(kind)}, "
            found += "which other files need."
            advice = f"Write {name!r} as one type in all files: as text, if nothing else holds them all."
            raise ClaimsError(part.file, [Problem("mixed-types", found, advice)]) from None
    # A text is kept once for each batch, not for each row, so that large files fit in memory.
    return cells.dictionary_encode() if is_text(cells.type) else cells
