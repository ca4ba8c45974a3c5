"""The partition inference's local step, compiled. As in `numpy_partition`, but an object costs its claims, not groups ×
values; `weights` says how.
"""

from __future__ import annotations

from dataclasses import replace
from math import exp, log
from typing import NamedTuple

import numpy as np

from consilience.claims.encoding import Float, Int, Shard
from consilience.kernels.compiled import add_term, bare, fixed, inlined, once, prefetch
from consilience.kernels.state import UNIT, Beliefs, Fixed, Grouping, GroupingStats, Locals
from consilience.kernels.weights import (
    LARGE,
    LEAST,
    SMALL,
    Kinds,
    Voices,
    counts_of,
    objects_of,
    read_only,
    voices_of,
)

FEWEST_BITS, FEW = 4, 64
FEWEST = 1 << FEWEST_BITS
"""Claims up to which counting sorts fastest, and up to which insertion does."""
NEVER = np.iinfo(np.int64).max
OBJECTS_AHEAD, SPREAD = 4, 10_000
"""Objects between asking for what pairs with a single claim say and hearing it, where there are so many such pairs that
they do not lie near."""


class Apart(NamedTuple):
    """An object taken apart. Weights are scaled by the largest E of the pair. Kinds that occur are the last axis.

    kinds          : (n_kinds,)    as in Voices
    row            : (FEWEST,)     room to sort claims in
    lone           : (n,)          of a pair with a single claim, which is not among the others: key of its claim
    group, total   : (n,)          of a pair: its group and its claims
    first          : (n + 1,)      of a pair: its first cell, and past the last
    most           : (n,)          of a pair: the claims of its largest cell
    rest           : (n,)          of a pair: E of the values that it does not claim
    careless       : (n, n_kinds)  of a pair: W
    says_rest      : (n, n_kinds)  of a pair: what it says of a value that it does not claim
    per_rest       : (n, n_kinds)  of a pair: 1 / says_rest
    value, votes   : (n,)          of a cell: its place in the domain, and its claims
    weight         : (n,)          of a cell: E
    says_cell      : (n, n_kinds)  of a cell: what its pair says of it
    per_cell       : (n, n_kinds)  of a cell: 1 / says_cell
    held           : (n,)          of a cell: q(its value is the group's opinion)
    q, q_unclaimed : (K, n_kinds), (n_kinds,)   q(d, z) and q(d, unclaimed)
    scale, of_kind : (n_kinds,)    room to work in
    whole_q, whole_kind : (K, n_kinds), (n_kinds,)   q(d, z) and q(d) in fixed point
    """

    kinds: Kinds
    row: Int
    lone: Int
    group: Int
    total: Int
    first: Int
    most: Int
    rest: Float
    careless: Float
    says_rest: Float
    per_rest: Float
    value: Int
    votes: Int
    weight: Float
    says_cell: Float
    per_cell: Float
    held: Float
    q: Float
    q_unclaimed: Float
    scale: Float
    of_kind: Float
    whole_q: Int
    whole_kind: Int

    @staticmethod
    def room(shard: Shard, kinds: Kinds) -> Apart:
        """Room for any object of the shard."""
        n_kinds = len(kinds)
        n = int(shard.most_claims.max(initial=1))
        widest = max(len(shard.most_claims) - 1, 1)

        def whole() -> Int:
            return np.empty(n, np.int64)

        def by_kind() -> Float:
            return np.empty((n, n_kinds))

        return Apart(
            kinds, np.empty(FEWEST, np.int64), whole(), whole(), whole(), np.empty(n + 1, np.int64), whole(),
            np.empty(n), by_kind(), by_kind(), by_kind(), whole(), whole(), np.empty(n), by_kind(), by_kind(),
            np.empty(n), np.empty((widest, n_kinds)), np.empty(n_kinds), np.empty(n_kinds), np.empty(n_kinds),
            np.empty((widest, n_kinds), np.int64), np.empty(n_kinds, np.int64),
        )  # fmt: skip


