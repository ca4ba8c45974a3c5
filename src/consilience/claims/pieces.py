"""A table in many files, read piece by piece on as many machines: surveyed, split by object, and put together in parts.

A part is the Claims on a range of objects. Parts follow each other as the objects do, so together they are what
`read_claims` makes of all files at once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from consilience.claims import checks
from consilience.claims.columns import find_columns
from consilience.claims.domains import LEAST_RECURRENCE, MOST_COMMON_LABELS
from consilience.claims.encoding import Claims, Int
from consilience.claims.id_types import is_usable
from consilience.claims.parquet import Schemas, read_columns
from consilience.claims.reading import Read, encode_claims
from consilience.claims.vocabulary import Column, encode, positions
from consilience.errors import ClaimsError, Problem

MARKS = 256
"""Objects of a file that tell how they are spread."""
ENOUGH_PAIRS = int(LEAST_RECURRENCE * MOST_COMMON_LABELS)
"""Pairs of object and value that are enough to see that any short list of labels recurs."""


@dataclass(frozen=True, eq=False)
class Places(checks.Rows):
    """Rows of several files: each is named by its file and its number there.

    files : the files that rows are of
    first : the first row of each, among all rows
    """

    files: tuple[str, ...] = ()
    first: tuple[int, ...] = (0,)

    def name(self, index: int | np.integer[Any]) -> str:
        """What a message calls a row."""
        return f"{super().name(index)} of {self.files[bisect_right(self.first, int(index)) - 1]}"


@dataclass(frozen=True, eq=False)
class Reader:
    """How every file is read.

    names : what the files call source, object and value
    kinds : the type of each of these columns, over all files
    """

    names: Mapping[str, str]
    kinds: Mapping[str, Any]
    on_missing: str

    @classmethod
    def of(cls, path: str, files: Sequence[str], asked: dict[str, str | None], on_missing: str) -> Reader:
        """For these files; ClaimsError where their columns will not do."""
        schemas = Schemas.of(files)
        names, problems = find_columns(schemas.columns, asked)
        kinds, unfit = schemas.types(list(dict.fromkeys(names.values())))
        problems = [*problems, *unfit]
        problems += [checks.unusable_type(name, kind) for name, kind in kinds.items() if not is_usable(kind)]
        if problems:
            raise ClaimsError(path, problems)
        return cls(names, kinds, on_missing)

    def read(self, file: str) -> tuple[dict[str, Column], NDArray[np.int64], list[Problem]]:
        """The columns of a file by role, without rows that have a gap, the rows' numbers, and what is wrong."""
        cells = read_columns(file, self.kinds)
        columns = {
            role: encode(pa.chunked_array(cells[name], type=None if cells[name] else self.kinds[name]))
            for role, name in self.names.items()
        }
        rows = Places(files=(file,))
        problems = [] if self.on_missing == "drop" else checks.missing_cells(columns, dict(self.names), rows)
        whole = np.logical_and.reduce([column.codes >= 0 for column in columns.values()])
        kept = {role: column.take(whole).compact() for role, column in columns.items()}
        return kept, np.flatnonzero(whole), problems


@dataclass(frozen=True, eq=False)
class Survey:
    """What is known of some files before they are split; it adds.

    marks  : objects, each standing for as many rows: so many at the most of a file
    weight : (n_marks,) rows that each stands for
    labels : distinct values; None where they are too many to be labels, unless it was asked for them
    pairs  : distinct pairs of object and value, so many that it is seen whether labels recur
    """

    sources: Any
    marks: Any
    weight: Int
    labels: Any
    pairs: frozenset[tuple[Any, Any]]
    n_dropped: int
    problems: tuple[Problem, ...]
    most_labels: float

    def __add__(self, other: Survey) -> Survey:
        labels = None
        if self.labels is not None and other.labels is not None:
            labels = _distinct([self.labels, other.labels])
        return Survey(
            _distinct([self.sources, other.sources]),
            _concatenated([self.marks, other.marks]),
            np.concatenate([self.weight, other.weight]),
            labels if labels is None or len(labels) <= self.most_labels else None,
            self.pairs | other.pairs if len(self.pairs) < ENOUGH_PAIRS else self.pairs,
            self.n_dropped + other.n_dropped,
            self.problems + other.problems,
            self.most_labels,
        )

    def domain(self, asked: Any) -> Any:
        """What the domain is where it was left to the claims, as `read_claims` would decide."""
        if not (isinstance(asked, str) and asked == "auto"):
            return asked
        recur = self.labels is not None and len(self.pairs) >= LEAST_RECURRENCE * len(self.labels)
        return "common" if recur else "claimed"

    def splitters(self, n_parts: int) -> list[Any]:
        """Objects at which all but the first part begin: about as many rows in each part."""
        order = pc.array_sort_indices(self.marks)
        marks, before = self.marks.take(order), np.cumsum(self.weight[order.to_numpy()])
        at = np.searchsorted(before, np.linspace(0, before[-1], n_parts + 1)[1:-1], side="right")
        splitters: list[Any] = pc.unique(marks.take(pa.array(np.minimum(at, len(marks) - 1)))).to_pylist()
        return splitters


def survey(file: str, reader: Reader, most_labels: float = MOST_COMMON_LABELS) -> Survey:
    """Look through a file; what cannot be read of it is a problem like any other."""
    try:
        return _surveyed(file, reader, most_labels)
    except ClaimsError as error:
        nothing = pa.nulls(0)
        return Survey(nothing, nothing, np.zeros(0, np.int64), None, frozenset(), 0, error.problems, 0)


