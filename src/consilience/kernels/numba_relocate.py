"""The relocation of sources, compiled. As in `numpy_partition`, but a source costs its claims and those of others on
their objects.

What is said of every object is kept, in linear weights: a source is divided out of its objects, and multiplied in where
it ends. One claim more multiplies E by (η + n) / (θ + n). Which groups are better than where it is now is decided
exactly; most are ruled out before by a tangent of the evidence, which is concave in what a group is like.
"""

from __future__ import annotations

from math import exp, lgamma, log
from typing import NamedTuple

import numpy as np

from consilience.claims.encoding import Float, Int, Shard, offsets
from consilience.kernels.compiled import bare, compiled, digamma, inlined, prefetch
from consilience.kernels.numba_partition import (
    Apart,
    before,
    domain_of,
    hear,
    hear_pairs,
    normalise,
    scaled,
    sort_claims,
    take_apart,
)
from consilience.kernels.state import KINDS, Beliefs, Grouping
from consilience.kernels.weights import LARGE, LEAST, SMALL, Voices, counts_of, objects_of, voices_of

SETTLING = 3
"""Updates in which a source that may stand alone finds its own reliability."""
AHEAD = 8
"""Claims between asking for an object and working on it; it is asked where it lies as many before."""
CARELESS, PER_REST, PER_CELL = range(3)
"""Of a pair with a single claim, where there are labels: W, and 1 / what it says of other values, and of its own."""
LANDMARKS = 32
"""Groups that are landmarks, at the most: their tangents tell of most others that they cannot be better."""


class Lone(NamedTuple):
    """A source, on its own: its claims, what it is like, and what `_lone` leaves of it.

    here, elsewhere : (n_claims, KINDS)     q(d, its claim is true), q(d, it is not), without it
    domain, label   : (n_claims,)           K and the claim's label, -1 where there are none
    beta, alpha     : (KINDS, 2), (KINDS, n_labels)   parameters of q(u) and q(ξ)
    log_u, log_x    : the same shapes       E ln
    right, habit, habits : (KINDS,), (n_labels, KINDS), (KINDS,)   as in Voices
    reliable, said  : (KINDS, 2), (KINDS, n_labels + 1)
    """

    here: Float
    elsewhere: Float
    domain: Float
    label: Int
    beta: Float
    alpha: Float
    log_u: Float
    log_x: Float
    right: Float
    habit: Float
    habits: Float
    reliable: Float
    said: Float

    @staticmethod
    def room(n_claims: int, n_labels: int) -> Lone:
        """Room for any source with so many claims."""
        two, each = (KINDS, 2), (KINDS, n_labels)
        return Lone(
            np.empty((n_claims, KINDS)), np.empty((n_claims, KINDS)), np.empty(n_claims), np.empty(n_claims, np.int64),
            np.empty(two), np.empty(each), np.empty(two), np.empty(each),
            np.empty(KINDS), np.empty(each[::-1]), np.empty(KINDS), np.empty(two), np.empty((KINDS, n_labels + 1)),
        )  # fmt: skip


class Landmarks(NamedTuple):
    """Groups at which a source's evidence is found, with its tangent, as soon as one is needed.

    nearest             : (n_groups,)    the landmark most like each group
    right, habit, habits : what the landmarks are like, as in Voices
    source              : (n,)           whose evidence is known
    evidence            : (n,)
    reliable, said      : (n, KINDS, 2), (n, KINDS, n_labels + 1)   as in Lone
    """

    nearest: Int
    right: Float
    habit: Float
    habits: Float
    source: Int
    evidence: Float
    reliable: Float
    said: Float

    @staticmethod
    def among(voices: Voices, size: Int) -> Landmarks:
        """A few groups that differ most from each other."""
        chosen, nearest = _landmarks(voices, size, LANDMARKS)
        n, n_labels = len(chosen), voices.habit.shape[1]
        return Landmarks(
            nearest, voices.right[chosen], voices.habit[chosen], voices.habits[chosen],
            np.full(n, -1), np.empty(n), np.empty((n, KINDS, 2)), np.empty((n, KINDS, n_labels + 1)),
        )  # fmt: skip


