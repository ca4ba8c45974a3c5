"""A sweep on a cluster that we do not have, simulated with costs that were measured on the one we have.

The driver submits a task a shard, one after the other; processors take tasks as they come; their statistics are added
eight at a time, in a tree, by tasks that fetch them; the driver adds the last. What a task costs the driver and what a
claim costs a processor are measured (`run.py cost`); the network's speed is given.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from statistics import median
from typing import Any

from consilience.runners.cluster import ADDED_AT_A_TIME

KINDS, LABELS = 2, 4


@dataclass(frozen=True)
class Costs:
    """Seconds: of a claim on one processor, of a task to the driver, of a byte over the network and through memory."""

    a_claim: float
    a_task: float
    a_byte: float = 8 / 10e9
    a_byte_added: float = 1 / 2e9

    @classmethod
    def measured(cls, record: dict[str, Any]) -> Costs:
        """From a record of `cost`: two processors, and a sweep that does nothing."""
        seconds = 2 * median(record["inline"]) / record["n_claims"]
        return cls(seconds, median(record["empty"]) / record["shards"])


@dataclass(frozen=True)
class Plan:
    """A table and a cluster. Groups are those that have sources."""

    n_claims: int
    n_sources: int
    n_groups: int
    n_shards: int
    n_machines: int
    n_processors: int
    """Of each machine."""

    @property
    def broadcast(self) -> int:
        """Bytes that every machine is sent: of a source its group, of a group what it is like."""
        return 8 * self.n_sources + 8 * self.n_groups * KINDS * (2 + LABELS)

    @property
    def statistics(self) -> int:
        """Bytes that every shard gives: of a group how reliable it was and its habits, and twice by label of what it
        alone claimed once."""
        return 8 * self.n_groups * KINDS * (2 + LABELS + 1 + 2 * LABELS)

    @property
    def truths(self) -> int:
        """Bytes that every machine keeps of what its shards find, four candidates to ten claims."""
        return 8 * LABELS * self.n_claims // 10 // self.n_machines


def sweep(plan: Plan, costs: Costs) -> dict[str, float]:
    """Seconds of a sweep, and of its parts if each had the cluster to itself."""
    spread_out = costs.a_byte * plan.broadcast * max(plan.n_machines - 1, 0).bit_length()
    free = [spread_out] * (plan.n_machines * plan.n_processors)
    a_shard = costs.a_claim * plan.n_claims / plan.n_shards
    move = costs.a_byte * plan.statistics * (plan.n_machines > 1)
    submitted, done = 0.0, []
    for _ in range(plan.n_shards):
        submitted += costs.a_task
        begin = max(heapq.heappop(free), submitted)
        heapq.heappush(free, begin + a_shard)
        done.append(begin + a_shard)
    computed = max(done)
    while len(done) > ADDED_AT_A_TIME:
        added = []
        for i in range(0, len(done), ADDED_AT_A_TIME):
            some = done[i : i + ADDED_AT_A_TIME]
            submitted += costs.a_task
            begin = max(heapq.heappop(free), submitted, max(some))
            end = begin + len(some) * (move + costs.a_byte_added * plan.statistics)
            heapq.heappush(free, end)
            added.append(end)
        done = added
    return {
        "seconds": max(done) + len(done) * move,
        "computing": a_shard * -(-plan.n_shards // (plan.n_machines * plan.n_processors)),
        "submitting": submitted,
        "broadcast": spread_out,
        "adding": max(done) - computed,
    }
