"""A table of claims as the search for groups takes it: what may be true, shards, and an order of the sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from consilience.claims.encoding import Claims, Float, Int, Shard
from consilience.models.order import structural_order

MOST_LABELS = 100
"""Labels beyond which sources are not taken to have habits."""
CROWD = 2_000
"""Claims on one object beyond which nobody is moved because of it: who sits where would be compared for all pairs."""


@dataclass(frozen=True, eq=False)
class Table:
    """Claims, with what the truth may be. What a search may not need is made when it does.

    log_truth     : (n_candidates,) ln p of each candidate
    label         : (n_candidates,) its label, or 0
    log_unclaimed : (n_objects,)    ln p of a value that nobody claims
    n_labels      : labels that all objects share; 1 where there are none
    n_shards      : shards that a sweep goes through
    """

    claims: Claims
    log_truth: Float
    label: Int
    log_unclaimed: Float
    n_labels: int
    n_shards: int = 1

    @classmethod
    def of(
        cls, claims: Claims, log_truth: Float, is_known: NDArray[np.bool_] | None, n_shards: int = 1
    ) -> Table:
        """With ln p of the candidates, and of which objects it is known."""
        return cls(claims, *_domains(claims, log_truth, is_known), n_shards)

    @cached_property
    def shards(self) -> Sequence[Shard]:
        """For sweeps."""
        return self._cut(self.n_shards)

    @cached_property
    def whole(self) -> Shard:
        """All claims in one piece."""
        return self._cut(1)[0]

    @cached_property
    def uncrowded(self) -> Shard | None:
        """All claims but those on crowded objects, in one piece, for relocations; None where all are crowded."""
        chosen = np.diff(self.claims.first_claim) <= CROWD
        if chosen.all():
            return self.whole
        if not chosen.any():
            return None
        kept = np.repeat(chosen, np.diff(self.claims.first_candidate))
        some = replace(
            self,
            claims=self.claims.of_objects(chosen),
            log_truth=self.log_truth[kept],
            label=self.label[kept],
            log_unclaimed=self.log_unclaimed[chosen],
        )
        return some.whole

    @cached_property
    def order(self) -> Int:
        """Sources in an order that does not depend on their names."""
        return structural_order(self.claims)

    def _cut(self, n_shards: int) -> Sequence[Shard]:
        return list(self.claims.shards(n_shards, self.log_truth, self.label, self.log_unclaimed))


def _domains(
    claims: Claims, log_truth: Float, is_known: NDArray[np.bool_] | None
) -> tuple[Float, Int, Float, int]:
    """What the truth may be: ln p by candidate, the candidates' labels, ln p(unclaimed) by object, and the number of
    labels.

    On a common label set the shares of labels are learned, so nothing is said here but what is ruled out. Where domains
    are what was claimed, the truth may also be a value that nobody claims, as likely as each of the others: without
    it, an object on which all agree would say nothing about them.
    """
    size = np.diff(claims.first_candidate)
    label, log_unclaimed = np.zeros(claims.n_candidates, np.int32), np.full(claims.n_objects, -np.inf)
    known = np.zeros(claims.n_objects, np.bool_) if is_known is None else is_known
    if claims.domain != "claimed" and np.all(size == claims.n_values) and claims.n_values <= MOST_LABELS:
        ruled_out = np.isneginf(log_truth)
        return (
            np.where(ruled_out, -np.inf, 0.0),
            claims.candidate_value,
            log_unclaimed,
            claims.n_values,
        )
    if claims.domain == "claimed":
        log_unclaimed = np.where(known, -np.inf, -np.log(size + 1.0))
        log_truth = np.where(np.repeat(known, size), log_truth, -np.log(np.repeat(size + 1.0, size)))
    return log_truth, label, log_unclaimed, 1