class Heard(NamedTuple):
    """Objects as they stand while sources are moved.

    key         : (n_claims,)              group and value of every claim in one number, sorted within its object
    q           : (n_candidates, KINDS)    q(d, z)
    q_unclaimed : (n_objects, KINDS)       q(d, unclaimed)
    single      : (n_groups, n_labels, 3, KINDS)   what a pair with a single claim says, by its group and label:
                  CARELESS, PER_REST and PER_CELL; no groups where there are no labels
    """

    key: Int
    q: Float
    q_unclaimed: Float
    single: Float

    @staticmethod
    def room(shard: Shard, n_groups: int, n_labels: int) -> Heard:
        """Room for all objects of the shard, of which nothing is noted yet: they are heard when they are needed."""
        return Heard(
            np.empty(len(shard.claim_source), np.int64),
            np.zeros((shard.n_candidates, KINDS)),
            np.zeros((shard.n_objects, KINDS)),
            np.empty((n_groups if n_labels > 1 else 0, n_labels, 3, KINDS)),
        )


class Near(NamedTuple):
    """Groups with claims on a source's objects, and what these add to the evidence, were they silent there.

    groups         : (n_groups,)   the groups, in the order met
    source         : (n_groups,)   by which source a group was met last
    nats, factor   : (n_groups,)   ln, and a factor to come
    """

    groups: Int
    source: Int
    nats: Float
    factor: Float


def relocate(shard: Shard, given: Grouping, beliefs: Beliefs, order: Int) -> tuple[Grouping, int, float]:
    """As `numpy_partition.relocate`."""
    first_of_source = offsets(shard.claim_source, len(given.group))
    most = int(np.diff(first_of_source).max(initial=1))
    group, reliability, habit = given.group.copy(), given.reliability.copy(), given.habit.copy()
    size, n, objects = given.size, len(given.reliability), objects_of(shard)
    voices = voices_of(given)._replace(group=group)
    moved, gain = _relocate(
        order, *_by_source(objects, first_of_source), first_of_source, objects,
        voices, size, reliability, habit, counts_of(shard, beliefs, len(given.group)),
        np.ascontiguousarray(beliefs.share.T), beliefs.reliability, beliefs.habit_prior, beliefs.concentration,
        Heard.room(shard, n, beliefs.n_labels), Apart.room(shard),
        Lone.room(most, beliefs.n_labels), Landmarks.among(voices, size),
        Near(np.empty(n, np.int64), np.full(n, -1), np.empty(n), np.empty(n)),
        np.empty(KINDS), np.empty(KINDS), np.empty((KINDS, 2)), np.empty((KINDS, beliefs.n_labels + 1)),
    )  # fmt: skip
    return Grouping(group, reliability, habit), int(moved), float(gain)


@bare
def _divergence(prior, parameters, log_mean):  # type: ignore[no-untyped-def]
    """KL(Dirichlet(parameters) || Dirichlet(prior)), with log_mean = E ln under the first."""
    divergence, total, prior_total = 0.0, 0.0, 0.0
    for r in range(len(prior)):
        divergence += lgamma(prior[r]) - lgamma(parameters[r]) + (parameters[r] - prior[r]) * log_mean[r]
        total += parameters[r]
        prior_total += prior[r]
    return divergence + lgamma(total) - lgamma(prior_total)


@bare
def _expected_log(parameters, out):  # type: ignore[no-untyped-def]
    total = 0.0
    for r in range(len(parameters)):
        total += parameters[r]
    total = digamma(total)
    for r in range(len(parameters)):
        out[r] = digamma(parameters[r]) - total


@compiled
def _by_source(objects, first_of_source):  # type: ignore[no-untyped-def]
    """(n_claims,) each: the objects that a source claims, and the place of its claim in their domain."""
    place = first_of_source[:-1].copy()
    object_of = np.empty(len(objects.claim_source), np.int32)
    value_of = np.empty_like(object_of)
    for m in range(len(objects.first_claim) - 1):
        for i in range(objects.first_claim[m], objects.first_claim[m + 1]):
            at = place[objects.claim_source[i]]
            object_of[at], value_of[at] = m, objects.claim_candidate[i] - objects.first_candidate[m]
            place[objects.claim_source[i]] += 1
    return object_of, value_of


