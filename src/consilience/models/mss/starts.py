"""Where the ascent begins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.linalg import qr
from scipy.spatial.distance import squareform

from consilience.claims.encoding import Claims, Float, Int, Shard
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
MOST_SHARING = 100
"""A value that more sources, or groups, claim is not rare."""
FIRST_CIRCLES, SPARE, MOST_CIRCLES = 8, 4, 128
"""Directions that are looked along: so many at first, twice as many as long as fewer than so many do not stand out, and
at most."""
TINY = 1e-300
DEGREE = 12
"""Multiplications by the matrix of shared mistakes, after which it is looked what stands out."""
ROUNDS = 12
"""Times that the middle of a circle is found anew."""
WITHIN, CORE = 0.5, 0.9
"""A source belongs to a circle if it lies at least this far out in its direction, of where this quantile does."""


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


def circles(
    claims: Claims | Shard, is_mistake: NDArray[np.bool_], chosen: Int, rng: np.random.Generator
) -> tuple[Int, ...]:
    """(n_sources,) circles of sources that make the same mistakes more often than chance would have it; -1 for those in
    none. Nobody is compared with everybody: it takes time with the number of mistakes that are shared.

    is_mistake : by candidate, whether to claim it is taken for one
    chosen     : the sources that circles are looked for among, in an order on which nothing but rounding depends

    Returns nothing where there are none. Otherwise what stands out may have two sides, as in a table with one large
    circle: first the circles on the sides that stand out further, in general the smaller ones; then on the others.

    Of the matrix of shared mistakes, scaled by how many everybody shares, chance leaves no eigenvalue beyond `_edge`.
    What stands out beyond are circles. Each has a direction of its own in the space of their eigenvectors; the rows
    that differ most show it first.
    """
    says = _mistakes(claims, is_mistake)[chosen]
    matrix = (says @ says.T).tocsr()
    matrix.setdiag(0.0)
    matrix.eliminate_zeros()
    matrix.sort_indices()  # so that sums do not depend on names
    n_shared = matrix.sum(axis=1)
    scale = 1 / np.sqrt(n_shared + 1)
    matrix.data *= np.repeat(scale, np.diff(matrix.indptr)) * scale[matrix.indices]
    by_chance = _edge(says, 1 / (n_shared + 1))
    if by_chance == 0:
        return ()  # nobody shares a mistake
    common = np.sqrt(n_shared)[:, None]  # what all have in common: some make more mistakes than others
    common /= max(float(np.linalg.norm(common)), TINY)

    most, n_circles, before = min(MOST_CIRCLES, len(chosen) // 4), 0, -1
    place = rng.standard_normal((len(chosen), min(FIRST_CIRCLES, most)))
    while n_circles > before:
        place, _ = np.linalg.qr(_amplified(place, matrix, by_chance, common))
        heights, turn = np.linalg.eigh(place.T @ (matrix @ place))
        place = place @ turn[:, ::-1]
        before, n_circles = n_circles, int(np.sum(heights > by_chance))
        if place.shape[1] - n_circles < SPARE and place.shape[1] < most:
            more = min(place.shape[1], most - place.shape[1])
            place, before = np.hstack([place, rng.standard_normal((len(chosen), more))]), -1
    if n_circles == 0:
        return ()
    place = place[:, :n_circles]
    _, _, differing = qr(place.T, mode="economic", pivoting=True)
    direction = place[differing[:n_circles]]
    direction *= np.where(np.sum((place @ direction.T) ** 3, axis=0) >= 0, 1, -1)[:, None]
    found = []
    for side in (1, -1):
        circle = np.full(claims.n_sources, -1)
        circle[chosen] = _along(place, side * direction)
        found.append(circle)
    return tuple(found)


def _amplified(place: Float, matrix: Any, edge: float, common: Float) -> Float:
    """Vectors with what lies beyond the edge of the spectrum made larger, and nothing of what all have in common.

    Chebyshev's polynomials stay within one up to the edge and grow faster beyond than any others of their degree: of an
    eigenvalue a tenth beyond it the twelfth makes a hundred times as much, the twelfth power three times.
    """

    def times(x: Float) -> Float:
        y: Float = matrix @ x
        y -= common @ (common.T @ y)
        y /= edge
        return y

    before: Float = place - common @ (common.T @ place)
    now = times(before)
    for _ in range(DEGREE - 1):
        before, now = now, 2 * times(now) - before
    return now


def _along(place: Float, direction: Float) -> Int:
    """(n,) the direction that each row lies far out in, -1 where it does in none."""
    n_circles = len(direction)
    for _ in range(ROUNDS):
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        along = place @ direction.T
        nearest, far = along.argmax(axis=1), along.max(axis=1)
        core = np.zeros(n_circles)
        for i in np.unique(nearest):
            core[i] = np.quantile(far[nearest == i], CORE)
        inside = np.flatnonzero(far > WITHIN * core[nearest])
        entries = np.ones(len(inside)), (nearest[inside], inside)
        within = sparse.csr_array(entries, shape=along.T.shape) @ place
        direction = np.where(np.any(within, axis=1, keepdims=True), within, direction)
    circle = np.full(len(place), -1)
    circle[inside] = nearest[inside]
    return circle


def circle_partitions(claims: Claims | Shard, order: Int, rng: np.random.Generator) -> tuple[Int, ...]:
    """Partitions by shared mistakes, before anything is known of the truth: a mistake is what less than half of the
    claims on its object are for."""
    alone = np.arange(claims.n_sources)
    return tuple(together(alone, circle) for circle in circles(claims, is_minority(claims), order, rng))


def together(group: Int, circle: Int) -> Int:
    """The same groups, but that those in a circle are in the group of its first source."""
    merged, inside = group.copy(), np.flatnonzero(circle >= 0)
    _, first, which = np.unique(circle[inside], return_index=True, return_inverse=True)
    merged[inside] = group[inside[first[which]]]
    return merged


def is_minority(claims: Claims | Shard) -> NDArray[np.bool_]:
    """(n_candidates,) whether less than half of the claims on its object are for it."""
    votes = np.bincount(claims.claim_candidate, minlength=claims.n_candidates)
    minority: NDArray[np.bool_] = 2 * votes < np.repeat(
        np.diff(claims.first_claim), np.diff(claims.first_candidate)
    )
    return minority


def _mistakes(claims: Claims | Shard, is_mistake: NDArray[np.bool_]) -> Any:
    """(n_sources, n) who makes which of the mistakes that several make, but not many; the rarest, where all would make
    too many pairs."""
    votes = np.bincount(claims.claim_candidate, minlength=claims.n_candidates)
    counted = is_mistake & (votes > 1) & (votes <= MOST_SHARING)
    n_pairs = np.bincount(votes[counted], minlength=MOST_SHARING + 1) * np.arange(MOST_SHARING + 1) ** 2
    counted &= votes < np.searchsorted(n_pairs.cumsum(), MOST_PAIRS, side="right")
    claim = np.flatnonzero(counted[claims.claim_candidate])
    column = (np.cumsum(counted) - 1)[claims.claim_candidate[claim]]
    return sparse.csr_array(
        (np.ones(len(claim)), (claims.claim_source[claim], column)),
        shape=(claims.n_sources, int(counted.sum())),
    )


def _edge(says: Any, weight: Float) -> float:
    """The largest eigenvalue that chance leaves of how many mistakes each two sources share, scaled by their weights.

    Were entries independent it would be twice the root of a row's variance (Wigner's semicircle). But those who make
    one mistake all share it: the matrix is a sum of cliques, one a mistake. If these lie at random, it is
    2 √κ₂ + κ₃ / κ₂ (Marchenko and Pastur's law), where κ₂ and κ₃ are a row's share of the traces of their squares and
    cubes: exact where all mistakes are shared by equally many.
    """
    one, two, three = (says.T @ weight**power for power in (1, 2, 3))
    squares, cubes = np.sum(one**2 - two), np.sum(one**3 - 3 * one * two + 2 * three)
    return float(2 * np.sqrt(max(squares, 0.0) / max(len(weight), 1)) + cubes / max(squares, TINY))
