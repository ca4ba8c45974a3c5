"""Vocabularies: a column as its sorted distinct ids and, for each row, an index into them.

All work happens on the distinct ids, of which there are far fewer than rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from consilience.claims.id_types import TEXT, compared_type, is_text, written_as
from consilience.claims.words import SHOWN

Codes = NDArray[np.int32]

MISSING = -1
UNDECODABLE = -2


@dataclass(frozen=True, eq=False)
class Column:
    """A column, encoded.

    vocabulary  : the distinct ids, ascending; text by code point
    codes       : (n_rows,) index into the vocabulary; MISSING or UNDECODABLE where there is no id
    undecodable : (row index, bytes) of the first few cells that are not UTF-8
    """

    vocabulary: Any
    codes: Codes
    undecodable: tuple[tuple[int, bytes], ...] = ()

    @cached_property
    def is_whole(self) -> bool:
        """Whether every row has an id."""
        return bool(self.codes.min(initial=0) >= 0)

    def take(self, rows: NDArray[Any] | slice) -> Column:
        """Some rows, in this order; the vocabulary stays whole."""
        return Column(self.vocabulary, self.codes[rows])

    def compact(self) -> Column:
        """The same rows; ids that occur in none of them leave the vocabulary."""
        used = np.zeros(len(self.vocabulary), np.bool_)
        used[self.codes] = True
        if used.all():
            return self
        renumbered = np.cumsum(used, dtype=np.int32) - np.int32(1)
        return Column(self.vocabulary.filter(pa.array(used)), renumbered[self.codes])

    def id_at(self, row: int | np.integer[Any]) -> Any:
        """The id in one row, as a Python value."""
        return self.vocabulary[int(self.codes[row])].as_py()


def encode(cells: Any, *, decode: bool = False) -> Column:
    """Encode a ChunkedArray of ids; null and NaN are missing. With `decode`, bytes are UTF-8 text."""
    if pa.types.is_null(cells.type) or len(cells) == 0:
        # No ids: of the type that is comparable with all others.
        return Column(pa.nulls(0), np.full(len(cells), MISSING, dtype=np.int32))
    # Chunk by chunk: Arrow's own encoding of a chunked array repeats the whole dictionary for every chunk.
    chunks = [_dictionary(chunk) for chunk in cells.chunks]
    ids, places = _unified([chunk.dictionary for chunk in chunks])
    ids, bad = _plain(ids, decode)
    vocabulary, code_of = _ranked(ids)
    code_of[list(bad)] = UNDECODABLE
    codes, undecodable = np.empty(len(cells), np.int32), []
    past = 0
    for chunk, place in zip(chunks, places, strict=True):
        first, past = past, past + len(chunk)
        index = _index(chunk)
        codes[first:past] = np.append(code_of[place], np.int32(MISSING))[index]  # null is -1, the last
        if bad:
            rows = np.flatnonzero(codes[first:past] == UNDECODABLE)[:SHOWN]
            undecodable += [(first + int(row), bad[int(place[index[row]])]) for row in rows]
    return Column(vocabulary, codes, tuple(undecodable[:SHOWN]))


def _unified(arrays: Sequence[Any]) -> tuple[Any, list[Codes]]:
    """The distinct ids of several arrays, and for each array where each of its ids stands among them."""
    each = []
    for ids in arrays:
        counted = pa.py_buffer(np.arange(len(ids), dtype=np.int32))
        kind = pa.dictionary(pa.int32(), ids.type)
        each.append(pa.DictionaryArray.from_buffers(kind, len(ids), [None, counted], ids))
    unified = pa.chunked_array(each).unify_dictionaries().chunks
    return unified[0].dictionary, [_numbers(chunk.indices) for chunk in unified]


def _index(chunk: Any) -> Codes:
    """(n,) where each cell of a chunk in dictionary form points to; -1 where it is null."""
    return _numbers(chunk.indices.fill_null(MISSING) if chunk.null_count else chunk.indices)


def _numbers(array: Any) -> NDArray[Any]:
    """Numbers without nulls, where they lie. (Arrow's `to_numpy` loads pandas where it is installed, which takes longer
    than a small table.)"""
    return np.from_dlpack(array)


def _ranked(ids: Any) -> tuple[Any, Codes]:
    """The distinct ids, ascending, and the place of each id among them; MISSING for null."""
    order = pc.array_sort_indices(ids)
    n_known = len(ids) - ids.null_count
    ascending = ids.take(order[:n_known])
    is_new = np.ones(n_known, dtype=bool)
    is_new[1:] = _numbers(pc.not_equal(ascending[1:], ascending[:-1]).cast(pa.uint8()))
    place = np.full(len(ids), MISSING, dtype=np.int32)
    place[_numbers(order)[:n_known]] = np.cumsum(is_new, dtype=np.int32) - np.int32(1)
    return (ascending if is_new.all() else ascending.filter(pa.array(is_new))), place


def _dictionary(chunk: Any) -> Any:
    """A chunk in dictionary form, its indices int32 and its dictionary free of nulls."""
    if pa.types.is_dictionary(chunk.type):
        if chunk.type.index_type == pa.int32() and chunk.dictionary.null_count == 0:
            return chunk
        chunk = chunk.dictionary_decode()
    return (chunk.cast(TEXT) if pa.types.is_string_view(chunk.type) else chunk).dictionary_encode()


def _plain(ids: Any, decode: bool) -> tuple[Any, dict[int, bytes]]:
    """Ids with one way to write each (text as TEXT, NaN as null, -0.0 as 0.0), and those not UTF-8."""
    if pa.types.is_floating(ids.type):
        return pc.if_else(pc.is_nan(ids), None, pc.add(ids, pa.scalar(0.0, ids.type))), {}
    if decode:
        return decode_text(ids)
    # What a file calls text may be none, if it is damaged: Arrow takes its word for it.
    return decode_text(ids.cast(pa.large_binary())) if is_text(ids.type) else (ids, {})


def decode_text(raw: Any) -> tuple[Any, dict[int, bytes]]:
    """Bytes as text; where they are not UTF-8, null there and the bytes by their position."""
    try:
        return raw.cast(TEXT), {}
    except pa.ArrowInvalid:
        bad = {}
        text: list[str | None] = raw.to_pylist()
        for i, cell in enumerate(raw.to_pylist()):
            try:
                text[i] = None if cell is None else cell.decode()
            except UnicodeDecodeError:
                text[i], bad[i] = None, cell
        return pa.array(text, TEXT), bad


def positions(ids: Any, vocabulary: Any) -> Codes:
    """(n,) where each id stands in the vocabulary, -1 where it does not. Both must be of comparable types."""
    if ids.type != vocabulary.type:
        kind = compared_type(ids.type, vocabulary.type)
        ids, vocabulary = written_as(ids, kind), written_as(vocabulary, kind)
    found = pc.index_in(ids, vocabulary, skip_nulls=True)
    return np.asarray(found.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int32)