def partition(
    shard: Shard, given: Grouping, beliefs: Beliefs, warm: Locals | None = None
) -> tuple[Locals, GroupingStats]:
    """As `numpy_partition.partition`. Of a kind that does not occur there is nothing to work out."""
    kinds = beliefs.occurring
    truth, share = np.empty(shard.n_candidates), beliefs.share[kinds]
    voices = voices_of(given, kinds, shard.n_claims)
    n_groups, (n_kinds, n_labels) = len(given.habit), share.shape
    stats = GroupingStats(
        reliable=np.zeros((n_groups, n_kinds, 2), np.int64),
        habit=np.zeros((n_groups, n_kinds, n_labels), np.int64),
        habit_rest=np.zeros((n_groups, n_kinds), np.int64),
        share=np.zeros(share.shape, np.int64),
        counts=np.zeros((4, 2), np.int64),
        terms=np.zeros((1, 2), np.int64),
        single=np.zeros((n_groups if n_labels > 1 else 0, n_labels, 2 * n_kinds), np.int64),
    )
    _partition(
        objects_of(shard), voices, said_by_singles(voices, beliefs), counts_of(shard, beliefs, int(given.size.max())),
        share.T.copy(), np.empty(int(shard.most_claims.max(initial=1)), np.int64), Apart.room(shard, voices.kinds),
        truth, stats.reliable, stats.habit, stats.habit_rest, stats.share, stats.counts, stats.terms,
        stats.single.reshape(-1, 2 * n_kinds),
    )  # fmt: skip
    return Locals(truth), stats if n_kinds == beliefs.n_kinds else _of_all_kinds(stats, beliefs)


def _of_all_kinds(stats: GroupingStats, beliefs: Beliefs) -> GroupingStats:
    """Those of the kinds that occur, with nothing of the others."""

    def among(part: Fixed, axis: int) -> Fixed:
        whole = np.zeros((*part.shape[:axis], beliefs.n_kinds, *part.shape[axis + 1 :]), np.int64)
        np.moveaxis(whole, axis, 0)[beliefs.occurring] = np.moveaxis(part, axis, 0)
        return whole

    (n_groups, n_labels, _), n_kinds = stats.single.shape, len(stats.share)
    single = among(stats.single.reshape(n_groups, n_labels, 2, n_kinds), 3)
    return replace(
        stats,
        reliable=among(stats.reliable, 1),
        habit=among(stats.habit, 1),
        habit_rest=among(stats.habit_rest, 1),
        share=among(stats.share, 0),
        single=single.reshape(n_groups, n_labels, 2 * beliefs.n_kinds),
    )


def said_by_singles(voices: Voices, beliefs: Beliefs) -> Float:
    """(n_groups n_labels, 2 n_kinds) what a pair with a single claim says of other values, and of its own how many
    times as much. It follows from its group and the claim's label alone. Most pairs are such, and what they leave in
    the statistics is linear in q: so it is summed by group and label first, and `completed` does the rest."""
    n_groups, n_labels, n_kinds = voices.habit.shape
    said = np.empty((n_groups * n_labels, 2 * n_kinds))
    _say_singles(voices, beliefs.false_count / beliefs.true_count, said)
    return said


@bare
def _say_singles(voices, rest, said):  # type: ignore[no-untyped-def]
    n_groups, n_labels, _ = voices.habit.shape
    for g in range(n_groups):
        for k in range(n_labels):
            for d in range(len(voices.kinds)):
                right, own = voices.right[g, d], voices.habit[g, k, d]
                careless = max(voices.habits[g, d] - own, 0.0) * rest + own
                says_rest = max(right * rest + careless, LEAST)
                said[g * n_labels + k, d] = says_rest
                said[g * n_labels + k, len(voices.kinds) + d] = max(right + careless, LEAST) / says_rest


def completed(stats: GroupingStats, given: Grouping, beliefs: Beliefs) -> GroupingStats:
    """The statistics of all objects, with what pairs with a single claim add to them."""
    if not stats.single.size:
        return stats
    sums = [part.copy() for part in (stats.reliable, stats.habit, stats.habit_rest, stats.counts)]
    _complete(read_only(stats.single), voices_of(given), beliefs.true_count, beliefs.false_count, *sums)
    reliable, habit, habit_rest, counts = sums
    return replace(
        stats, reliable=reliable, habit=habit, habit_rest=habit_rest, counts=counts, single=stats.single[:0]
    )


