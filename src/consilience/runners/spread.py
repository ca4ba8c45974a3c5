"""Claims that were read where they are worked on, and stay there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from consilience.claims.encoding import Claims
from consilience.runners.base import Runner

if TYPE_CHECKING:
    from consilience.claims.truths import Truths


@dataclass(frozen=True, eq=False)
class Spread:
    """A table in parts that a runner holds, each the Claims on a run of objects, in the order of the objects; their
    sources are numbers into `sources`.

    sources         : the caller's own ids, sorted
    objects_by_part : how many
    claims_by_part  : how many
    """

    runner: Runner
    parts: Sequence[Any]
    sources: Any
    objects_by_part: tuple[int, ...]
    claims_by_part: tuple[int, ...]
    columns: tuple[str, str, str] = ("source", "object", "value")
    """What the caller calls source, object and value."""
    notes: tuple[str, ...] = ()
    """What was merged or dropped on the way in, in words and numbers."""

    @property
    def n_sources(self) -> int:
        """Number of sources."""
        return len(self.sources)

    @property
    def n_objects(self) -> int:
        """Number of objects."""
        return sum(self.objects_by_part)

    @property
    def n_claims(self) -> int:
        """Number of claims."""
        return sum(self.claims_by_part)

    def n_with(self, truths: Truths) -> int:
        """How many objects have one of these truths."""
        _, n = self.runner.map_sum(_n_with, self.parts, truths)
        return n

    def __repr__(self) -> str:
        return (
            f"Spread(n_claims={self.n_claims:,}, n_sources={self.n_sources:,}, n_objects={self.n_objects:,}, "
            f"n_parts={len(self.parts):,})"
        )


def _n_with(part: Claims, truths: Truths, prior: None) -> tuple[None, int]:
    from consilience.claims.truths import align_truths

    return None, int(np.count_nonzero(align_truths(truths, part) != -1))
