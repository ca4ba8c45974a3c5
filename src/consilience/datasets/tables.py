"""Rows of text from original files, made into tables: one row for each key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pyarrow as pa


def most_frequent(rows: Iterable[tuple[str, ...]], n_keys: int) -> list[tuple[str, ...]]:
    """One row for each key, the first `n_keys` cells: its most frequent value, of equally frequent ones the first."""
    values: dict[tuple[str, ...], Counter[str]] = {}
    for row in rows:
        values.setdefault(row[:n_keys], Counter())[row[n_keys]] += 1
    return [(*key, counter.most_common(1)[0][0]) for key, counter in values.items()]


def text_table(names: tuple[str, ...], rows: list[tuple[str, ...]]) -> pa.Table:
    """A table of text columns, also where there are no rows."""
    return pa.table(
        [pa.array([row[i] for row in rows], pa.string()) for i in range(len(names))], names=list(names)
    )
