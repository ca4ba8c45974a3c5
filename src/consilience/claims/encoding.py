"""Claims: the table of who says what about what, encoded once into flat integer arrays.

This file needs NumPy alone, so that an engine on a bare machine can use it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Int = NDArray[np.integer[Any]]
Float = NDArray[np.float64]

LARGEST_INDEX = 2**31 - 1
"""Indices are 32-bit integers: there can be no more sources, objects, values or candidates than this."""


RUN = 4_000_000
"""Claims that are worked on at a time, where all of them at once would take too much memory."""


class Encoded:
    """Claims as arrays, whether all of a table or a run of its objects."""

    claim_source: Int
    claim_candidate: Int
    first_claim: Int
    first_candidate: Int

    @property
    def n_objects(self) -> int:
        """Number of objects."""
        return len(self.first_claim) - 1

    @property
    def n_claims(self) -> int:
        """Number of claims."""
        return len(self.claim_source)

    @property
    def n_candidates(self) -> int:
        """Number of candidates, over all objects."""
        return int(self.first_candidate[-1])

    def claim_object(self) -> Int:
        """(n_claims,) the object of each claim."""
        return np.repeat(np.arange(self.n_objects), np.diff(self.first_claim))

    def candidate_object(self) -> Int:
        """(n_candidates,) the object of each candidate."""
        return np.repeat(np.arange(self.n_objects), np.diff(self.first_candidate))

    def runs(self) -> Iterator[tuple[slice, slice]]:
        """Runs of consecutive objects, and their claims: what is worked out of so many at a time takes little room."""
        first = 0
        while first < self.n_objects:
            past = int(np.searchsorted(self.first_claim, self.first_claim[first] + RUN, side="right")) - 1
            past = max(past, first + 1)
            yield slice(first, past), slice(int(self.first_claim[first]), int(self.first_claim[past]))
            first = past


@dataclass(frozen=True, eq=False)
class Shard(Encoded):
    """A run of consecutive objects: all that a kernel sees of the claims.

    claim_source    : (n_claims,)      who claims
    claim_candidate : (n_claims,)      what is claimed: a candidate of this shard
    first_claim     : (n_objects + 1,) claims of object m are first_claim[m] : first_claim[m + 1]
    first_candidate : (n_objects + 1,) candidates of object m, likewise
    log_truth       : (n_candidates,)  ln p(t_m = z): uniform, or -inf where a known truth rules z out
    label           : (n_candidates,)  the candidate's value as a label; all 0 unless labels are common to all objects
    log_unclaimed   : (n_objects,)     ln p(t_m is a value that nobody claims): -inf where that cannot be
    is_known        : (n_objects,)     whose truth is known

    The last three are for the partition inference alone, and empty where no one needs them.
    """

    claim_source: Int
    claim_candidate: Int
    first_claim: Int
    first_candidate: Int
    log_truth: Float
    label: Int = field(default_factory=lambda: np.zeros(0, np.int64))
    log_unclaimed: Float = field(default_factory=lambda: np.zeros(0))
    is_known: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    n_sources: int = 0
    """Sources of the whole table."""
    first_object: int = 0
    """How many objects of the whole table come before these."""

    @cached_property
    def most_claims(self) -> Int:
        """(widest + 1,) the most claims on an object with so many candidates."""
        sizes = np.diff(self.first_candidate)
        most = np.zeros(int(sizes.max(initial=0)) + 1, np.int64)
        np.maximum.at(most, sizes, np.diff(self.first_claim))
        return most

    def edges(self, n_runs: int) -> Int:
        """Where runs of consecutive objects with about equally many claims each begin, and where the last one ends."""
        wanted = np.linspace(0, self.n_claims, min(n_runs, max(self.n_objects, 1)) + 1)[1:-1]
        inner = np.searchsorted(self.first_claim, wanted)
        return np.unique(np.concatenate([[0], inner, [self.n_objects]]))

    def cut(self, n_runs: int) -> Iterator[Shard]:
        """Such runs, each a shard."""
        for start, stop in pairwise(self.edges(n_runs)):
            claims = slice(self.first_claim[start], self.first_claim[stop])
            candidates = slice(self.first_candidate[start], self.first_candidate[stop])
            yield replace(
                self,
                claim_source=self.claim_source[claims],
                claim_candidate=_from(self.claim_candidate[claims], candidates.start),
                first_claim=_from(self.first_claim[start : stop + 1], claims.start),
                first_candidate=_from(self.first_candidate[start : stop + 1], candidates.start),
                log_truth=self.log_truth[candidates],
                label=self.label[candidates],
                log_unclaimed=self.log_unclaimed[start:stop],
                is_known=self.is_known[start:stop],
                first_object=self.first_object + int(start),
            )

    def of_objects(self, chosen: NDArray[np.bool_]) -> Shard:
        """Some of the objects, as a shard of their own."""
        if chosen.all():
            return self
        of_claim = np.repeat(chosen, np.diff(self.first_claim))
        of_candidate = np.repeat(chosen, np.diff(self.first_candidate))
        place = np.cumsum(of_candidate, dtype=np.int32) - np.int32(1)
        return replace(
            self,
            claim_source=self.claim_source[of_claim],
            claim_candidate=place[self.claim_candidate[of_claim]],
            first_claim=_packed(self.first_claim, chosen),
            first_candidate=_packed(self.first_candidate, chosen),
            log_truth=self.log_truth[of_candidate],
            label=self.label[of_candidate] if len(self.label) else self.label,
            log_unclaimed=self.log_unclaimed[chosen] if len(self.log_unclaimed) else self.log_unclaimed,
            is_known=self.is_known[chosen] if len(self.is_known) else self.is_known,
        )


@dataclass(frozen=True, eq=False)
class Claims(Encoded):
    """A table of claims in canonical order: whatever the order of its rows, the same arrays.

    Vocabularies are sorted; claims are sorted by object, then source. A pair (object, value of its domain) is
    a *candidate*; candidates lie object by object (CSR), so domains may differ and nothing is padded.

    sources, objects, values : the caller's own ids, each a sorted sequence (a pyarrow Array when read)
    claim_source    : (n_claims,) int32       index into sources
    claim_candidate : (n_claims,) int32       index of the candidate claimed
    first_claim     : (n_objects + 1,) int64
    first_candidate : (n_objects + 1,) int64
    candidate_value : (n_candidates,) int32   index into values
    """

    sources: Sequence[Any]
    objects: Sequence[Any]
    values: Sequence[Any]
    claim_source: Int
    claim_candidate: Int
    first_claim: Int
    first_candidate: Int
    candidate_value: Int
    domain: str = "claimed"
    """How domains were formed: "claimed" (per object), "common" (one label set) or "given"."""
    columns: tuple[str, str, str] = ("source", "object", "value")
    """What the caller calls source, object and value."""
    frame: str = "pyarrow"
    """The kind of frame that came in, and so the kind that results come back as."""
    notes: tuple[str, ...] = field(default=())
    """What was merged or dropped on the way in, in words and numbers."""

    @property
    def n_sources(self) -> int:
        """Number of sources."""
        return len(self.sources)

    @property
    def n_values(self) -> int:
        """Number of distinct values, over all domains."""
        return len(self.values)

    def shards(
        self,
        n_shards: int,
        log_truth: Float,
        label: Int | None = None,
        log_unclaimed: Float | None = None,
        is_known: NDArray[np.bool_] | None = None,
    ) -> Iterator[Shard]:
        """Split into runs of consecutive objects with about equally many claims each."""
        whole = Shard(
            claim_source=self.claim_source,
            claim_candidate=self.claim_candidate,
            first_claim=self.first_claim,
            first_candidate=self.first_candidate,
            log_truth=log_truth,
            label=np.zeros(0, np.int64) if label is None else label,
            log_unclaimed=np.zeros(0) if log_unclaimed is None else log_unclaimed,
            is_known=np.zeros(0, np.bool_) if is_known is None else is_known,
            n_sources=self.n_sources,
        )
        return whole.cut(n_shards)

    def __repr__(self) -> str:
        return (
            f"Claims(n_claims={self.n_claims:,}, n_sources={self.n_sources:,}, n_objects={self.n_objects:,}, "
            f"n_candidates={self.n_candidates:,}, domain={self.domain!r})"
        )


def _from(index: Int, start: int) -> Int:
    """Indices counted from `start`; from 0 they are the same array."""
    return index - index.dtype.type(start) if start else index


def joined(pieces: Sequence[Shard]) -> Shard:
    """Shards that follow each other, as one."""
    if len(pieces) == 1:
        return pieces[0]
    candidates = np.cumsum([0] + [piece.n_candidates for piece in pieces[:-1]])
    claims = np.cumsum([0] + [piece.n_claims for piece in pieces[:-1]])

    def moved(name: str, by: Int) -> Int:
        each = [_from(getattr(piece, name), -int(start)) for piece, start in zip(pieces, by, strict=True)]
        if name.startswith("first"):  # where one piece ends the next begins
            each = [each[0], *(first[1:] for first in each[1:])]
        return np.concatenate(each)

    return replace(
        pieces[0],
        claim_source=np.concatenate([piece.claim_source for piece in pieces]),
        claim_candidate=moved("claim_candidate", candidates),
        first_claim=moved("first_claim", claims),
        first_candidate=moved("first_candidate", candidates),
        log_truth=np.concatenate([piece.log_truth for piece in pieces]),
        label=np.concatenate([piece.label for piece in pieces]),
        log_unclaimed=np.concatenate([piece.log_unclaimed for piece in pieces]),
        is_known=np.concatenate([piece.is_known for piece in pieces]),
    )


def _packed(first: Int, chosen: NDArray[np.bool_]) -> Int:
    """Where runs begin when only those chosen are left."""
    return np.concatenate([[0], np.cumsum(np.diff(first)[chosen])])


def sort_claims(claim_object: Int, claim_source: Int, n_sources: int) -> Int:
    """(n_claims,) the order of claims by object, then source; where both are the same, as they came."""
    n_claims = len(claim_object)
    key = claim_object.astype(np.int64) * n_sources + claim_source
    row_bits = n_claims.bit_length()
    if n_claims and int(key.max()).bit_length() + row_bits <= 63:
        # Sorting numbers that carry their row is several times faster than a stable argsort.
        key <<= row_bits
        key |= np.arange(n_claims)
        if np.any(key[1:] < key[:-1]):
            key.sort()
        key &= (1 << row_bits) - 1
        return key
    return np.argsort(key, kind="stable")


def sort_distinct(
    columns: Sequence[NDArray[np.int32]], sizes: Sequence[int]
) -> list[NDArray[np.int32]] | None:
    """Columns of codes below these sizes, their rows sorted by the first, then the second and so on. None where rows
    differ in nothing but the last column, so that it matters how they came, or codes are too many for one number.

    It sorts the rows themselves, packed into numbers: nothing has to be fetched by row afterwards.
    """
    bits = [max(size - 1, 0).bit_length() for size in sizes]
    if sum(bits) > 64:
        return None
    number = np.uint32 if sum(bits) <= 32 else np.uint64  # half as wide is sorted in half the time
    key: NDArray[np.unsignedinteger[Any]] = columns[0].astype(number)
    for column, n in zip(columns[1:], bits[1:], strict=True):
        key <<= number(n)
        key |= column.view(np.uint32)
    if np.any(key[1:] < key[:-1]):
        key.sort()
    fields: list[NDArray[np.int32]] = []
    for n in bits[:0:-1]:
        fields.append((key & number((1 << n) - 1)).astype(np.int32))
        key >>= number(n)
        if len(fields) == 1 and np.any(key[1:] == key[:-1]):
            return None
    return [key.astype(np.int32), *reversed(fields)]


def offsets(index: Int, n: int) -> Int:
    """(n + 1,) int64: where each of 0 … n - 1 begins once `index` is sorted, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(np.bincount(index, minlength=n))]).astype(np.int64)


