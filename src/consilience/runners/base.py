"""The seam between a model and where it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event
from typing import Protocol, TypeVar

from consilience.claims.encoding import Shard
from consilience.kernels.choose import G, P, S, Step
from consilience.kernels.state import Locals

R = TypeVar("R")


class Runner(Protocol):
    """Maps the local step over shards and sums what they give. Stats are integers: any order gives the same bits."""

    @property
    def name(self) -> str:
        """What it is called on the command line and in provenance."""
        ...

    def n_shards(self, n_claims: int) -> int:
        """Into how many shards a table of this size should be cut."""
        ...

    def map_sum(
        self, step: Step[G, P, S], shards: Sequence[Shard], given: G, prior: P, warm: Sequence[Locals | None]
    ) -> tuple[Sequence[Locals], S]:
        """One local step on every shard: each shard's locals, and the sum of their statistics."""
        ...

    def map(self, work: Callable[[int], R], items: Sequence[int], stop: Event) -> list[R]:
        """Independent work, side by side where that is possible: the results in order.

        Where one piece fails, or the whole is interrupted, `stop` tells the others, and none is left running.
        """
        ...