@inlined
def _fetch(j, past, object_of, objects, heard):  # type: ignore[no-untyped-def]
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
def _lone(n_claims, lone, right, habit, habits, counts, reliable, said):  # type: ignore[no-untyped-def]
    """ln probability of a source's claims, were it like this and nobody else of its group on their objects.

    Leaves Σ q(r = 1, d) and Σ q(r = 0, d) in `reliable`, and in `said` the slopes of the evidence in `habit`: of each
    label beyond what all have, and in the last column what all have.
    """
    n_labels = len(habit)
    here, elsewhere, domain, label = lone.here, lone.elsewhere, lone.domain, lone.label
    eta, theta = counts.eta, counts.theta
    reliable[:] = 0.0
    said[:] = 0.0
    evidence, product = 0.0, 1.0
    for j in range(n_claims):
        per_total, each = 1.0 / (eta + (domain[j] - 1.0) * theta), 0.0
        for d in range(KINDS):
            own = habit[label[j], d] if n_labels > 1 else habit[0, d] / domain[j]
            each += right[d] * (here[j, d] * eta + elsewhere[j, d] * theta)
            each += (here[j, d] + elsewhere[j, d]) * (own * (eta - theta) + habits[d] * theta)
        product *= each * per_total
        if product < SMALL:
            evidence += log(product)
            product = 1.0
        per_each = 1.0 / each
        for d in range(KINDS):
            reliable[d, 1] += right[d] * (here[j, d] * eta + elsewhere[j, d] * theta) * per_each
            mass = (here[j, d] + elsewhere[j, d]) * per_each
            said[d, n_labels] += mass * theta
            if n_labels > 1:
                said[d, label[j]] += mass * (eta - theta)
            else:
                said[d, 0] += mass * (eta - theta) / domain[j]
    for d in range(KINDS):
        for k in range(n_labels):
            reliable[d, 0] += habit[k, d] * (said[d, k] + said[d, n_labels])
    return evidence + log(product)


@inlined
def _tangent(g, voices, right, habit, reliable, said):  # type: ignore[no-untyped-def]
    """What `_lone` would at the most be more for group g than for `right` and `habit`: it is concave in them, so it
    lies below its tangent there."""
    n_labels = len(habit)
    more = 0.0
    for d in range(KINDS):
        more += reliable[d, 1] * (voices.right[g, d] / right[d] - 1.0)
        for k in range(n_labels):
            more += (said[d, k] + said[d, n_labels]) * (voices.habit[g, k, d] - habit[k, d])
    return more


@compiled
def _landmarks(voices, size_of, most):  # type: ignore[no-untyped-def]
    """A few groups that differ most from each other, and for every group the landmark most like it."""
    n_groups, n_labels, _ = voices.habit.shape
    log_right, log_habit = np.log(voices.right), np.log(voices.habit)
    nearest, distance = np.zeros(n_groups, np.int64), np.full(n_groups, np.inf)
    chosen = np.empty(min(most, n_groups), np.int64)
    farthest, n = 0, 0
    while size_of[farthest] == 0:
        farthest += 1
    while n < len(chosen):
        p = farthest
        chosen[n] = p
        highest = 0.0
        for g in range(n_groups):
            if size_of[g] == 0:
                continue
            far = 0.0
            for d in range(KINDS):
                far += (voices.right[g, d] - voices.right[p, d]) * (log_right[g, d] - log_right[p, d])
                for k in range(n_labels):
                    far += (voices.habit[g, k, d] - voices.habit[p, k, d]) * (
                        log_habit[g, k, d] - log_habit[p, k, d]
                    )
            if far < distance[g]:
                distance[g], nearest[g] = far, n
            if distance[g] > highest:
                highest, farthest = distance[g], g
        n += 1
        if highest <= 0.0:
            break
    return chosen[:n], nearest


