"""What is said of every object while sources are moved, compiled: kept in linear weights, of which a source's claim is
divided out, and into which it is multiplied.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from consilience.claims.encoding import Float, Int, Shard
from consilience.kernels.compiled import bare, inlined, once, prefetch
from consilience.kernels.numba_partition import (
    OBJECTS_AHEAD,
    SPREAD,
    before,
    hear,
    hear_pairs,
    normalise,
    scaled,
    sort_claims,
    take_apart,
)
from consilience.kernels.weights import LARGE, LEAST, SMALL

AHEAD = 8
"""Claims of a source between asking for an object and working on it; it is asked where it lies as many before."""
CARELESS, PER_REST, PER_CELL, HABIT = range(4)
"""Of a pair with a single claim, where there are labels: W, 1 / what it says of other values, and of its own, and its
group's habit: together, with two kinds, a line of the processor's cache."""
RIGHT, HABITS = range(2)
LINE = 64
"""Bytes of such a line."""
UPWARD = 1.0 + 2.0**-22
"""To half as many digits nothing that is multiplied by this is rounded down."""
NO, YES = np.int64(0), np.int64(1)
"""Not False and True: as literals they would be types of their own, and what takes them compiled for each."""


def lines(shape: tuple[int, ...]) -> Float:
    """Zeros that begin where a line of the cache does."""
    n_bytes = 8 * math.prod(shape)
    room = np.zeros(n_bytes + LINE, np.uint8)
    first = -room.ctypes.data % LINE
    return room[first : first + n_bytes].view(np.float64).reshape(shape)


class Heard(NamedTuple):
    """Objects as they stand while sources are moved.

    key         : (n_claims,)              group and value of every claim in one number, sorted within its object
    q           : (n_candidates, n_kinds)  q(d, z)
    q_unclaimed : (n_objects, n_kinds)     q(d, unclaimed)
    single      : (n_groups n_labels, 4, n_kinds) what a pair with a single claim says, by its group and, within it,
                  label; none where there are no labels
    likeness    : (n_groups, 2, n_kinds)   RIGHT and HABITS of groups, as in Voices; likewise
    to_one      : (n_groups, n, n_kinds)   what groups are like, made to sum to one by kind and rounded up: u, then
                  (1 - u) ξ by label; n is at least n_labels + 1, and makes whole lines
    """

    key: Int
    q: Float
    q_unclaimed: Float
    single: Float
    likeness: Float
    to_one: NDArray[np.float32]

    @staticmethod
    def room(shard: Shard, n_groups: int, n_kinds: int, n_labels: int) -> Heard:
        """Room for all objects of the shard."""
        return Heard(
            np.empty(len(shard.claim_source), np.int64),
            np.empty((shard.n_candidates, n_kinds)),
            np.empty((shard.n_objects, n_kinds)),
            lines((n_groups * n_labels if n_labels > 1 else 0, 4, n_kinds)),
            lines((n_groups if n_labels > 1 else 0, 2, n_kinds)),
            lines((n_groups, -(-n_kinds * (n_labels + 1) * 4 // LINE) * LINE // 8))
            .view(np.float32)
            .reshape(n_groups, -1, n_kinds),
        )


class Without(NamedTuple):
    """What is said of a source's objects without it, one after the other.

    q           : (n_candidates, n_kinds)  q(d, z)
    q_unclaimed : (n_claims, n_kinds)      q(d, unclaimed)
    """

    q: Float
    q_unclaimed: Float


@once
def fetch(j, past, object_of, objects, heard):  # type: ignore[no-untyped-def]
    """Objects lie anywhere, and to wait for them would take longer than the work: have those of claims soon to come
    fetched."""
    if j + 2 * AHEAD < past:
        m = object_of[j + 2 * AHEAD]
        prefetch(objects.first_claim, m)
        prefetch(objects.first_candidate, m)
    if j + AHEAD < past:
        m = object_of[j + AHEAD]
        start, at = objects.first_candidate[m], objects.first_claim[m]
        prefetch(objects.log_unclaimed, m)
        prefetch(heard.q_unclaimed, m)
        prefetch(heard.key, at)
        prefetch(heard.key, objects.first_claim[m + 1] - 1)
        prefetch(heard.q, start)
        prefetch(heard.q, objects.first_candidate[m + 1] - 1)
        prefetch(objects.label, start)


@inlined
def end_of_run(at, past, bits, key):  # type: ignore[no-untyped-def]
    """Past the last claim of the group whose first one is at `at`."""
    of_next = ((key[at] >> bits) + 1) << bits
    at += 1
    while at < past and key[at] < of_next:
        at += 1
    return at


@inlined
def _run_of(m, g, objects, key):  # type: ignore[no-untyped-def]
    """Where the claims of group g on object m begin and end."""
    first = objects.first_claim[m]
    while key[first] >> objects.bits != g:
        first += 1
    return first, end_of_run(first, objects.first_claim[m + 1], objects.bits, key)


@bare
def _hear_several(m, at, past, without, back, objects, voices, counts, key, apart):  # type: ignore[no-untyped-def]
    """As `_hear_group`, of several claims."""
    size = objects.first_candidate[m + 1] - objects.first_candidate[m]
    n_pairs = take_apart(m, key, at, past - at, without, objects, voices, counts, apart)
    if not back:
        hear_pairs(m, n_pairs, objects, apart)
        return
    for d in range(len(apart.kinds)):
        says = apart.per_rest[0, d]
        for c in range(apart.first[0], apart.first[1]):
            hear(apart.value[c], d, size, says, apart.says_rest[0, d] * apart.per_cell[c, d], apart)
            says = 1.0
    scaled(apart)


@inlined
def _hear_group(m, at, past, without, back, objects, voices, counts, heard, apart):  # type: ignore[no-untyped-def]
    """What the claims of one group, from `at` on, say of object m, without one of this key (-1: with all); or take it
    back."""
    start, size = objects.first_candidate[m], objects.first_candidate[m + 1] - objects.first_candidate[m]
    key, n = heard.key, past - at - (1 if without >= 0 else 0)
    if n == 1 and len(heard.single) > 0:
        only = key[at] if key[at] != without else key[at + 1]
        g, k = only >> objects.bits, only & ((1 << objects.bits) - 1)
        single = heard.single[g * voices.habit.shape[1] + objects.label[start + k]]
        for d in range(len(apart.kinds)):
            right = heard.likeness[g, RIGHT, d]
            says_rest = max(right * counts.rest[1] + single[CARELESS, d], LEAST)
            says_cell = max(right + single[CARELESS, d], LEAST)
            if back:
                hear(k, d, size, single[PER_REST, d], says_rest * single[PER_CELL, d], apart)
            else:
                hear(k, d, size, says_rest, single[PER_REST, d] * says_cell, apart)
        scaled(apart)
    elif n > 0:
        _hear_several(m, at, past, without, back, objects, voices, counts, key, apart)


@inlined
def _keep(m, objects, heard, apart):  # type: ignore[no-untyped-def]
    """Note what is said of object m."""
    start, size = objects.first_candidate[m], objects.first_candidate[m + 1] - objects.first_candidate[m]
    for d in range(len(apart.kinds)):
        heard.q_unclaimed[m, d] = apart.q_unclaimed[d]
        for k in range(size):
            heard.q[start + k, d] = apart.q[k, d]


@once
def _recall(m, objects, share, heard, apart):  # type: ignore[no-untyped-def]
    """What was noted of object m; returns whether all that may be true is probable enough to have kept its digits."""
    start, size = objects.first_candidate[m], objects.first_candidate[m + 1] - objects.first_candidate[m]
    is_exact = True
    for d in range(len(apart.kinds)):
        apart.scale[d] = 1.0
        apart.q_unclaimed[d] = heard.q_unclaimed[m, d]
        if apart.q_unclaimed[d] < SMALL and objects.log_unclaimed[m] > -np.inf:
            is_exact = False
        for k in range(size):
            apart.q[k, d] = heard.q[start + k, d]
            if apart.q[k, d] < SMALL and objects.log_truth[start + k] > -np.inf:
                is_exact = False
    return is_exact


@bare
def _hear_object(m, g, y, objects, voices, counts, share, heard, apart):  # type: ignore[no-untyped-def]
    """All that is said of object m, without a claim of y by group g (-1: with all)."""
    before(m, objects, share, apart)
    at, past = objects.first_claim[m], objects.first_claim[m + 1]
    while at < past:
        first, at = at, end_of_run(at, past, objects.bits, heard.key)
        is_own = heard.key[first] >> objects.bits == g
        without = (g << objects.bits) + y if is_own else np.int64(-1)
        _hear_group(m, first, at, without, NO, objects, voices, counts, heard, apart)
    normalise(m, objects, apart)


@once
def take_out(m, g, y, objects, voices, counts, share, heard, apart):  # type: ignore[no-untyped-def]
    """What is said of object m without a claim of y by group g. Mostly it is the group's only one, on a common label
    set: then it is `change` in one go."""
    first, past = _run_of(m, g, objects, heard.key)
    start, size = objects.first_candidate[m], objects.first_candidate[m + 1] - objects.first_candidate[m]
    is_exact = past - first == 1 and len(heard.single) > 0 and objects.log_unclaimed[m] == -np.inf
    if is_exact:
        single, total = heard.single[g * voices.habit.shape[1] + objects.label[start + y]], 0.0
        for d in range(len(apart.kinds)):
            says_rest = max(heard.likeness[g, RIGHT, d] * counts.rest[1] + single[CARELESS, d], LEAST)
            ratio, says = says_rest * single[PER_CELL, d], single[PER_REST, d]
            apart.q_unclaimed[d] = 0.0
            for k in range(size):
                q = heard.q[start + k, d]
                if q < SMALL:
                    is_exact = False
                q = (q * ratio if k == y else q) * says
                apart.q[k, d] = q
                total += q
        is_exact &= SMALL < total < LARGE
        per_total = 1.0 / total
        for d in range(len(apart.kinds)):
            for k in range(size):
                apart.q[k, d] *= per_total
    if not is_exact:
        change(m, g, y, YES, objects, voices, counts, share, heard, apart)


@inlined
def change(m, g, y, out, objects, voices, counts, share, heard, apart):  # type: ignore[no-untyped-def]
    """What is said of object m without a claim of y by group g, or with it, where it is noted without. What its group
    says is taken back and said anew; where digits may be lost, all is."""
    if not _recall(m, objects, share, heard, apart):
        _hear_object(m, g if out else np.int64(-1), y, objects, voices, counts, share, heard, apart)
        return
    first, past = _run_of(m, g, objects, heard.key)
    own, none = (g << objects.bits) + y, np.int64(-1)
    _hear_group(m, first, past, none if out else own, YES, objects, voices, counts, heard, apart)
    _hear_group(m, first, past, own if out else none, NO, objects, voices, counts, heard, apart)
    normalise(m, objects, apart)


@once
def _rekey(m, old, new, objects, key):  # type: ignore[no-untyped-def]
    """One claim of object m has another key; the claims stay sorted."""
    first, past = objects.first_claim[m], objects.first_claim[m + 1]
    i = first
    while key[i] != old:
        i += 1
    while i + 1 < past and key[i + 1] < new:
        key[i] = key[i + 1]
        i += 1
    while i > first and key[i - 1] > new:
        key[i] = key[i - 1]
        i -= 1
    key[i] = new


@bare
def note_moved(m, old, g, y, j, at_q, without, objects, voices, counts, share, heard, apart):  # type: ignore[no-untyped-def]
    """A source's claim j, of y on object m, is no longer the old group's but g's. What is said without it is given from
    `at_q` on; returns where the source's next object begins."""
    start, size = objects.first_candidate[m], objects.first_candidate[m + 1] - objects.first_candidate[m]
    for d in range(len(apart.kinds)):
        heard.q_unclaimed[m, d] = without.q_unclaimed[j, d]
        for k in range(size):
            heard.q[start + k, d] = without.q[at_q + k, d]
    _rekey(m, (old << objects.bits) + y, (g << objects.bits) + y, objects, heard.key)
    change(m, g, y, NO, objects, voices, counts, share, heard, apart)
    _keep(m, objects, heard, apart)
    return at_q + size


