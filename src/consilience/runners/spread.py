"""Claims that were read where they are worked on, and stay there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from consilience.runners.base import Runner


@dataclass(frozen=True, eq=False)
class Spread:
    """A table in parts that a runner holds, each the Claims on a run of objects, in the order of the objects; their
    sources are numbers into `sources`.

    sources   : the caller's own ids, sorted
    n_objects : objects by part
    n_claims  : claims by part
    """

    runner: Runner
    parts: Sequence[Any]
    sources: Any
    n_objects: tuple[int, ...]
    n_claims: tuple[int, ...]
    columns: tuple[str, str, str] = ("source", "object", "value")
    """What the caller calls source, object and value."""
    notes: tuple[str, ...] = ()
    """What was merged or dropped on the way in, in words and numbers."""

    @property
    def n_sources(self) -> int:
        """Number of sources."""
        return len(self.sources)

    def __repr__(self) -> str:
        return (
            f"Spread(n_claims={sum(self.n_claims):,}, n_sources={self.n_sources:,}, "
            f"n_objects={sum(self.n_objects):,}, n_parts={len(self.parts):,})"
        )