@inlined
def _joined(p, y, label, domain, voices, counts, apart, here, right_alone, mass):  # type: ignore[no-untyped-def]
    """How much more probable a claim of y is from a pair's group, given its claims here, than were it silent here."""
    g, eta, theta = apart.group[p], counts.eta, counts.theta
    total = eta + (domain - 1.0) * theta
    votes, weight, cell = 0, apart.rest[p], -1
    for c in range(apart.first[p], apart.first[p + 1]):
        if apart.value[c] == y:
            votes, weight, cell = apart.votes[c], apart.weight[c], c
    more = weight * counts.step[votes]
    after, before = 0.0, 0.0
    for d in range(KINDS):
        right = voices.right[g, d]
        habit = voices.habit[g, label, d] if label >= 0 else voices.habit[g, 0, d] / domain
        careless = apart.careless[p, d] + habit * (more - weight)
        left = mass[d] - here[d]
        for c in range(apart.first[p], apart.first[p + 1]):
            if c != cell:
                z = apart.q[apart.value[c], d]
                left -= z
                after += z * (right * apart.weight[c] + careless) * apart.per_cell[c, d]
        per_here = apart.per_cell[cell, d] if cell >= 0 else apart.per_rest[p, d]
        after += here[d] * (right * more + careless) * per_here
        after += max(left, 0.0) * (right * apart.rest[p] + careless) * apart.per_rest[p, d]
        before += right * right_alone[d] + mass[d] * (habit * (eta - theta) + voices.habits[g, d] * theta)
    return after * (theta + votes) * total / ((total + apart.total[p]) * before)


@inlined
def _joined_single(g, value, said, y, label, domain, voices, counts, heard, apart, here, right_alone, mass):  # type: ignore[no-untyped-def]
    """As `_joined`, of a pair with a single claim, of `value`, whose label is `said`."""
    eta, theta, rest = counts.eta, counts.theta, counts.rest[1]
    total = eta + (domain - 1.0) * theta
    after, before = 0.0, 0.0
    for d in range(KINDS):
        right, habit = voices.right[g, d], voices.habit[g, label, d]
        if value == y:
            more, of_value, of_rest = counts.step[1], here[d], mass[d] - here[d]
            careless = heard.single[g, said, CARELESS, d] + habit * (more - 1.0)
            after_rest = max(of_rest, 0.0) * (right * rest + careless)
        else:
            more, of_value, of_rest = 1.0, apart.q[value, d], mass[d] - here[d] - apart.q[value, d]
            careless = heard.single[g, said, CARELESS, d] + habit * (1.0 - rest)
            after_rest = here[d] * (right + careless) + max(of_rest, 0.0) * (right * rest + careless)
        after += of_value * (right * more + careless) * heard.single[g, said, PER_CELL, d]
        after += after_rest * heard.single[g, said, PER_REST, d]
        before += right * right_alone[d] + mass[d] * (habit * (eta - theta) + voices.habits[g, d] * theta)
    votes = theta + 1.0 if value == y else theta
    return after * votes * total / ((total + 1.0) * before)


@inlined
def _end_of_run(at, past, bits, key):  # type: ignore[no-untyped-def]
    """Past the last claim of the group whose first one is at `at`."""
    of_next = ((key[at] >> bits) + 1) << bits
    at += 1
    while at < past and key[at] < of_next:
        at += 1
    return at


@inlined
def _hear_group(m, at, past, without, back, objects, voices, counts, heard, apart):  # type: ignore[no-untyped-def]
    """What the claims of one group, from `at` on, say of object m, without one of this key (-1: with all); or take it
    back."""
    start, size = objects.first_candidate[m], objects.first_candidate[m + 1] - objects.first_candidate[m]
    key, n = heard.key, past - at - (1 if without >= 0 else 0)
    if n == 1 and len(heard.single) > 0:
        only = key[at] if key[at] != without else key[at + 1]
        g, k = only >> objects.bits, only & ((1 << objects.bits) - 1)
        single = heard.single[g, objects.label[start + k]]
        for d in range(KINDS):
            says_rest = max(voices.right[g, d] * counts.rest[1] + single[CARELESS, d], LEAST)
            says_cell = max(voices.right[g, d] + single[CARELESS, d], LEAST)
            if back:
                hear(k, d, size, single[PER_REST, d], says_rest * single[PER_CELL, d], apart)
            else:
                hear(k, d, size, says_rest, single[PER_REST, d] * says_cell, apart)
        scaled(apart)
    elif n > 0:
        n_pairs = take_apart(m, key, at, past - at, without, objects, voices, counts, apart)
        if back:
            for d in range(KINDS):
                says = apart.per_rest[0, d]
                for c in range(apart.first[0], apart.first[1]):
                    hear(apart.value[c], d, size, says, apart.says_rest[0, d] * apart.per_cell[c, d], apart)
                    says = 1.0
            scaled(apart)
        else:
            hear_pairs(m, n_pairs, objects, apart)


