"""Who depends on whom: the probability that two sources share a group, and what that leaves of their number.

Memberships are sparse, and groups are the inverted index from which pairs are found, so the work follows the
sizes of groups. A group of n sources still has n (n - 1) / 2 pairs; where too many would be listed, none are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from consilience.claims.encoding import Claims, Float, Int
from consilience.errors import InputError, SettingsError
from consilience.kernels.state import Globals

MOST_PAIRS = 10_000_000
"""Pairs that are listed at the most: a table of them takes about a gigabyte."""


@dataclass(frozen=True, eq=False)
class EffectiveSources:
    """How many independent sources a table is worth: n² / ΣΣ p_ab, the effective sample size of Kish.

    p_ab is the probability that a and b share a group (p_aa = 1): n sources who never share are worth n, n
    copies of one are worth 1.

    overall    : over all sources
    per_object : (n_objects,) over the sources that claim the object, in the order of the objects
    """

    overall: float
    per_object: Float

    def __repr__(self) -> str:
        return f"EffectiveSources(overall={self.overall:.4g}, per_object=<{len(self.per_object):,} objects>)"


def memberships(found: Globals) -> sparse.csr_array:
    """(n_sources, n_groups) q(g_n = l) without the tail: two sources in it are in different groups of it."""
    source, slot = np.nonzero((found.membership > 0) & (found.group >= 0) & (found.group < found.n_groups))
    entries = (found.membership[source, slot], (source, found.group[source, slot]))
    return sparse.csr_array(entries, shape=(len(found.group), found.n_groups))


def dependent_pairs(found: Globals, min_probability: float) -> tuple[Int, Int, Float]:
    """Pairs of sources a < b that share a group with at least this probability: a, b, Σ_l q(g_a=l) q(g_b=l).

    The most probable first. Exact without trying all pairs: if a and b had no group that both are in with at
    least half the probability asked for, the sum would stay below it. So a source has few groups to look in,
    at most 2 / min_probability. InputError where groups are so large that the pairs would fill the memory.
    """
    if not 0 < min_probability <= 1:
        raise SettingsError("min_probability", "above 0 and at most 1", min_probability)
    member = memberships(found)
    likely = member.multiply(member >= 0.5 * min_probability).tocsr()
    size = likely.count_nonzero(axis=0)
    n_pairs = int(np.sum(size * (size - 1) // 2))
    if n_pairs > MOST_PAIRS:
        raise InputError(
            f"{n_pairs:,} pairs of sources may share a group with a probability of {min_probability:g} or more; "
            f"at most {MOST_PAIRS:,} are listed. Raise min_probability, or use the column 'group' of fit.sources, "
            "which says in a row for each source who is together."
        )
    pairs = sparse.triu(likely @ likely.T, k=1).tocoo()
    a, b = pairs.row.astype(np.int64), pairs.col.astype(np.int64)
    probability = np.minimum(_shared(member, a, b), 1.0)
    kept = np.flatnonzero(probability >= min_probability)
    kept = kept[np.lexsort((b[kept], a[kept], -probability[kept]))]
    return a[kept], b[kept], probability[kept]


def effective_sources(claims: Claims, found: Globals | None) -> EffectiveSources:
    """The worth of all sources, and of those on each object; without groups every source counts in full."""
    n_claims = np.diff(claims.first_claim).astype(np.float64)
    if found is None:
        return EffectiveSources(float(claims.n_sources), n_claims)
    member = memberships(found)
    alone = 1.0 - _row_sums(member.multiply(member))  # what p_aa = 1 adds to the sum of squares
    shared = float(np.sum(np.asarray(member.sum(axis=0)) ** 2))
    overall = claims.n_sources**2 / (shared + float(alone.sum())) if claims.n_sources else 0.0

    ones = np.ones(claims.n_claims)
    claimed_by = sparse.csr_array(
        (ones, claims.claim_source, claims.first_claim), shape=(claims.n_objects, claims.n_sources)
    )
    in_group = claimed_by @ member  # (n_objects, n_groups)
    together = _row_sums(in_group.multiply(in_group)) + claimed_by @ alone
    return EffectiveSources(overall, n_claims**2 / together)


def _shared(member: sparse.csr_array, a: Int, b: Int, block: int = 1_000_000) -> Float:
    """Σ_l q(g_a=l) q(g_b=l) for each pair, a block of pairs at a time."""
    shared = np.empty(len(a))
    for start in range(0, len(a), block):
        part = slice(start, start + block)
        shared[part] = _row_sums(member[a[part]].multiply(member[b[part]]))
    return shared


def _row_sums(matrix: sparse.csr_array) -> Float:
    return np.asarray(matrix.sum(axis=1), np.float64).ravel()
