"""Cautions: what a user should know before trusting an answer. Each is a text, and says of what kind it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from consilience.claims.encoding import Claims, Int, Shard
from consilience.claims.words import quantity, show
from consilience.kernels.state import Globals
from consilience.results.groups import Numbering

KINDS = {
    "not-converged": "sweeps or rounds ended before the answer came to rest",
    "lonely-start": "only one start reached the best bound",
    "another-story": "another explanation is nearly as good and decides otherwise",
    "lures": "strangers fall for the same wrong values, which decides many objects otherwise",
    "all-groups-used": "there may be more groups than were allowed",
    "disconnected": "some sources share no object with the others, directly or through others",
    "one-group": "all sources form one group, or there is only one: nobody checks their word",
    "other": "anything that a model says of its own method",
}
"""Every kind of caution, and what it means."""
FIRST_OBJECTS = 10_000
"""Objects that are looked at first, to see whether they connect all sources."""
NAMED, PARTS = 2, 3
"""Sources that are named of a part, and parts that are named."""


class Caution(str):
    """A warning of a fit: a text like any other, with a `kind`, one of KINDS, and `data`, the figures behind it."""

    kind: str
    data: dict[str, Any]

    def __new__(cls, message: str, kind: str = "other", **data: Any) -> Caution:
        """The text, the kind, and whatever a program may want to know."""
        caution = super().__new__(cls, message)
        caution.kind, caution.data = kind, data
        return caution

    def record(self) -> dict[str, Any]:
        """As JSON has it; `read` takes it back."""
        return {"kind": self.kind, "message": str(self), "data": self.data}

    @classmethod
    def read(cls, record: Any) -> Caution:
        """From a record, or from a text: one that is no caution yet is of the kind "other"."""
        if isinstance(record, str):
            return record if isinstance(record, Caution) else cls(record)
        return cls(str(record["message"]), str(record["kind"]), **record["data"])


def records_of(warnings: Iterable[str]) -> dict[str, Any]:
    """Warnings as programs are given them: `warnings` for reading, `cautions` the same with kinds and data."""
    cautions = [Caution.read(warning) for warning in warnings]
    return {
        "warnings": [str(caution) for caution in cautions],
        "cautions": [caution.record() for caution in cautions],
    }


@dataclass(frozen=True, eq=False)
class Connected:
    """Which sources share objects, directly or through others; it adds over shards.

    part : (n_sources,) the part that each source is in, numbered by its first source
    """

    part: Int

    @classmethod
    def of(cls, claims: Claims | Shard) -> Connected:
        """Run by run, each longer than the last, until all sources are in one part: that is mostly seen at once."""
        found, first, n_objects = cls(np.arange(claims.n_sources)), 0, FIRST_OBJECTS
        while first < claims.n_objects and found.part.max(initial=0):
            objects = slice(first, min(first + n_objects, claims.n_objects))
            here = slice(int(claims.first_claim[objects.start]), int(claims.first_claim[objects.stop]))
            first, n_objects = objects.stop, 4 * n_objects
            source = claims.claim_source[here]
            is_first = np.zeros(len(source), np.bool_)
            is_first[claims.first_claim[objects] - here.start] = True
            found = found._joined(source[:-1][~is_first[1:]], source[1:][~is_first[1:]])
        return found

    def __add__(self, other: Connected) -> Connected:
        # A source and the first of its part in the other are in one part.
        _, first = np.unique(other.part, return_index=True)
        return self._joined(np.arange(len(other.part)), first[other.part])

    def _joined(self, one: Int, other: Int) -> Connected:
        """With these sources, pair by pair, in one part."""
        n_sources = len(self.part)
        edges = self.part[one], self.part[other]
        graph = sparse.coo_array((np.ones(len(one), np.int32), edges), shape=(n_sources, n_sources))
        _, joined = connected_components(graph.tocsr(), directed=False)
        return Connected(np.unique(joined[self.part], return_inverse=True)[1])


def disconnected(connected: Connected, sources: Sequence[Any]) -> Iterator[Caution]:
    """Whether the sources fall into parts that no object connects; the largest are named."""
    part = connected.part
    n_parts = int(part.max(initial=0)) + 1
    if n_parts < 2:
        return
    sizes = np.bincount(part, minlength=n_parts)
    largest = np.argsort(-sizes, kind="stable")[:PARTS]
    named = []
    for p in largest:
        members = np.flatnonzero(part == p)[:NAMED]
        names = ", ".join(show(_plain(sources[int(i)])) for i in members)
        more = ", …" if sizes[p] > NAMED else ""
        named.append(f"{quantity(int(sizes[p]), 'source')} ({names}{more})")
    rest = f" and {n_parts - PARTS:,} more" if n_parts > PARTS else ""
    yield Caution(
        f"The sources fall into {n_parts:,} parts that have no object in common: {'; '.join(named)}{rest}. What is "
        "found of one part says nothing of another: compare reliabilities within a part only.",
        "disconnected",
        n_parts=n_parts,
        sizes=sizes[largest].tolist(),
    )


def one_group(found: Globals) -> Iterator[Caution]:
    """Whether all sources are in one group, so that their agreement proves nothing."""
    group = Numbering.of(found).of_source
    n_sources = len(group)
    if np.all(group == 1):
        who = "There is one source" if n_sources == 1 else f"All {n_sources:,} sources form one group"
        yield Caution(
            f"{who}: the truth is {'its' if n_sources == 1 else 'their'} word, and nothing independent checks it. Add "
            "other sources, or give some known truths.",
            "one-group",
            n_sources=n_sources,
        )


def _plain(name: Any) -> Any:
    return name.as_py() if hasattr(name, "as_py") else name