@bare
def _complete(single, voices, eta, theta, reliable, habit, habit_rest, counts):  # type: ignore[no-untyped-def]
    """Nothing is found as a difference: of many claims it would be noise, and careless weights can be very small. What
    is summed is in fixed point, so that the order of groups does not show."""
    n_groups, n_labels, _ = voices.habit.shape
    rest = theta / eta
    for g in range(n_groups):
        for k in range(n_labels):
            for d in range(len(voices.kinds)):
                true, all_ = single[g, k, d] * UNIT, single[g, k, len(voices.kinds) + d] * UNIT
                if all_ == 0.0:
                    continue
                right, own = voices.right[g, d], voices.habit[g, k, d]
                careless = max(voices.habits[g, d] - own, 0.0) * rest + own
                says_rest, says_cell = max(right * rest + careless, LEAST), max(right + careless, LEAST)
                false = max(all_ - true, 0.0)
                per_habit = true / says_cell + false / says_rest
                held = true * (right / says_cell)
                reliable[g, d, 0] += fixed(per_habit * careless)
                reliable[g, d, 1] += fixed(held + false * (right * rest / says_rest))
                habit[g, d, k] += fixed(per_habit * own * (1.0 - rest))
                habit_rest[g, d] += fixed(per_habit * voices.wrong[g, d] * rest)
                held += per_habit * own
                add_term(counts, 0, held / eta)
                add_term(counts, 2, (all_ - held) / theta)


@bare
def _shell_sort(key, at, n):  # type: ignore[no-untyped-def]
    """Sort n keys from `at` on."""
    gap = 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(at + gap, at + n):
            new, j = key[i], i
            while j >= at + gap and key[j - gap] > new:
                key[j] = key[j - gap]
                j -= gap
            key[j] = new
        gap //= 3


@inlined
def sort_claims(m, objects, voices, key, at, apart):  # type: ignore[no-untyped-def]
    """The claims of object m, group and value in one number, sorted, from `at` on."""
    first, past, start = objects.first_claim[m], objects.first_claim[m + 1], objects.first_candidate[m]
    if past - first <= FEWEST:
        # What is foreseen to the end is fastest: each is compared with all, and where it belongs is counted.
        row = apart.row
        for i in range(FEWEST):
            row[i] = NEVER
        for i in range(past - first):
            g, y = voices.group[objects.claim_source[first + i]], objects.claim_candidate[first + i] - start
            row[i] = (((g << objects.bits) + y) << FEWEST_BITS) + i  # no two are equal
        for i in range(past - first):
            place = 0
            for j in range(FEWEST):
                place += row[j] < row[i]
            key[at + place] = row[i] >> FEWEST_BITS
        return
    is_short = past - first <= FEW
    for i in range(first, past):
        new = (voices.group[objects.claim_source[i]] << objects.bits) + (objects.claim_candidate[i] - start)
        j = at + i - first
        if is_short:
            while j > at and key[j - 1] > new:
                key[j] = key[j - 1]
                j -= 1
        key[j] = new
    if not is_short:
        _shell_sort(key, at, past - first)


@inlined
def domain_of(m, objects):  # type: ignore[no-untyped-def]
    """K_m, the unclaimed value included where it is possible."""
    size = objects.first_candidate[m + 1] - objects.first_candidate[m]
    return size + (1 if objects.log_unclaimed[m] > -np.inf else 0)


@once
def set_aside(n_claims, key, bits, apart):  # type: ignore[no-untyped-def]
    """Of sorted claims, set aside those that are the only ones of their group; returns how many, and how many stay."""
    n_lone, n_left, j = 0, 0, 0
    while j < n_claims:
        past = ((key[j] >> bits) + 1) << bits
        if j + 1 < n_claims and key[j + 1] < past:
            while j < n_claims and key[j] < past:
                key[n_left] = key[j]
                n_left += 1
                j += 1
        else:
            apart.lone[n_lone] = key[j]
            n_lone += 1
            j += 1
    return n_lone, n_left


