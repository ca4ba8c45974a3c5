"""This process: shards on a few threads (kernels release the interpreter's lock)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache, reduce
from operator import add
from threading import Event
from typing import Any, ClassVar

from consilience.errors import SettingsError
from consilience.runners.base import L, R, S

LARGE = 5_000_000
"""Claims of a shard at the most: a step on it takes memory."""


@dataclass(frozen=True)
class Inline:
    """Runs shards in this process. `shards` and `threads` default to what suits the table and the machine."""

    shards: int | None = None
    threads: int | None = None
    name: ClassVar[str] = "inline"

    def __post_init__(self) -> None:
        for setting in ("shards", "threads"):
            given = getattr(self, setting)
            if given is not None and given < 1:
                raise SettingsError(setting, "a positive whole number or None", given)

    def n_shards(self, n_claims: int, fewest: int) -> int:
        """One a thread, no more than pay for themselves, and none too large."""
        return self.shards or max(self.n_threads(n_claims, fewest), -(-n_claims // LARGE))

    def n_threads(self, n_claims: int, fewest: int) -> int:
        """How many may work on so many claims in one piece: no more than pay for themselves."""
        return min(self._threads(), 1 + n_claims // fewest)

    def map(self, work: Callable[[int], R], items: Sequence[int], stop: Event) -> list[R]:
        """Each item on a thread of its own, as many at a time as there are threads."""
        if len(items) == 1 or self._threads() == 1:
            return [work(item) for item in items]
        pool = ThreadPoolExecutor(self._threads())
        try:
            futures = [pool.submit(work, item) for item in items]
            # Not in order: what goes wrong with one item is told at once, however long the others take.
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            failed = [future for future in done if future.exception()]
            return [future.result() for future in failed or futures]
        except BaseException:
            stop.set()
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def map_sum(
        self,
        step: Callable[..., tuple[L, S]],
        shards: Sequence[Any],
        given: Any,
        prior: Any = None,
        *kept: Sequence[Any],
    ) -> tuple[Sequence[L], S]:
        """A step on every shard."""
        jobs = list(zip(shards, *kept, strict=True))
        if len(jobs) == 1 or self._threads() == 1:
            done = [step(shard, given, prior, *its) for shard, *its in jobs]
        else:
            done = list(_pool(self._threads()).map(lambda job: step(job[0], given, prior, *job[1:]), jobs))
        return [keeps for keeps, _ in done], reduce(add, (stats for _, stats in done))

    def fetch(self, kept: Sequence[Any]) -> list[Any]:
        """They are here."""
        return list(kept)

    @property
    def here(self) -> Inline:
        """All is in this process."""
        return self

    def _threads(self) -> int:
        return self.threads or _processors()


@cache
def _processors() -> int:
    return os.cpu_count() or 1


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads that stay: a sweep of a small table is over sooner than they are made."""
    return ThreadPoolExecutor(threads, "consilience")


os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not come along
