"""A table of claims as the search for groups takes it: shards that a runner holds, and what may be true in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consilience.claims.encoding import Claims, Float, Int, Shard, joined
from consilience.models.base import MOST_LABELS
from consilience.models.order import structural_order
from consilience.runners.base import Runner

CROWD = 2_000
"""Claims on one object beyond which nobody is moved because of it: who sits where would be compared for all pairs."""


@dataclass(frozen=True, eq=False)
class Table:
    """Shards, here or elsewhere, and the runner that can work on them.

    n_labels    : labels that all objects share; 1 where there are none
    domain_size : values that an object may take, the median
    fewest      : claims below which a shard of their own costs more than it saves
    whole       : all of them in one piece, where they are in this process
    """

    runner: Runner
    shards: Sequence[Any]
    n_sources: int
    n_claims: int
    n_labels: int
    domain_size: int
    fewest: int
    whole: Shard | None = None

    @classmethod
    def of(cls, whole: Shard, n_labels: int, runner: Runner, fewest: int) -> Table:
        """Objects in this process, cut for the runner."""
        shards = list(whole.cut(runner.n_shards(whole.n_claims, fewest)))
        domain_size = median_size([n_by_size(whole)])
        return cls(runner, shards, whole.n_sources, whole.n_claims, n_labels, domain_size, fewest, whole)

    @cached_property
    def here(self) -> Shard:
        """All objects in one piece, in this process: what moves sources looks at all that they say."""
        if self.whole is not None:
            return self.whole
        _, pieces = self.runner.map_sum(_piece, self.shards, None)
        return joined(pieces)

    @cached_property
    def uncrowded(self) -> Shard | None:
        """All objects but the crowded ones, in one piece, for relocations; None where all are crowded."""
        chosen = np.diff(self.here.first_claim) <= CROWD
        return self.here.of_objects(chosen) if chosen.any() else None

    @property
    def threads(self) -> int:
        """How many may work on all objects in one piece."""
        return self.runner.here.n_threads(self.n_claims, self.fewest)

    @cached_property
    def order(self) -> Int:
        """Sources in an order that does not depend on their names."""
        return structural_order(self.here)


def n_by_size(shard: Shard) -> Int:
    """(largest + 1,) how many objects have a domain of each size; values that nobody claims are one."""
    sizes = np.diff(shard.first_candidate)
    return np.bincount(sizes + (shard.log_unclaimed > -np.inf) if len(shard.log_unclaimed) else sizes)


def median_size(counted: Sequence[Int]) -> int:
    """The median domain size of all objects, of so many in each shard."""
    total = np.zeros(max(map(len, counted)), np.int64)
    for n in counted:
        total[: len(n)] += n
    return int(np.searchsorted(np.cumsum(total), total.sum() / 2))


def _piece(shard: Shard, given: None, prior: None) -> tuple[None, tuple[Shard]]:
    return None, (shard,)


def with_domains(claims: Claims, log_truth: Float, is_known: NDArray[np.bool_] | None) -> tuple[Shard, int]:
    """The claims in one piece with what the truth may be, ln p by candidate, and the number of labels.

    On a common label set the shares of labels are learned, so nothing is said here but what is ruled out. Where domains
    are what was claimed, the truth may also be a value that nobody claims, as likely as each of the others: without
    it, an object on which all agree would say nothing about them.
    """
    size = np.diff(claims.first_candidate)
    label: Int = np.zeros(claims.n_candidates, np.int32)
    n_labels = 1
    log_unclaimed = np.full(claims.n_objects, -np.inf)
    known = np.zeros(claims.n_objects, np.bool_) if is_known is None else is_known
    if claims.domain != "claimed" and np.all(size == claims.n_values) and claims.n_values <= MOST_LABELS:
        log_truth = np.where(np.isneginf(log_truth), -np.inf, 0.0)
        label, n_labels = claims.candidate_value, claims.n_values
    elif claims.domain == "claimed":
        log_unclaimed = np.where(known, -np.inf, -np.log(size + 1.0))
        log_truth = np.where(np.repeat(known, size), log_truth, -np.log(np.repeat(size + 1.0, size)))
    (whole,) = claims.shards(1, log_truth, label, log_unclaimed, known)
    return whole, n_labels
