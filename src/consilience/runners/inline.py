"""This process: shards on a few threads (kernels release the interpreter's lock)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import reduce
from operator import add
from threading import Event
from typing import ClassVar

from consilience.claims.encoding import Shard
from consilience.errors import SettingsError
from consilience.kernels.choose import G, P, S, Step
from consilience.kernels.state import Locals
from consilience.runners.base import R

SMALL = 50_000
"""Claims below which a second thread costs more than it saves."""


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

    def n_shards(self, n_claims: int) -> int:
        """One a thread, and no more than pay for themselves."""
        return self.shards or min(self._threads(), 1 + n_claims // SMALL)

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
        self, step: Step[G, P, S], shards: Sequence[Shard], given: G, prior: P, warm: Sequence[Locals | None]
    ) -> tuple[Sequence[Locals], S]:
        """One local step on every shard."""
        if len(shards) == 1 or self._threads() == 1:
            done = [step(shard, given, prior, w) for shard, w in zip(shards, warm, strict=True)]
        else:
            with ThreadPoolExecutor(self._threads()) as pool:
                done = list(
                    pool.map(
                        lambda pair: step(pair[0], given, prior, pair[1]), zip(shards, warm, strict=True)
                    )
                )
        return [locals_ for locals_, _ in done], reduce(add, (stats for _, stats in done))

    def _threads(self) -> int:
        return self.threads or os.cpu_count() or 1
