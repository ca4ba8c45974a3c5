"""Parquet: one file or many, read batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset

from consilience.claims.files import unreadable
from consilience.claims.tables import Cells, Table
from consilience.claims.vocabulary import is_text

ROWS_AT_A_TIME = 1 << 20


def open_parquet(path: str, files: Sequence[str]) -> Table:
    """Open Parquet files as one table, in the order given; the first says which columns there are."""
    try:
        dataset = pa.dataset.dataset(files, format="parquet")
    except (OSError, pa.ArrowException) as why:
        raise unreadable(path, why) from None

    def load(wanted: Sequence[str]) -> Cells:
        chunks: dict[str, list[Any]] = {name: [] for name in wanted}
        try:
            for batch in dataset.to_batches(columns=list(wanted), batch_size=ROWS_AT_A_TIME):
                for name in wanted:
                    cells = batch.column(name)
                    # A text is kept once for each batch, not for each row, so that large files fit in memory.
                    chunks[name].append(cells.dictionary_encode() if is_text(cells.type) else cells)
        except (OSError, pa.ArrowException) as why:
            raise unreadable(path, why) from None
        columns = {}
        for name in wanted:
            kind = chunks[name][0].type if chunks[name] else dataset.schema.field(name).type
            columns[name] = pa.chunked_array(chunks[name], type=kind)
        return Cells(columns)

    return Table(path, dataset.schema.names, load)
