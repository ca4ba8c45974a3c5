"""The seam between a model and where it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from consilience.runners.inline import Inline

L = TypeVar("L")  # what a shard keeps
S = TypeVar("S")  # what shards add up
R = TypeVar("R")


class Runner(Protocol):
    """Maps steps over shards and sums what they give. Statistics are integers, or tuples that are put together in the
    order of the shards: where and when a step runs cannot change a bit."""

    @property
    def name(self) -> str:
        """What it is called on the command line and in provenance."""
        ...

    @property
    def here(self) -> Inline:
        """The runner for what is in this process anyway."""
        ...

    def n_shards(self, n_claims: int, fewest: int) -> int:
        """Into how many shards a table of this size should be cut, where one of fewer claims costs more than it
        saves."""
        ...

    def map_sum(
        self,
        step: Callable[..., tuple[L, S]],
        shards: Sequence[Any],
        given: Any,
        prior: Any = None,
        *kept: Sequence[Any],
    ) -> tuple[Sequence[Any], S]:
        """A step on every shard, `step(shard, given, prior, *kept of the shard)`: what each shard keeps, for later
        steps or `fetch`, and the sum of what they give. A step itself maps nothing: it may have the last thread."""
        ...

    def fetch(self, kept: Sequence[Any]) -> list[Any]:
        """What shards kept, brought here."""
        ...

    def map(self, work: Callable[[int], R], items: Sequence[int], stop: Event) -> list[R]:
        """Independent work in this process, side by side where that is possible: the results in order.

        Where one piece fails, or the whole is interrupted, `stop` tells the others, and none is left running.
        """
        ...
