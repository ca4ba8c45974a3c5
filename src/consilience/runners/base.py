"""The seam between a model and where it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from consilience.claims.encoding import Shard
from consilience.kernels.choose import Step
from consilience.kernels.state import Globals, Locals, Prior, Stats


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
        self, step: Step, shards: Sequence[Shard], given: Globals, prior: Prior, warm: Sequence[Locals | None]
    ) -> tuple[Sequence[Locals], Stats]:
        """One local step on every shard: each shard's locals, and the sum of their statistics."""
        ...