@inlined
def _keep(m, objects, heard, apart):  # type: ignore[no-untyped-def]
    """Note what is said of object m."""
    start, size = objects.first_candidate[m], objects.first_candidate[m + 1] - objects.first_candidate[m]
    for d in range(KINDS):
        heard.q_unclaimed[m, d] = apart.q_unclaimed[d]
        for k in range(size):
            heard.q[start + k, d] = apart.q[k, d]


@inlined
def _recall(m, objects, heard, apart):  # type: ignore[no-untyped-def]
    """What was noted of object m; returns whether all that may be true is probable enough to have kept its digits."""
    start, size = objects.first_candidate[m], objects.first_candidate[m + 1] - objects.first_candidate[m]
    is_exact = True
    for d in range(KINDS):
        apart.scale[d] = 1.0
        apart.q_unclaimed[d] = heard.q_unclaimed[m, d]
        if apart.q_unclaimed[d] < SMALL and objects.log_unclaimed[m] > -np.inf:
            is_exact = False
        for k in range(size):
            apart.q[k, d] = heard.q[start + k, d]
            if apart.q[k, d] < SMALL and objects.log_truth[start + k] > -np.inf:
                is_exact = False
    return is_exact


@inlined
def _change(m, g, y, out, objects, voices, counts, share, heard, apart):  # type: ignore[no-untyped-def]
    """A claim of y by group g, whose key is among the others, is taken out of object m, or put in.

    What its group says is taken back and said anew; where digits may be lost, or nothing is noted yet, all is.
    """
    key, bits = heard.key, objects.bits
    is_noted = _recall(m, objects, heard, apart)
    if not is_noted:
        if not out:  # all is said anew when it is next needed: what is noted stays too improbable to be used
            return
        before(m, objects, share, apart)
    at, past = objects.first_claim[m], objects.first_claim[m + 1]
    while at < past:
        first, at = at, _end_of_run(at, past, bits, key)
        is_own = key[first] >> bits == g
        if is_noted and not is_own:
            continue
        for back in range(1 if is_noted else 0, -1, -1):
            without = (g << bits) + y if is_own and out != (back == 1) else np.int64(-1)
            _hear_group(m, first, at, without, back == 1, objects, voices, counts, heard, apart)
    normalise(m, objects, apart)
    _keep(m, objects, heard, apart)


@bare
def _copy(source, target):  # type: ignore[no-untyped-def]
    """Matrix to matrix, without the room that an assignment would take."""
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            target[i, j] = source[i, j]


@bare
def _likeness(b, h, lone):  # type: ignore[no-untyped-def]
    """What a source alone is like by its parameters; returns their divergence from the prior."""
    divergence = 0.0
    for d in range(KINDS):
        _expected_log(lone.beta[d], lone.log_u[d])
        _expected_log(lone.alpha[d], lone.log_x[d])
        divergence += _divergence(b[d], lone.beta[d], lone.log_u[d])
        divergence += _divergence(h[d], lone.alpha[d], lone.log_x[d])
        lone.right[d] = max(exp(lone.log_u[d, 1]), LEAST)
        lone.habits[d] = 0.0
        for k in range(len(lone.habit)):
            lone.habit[k, d] = max(exp(lone.log_u[d, 0] + lone.log_x[d, k]), LEAST)
            lone.habits[d] += lone.habit[k, d]
    return divergence


@bare
def _learn_likeness(b, h, lone):  # type: ignore[no-untyped-def]
    """The parameters of a source alone, from what its claims say of it."""
    n_labels = len(lone.habit)
    for d in range(KINDS):
        for r in range(2):
            lone.beta[d, r] = b[d, r] + lone.reliable[d, r]
        for k in range(n_labels):
            lone.alpha[d, k] = h[d, k]
            if n_labels > 1:
                lone.alpha[d, k] += lone.habit[k, d] * (lone.said[d, k] + lone.said[d, n_labels])


