"""Parquet: one file or many as one table, read batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from consilience.claims.files import unreadable
from consilience.claims.id_types import is_text, joint_type, name_of
from consilience.claims.tables import Cells, Table
from consilience.claims.words import SHOWN, quantity
from consilience.errors import ClaimsError, Problem

ROWS_AT_A_TIME = 1 << 20


@dataclass(frozen=True, eq=False)
class Schemas:
    """What the files of a table say of their columns; `schemas` are pyarrow Schemas, by file."""

    schemas: Mapping[str, Any]

    @classmethod
    def of(cls, files: Sequence[str]) -> Schemas:
        """Look into the files, in the order given."""
        schemas = {}
        for file in files:
            try:
                schemas[file] = pq.read_schema(file)
            except (OSError, pa.ArrowException) as why:
                raise unreadable(file, why) from None
        return cls(schemas)

    @property
    def columns(self) -> list[str]:
        """All columns that a file has; one that a file has twice, twice."""
        names: Counter[str] = Counter()
        for schema in self.schemas.values():
            names |= Counter(schema.names)
        return list(names.elements())

    def types(self, wanted: Sequence[str]) -> tuple[dict[str, Any], tuple[Problem, ...]]:
        """The types of columns, over all files, and what is wrong with the others."""
        found = {name: self._type(name) for name in wanted}
        problems = tuple(kind for kind in found.values() if isinstance(kind, Problem))
        return {name: kind for name, kind in found.items() if not isinstance(kind, Problem)}, problems

    def _type(self, name: str) -> Any:
        """The type of a column; or the Problem that it is not in all files, or not of one type."""
        without = [file for file, schema in self.schemas.items() if name not in schema.names]
        if without:
            n = len(without)
            found = f"{quantity(n, 'file')} of {len(self.schemas):,} {'has' if n == 1 else 'have'} no column {name!r}."
            advice = "Give only files of claims, all with the same columns."
            return Problem("missing-column", found, advice, n, tuple(without[:SHOWN]))
        kinds = {file: schema.field(name).type for file, schema in self.schemas.items()}
        first = next((file for file, kind in kinds.items() if not pa.types.is_null(kind)), next(iter(kinds)))
        joint = kinds[first]
        for file, kind in kinds.items():
            joint = joint_type(joint, kind)
            if joint is None:
                found = f"Column {name!r} is of types that cannot be compared."
                examples = tuple(f"{f}: {name_of(kinds[f])}" for f in (first, file))
                return Problem("mixed-types", found, f"Write {name!r} as one type in all files.", 2, examples)
        return joint


def open_parquet(path: str, files: Sequence[str]) -> Table:
    """Open Parquet files as one table, in the order given; each must have the columns that are wanted."""
    schemas = Schemas.of(files)

    def load(wanted: Sequence[str]) -> Cells:
        kinds, problems = schemas.types(wanted)
        chunks: dict[str, list[Any]] = {name: [] for name in kinds}
        for file in files:
            for name, cells in read_columns(file, kinds).items():
                chunks[name] += cells
        columns = {}
        for name, kind in kinds.items():
            kind = chunks[name][0].type if chunks[name] else kind
            columns[name] = pa.chunked_array(chunks[name], type=kind)
        return Cells(columns, problems)

    return Table(path, schemas.columns, load)


def read_columns(file: str, kinds: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Chunks of these columns of a file, as these types."""
    chunks: dict[str, list[Any]] = {name: [] for name in kinds}
    try:
        types = {name: pq.read_schema(file).field(name).type for name in kinds}
        # Files keep a text once for each run of rows, and so do we: it is several times faster than all texts.
        texts = [name for name, t in types.items() if pa.types.is_string(t) or pa.types.is_large_string(t)]
        with pq.ParquetFile(file, read_dictionary=texts) as data:
            for batch in data.iter_batches(ROWS_AT_A_TIME, columns=list(kinds), use_threads=False):
                for name, kind in kinds.items():
                    chunks[name].append(_cells(batch.column(name), kind, name, file))
    except (OSError, pa.ArrowException) as why:
        raise unreadable(file, why) from None
    return chunks


def _cells(cells: Any, kind: Any, name: str, file: str) -> Any:
    """One batch of a column, as the type that the column has over all files."""
    if pa.types.is_dictionary(cells.type) and cells.type.value_type == kind:
        return cells
    if cells.type != kind:
        try:
            cells = cells.cast(kind)
        except pa.ArrowInvalid:
            found = f"Column {name!r} of {file} holds values that have no form as {name_of(kind)}, "
            found += "which other files need."
            advice = f"Write {name!r} as one type in all files: as text, if nothing else holds them all."
            raise ClaimsError(file, [Problem("mixed-types", found, advice)]) from None
    # A text is kept once for each batch, not for each row, so that large files fit in memory.
    return cells.dictionary_encode() if is_text(cells.type) else cells
