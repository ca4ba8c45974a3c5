"""What several tests need to look into the search for groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.claims.encoding import Claims, Int
from consilience.datasets.simulated import Simulated
from consilience.kernels.choose import choose
from consilience.models.base import truth_prior
from consilience.models.mss.search import Search
from consilience.models.mss.table import Table, with_domains
from consilience.results.fit import Fit
from consilience.runners.inline import Inline


def table_of(claims: Claims, known: Any = None) -> Table:
    """A table as MSS sets it up, in one shard."""
    whole, n_labels = with_domains(*truth_prior(claims, known))
    return Table.of(whole, n_labels, Inline(1, 1), fewest=1)


def search_of(
    claims: Claims | Table,
    *,
    engine: str = "numba",
    concentration: float | None = None,
    max_sweeps: int = 300,
    tolerance: float = 1e-5,
) -> Search:
    """A search as MSS sets it up, of a table or of claims with no truth known."""
    if isinstance(claims, Claims):
        claims = table_of(claims)
    return Search(
        table=claims,
        kernel=choose(engine),
        concentration=concentration,
        max_sweeps=max_sweeps,
        tolerance=tolerance,
    )


def planted_groups(data: Simulated, claims: Claims) -> Int:
    """(n_sources,) the planted group of each source, in the order of the claims."""
    table = data.groups.to_pydict()
    group = dict(zip(table["source"], table["group"], strict=True))
    return np.array([group[name.as_py()] for name in claims.sources])


def groups_of(fit: Fit) -> Int:
    """(n_sources,) the group that each source was found in."""
    assert fit.groups_found is not None
    found: Int = fit.groups_found.group[:, 0]
    return found


def adjusted_rand(one: Any, other: Any) -> float:
    """How far two partitions agree on pairs, 0 by chance and 1 when they are the same (Hubert and Arabie, 1985)."""
    table = np.zeros((len(set(one)), len(set(other))))
    np.add.at(table, tuple(np.unique(each, return_inverse=True)[1] for each in (one, other)), 1)

    def pairs(count: Any) -> float:
        return float(np.sum(count * (count - 1) / 2))

    both, of_one, of_other = pairs(table), pairs(table.sum(axis=1)), pairs(table.sum(axis=0))
    by_chance = of_one * of_other / pairs(table.sum())
    most = (of_one + of_other) / 2
    return 1.0 if most == by_chance else (both - by_chance) / (most - by_chance)
