"""Faults in the cells of a table, in words: each check gives a Problem that counts them and shows the first.

Rows are numbered as the user counts them: from 1, below the header.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consilience.claims.encoding import Int
from consilience.claims.vocabulary import MISSING, UNDECODABLE, Column
from consilience.claims.words import SHOWN, quantity, show
from consilience.errors import Problem

TOO_LARGE = re.compile("too large|outside of the range|i128|u128")
"""How pyarrow says that a number does not fit; the last two are integers of 128 bits, which it does not know."""


@dataclass(frozen=True, eq=False)
class Rows:
    """How the user numbers the rows that were read; `numbers` is None when they simply count up from 1."""

    numbers: NDArray[np.int64] | None = None

    def name(self, index: int | np.integer[Any]) -> str:
        """What a message calls a row."""
        return f"row {(int(index) + 1 if self.numbers is None else int(self.numbers[index])):,}"

    def take(self, keep: NDArray[np.bool_]) -> Rows:
        """The rows to keep, under the numbers they had."""
        return Rows(np.flatnonzero(keep) + 1 if self.numbers is None else self.numbers[keep])


def empty_table(found: str) -> Problem:
    """The problem that there is nothing to read."""
    return Problem("empty-table", found, "Give a table with at least one row.")


def missing_cells(columns: dict[str, Column], names: dict[str, str], rows: Rows) -> list[Problem]:
    """Rows where a column has no value; columns and names by role."""
    if all(column.is_whole for column in columns.values()):
        return []
    gaps = {role: column.codes == MISSING for role, column in columns.items()}
    any_gap = np.logical_or.reduce(list(gaps.values()))
    if not np.any(any_gap):
        return []
    examples = [
        f"{rows.name(row)}: no {' and no '.join(names[role] for role, gap in gaps.items() if gap[row])}"
        for row in np.flatnonzero(any_gap)[:SHOWN]
    ]
    n = int(any_gap.sum())
    found = f"{quantity(n, 'row')} of {len(any_gap):,} {'has' if n == 1 else 'have'} an empty cell."
    advice = "Fill them in, or leave these rows out"
    advice += ': on_missing="drop".' if "source" in names else "."
    return [Problem("missing-cells", found, advice, n, tuple(examples))]


def undecodable_cells(column: Column, name: str, rows: Rows) -> list[Problem]:
    """Cells whose bytes are not UTF-8."""
    if not column.undecodable:
        return []
    n = int((column.codes == UNDECODABLE).sum())
    return [undecodable(f"Column {name!r}", n, [(rows.name(row), raw) for row, raw in column.undecodable])]


def undecodable(where: str, n: int, cells: Sequence[tuple[str, bytes]]) -> Problem:
    """The problem that bytes are not UTF-8, from (row, bytes) examples."""
    return Problem(
        "undecodable",
        f"{where}: {quantity(n, 'cell')} {'is' if n == 1 else 'are'} not UTF-8 text.",
        "Save the file as UTF-8 (it may be in Latin-1 or Windows-1252 now).",
        n,
        tuple(f"{row}: {show(raw)}" for row, raw in cells[:SHOWN]),
    )


def unusable_type(name: str, kind: object) -> Problem:
    """A column of lists, structs or another type that cannot name anything."""
    return Problem(
        "nested-type",
        f"Column {name!r} holds {kind}; expected text, numbers, truth values, dates or times.",
        "Turn it into text first, one value a row.",
    )


def unconvertible(name: str, why: Exception) -> Problem:
    """A column of values that are of several types, of a type that no table can hold, too large, or not text."""
    reason = str(why.args[0] if why.args and not isinstance(why, UnicodeError) else why).rstrip(".")
    if isinstance(why, UnicodeError):
        return Problem(
            "undecodable", f"Column {name!r}: {reason}.", "Correct the text: it has no form in UTF-8."
        )
    if isinstance(why, OverflowError) or TOO_LARGE.search(reason):
        found = f"Column {name!r} holds numbers that are too large to be kept exactly."
        return Problem("large-numbers", found, "Give them as text.")
    found = f"Column {name!r} cannot be read as one type: {reason}."
    return Problem("mixed-types", found, f"Give all of {name!r} one type: all text, or all numbers.")


@dataclass(frozen=True, eq=False)
class Kept:
    """Which of several claims of one source on one object stays.

    keep    : (n_kept,) positions among the sorted claims, ascending; a slice where all stay
    merged  : exact repetitions left out
    dropped : claims left out because the same source says otherwise about the same object
    clashes : (n, 2) start and end, among the sorted claims, of each run that disagrees with itself
    """

    keep: Int | slice
    merged: int
    dropped: int
    clashes: Int

    def notes(self, on_conflict: str) -> tuple[str, ...]:
        """What was left out, in words."""
        merged = f"{quantity(self.merged, 'exact repetition')} merged."
        pairs = f"{quantity(len(self.clashes), 'pair')} of source and object with several values"
        dropped = f"{quantity(self.dropped, 'row')} dropped from {pairs}: the {on_conflict} kept."
        return (merged,) * bool(self.merged) + (dropped,) * bool(self.dropped)


def settle(object_: Int, source: Int, value: Int, on_conflict: str) -> Kept:
    """One claim for each (object, source), of claims sorted by both and, where both are equal, by row."""
    n = len(object_)
    is_start = np.ones(n, dtype=bool)
    is_start[1:] = (object_[1:] != object_[:-1]) | (source[1:] != source[:-1])
    if is_start.all():
        return Kept(slice(None), 0, 0, np.empty((0, 2), dtype=np.int64))
    start = np.flatnonzero(is_start)
    end = np.append(start[1:], n)
    run = np.cumsum(is_start) - 1
    is_clash = np.bincount(run, weights=value != value[start][run]) > 0
    if on_conflict == "last":
        keep = end - 1
    elif on_conflict == "most frequent":
        keep = start.copy()
        keep[is_clash] = _most_frequent(run, value, np.flatnonzero(is_clash[run]))
    else:
        keep = start
    agrees = value == value[keep][run]
    n_agree = int(agrees.sum())
    return Kept(keep, n_agree - len(start), n - n_agree, np.column_stack([start, end])[is_clash])


def _most_frequent(run: Int, value: Int, of: Int) -> Int:
    """For each run among the claims `of`, the first claim of its most frequent value, ties to the first."""
    pairs = np.column_stack([run[of], value[of]])
    pair, first, times = np.unique(pairs, axis=0, return_index=True, return_counts=True)
    best = np.lexsort((first, -times, pair[:, 0]))
    _, leader = np.unique(pair[best, 0], return_index=True)
    chosen: Int = of[first[best[leader]]]
    return chosen


def conflicting(
    what: str, keys: dict[str, Column], values: Column, clashes: Int, rows: Rows, order: Int, advice: str
) -> Problem:
    """More than one value for one key: source and object of claims, object of truths.

    keys, values : columns sorted by the keys; order : (n,) the row that each place in them came from
    """
    n = len(clashes)
    examples = []
    for start, end in clashes[:SHOWN]:
        whose = ", ".join(f"{role} {show(column.id_at(start))}" for role, column in keys.items())
        _, first = np.unique(values.codes[start:end], return_index=True)
        said = [f"{show(values.id_at(i))} ({rows.name(order[i])})" for i in start + np.sort(first)[:SHOWN]]
        examples.append(f"{whose}: {', '.join(said)}{', …' if len(first) > SHOWN else ''}")
    key = " and ".join(keys)
    counted = quantity(n, f"pair of {key}", f"pairs of {key}") if len(keys) > 1 else quantity(n, key)
    found = f"{counted} {'has' if n == 1 else 'have'} more than one value."
    return Problem(f"conflicting-{what}", found, advice, n, tuple(examples))
