"""Samples of the objects of a large table: some tell where to look for groups, more of them who belongs where.

Which objects are chosen follows from their numbers and the seed alone, by a hash of both; shards merely count how many
claims lie below which hash. So it is the same however the table is cut, and wherever its shards are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from consilience.claims.encoding import Int, Shard, joined
from consilience.models.mss.table import Table
from consilience.results.decide import hashed

FEW_CLAIMS, FEW_OF_SOURCE, MANY_OF_SOURCE = 100_000, 10, 1_000
"""Claims in a sample of objects where groups are looked for: in all, and a source's on average; and a source's in the
larger sample that decides who belongs where. Tables less than twice as large as a sample are taken whole."""
MOST_CLAIMS = 10_000_000
"""Claims of the larger sample at the most: sources are moved in one process."""
LIGHT = 100
"""A source with no more claims is light: chance would leave it too few of them."""
BINS = 2**16
"""Hashes are counted by their first bits."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """Objects are chosen whose hash is below a bin, those of light sources below another; and all that are known.

    is_light : (n_sources,)
    """

    seed: int
    is_light: NDArray[np.bool_]
    below: int = 0
    below_light: int = 0


def samples(table: Table, seed: int) -> tuple[Table, Table]:
    """Two samples, the second with all of the first: tables in this process, or the table itself.

    All objects whose truth is known are chosen, then those of light sources, as many claims as are wanted, and as many
    again of any objects.
    """
    sizes = [max(FEW_CLAIMS, of_source * table.n_sources) for of_source in (FEW_OF_SOURCE, MANY_OF_SOURCE)]
    sizes[1] = max(sizes[0], min(sizes[1], MOST_CLAIMS))
    if table.n_claims <= 2 * sizes[0]:
        return table, table
    _, n_claims = table.runner.map_sum(claims_by_source, table.shards, None)
    chosen = Chosen(seed, n_claims <= LIGHT)
    _, counted = table.runner.map_sum(_count, table.shards, chosen)
    few, many = (
        _sample(table, chosen, counted, wanted) if table.n_claims > 2 * wanted else table for wanted in sizes
    )
    return few, few if sizes[0] == sizes[1] else many


def _sample(table: Table, chosen: Chosen, counted: Int, wanted: int) -> Table:
    any_object, of_light = (int(np.searchsorted(np.cumsum(n), wanted)) + 1 for n in counted)
    rule = replace(chosen, below=any_object, below_light=of_light)
    _, pieces = table.runner.map_sum(_choose, table.shards, rule)
    return Table.of(joined(pieces), table.n_labels, table.runner.here, table.fewest)


def claims_by_source(shard: Shard, given: None, prior: None) -> tuple[None, Int]:
    """(n_sources,) how many claims each makes."""
    return None, np.bincount(shard.claim_source, minlength=shard.n_sources)


def _count(shard: Shard, given: Chosen, prior: None) -> tuple[None, Int]:
    """(2, BINS) claims by their objects' hash: on all objects, and on those of light sources."""
    n_claims, bins = np.diff(shard.first_claim), _bins(shard, given.seed)
    of_light = np.where(_is_light(shard, given), n_claims, 0)
    counts = [np.bincount(bins, n, minlength=BINS).astype(np.int64) for n in (n_claims, of_light)]
    return None, np.stack(counts)


def _choose(shard: Shard, given: Chosen, prior: None) -> tuple[None, tuple[Shard]]:
    bins = _bins(shard, given.seed)
    chosen = (bins < given.below) | (_is_light(shard, given) & (bins < given.below_light)) | shard.is_known
    return None, (shard.of_objects(chosen),)


def _bins(shard: Shard, seed: int) -> Int:
    numbers = np.arange(shard.first_object, shard.first_object + shard.n_objects, dtype=np.uint64)
    return (hashed(numbers, seed) >> np.uint64(48)).astype(np.int64)


def _is_light(shard: Shard, given: Chosen) -> NDArray[np.bool_]:
    """(n_objects,) whether a light source claims something about it."""
    if not given.is_light.any():
        return np.zeros(shard.n_objects, np.bool_)
    of_light = given.is_light[shard.claim_source]
    has_light: NDArray[np.bool_] = np.logical_or.reduceat(of_light, shard.first_claim[:-1])
    return has_light
