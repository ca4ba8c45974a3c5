"""Where the ascent begins."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from consilience.claims.encoding import Claims, Int, Shard
from consilience.kernels.state import Globals, Prior
from consilience.models.mss.updates import update_sticks
from consilience.models.order import structural_order

MOST_SOURCES = 4_000
"""Sources beyond which no dendrogram is built: it takes memory and time with their square."""
MOST_PAIRS = 50_000_000
"""Pairs of claims on one object, or of the same mistake, that are compared at the most; the objects or mistakes with
the most claims are left out first."""
CUTS = np.linspace(0.1, 0.9, 9)
"""Heights at which the dendrogram is cut, as excess disagreement."""
SHRINKAGE = 3.0
"""Objects on which two sources are taken to agree by chance, beside those that they share."""


def random_start(
    claims: Claims, prior: Prior, n_groups: int, rng: np.random.Generator, *, tail: bool
) -> Globals:
    """Memberships drawn from a sparse Dirichlet; the draw follows what sources claim, not what they are called."""
    width = n_groups + tail
    weight = np.empty((claims.n_sources, width))
    weight[structural_order(claims)] = rng.dirichlet(np.full(width, 0.3), claims.n_sources)
    group = np.tile(np.arange(width, dtype=np.int32), (claims.n_sources, 1))
    return Globals(
        group=group,
        membership=weight,
        group_reliability=np.tile(prior.reliability, (n_groups, 1)),
        sticks=update_sticks(group, weight, n_groups, prior),
    )


def agreement_cuts(claims: Claims | Shard) -> Iterator[Int]:
    """Partitions by how much sources agree beyond chance, whoever is right: cuts of an average-linkage dendrogram.

    Chance is that of two claims on the same object, so a value that all claim says nothing and a rare one much.
    """
    if not 2 < claims.n_sources <= MOST_SOURCES:
        return
    n_claims = np.diff(claims.first_claim)
    votes = np.bincount(claims.claim_candidate, minlength=claims.n_candidates)
    pairs = n_claims * (n_claims - 1.0)
    by_chance = np.add.reduceat(votes * (votes - 1.0), claims.first_candidate[:-1]) / np.maximum(pairs, 1)
    in_order = np.argsort(pairs, kind="stable")
    compared = np.zeros(claims.n_objects)
    compared[in_order[np.cumsum(pairs[in_order]) <= MOST_PAIRS]] = 1.0

    ones, claim_object = np.ones(claims.n_claims), claims.claim_object()
    says = sparse.csr_array(
        (compared[claim_object], (claims.claim_source, claims.claim_candidate)),
        shape=(claims.n_sources, claims.n_candidates),
    )
    speaks = sparse.csr_array(
        (ones, (claims.claim_source, claim_object)), shape=(claims.n_sources, claims.n_objects)
    )
    agreed = (says @ says.T).toarray()
    expected = (speaks @ sparse.diags_array(compared * by_chance) @ speaks.T).toarray()
    shared = (speaks @ sparse.diags_array(compared) @ speaks.T).toarray()
    excess = (agreed - expected) / (shared - expected + SHRINKAGE)
    # Where distances are equal the linkage goes by order, so neither names nor rounding may decide it.
    order = structural_order(claims)
    distance = np.round(np.clip(1 - excess, 0.0, 2.0), 9)[np.ix_(order, order)]
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), "average")
    previous = 0
    for height in CUTS:
        group = np.empty(claims.n_sources, np.int64)
        group[order] = fcluster(tree, height, "distance")
        if group.max() not in (previous, claims.n_sources):
            previous = group.max()
            yield group
