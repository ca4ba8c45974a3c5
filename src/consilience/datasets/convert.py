"""Original files of a data set, turned into a table of claims and a table of truths by taking columns."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from consilience.datasets.catalogue import Columns, Dataset
from consilience.errors import DatasetError


def convert(dataset: Dataset, folder: Path) -> tuple[pa.Table, pa.Table]:
    """Claims (source, object, value) and truth (object, value), all text, from the files in `folder`.

    One claim for each source and object, in the order of the files: of repeated claims the most frequent
    value, of equally frequent ones the first.
    """
    read_claims, read_truth = require_recipe(dataset)
    claims = _most_frequent(_rows(read_claims, folder), n_keys=2)
    truth = _most_frequent(_rows(read_truth, folder), n_keys=1)
    return _table(("source", "object", "value"), claims), _table(("object", "value"), truth)


def require_recipe(dataset: Dataset) -> tuple[Columns, Columns]:
    """How to read claims and truth of a data set; where that is unknown, an error that says what exists."""
    if dataset.read_claims is None or dataset.read_truth is None:
        raise DatasetError(
            f"{dataset.name} ({dataset.title}): there is no recipe yet that makes claims of its original "
            f"files. They can be had as they are from {dataset.page}"
        )
    return dataset.read_claims, dataset.read_truth


def _rows(columns: Columns, folder: Path) -> Iterator[tuple[str, ...]]:
    """(source, object, value) or, where the file holds truths, (object, value)."""
    with (folder / columns.file).open(encoding="utf-8", newline="") as file:
        cells: list[Sequence[str]]
        if columns.pattern is None:
            cells = list(csv.reader(file, delimiter=columns.delimiter))
        else:
            cells = re.findall(columns.pattern, file.read())
    worker, item = ("w", "i") if columns.numbered else ("", "")
    for row in cells[columns.skip :]:
        value = columns.names.get(row[columns.value], row[columns.value])
        if columns.until is not None:
            value = value.partition(columns.until)[0].strip()
        object_ = item + row[columns.object]
        yield (object_, value) if columns.source is None else (worker + row[columns.source], object_, value)


def _most_frequent(rows: Iterator[tuple[str, ...]], n_keys: int) -> list[tuple[str, ...]]:
    """One row for each key, the first `n_keys` cells."""
    values: dict[tuple[str, ...], Counter[str]] = {}
    for row in rows:
        values.setdefault(row[:n_keys], Counter())[row[n_keys]] += 1
    return [(*key, counter.most_common(1)[0][0]) for key, counter in values.items()]


def _table(names: tuple[str, ...], rows: list[tuple[str, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table([pa.array(column, pa.string()) for column in columns], names=list(names))