@bare
def _set_single(g, voices, counts, heard):  # type: ignore[no-untyped-def]
    """What a single claim of group g says."""
    rest = counts.rest[1]
    for k in range(heard.single.shape[1] if len(heard.single) > 0 else 0):
        for d in range(KINDS):
            right, own = voices.right[g, d], voices.habit[g, k, d]
            careless = max(voices.habits[g, d] - own, 0.0) * rest + own
            heard.single[g, k, CARELESS, d] = careless
            heard.single[g, k, PER_REST, d] = 1.0 / max(right * rest + careless, LEAST)
            heard.single[g, k, PER_CELL, d] = 1.0 / max(right + careless, LEAST)


@inlined
def _meet(n, m, y, j, old, n_near, objects, voices, counts, heard, apart, lone, near, right_alone, mass):  # type: ignore[no-untyped-def]
    """What the others say of the object of source n's claim j, which is taken out of it, and what its groups would add.
    Returns how many groups have been met."""
    n_labels, bits, key, eta, theta = voices.habit.shape[1], objects.bits, heard.key, counts.eta, counts.theta
    here, elsewhere, domain, label = lone.here, lone.elsewhere, lone.domain, lone.label
    at, past, start = objects.first_claim[m], objects.first_claim[m + 1], objects.first_candidate[m]
    size = objects.first_candidate[m + 1] - start
    domain[j] = domain_of(m, objects)
    label[j] = objects.label[start + y] if n_labels > 1 else -1
    for d in range(KINDS):
        here[j, d] = apart.q[y, d]
        elsewhere[j, d] = apart.q_unclaimed[d]
        for k in range(size):
            if k != y:
                elsewhere[j, d] += apart.q[k, d]
        right_alone[d] = here[j, d] * eta + elsewhere[j, d] * theta
        mass[d] = here[j, d] + elsewhere[j, d]
    while at < past:
        first, at = at, _end_of_run(at, past, bits, key)
        g = key[first] >> bits
        without = (old << bits) + y if g == old else np.int64(-1)
        others = at - first - (1 if g == old else 0)
        if others == 0:
            continue
        if near.source[g] != n:
            near.source[g] = n
            near.nats[g], near.factor[g] = 0.0, 1.0
            near.groups[n_near] = g
            n_near += 1
        if others == 1 and n_labels > 1:
            value = (key[first] if key[first] != without else key[first + 1]) & ((1 << bits) - 1)
            near.factor[g] *= _joined_single(
                g, value, objects.label[start + value], y, label[j], domain[j], voices, counts, heard, apart,
                here[j], right_alone, mass,
            )  # fmt: skip
        else:
            take_apart(m, key, first, at - first, without, objects, voices, counts, apart)
            near.factor[g] *= _joined(
                0, y, label[j], domain[j], voices, counts, apart, here[j], right_alone, mass
            )
        if not SMALL < near.factor[g] < LARGE:
            near.nats[g] += log(near.factor[g])
            near.factor[g] = 1.0
    return n_near


