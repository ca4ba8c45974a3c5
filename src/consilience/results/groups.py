"""Groups as people see them: numbered from the largest, with a reliability, a kind and a weight.

Inside, group l is a row of `Globals`, in whatever order the inference left it; outside, groups are 1..G.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betaincinv

from consilience.claims.encoding import Float, Int
from consilience.kernels.state import Beliefs, Globals, Prior

if TYPE_CHECKING:
    import pyarrow as pa

INTERVAL = (0.05, 0.95)
"""The 90 % interval, as quantiles."""
COLUMNS = ("group", "n_sources", "reliability", "low", "high", "kind", "weight")
"""Of the table of groups."""


@dataclass(frozen=True, eq=False)
class Numbering:
    """Which group each source most probably belongs to, and what that group is called.

    best   : (n_sources,)    the most probable group of each source; n_groups is the tail of unseen groups
    order  : (G,)            groups that are the best of at least one source, the largest first
    number : (n_groups + 1,) 1..G by that order, 0 for the tail and for groups nobody is in
    size   : (G,)            sources of each, by that order
    """

    best: Int
    order: Int
    number: Int
    size: Int

    @classmethod
    def of(cls, found: Globals) -> Numbering:
        """Number the groups by size; equally large ones by their first source, whatever their inner order."""
        n_sources, n_groups = len(found.group), found.n_groups
        best = found.group[np.arange(n_sources), np.argmax(found.membership, axis=1)].astype(np.int64)
        size = np.bincount(best, minlength=n_groups + 1)[:n_groups]
        first_source = np.full(n_groups + 1, n_sources)
        np.minimum.at(first_source, best, np.arange(n_sources))
        order = np.lexsort((first_source[:n_groups], -size))
        order = order[size[order] > 0]
        number = np.zeros(n_groups + 1, np.int64)
        number[order] = np.arange(1, len(order) + 1)
        return cls(best, order, number, size[order])

    @property
    def of_source(self) -> Int:
        """(n_sources,) the number of each source's group, 0 where it has none."""
        return self.number[self.best]

    @property
    def n_shared(self) -> int:
        """Groups of several sources: 1..n_shared. To readers the others are sources on their own."""
        return int(np.count_nonzero(self.size > 1))

    @property
    def n_apart(self) -> int:
        """Sources in a group of their own, or in none."""
        return len(self.best) - int(self.size[: self.n_shared].sum())


def groups_table(found: Globals | None, prior: Prior | Beliefs | None) -> pa.Table:
    """group, n_sources, reliability, low, high, kind, weight: a row for every group that has sources.

    `kind` is "reliable" when E[u] ≥ ½; below it, "malicious" if the prior lets unreliable groups avoid the
    truth (θ⁰ > η⁰) and "careless" if it lets them be anywhere. `weight` is E λ, the share of sources such a
    group draws.
    """
    import pyarrow as pa

    whole, real = pa.int64(), pa.float64()
    types = (whole, whole, real, real, real, pa.string(), real)
    schema = pa.schema(list(zip(COLUMNS, types, strict=True)))
    if found is None:
        return schema.empty_table()
    numbering = Numbering.of(found)
    order = numbering.order
    unreliable, reliable = found.group_reliability[order].T
    mean = reliable / (reliable + unreliable)
    low, high = (betaincinv(reliable, unreliable, q) for q in INTERVAL)
    avoids_truth = isinstance(prior, Prior) and bool(prior.false_count[0] > prior.true_count[0])
    columns = [
        np.arange(1, len(order) + 1),
        numbering.size,
        mean,
        low,
        high,
        np.where(mean >= 0.5, "reliable", "malicious" if avoids_truth else "careless").tolist(),
        expected_weights(found.sticks)[order],
    ]
    return pa.table([pa.array(column) for column in columns], schema=schema)


def expected_weights(sticks: Float) -> Float:
    """(n_groups,) E λ_l = E ρ_l Π_{i<l} E(1 - ρ_i)."""
    broken: Float = sticks[:, 0] / sticks.sum(axis=1)
    left: Float = np.concatenate([[1.0], np.cumprod(1 - broken)[:-1]])
    return broken * left
