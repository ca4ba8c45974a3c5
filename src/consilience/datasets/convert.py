"""Original files of a data set, turned into a table of claims and a table of truths."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa

from consilience.datasets.books import convert_books
from consilience.datasets.catalogue import Columns, Dataset
from consilience.datasets.tables import most_frequent, text_table
from consilience.errors import DatasetError

Recipe = Callable[[Path], tuple[pa.Table, pa.Table]]
READERS: Mapping[str, Recipe] = {"books": convert_books}
"""Recipes for files from which taking columns is not enough, by the name that the catalogue calls them."""


def convert(dataset: Dataset, folder: Path) -> tuple[pa.Table, pa.Table]:
    """Claims (source, object, value) and truth (object, value), all text, from the files in `folder`.

    One claim for each source and object, in the order of the files: of repeated claims the most frequent
    value, of equally frequent ones the first.
    """
    return require_recipe(dataset)(folder)


def require_recipe(dataset: Dataset) -> Recipe:
    """How to make claims and truth of a data set; where that is unknown, an error that says what exists."""
    if dataset.reader is not None:
        return READERS[dataset.reader]
    if dataset.read_claims is None or dataset.read_truth is None:
        raise DatasetError(
            f"{dataset.name} ({dataset.title}): there is no recipe yet that makes claims of its original "
            f"files. They can be had as they are from {dataset.page}"
        )
    return partial(_take_columns, dataset.read_claims, dataset.read_truth)


def _take_columns(read_claims: Columns, read_truth: Columns, folder: Path) -> tuple[pa.Table, pa.Table]:
    claims = most_frequent(_rows(read_claims, folder), n_keys=2)
    truth = most_frequent(_rows(read_truth, folder), n_keys=1)
    return text_table(("source", "object", "value"), claims), text_table(("object", "value"), truth)


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