@bare
def hear_all(first, past, objects, voices, counts, share, heard, apart):  # type: ignore[no-untyped-def]
    """Note what is said of some objects."""
    n_labels, is_spread = voices.habit.shape[1], len(heard.single) > SPREAD
    for m in range(first, past):
        if is_spread and m + OBJECTS_AHEAD < past:
            for i in range(
                objects.first_claim[m + OBJECTS_AHEAD], objects.first_claim[m + OBJECTS_AHEAD + 1]
            ):
                g = voices.group[objects.claim_source[i]]
                prefetch(heard.single, g * n_labels + objects.label[objects.claim_candidate[i]])
                prefetch(heard.likeness, g)
        sort_claims(m, objects, voices, heard.key, objects.first_claim[m], apart)
        _hear_object(m, np.int64(-1), np.int64(0), objects, voices, counts, share, heard, apart)
        _keep(m, objects, heard, apart)


@bare
def set_single(g, voices, counts, heard):  # type: ignore[no-untyped-def]
    """What group g is like, and a single claim of it says."""
    rest, n_labels = counts.rest[1], voices.habit.shape[1]
    for d in range(len(voices.kinds)):
        per_whole = UPWARD / (voices.right[g, d] + voices.habits[g, d])
        heard.to_one[g, 0, d] = voices.right[g, d] * per_whole
        for k in range(n_labels):
            heard.to_one[g, 1 + k, d] = voices.habit[g, k, d] * per_whole
    for d in range(len(voices.kinds) if len(heard.single) > 0 else 0):
        right, habits = voices.right[g, d], voices.habits[g, d]
        heard.likeness[g, RIGHT, d] = right
        heard.likeness[g, HABITS, d] = habits
        for k in range(n_labels):
            own = voices.habit[g, k, d]
            careless = max(habits - own, 0.0) * rest + own
            single = heard.single[g * n_labels + k]
            single[CARELESS, d] = careless
            single[PER_REST, d] = 1.0 / max(right * rest + careless, LEAST)
            single[PER_CELL, d] = 1.0 / max(right + careless, LEAST)
            single[HABIT, d] = own


@bare
def set_singles(voices, counts, heard):  # type: ignore[no-untyped-def]
    """Likewise of all groups."""
    for g in range(len(voices.right)):
        set_single(g, voices, counts, heard)