@inlined
def take_apart(m, key, at, n_claims, without, objects, voices, counts, apart):  # type: ignore[no-untyped-def]
    """Take claims of object m apart, sorted, without one of this key (-1: with all). Returns the number of pairs."""
    start, bits = objects.first_candidate[m], objects.bits
    n_pairs, n_cells = 0, 0
    past, last = np.int64(-1), np.int64(-1)
    for j in range(at, at + n_claims):
        new = key[j]
        if new == without:
            without = np.int64(-1)
            continue
        if new == last:
            apart.votes[n_cells - 1] += 1
        else:
            last = new
            if new >= past:
                group = new >> bits
                past = (group + 1) << bits
                apart.group[n_pairs] = group
                apart.total[n_pairs] = 0
                apart.most[n_pairs] = 1
                apart.first[n_pairs] = n_cells
                n_pairs += 1
            apart.value[n_cells] = new & ((1 << bits) - 1)
            apart.votes[n_cells] = 1
            n_cells += 1
        apart.total[n_pairs - 1] += 1
        apart.most[n_pairs - 1] = max(apart.most[n_pairs - 1], apart.votes[n_cells - 1])
    apart.first[n_pairs] = n_cells

    n_labels = voices.habit.shape[1]
    even = 1.0 if n_labels > 1 else 1.0 / domain_of(m, objects)
    for p in range(n_pairs):
        g, most, c = apart.group[p], apart.most[p], apart.first[p]
        rest = counts.rest[most]
        apart.rest[p] = rest
        if apart.first[p + 1] == c + 1:  # most pairs have one cell, and its weight is one
            apart.weight[c] = 1.0
            label = objects.label[start + apart.value[c]] if n_labels > 1 else 0
            for d in range(len(voices.kinds)):
                own = voices.habit[g, label, d] * even
                careless = max(voices.habits[g, d] - own, 0.0) * rest + own
                says_rest = max(voices.right[g, d] * rest + careless, LEAST)
                says_cell = max(voices.right[g, d] + careless, LEAST)
                both = 1.0 / (says_rest * says_cell)
                apart.careless[p, d] = careless
                apart.says_rest[p, d] = says_rest
                apart.says_cell[c, d] = says_cell
                apart.per_rest[p, d] = both * says_cell
                apart.per_cell[c, d] = both * says_rest
            continue
        for c in range(apart.first[p], apart.first[p + 1]):
            votes = apart.votes[c]
            apart.weight[c] = 1.0 if votes == most else exp(counts.swap[votes] - counts.swap[most])
        for d in range(len(voices.kinds)):
            unclaimed, weight = voices.habits[g, d], 0.0
            for c in range(apart.first[p], apart.first[p + 1]):
                label = objects.label[start + apart.value[c]] if n_labels > 1 else 0
                own = voices.habit[g, label, d] * even
                unclaimed -= own
                weight += own * apart.weight[c]
            careless = max(unclaimed, 0.0) * rest + weight
            apart.careless[p, d] = careless
            apart.says_rest[p, d] = max(voices.right[g, d] * rest + careless, LEAST)
            apart.per_rest[p, d] = 1.0 / apart.says_rest[p, d]
            for c in range(apart.first[p], apart.first[p + 1]):
                apart.says_cell[c, d] = max(voices.right[g, d] * apart.weight[c] + careless, LEAST)
                apart.per_cell[c, d] = 1.0 / apart.says_cell[c, d]
    return n_pairs


@inlined
def before(m, objects, share, apart):  # type: ignore[no-untyped-def]
    """p(d, z) and p(d, unclaimed) of object m, before anybody speaks."""
    start, size = objects.first_candidate[m], objects.first_candidate[m + 1] - objects.first_candidate[m]
    n_labels = len(share)
    can_be_unclaimed = objects.log_unclaimed[m] > -np.inf
    for d in range(len(apart.kinds)):
        apart.scale[d] = 1.0
        apart.q_unclaimed[d] = share[0, d] * exp(objects.log_unclaimed[m]) if can_be_unclaimed else 0.0
        for k in range(size):
            log_truth = objects.log_truth[start + k]
            of_label = share[objects.label[start + k] if n_labels > 1 else 0, d]
            apart.q[k, d] = of_label if log_truth == 0.0 else of_label * exp(log_truth)