@inlined
def _choose(  # type: ignore[no-untyped-def]
    n, old, n_near, n_claims, voices, size_of, reliability, habit, counts, b, h, kappa,
    lone, landmarks, near, unused, unused_said,
):  # fmt: skip
    """The group in which the bound is highest, -1 for one of its own, and by how much it rises."""
    # Alone: its own reliability and habit, from where they are or from the prior, found in a few rounds.
    alone = size_of[old] == 1
    now, value, evidence = -np.inf, 0.0, 0.0
    _copy(reliability[old] if alone else b, lone.beta)
    _copy(habit[old] if alone else h, lone.alpha)
    for r in range(SETTLING + 1):
        divergence = _likeness(b, h, lone)
        evidence = _lone(
            n_claims, lone, lone.right, lone.habit, lone.habits, counts, lone.reliable, lone.said
        )
        value = log(kappa) - divergence + evidence
        if alone and r == 0:
            now = value
        if r < SETTLING:
            _learn_likeness(b, h, lone)
    best, best_group = value, -1

    # Where it is now comes first: the higher the best so far, the more are ruled out.
    for t in range(-1, n_near):
        g = old if t < 0 else near.groups[t]
        if (g == old) != (t < 0) or (t < 0 and alone):
            continue
        if near.source[g] != n:
            near.nats[g], near.factor[g] = 0.0, 1.0
        others, more = size_of[g] - (1 if g == old else 0), 0.0
        if g != old:
            more = _tangent(g, voices, lone.right, lone.habit, lone.reliable, lone.said)
            # ln x is at most x - 1: most are ruled out without a logarithm.
            if near.nats[g] + near.factor[g] * others - 1.0 + evidence + more < best:
                continue
        value = near.nats[g] + log(near.factor[g] * others)
        if g != old:
            if value + evidence + more < best:
                continue
            p = landmarks.nearest[g]
            if landmarks.source[p] != n:
                landmarks.source[p] = n
                landmarks.evidence[p] = _lone(
                    n_claims, lone, landmarks.right[p], landmarks.habit[p], landmarks.habits[p], counts,
                    landmarks.reliable[p], landmarks.said[p],
                )  # fmt: skip
            more = _tangent(
                g, voices, landmarks.right[p], landmarks.habit[p], landmarks.reliable[p], landmarks.said[p]
            )
            if value + landmarks.evidence[p] + more < best:
                continue
        value += _lone(
            n_claims, lone, voices.right[g], voices.habit[g], voices.habits[g], counts, unused, unused_said
        )
        if g == old:
            now = value
        if value > best:
            best, best_group = value, g
    return best_group, best - now


@bare
def _relocate(  # type: ignore[no-untyped-def]
    order, object_of, value_of, first_of_source, objects, voices, size_of, reliability, habit, counts, share,
    b, h, kappa, heard, apart, lone, landmarks, near, right_alone, mass, unused, unused_said,
):  # fmt: skip
    empty = 0  # a group below which none is empty
    moved, gain = 0, 0.0
    for g in range(len(size_of)):
        _set_single(g, voices, counts, heard)
    for m in range(len(objects.first_claim) - 1):
        sort_claims(m, objects, voices, heard.key, objects.first_claim[m])

    for n in order:
        old, n_near = voices.group[n], 0
        first, past = first_of_source[n], first_of_source[n + 1]
        for out in (True, False):  # taken out of its objects, then put where it belongs
            if not out:
                alone = size_of[old] == 1
                best_group, risen = _choose(
                    n, old, n_near, past - first, voices, size_of, reliability, habit, counts, b, h, kappa,
                    lone, landmarks, near, unused, unused_said,
                )  # fmt: skip
                if risen > 1e-9:
                    gain += risen
                    if alone and best_group >= 0:
                        empty = min(empty, old)
                        _copy(b, reliability[old])
                        _copy(h, habit[old])
                    if best_group < 0:
                        if not alone:
                            while size_of[empty] > 0:
                                empty += 1
                        best_group = old if alone else empty
                        _copy(lone.beta, reliability[best_group])
                        _copy(lone.alpha, habit[best_group])
                        _copy(lone.habit, voices.habit[best_group])
                        for d in range(KINDS):
                            voices.right[best_group, d] = lone.right[d]
                            voices.habits[best_group, d] = lone.habits[d]
                        _set_single(best_group, voices, counts, heard)
                    if best_group != old:
                        moved += 1
                        size_of[old] -= 1
                        size_of[best_group] += 1
                        voices.group[n] = best_group
            for j in range(first, past):
                m, y = object_of[j], value_of[j]
                _fetch(j, past, object_of, objects, heard)
                if voices.group[n] != old:
                    sort_claims(m, objects, voices, heard.key, objects.first_claim[m])
                _change(m, voices.group[n], y, out, objects, voices, counts, share, heard, apart)
                if out:
                    n_near = _meet(
                        n, m, y, j - first, old, n_near, objects, voices, counts, heard, apart, lone, near,
                        right_alone, mass,
                    )  # fmt: skip
    return moved, gain