def domains(object_: Int, value: Int, n_objects: int, n_values: int) -> tuple[Int, Int]:
    """The domains that pairs (object, value) span, in any order, repeated or not.

    Returns first_candidate (n_objects + 1,) and candidate_value (n_candidates,), ascending within an object.
    """
    key = object_.astype(np.int64) * n_values + value
    if n_objects * n_values <= len(key):
        is_claimed = np.zeros(n_objects * n_values, np.bool_)
        is_claimed[key] = True
        key = np.flatnonzero(is_claimed)
    else:
        key.sort()
        key = key[np.concatenate([[True], key[1:] != key[:-1]])] if len(key) else key
    return offsets(key // max(n_values, 1), n_objects), (key % max(n_values, 1)).astype(np.int32)


def common_domains(n_objects: int, n_values: int) -> tuple[Int, Int]:
    """The domains of objects that may all take every value: first_candidate and candidate_value."""
    first_candidate = np.arange(n_objects + 1, dtype=np.int64) * n_values
    return first_candidate, np.tile(np.arange(n_values, dtype=np.int32), n_objects)


def find_common_candidates(object_: Int, value: Int, n_values: int) -> Int:
    """(n,) int32: what `find_candidates` finds where all objects may take every value."""
    candidate = object_.astype(np.int32) * np.int32(n_values)  # fits: candidates are counted in 32 bits
    candidate += value
    candidate[value < 0] = -1
    return candidate


def find_candidates(
    object_: Int, value: Int, first_candidate: Int, candidate_value: Int, n_values: int
) -> Int:
    """(n,) int32: the candidate that each pair (object, value) is, -1 where it is none."""
    owner = np.repeat(np.arange(len(first_candidate) - 1, dtype=np.int64), np.diff(first_candidate))
    key = owner * n_values + candidate_value
    wanted = object_.astype(np.int64) * n_values + value
    at = np.searchsorted(key, wanted)
    at[at == len(key)] = 0
    is_found = (value >= 0) & (key[at] == wanted) if len(key) else np.zeros(len(wanted), dtype=bool)
    return np.where(is_found, at, -1).astype(np.int32)
