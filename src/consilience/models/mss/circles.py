"""Circles: sources that make the same mistakes, where there are too many sources to compare them all."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import qr

from consilience.claims.encoding import Claims, Float, Int, Shard
from consilience.models.mss.starts import MOST_PAIRS

Short = NDArray[np.float32]

MOST_SHARING = 100
"""A value that more sources, or groups, claim is not rare."""
AT_ONCE, MOST_CIRCLES = 8, 128
"""Directions that are looked along at a time, and that are found at the most."""
TINY = 1e-300
DEGREE = 12
"""Multiplications by the matrix of shared mistakes, after which it is looked what stands out."""
ROUNDS = 12
"""Times that the middle of a circle is found anew."""
WITHIN, CORE = 0.5, 0.9
"""A source belongs to a circle if it lies at least this far out in its direction, of where this quantile does."""


def circles(
    claims: Claims | Shard, is_mistake: NDArray[np.bool_], chosen: Int, rng: np.random.Generator
) -> tuple[Int, ...]:
    """(n_sources,) circles of sources that make the same mistakes more often than chance would have it; -1 for those in
    none. Nobody is compared with everybody: it takes time with the number of mistakes that are shared.

    is_mistake : by candidate, whether to claim it is taken for one
    chosen     : the sources that circles are looked for among, in an order on which nothing but rounding depends

    Returns nothing where there are none. Otherwise what stands out may have two sides, as in a table with one large
    circle: first the circles on the sides that stand out further, in general the smaller ones; then on the others.
    What is taken for one circle may be several: so each is looked at again, among its own members.
    """
    says = _mistakes(claims, is_mistake)[chosen]
    found = []
    for side in _sides(says, rng):
        circle = np.full(claims.n_sources, -1)
        circle[chosen] = _taken_apart(side, says, rng)
        found.append(circle)
    return tuple(found)


def _taken_apart(circle: Int, says: Any, rng: np.random.Generator) -> Int:
    """The same circles, but that those whose members are in circles of their own are taken apart into these."""
    apart, n_apart = np.full(len(circle), -1), 0
    rest = _members(circle)
    while rest:
        members = rest.pop()
        sides = _sides(_shared(says[members]), rng)
        parts = [members[part] for side in sides[:1] for part in _members(side)]
        if sides:
            one, other = sides
            parts += [members[part] for part in _members(np.where(one < 0, other, -1))]
        if len(parts) > 1:
            rest += parts
        else:
            apart[members] = n_apart
            n_apart += 1
    return apart


def _members(circle: Int) -> list[Int]:
    """Who is in each circle."""
    return [np.flatnonzero(circle == i) for i in range(circle.max(initial=-1) + 1) if np.any(circle == i)]


def _sides(says: Any, rng: np.random.Generator) -> tuple[Int, ...]:
    """(n,) circles of those who make mistakes, on the sides that stand out further and on the others; nothing where
    there are none.

    Of the matrix of shared mistakes, scaled by how many everybody shares, chance leaves no eigenvalue beyond `_edge`.
    What stands out beyond are circles. Each has a direction of its own in the space of their eigenvectors; the rows
    that differ most show it first. Numbers are short: to look along directions takes half as long.
    """
    matrix = (says @ says.T).tocsr()
    matrix.setdiag(0.0)
    matrix.eliminate_zeros()
    matrix.sort_indices()  # so that sums do not depend on names
    n_shared = matrix.sum(axis=1, dtype=np.float64)
    scale = 1 / np.sqrt(n_shared + 1)
    matrix.data *= np.repeat(scale, np.diff(matrix.indptr)) * scale[matrix.indices]
    by_chance = _edge(says, 1 / (n_shared + 1))
    if by_chance == 0:
        return ()  # nobody shares a mistake
    common = np.sqrt(n_shared)[:, None]  # what all have in common: some make more mistakes than others
    common = (common / np.linalg.norm(common)).astype(np.float32)
    place = _standing_out(matrix, by_chance, common, min(MOST_CIRCLES, len(n_shared) // 4), rng)
    if place.shape[1] == 0:
        return ()
    _, _, differing = qr(place.T, mode="economic", pivoting=True)
    direction = place[differing[: place.shape[1]]]
    direction *= np.where(np.sum((place @ direction.T) ** 3, axis=0) >= 0, 1, -1)[:, None]
    return _along(place, direction), _along(place, -direction)


def _standing_out(matrix: Any, edge: float, common: Short, most: int, rng: np.random.Generator) -> Float:
    """Orthonormal vectors of what stands out of a matrix beyond the edge of its spectrum, and is not common to all: a
    few at a time, without those that were found before, until there are no more; then all of them together."""
    found = common
    while (n_more := min(AT_ONCE, most + 1 - found.shape[1])) > 0:
        place = rng.standard_normal((len(common), n_more), np.float32)
        for _ in range(2):
            place = _amplified(place, matrix, edge, found)
        place = _beyond(place, matrix, edge)
        if place.shape[1] == 0:
            break
        found = np.hstack([found, place])
    if found.shape[1] > 1:
        found = np.hstack([common, _beyond(_amplified(found[:, 1:], matrix, edge, common), matrix, edge)])
    return found[:, 1:].astype(np.float64)


def _beyond(place: Short, matrix: Any, edge: float) -> Short:
    """The directions within a space along which a matrix stretches beyond the edge, the most first."""
    heights, turn = np.linalg.eigh(place.T @ (matrix @ place))
    turned: Short = place @ turn[:, heights > edge][:, ::-1]
    return turned


def _amplified(place: Short, matrix: Any, edge: float, without: Short) -> Short:
    """Orthonormal vectors in which what lies beyond the edge of the spectrum is made larger, without what is known.

    Chebyshev's polynomials stay within one up to the edge and grow faster beyond than any others of their degree: of an
    eigenvalue a tenth beyond it the twelfth makes a hundred times as much, the twelfth power three times.
    """

    def times(x: Short) -> Short:
        y: Short = matrix @ x
        y -= without @ (without.T @ y)
        y /= edge
        return y

    before: Short = place - without @ (without.T @ place)
    now = times(before)
    for _ in range(DEGREE - 1):
        size = float(np.linalg.norm(now)) or 1.0  # short numbers would overflow
        before, now = now / size, (2 * times(now) - before) / size
    orthonormal: Short = np.linalg.qr(now)[0]
    return orthonormal


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
    column = (np.cumsum(counted, dtype=np.int32) - 1)[claims.claim_candidate[claim]]
    return sparse.csr_array(
        (np.ones(len(claim), np.float32), (claims.claim_source[claim], column)),
        shape=(claims.n_sources, int(counted.sum())),
    )


def _shared(says: Any) -> Any:
    """Of mistakes those that several of these make."""
    return says[:, np.bincount(says.indices, minlength=says.shape[1]) > 1]


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