@inlined
def hear(k, d, size, says, ratio, apart):  # type: ignore[no-untyped-def]
    """Somebody says so much of kind d, and of value k so many times as much as of others."""
    q, scale = apart.q, apart.scale
    scale[d] *= says
    q[k, d] *= ratio
    if q[k, d] > LARGE:
        scale[d] *= LARGE
        apart.q_unclaimed[d] /= LARGE
        for other in range(size):
            q[other, d] /= LARGE


@inlined
def scaled(apart):  # type: ignore[no-untyped-def]
    """Scale what has been said, where it is too small or too large; returns the logarithm of what is taken out."""
    highest = 0.0
    for d in range(len(apart.kinds)):
        highest = max(highest, apart.scale[d])
    if SMALL < highest < LARGE:
        return 0.0
    for d in range(len(apart.kinds)):
        apart.scale[d] /= highest
    return log(highest)


@once
def fetch_singles(m, n_labels, objects, voices, said, single):  # type: ignore[no-untyped-def]
    """Have what pairs with a single claim say of object m fetched, and where it is counted: they lie anywhere, and to
    wait for them would take longer than the work."""
    for i in range(objects.first_claim[m], objects.first_claim[m + 1]):
        label = objects.label[objects.claim_candidate[i]]
        at = voices.group[objects.claim_source[i]] * n_labels + label
        prefetch(said, at)
        prefetch(single, at)


@once
def hear_singles(m, n_lone, n_labels, objects, said, apart):  # type: ignore[no-untyped-def]
    """What pairs with a single claim say of object m; returns the logarithm of what is taken out."""
    start, size = objects.first_candidate[m], objects.first_candidate[m + 1] - objects.first_candidate[m]
    log_scale = 0.0
    for j in range(n_lone):
        g, k = apart.lone[j] >> objects.bits, apart.lone[j] & ((1 << objects.bits) - 1)
        at = g * n_labels + objects.label[start + k]
        for d in range(len(apart.kinds)):
            hear(k, d, size, said[at, d], said[at, len(apart.kinds) + d], apart)
        log_scale += scaled(apart)
    return log_scale


@inlined
def hear_pairs(m, n_pairs, objects, apart):  # type: ignore[no-untyped-def]
    """What the other pairs say; returns the logarithm of what is taken out."""
    size = objects.first_candidate[m + 1] - objects.first_candidate[m]
    log_scale = 0.0
    for p in range(n_pairs):
        for d in range(len(apart.kinds)):
            says = apart.says_rest[p, d]
            for c in range(apart.first[p], apart.first[p + 1]):
                hear(apart.value[c], d, size, says, apart.per_rest[p, d] * apart.says_cell[c, d], apart)
                says = 1.0
        log_scale += scaled(apart)
    return log_scale


@inlined
def normalise(m, objects, apart):  # type: ignore[no-untyped-def]
    """q(d, z) and q(d, unclaimed) of object m, of which all has been said; returns the logarithm of their sum."""
    size = objects.first_candidate[m + 1] - objects.first_candidate[m]
    q, q_unclaimed, scale = apart.q, apart.q_unclaimed, apart.scale
    total = 0.0
    for d in range(len(apart.kinds)):
        q_unclaimed[d] *= scale[d]
        total += q_unclaimed[d]
        for k in range(size):
            q[k, d] *= scale[d]
            total += q[k, d]
    per_total = 1.0 / total
    for d in range(len(apart.kinds)):
        q_unclaimed[d] *= per_total
        for k in range(size):
            q[k, d] *= per_total
    return log(total)


