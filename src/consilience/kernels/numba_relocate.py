"""The relocation of sources, compiled. As in `numpy_partition`, but a source costs its claims and those of others on
their objects.

What is said of every object is kept (`numba_heard`). A source is divided out of its objects to be weighed
(`numba_weigh`), and multiplied in where it ends if that is elsewhere.

To weigh a source changes nothing that others see. So where not too many move, all of a block are weighed side by side,
and those that would move once more in their order, against where they would go: each move is exact. Who would go
elsewhere since others moved is asked again in the next pass.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from consilience.claims.encoding import Int, Shard, offsets
from consilience.kernels.compiled import bare, compiled, once
from consilience.kernels.numba_heard import Heard, hear_all, note_moved, set_single, set_singles
from consilience.kernels.numba_weigh import (
    ANY,
    NONE,
    OWN,
    Groups,
    Landmarks,
    Priors,
    Scratch,
    Sources,
    copy_matrix,
    weigh,
)
from consilience.kernels.numpy_partition import OF_ITS_OWN, unknown_where_absent
from consilience.kernels.state import Beliefs, Grouping
from consilience.kernels.weights import counts_of, objects_of, voices_of

TOGETHER = 20_000
"""Claims of the sources that are weighed side by side."""
RESTLESS = 20
"""How many of them may change for the next to be weighed so: with more, what was weighed would be of long ago."""
UNROLLED_KINDS = 1
"""Kinds that code is compiled for: with two it gains nothing that would be worth the wait."""
OFTEN = 4.0
"""Times that a source meets each group, on average, beyond which all are weighed exactly: few could be ruled out."""


def relocate(
    shard: Shard, given: Grouping, beliefs: Beliefs, order: Int, threads: int = 1
) -> tuple[Grouping, int, float]:
    """As `numpy_partition.relocate`. Of a kind that does not occur there is nothing to work out."""
    given, gain = unknown_where_absent(given, beliefs)
    kinds, group = beliefs.occurring, given.group.copy()
    reliability, habit = (part[:, kinds].copy() for part in (given.reliability, given.habit))
    first_of_source = offsets(shard.claim_source, len(group))
    objects = objects_of(shard)
    voices = voices_of(given, kinds, shard.n_claims, UNROLLED_KINDS)._replace(group=group)
    groups = Groups(given.size.copy(), reliability, habit)
    counts = counts_of(shard, beliefs, len(group))
    heard = Heard.room(shard, *habit.shape)
    priors = Priors.of(beliefs)
    object_of, value_of, meets, n_candidates = _by_source(objects, first_of_source)
    is_close = meets > OFTEN * np.count_nonzero(given.size)
    sources = Sources(first_of_source, object_of, value_of, is_close)
    state = sources, objects, voices, groups, counts, priors, heard
    landmarks = Landmarks.among(voices, groups.size)
    most = int(np.diff(first_of_source).max(initial=1)), int(n_candidates.max(initial=1))
    rooms = [Scratch.room(shard, *most, voices, landmarks) for _ in range(threads)]
    n_claims = np.concatenate([[0], np.diff(first_of_source)[order].cumsum()])

    def hear(first: int, past: int, scratch: Scratch) -> None:
        hear_all(first, past, objects, voices, counts, priors.share, heard, scratch.apart)

    def look(first: int, past: int, scratch: Scratch) -> None:
        _relocate(order[first:past], proposed[first:past], True, *state, scratch)

    def propose(first: int, past: int) -> None:
        """Where each would go; every thread looks at as many claims."""
        cuts = np.linspace(n_claims[first], n_claims[past], threads + 1)[1:-1]
        ends = [first, *(first + np.searchsorted(n_claims[first:past], cuts)).tolist(), past]
        list(pool.map(look, ends[:-1], ends[1:], rooms))  # all have ended before anything changes

    set_singles(voices, counts, heard)
    at, moved, is_calm = 0, 0, False
    proposed = np.full(len(order), ANY)
    with ThreadPoolExecutor(threads) as pool:
        ends = [shard.n_objects * part // threads for part in range(threads + 1)]
        list(pool.map(hear, ends[:-1], ends[1:], rooms))
        while at < len(order):
            past = min(max(at + 1, int(np.searchsorted(n_claims, n_claims[at] + TOGETHER))), len(order))
            if is_calm:
                propose(at, past)
            asked = at + np.flatnonzero(proposed[at:past] != NONE)
            changed, n_moved, risen = _relocate(order[asked], proposed[asked], False, *state, rooms[0])
            moved, gain = moved + n_moved, gain + risen
            is_calm = changed <= RESTLESS
            at = past
    given.reliability[:, kinds], given.habit[:, kinds] = reliability, habit
    return Grouping(group, given.reliability, given.habit), moved, gain


@compiled
def _by_source(objects, first_of_source):  # type: ignore[no-untyped-def]
    """(n_claims,) each: the objects that a source claims, and the place of its claim in their domain. (n_sources,)
    each: how many other claims there are on its objects, and how many candidates."""
    place = first_of_source[:-1].copy()
    object_of = np.empty(len(objects.claim_source), np.int32)
    value_of = np.empty_like(object_of)
    meets, n_candidates = np.zeros_like(place), np.zeros_like(place)
    for m in range(len(objects.first_claim) - 1):
        n_claims = objects.first_claim[m + 1] - objects.first_claim[m]
        size = objects.first_candidate[m + 1] - objects.first_candidate[m]
        for i in range(objects.first_claim[m], objects.first_claim[m + 1]):
            n = objects.claim_source[i]
            object_of[place[n]], value_of[place[n]] = (
                m,
                objects.claim_candidate[i] - objects.first_candidate[m],
            )
            place[n] += 1
            meets[n] += n_claims - 1
            n_candidates[n] += size
    return object_of, value_of, meets, n_candidates


@once
def _seat(n, to, empty, voices, groups, counts, priors, heard, lone):  # type: ignore[no-untyped-def]
    """Source n leaves its group for another, or for one of its own, where it may be. Returns a group below which none
    is empty."""
    old = voices.group[n]
    alone = groups.size[old] == 1
    if alone and to >= 0:
        empty = min(empty, old)
        copy_matrix(priors.reliability, groups.reliability[old])
        copy_matrix(priors.habit, groups.habit[old])
    if to < 0:
        while not alone and groups.size[empty] > 0:
            empty += 1
        to = old if alone else empty
        copy_matrix(lone.beta, groups.reliability[to])
        copy_matrix(lone.alpha, groups.habit[to])
        copy_matrix(lone.habit, voices.habit[to])
        for d in range(len(voices.kinds)):
            voices.right[to, d] = lone.right[d]
            voices.habits[to, d] = lone.habits[d]
        set_single(to, voices, counts, heard)
    groups.size[old] -= 1
    groups.size[to] += 1
    voices.group[n] = to
    return empty


@bare
def _relocate(  # type: ignore[no-untyped-def]
    order, proposed, only_look, sources, objects, voices, groups, counts, priors, heard, scratch
):  # fmt: skip
    """Weigh sources in their order, each against ANY group or the one that is proposed, and move them, or only propose
    where. Returns how many changed, how many of those moved, and how much the bound rose."""
    empty, changed, moved, gain = np.int64(0), 0, 0, 0.0
    for i in range(len(order)):
        n = order[i]
        old = voices.group[n]
        to, risen = weigh(n, proposed[i], sources, objects, voices, groups, counts, priors, heard, scratch)
        stays = to == old or (to == OWN and groups.size[old] == 1)
        changes = risen > (OF_ITS_OWN if stays else 1e-9)
        if only_look:
            proposed[i] = to if changes else NONE
        elif changes:
            changed += 1
            moved += 0 if stays else 1
            gain += risen
            empty = _seat(n, to, empty, voices, groups, counts, priors, heard, scratch.lone)
            first, at_q = sources.first[n], np.int64(0)
            for j in range(sources.first[n + 1] - first):
                m, y = np.int64(sources.object_of[first + j]), np.int64(sources.value_of[first + j])
                at_q = note_moved(
                    m, old, voices.group[n], y, j, at_q, scratch.without, objects, voices, counts, priors.share,
                    heard, scratch.apart,
                )  # fmt: skip
    return changed, moved, gain