def _surveyed(file: str, reader: Reader, most_labels: float) -> Survey:
    columns, numbers, problems = reader.read(file)
    objects, values = columns["object"], columns["value"]
    in_order, n_rows = np.sort(objects.codes), len(numbers)
    at = np.unique(np.linspace(0, n_rows, min(MARKS, n_rows), endpoint=False).astype(np.int64))
    labels, pairs = None, set()
    if len(values.vocabulary) <= most_labels:
        labels = values.vocabulary
        both = np.unique(objects.codes.astype(np.int64) * max(len(labels), 1) + values.codes)[:ENOUGH_PAIRS]
        for m, v in zip(*np.divmod(both, max(len(labels), 1)), strict=True):
            pairs.add((objects.vocabulary[int(m)].as_py(), labels[int(v)].as_py()))
    return Survey(
        columns["source"].vocabulary,
        objects.vocabulary.take(pa.array(in_order[at])),
        np.diff(np.append(at, n_rows)),
        labels,
        frozenset(pairs),
        _n_rows(file) - n_rows,
        tuple(problems),
        most_labels,
    )


@dataclass(frozen=True, eq=False)
class Piece:
    """The rows of a file about a range of objects.

    source : (n_rows,) numbers into all sources
    row    : (n_rows,) where they stand in the file
    """

    file: str
    source: Int
    objects: Column
    values: Column
    row: Int


def split(file: str, reader: Reader, sources: Any, splitters: Sequence[Any]) -> tuple[Piece, ...]:
    """A file's rows by range of objects, in the order in which they stand in it."""
    columns, numbers, _ = reader.read(file)
    objects, values = columns["object"], columns["value"]
    source = positions(columns["source"].vocabulary, sources)[columns["source"].codes]
    cuts = [
        bisect_left(objects.vocabulary, splitter, key=lambda name: name.as_py()) for splitter in splitters
    ]
    edges = [0, *cuts, len(objects.vocabulary)]
    part = np.searchsorted(cuts, objects.codes, side="right")
    order = np.argsort(part, kind="stable")
    first = np.searchsorted(part[order], np.arange(len(edges)))
    pieces = []
    for k in range(len(edges) - 1):
        rows = order[first[k] : first[k + 1]]
        # Taken, not sliced: what travels is no more than the piece.
        names = objects.vocabulary.take(pa.array(np.arange(edges[k], edges[k + 1])))
        pieces.append(
            Piece(
                file,
                source[rows],
                Column(names, objects.codes[rows] - np.int32(edges[k])),
                values.take(rows).compact(),
                numbers[rows].astype(np.int32),
            )
        )
    return tuple(pieces)


@dataclass(frozen=True, eq=False)
class Made:
    """What came of making parts; it adds, part by part in their order.

    left_out : rows that repeat another, or say otherwise than the one that was kept
    used     : (n_labels,) how many parts claim each label; 0 where there are none
    """

    n_objects: tuple[int, ...] = ()
    n_claims: tuple[int, ...] = ()
    left_out: int = 0
    used: Any = 0
    problems: tuple[Problem, ...] = ()

    def __add__(self, other: Made) -> Made:
        return Made(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))


def put_together(
    pieces: Sequence[Piece], reader: Reader, sources: Any, labels: Any, domain: Any, on_conflict: str
) -> tuple[Claims | None, Made]:
    """The part of the table that pieces of all files make; None where it has no rows or something is wrong with it."""
    pieces = [piece for piece in pieces if len(piece.row)]
    if not pieces:
        return None, Made()
    columns = {
        "source": Column(sources, np.concatenate([piece.source for piece in pieces])),
        "object": _column([piece.objects for piece in pieces]),
        "value": _column([piece.values for piece in pieces]),
    }
    sizes = [len(piece.row) for piece in pieces]
    rows = Places(
        np.concatenate([piece.row for piece in pieces]).astype(np.int64) + 1,
        tuple(piece.file for piece in pieces),
        tuple(accumulate(sizes[:-1], initial=0)),
    )
    read = Read("The table", "pyarrow", dict(reader.names), columns, rows, (), ())
    try:
        claims = encode_claims(read, domain if labels is None else labels.to_pylist(), on_conflict)
    except ClaimsError as error:
        return None, Made(problems=error.problems)
    used: Any = 0
    if labels is not None:
        is_used = np.zeros(len(labels), np.int64)
        is_used[claims.candidate_value[claims.claim_candidate]] = 1
        claims, used = replace(claims, domain="common"), is_used
    made = Made((claims.n_objects,), (claims.n_claims,), sum(sizes) - claims.n_claims, used)
    return replace(claims, sources=range(len(sources)), notes=()), made


def _n_rows(file: str) -> int:
    return int(pq.read_metadata(file).num_rows)


def _column(columns: Sequence[Column]) -> Column:
    """Columns one after the other, as one."""
    chunks = [
        pa.DictionaryArray.from_arrays(pa.array(column.codes, pa.int32()), column.vocabulary)
        for column in columns
    ]
    return encode(pa.chunked_array(chunks))


def _distinct(arrays: Sequence[Any]) -> Any:
    """Sorted distinct ids of sorted ones."""
    together = pc.unique(_concatenated(arrays))
    return together.take(pc.array_sort_indices(together))


def _concatenated(arrays: Sequence[Any]) -> Any:
    """One array; an empty one without a type gives way to the others."""
    return pa.concat_arrays([array for array in arrays if not pa.types.is_null(array.type)] or arrays)