@bare
def _partition(  # type: ignore[no-untyped-def]
    objects, voices, said, counts, share_of_label, key, apart, truth,
    reliable, habit, habit_rest, share, slopes, terms, single,
):  # fmt: skip
    n_labels = len(share_of_label)
    q, q_unclaimed, whole_q = apart.q, apart.q_unclaimed, apart.whole_q
    of_kind, whole_kind = apart.of_kind, apart.whole_kind
    n_objects, is_spread = len(objects.first_claim) - 1, len(said) > SPREAD and n_labels > 1
    for m in range(n_objects):
        start, size = objects.first_candidate[m], objects.first_candidate[m + 1] - objects.first_candidate[m]
        domain = domain_of(m, objects)
        if is_spread and m + OBJECTS_AHEAD < n_objects:
            fetch_singles(m + OBJECTS_AHEAD, n_labels, objects, voices, said, single)
        n_lone, n_left = 0, objects.first_claim[m + 1] - objects.first_claim[m]
        sort_claims(m, objects, voices, key, np.int64(0), apart)
        if n_labels > 1:
            n_lone, n_left = set_aside(n_left, key, objects.bits, apart)
        n_pairs = take_apart(m, key, np.int64(0), n_left, np.int64(-1), objects, voices, counts, apart)
        before(m, objects, share_of_label, apart)
        evidence = hear_singles(m, n_lone, n_labels, objects, said, apart) + hear_pairs(
            m, n_pairs, objects, apart
        )
        evidence += normalise(m, objects, apart)

        claimed = 0.0
        for d in range(len(apart.kinds)):
            of_kind[d] = q_unclaimed[d]
            share[d, 0] += fixed(q_unclaimed[d])
            for k in range(size):
                of_kind[d] += q[k, d]
                whole_q[k, d] = fixed(q[k, d])
                share[d, objects.label[start + k] if n_labels > 1 else 0] += whole_q[k, d]
            whole_kind[d] = fixed(of_kind[d])
            claimed += of_kind[d] - q_unclaimed[d]
        per_claimed = 1.0 / claimed if claimed > 0.0 else 0.0
        for k in range(size):
            of_value = 0.0
            for d in range(len(apart.kinds)):
                of_value += q[k, d]
            truth[start + k] = of_value * per_claimed if claimed > 0.0 else 1.0 / size

        even = 1.0 if n_labels > 1 else 1.0 / domain
        at = counts.first_total[domain] + 1
        evidence += n_lone * (counts.swap[1] + counts.as_false[1] - counts.log_total[at])
        slope_all, gain_true, gain_false = n_lone * counts.slope_total[at], 0.0, 0.0
        for j in range(n_lone):
            g, k = apart.lone[j] >> objects.bits, apart.lone[j] & ((1 << objects.bits) - 1)
            place = g * n_labels + objects.label[start + k]
            for d in range(len(apart.kinds)):
                single[place, d] += whole_q[k, d]
                single[place, len(apart.kinds) + d] += whole_kind[d]
        for p in range(n_pairs):
            g, first, past = apart.group[p], apart.first[p], apart.first[p + 1]
            at = counts.first_total[domain] + apart.total[p]
            evidence += counts.swap[apart.most[p]] - counts.log_total[at]
            slope_all += counts.slope_total[at]
            for c in range(first, past):
                apart.held[c] = 0.0
            for d in range(len(apart.kinds)):
                right, elsewhere, reliable_mass = voices.right[g, d], of_kind[d], 0.0
                for c in range(first, past):
                    here = q[apart.value[c], d]
                    elsewhere -= here
                    mass = here * right * apart.weight[c] * apart.per_cell[c, d]
                    reliable_mass += mass
                    apart.held[c] += mass
                reliable_mass += max(elsewhere, 0.0) * right * apart.rest[p] * apart.per_rest[p, d]
                careless_mass = max(of_kind[d] - reliable_mass, 0.0)
                reliable[g, d, 1] += fixed(reliable_mass)
                reliable[g, d, 0] += fixed(careless_mass)
                per_habit = careless_mass / max(apart.careless[p, d], LEAST)
                for c in range(first, past):
                    label = objects.label[start + apart.value[c]] if n_labels > 1 else 0
                    own = per_habit * voices.habit[g, label, d] * even
                    apart.held[c] += own * apart.weight[c]
                    if n_labels > 1:
                        habit[g, d, label] += fixed(own * (apart.weight[c] - apart.rest[p]))
                if n_labels > 1:
                    habit_rest[g, d] += fixed(per_habit * voices.wrong[g, d] * apart.rest[p])
            for c in range(first, past):
                votes = apart.votes[c]
                evidence += counts.as_false[votes]
                gain_true += apart.held[c] * counts.slope_true[votes]
                gain_false += (1.0 - apart.held[c]) * counts.slope_false[votes]
        add_term(slopes, 0, gain_true)
        add_term(slopes, 1, slope_all)
        add_term(slopes, 2, gain_false)
        add_term(slopes, 3, (domain - 1) * slope_all)
        add_term(terms, 0, evidence)
