"""Weighing a source against the groups that it meets, compiled: where the bound is highest with it, and by how much.

One claim more multiplies E by (η + n) / (θ + n). Which groups are better than where the source is now is decided
exactly, of those that can be: most are ruled out by where they agree with it and how like it they are (`_hope`), or by
tangents of the evidence, which is concave in that. Nothing changes that others see.
"""

from __future__ import annotations

from math import exp, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from consilience.claims.encoding import Float, Int, Shard
from consilience.kernels.compiled import bare, compiled, gammas, inlined, once, prefetch
from consilience.kernels.numba_heard import (
    AHEAD,
    CARELESS,
    HABIT,
    HABITS,
    PER_CELL,
    PER_REST,
    RIGHT,
    Without,
    end_of_run,
    fetch,
    lines,
    take_out,
)
from consilience.kernels.numba_partition import Apart, domain_of, take_apart
from consilience.kernels.state import Beliefs
from consilience.kernels.weights import LARGE, LEAST, SMALL, Kinds, Voices

SETTLING = 3
"""Updates in which a source that may stand alone finds its own reliability."""
LANDMARKS = 32
"""Groups that are landmarks, at the most: their tangents tell of most others that they cannot be better."""
NATS, FACTOR, TURN = range(3)
MET = 1e-9
"""Nats that a group is hoped to add in any case where it was met: so that it shows."""
OWN, NONE, ANY = -1, -2, -3
"""What takes the place of a group: one of a source's own; no other than now; whichever is best."""


class Sources(NamedTuple):
    """The claims of every source.

    first        : (n_sources + 1,)   where the claims of each begin
    object_of    : (n_claims,)        their objects
    value_of     : (n_claims,)        the place of the claim in the object's domain
    is_close     : (n_sources,)       whether it meets groups OFTEN
    """

    first: Int
    object_of: Int
    value_of: Int
    is_close: NDArray[np.bool_]


class Lone(NamedTuple):
    """A source, on its own: its claims, what it is like, and what `_lone` leaves of it.

    kinds           : (n_kinds,)            as in Voices
    here, elsewhere : (n_claims, n_kinds)   q(d, its claim is true), q(d, it is not), without it
    domain, label   : (n_claims,)           K and the claim's label, -1 where there are none
    chance          : (n_claims,)           probability of each claim, as `_lone` found it last
    beta, alpha     : (n_kinds, 2), (n_kinds, n_labels)   parameters of q(u) and q(ξ)
    gamma           : (6, n)                all of them with their sums, ψ and lnΓ of them, and room to find these in
    right, habit, habits : (n_kinds,), (n_labels, n_kinds), (n_kinds,)   as in Voices
    reliable, said  : (n_kinds, 2), (n_kinds, n_labels + 1)
    slope           : (n_labels + 1, n_kinds)   of the evidence in u and (1 - u) ξ
    """

    kinds: Kinds
    here: Float
    elsewhere: Float
    domain: Float
    label: Int
    chance: Float
    beta: Float
    alpha: Float
    gamma: Float
    right: Float
    habit: Float
    habits: Float
    reliable: Float
    said: Float
    slope: Float

    @staticmethod
    def room(n_claims: int, n_labels: int, kinds: Kinds) -> Lone:
        """Room for any source with so many claims."""
        n_kinds = len(kinds)
        two, each = (n_kinds, 2), (n_kinds, n_labels)
        return Lone(
            kinds, np.empty((n_claims, n_kinds)), np.empty((n_claims, n_kinds)), np.empty(n_claims),
            np.empty(n_claims, np.int64), np.empty(n_claims), np.empty(two), np.empty(each),
            np.empty((6, n_kinds * (n_labels + 4))), np.empty(n_kinds), np.empty(each[::-1]), np.empty(n_kinds),
            np.empty(two), np.empty((n_kinds, n_labels + 1)), np.empty((n_labels + 1, n_kinds)),
        )  # fmt: skip


class Landmarks(NamedTuple):
    """Groups at which a source's evidence is found, with its tangent, as soon as one is needed.

    nearest             : (n_groups,)    the landmark most like each group
    right, habit, habits : what the landmarks are like, as in Voices
    turn                : (n,)           for whom the evidence was found
    evidence            : (n,)
    reliable, said      : (n, n_kinds, 2), (n, n_kinds, n_labels + 1)   as in Lone
    """

    nearest: Int
    right: Float
    habit: Float
    habits: Float
    turn: Int
    evidence: Float
    reliable: Float
    said: Float

    @staticmethod
    def among(voices: Voices, size: Int) -> Landmarks:
        """A few groups that differ most from each other."""
        chosen, nearest = _landmarks(voices, size, LANDMARKS)
        n, (_, n_labels, n_kinds) = len(chosen), voices.habit.shape
        return Landmarks(
            nearest, voices.right[chosen], voices.habit[chosen], voices.habits[chosen],
            np.zeros(n, np.int64), np.empty(n), np.empty((n, n_kinds, 2)), np.empty((n, n_kinds, n_labels + 1)),
        )  # fmt: skip

    def own(self) -> Landmarks:
        """The same with room of its own for what is found."""
        return self._replace(
            turn=self.turn.copy(),
            evidence=self.evidence.copy(),
            reliable=self.reliable.copy(),
            said=self.said.copy(),
        )


class Near(NamedTuple):
    """Groups with claims on a source's objects.

    groups : (n_groups + 1,)   those met, in the order met; then those of them that are weighed exactly
    hope   : (n_groups,)       what each can be hoped to add; zeros between sources
    added  : (n_groups, 4)     of one that is weighed exactly: what its claims on the source's objects add to the
                               evidence beyond what they would, were it silent there, in NATS and a FACTOR to come;
                               in which TURN; and nothing, so that none lies across two lines of the cache
    """

    groups: Int
    hope: Float
    added: Float


class Priors(NamedTuple):
    """Beliefs, as compiled code takes them.

    share       : (n_labels, n_kinds)
    reliability : (n_kinds, 2)          b
    habit       : (n_kinds, n_labels)
    kappa       : κ
    log_norm    : Σ lnΓ of the parameters of reliability and habit, less lnΓ of their sums
    """

    share: Float
    reliability: Float
    habit: Float
    kappa: float
    log_norm: float

    @staticmethod
    def of(beliefs: Beliefs) -> Priors:
        """These beliefs, of the kinds that occur."""
        kinds = beliefs.occurring
        priors = beliefs.reliability[kinds], beliefs.habit_prior[kinds]
        log_norm = sum(float(gammaln(prior).sum() - gammaln(prior.sum(axis=1)).sum()) for prior in priors)
        return Priors(np.ascontiguousarray(beliefs.share[kinds].T), *priors, beliefs.concentration, log_norm)


class Groups(NamedTuple):
    """Groups as they stand while sources are moved.

    size        : (n_groups,)
    reliability : (n_groups, n_kinds, 2)
    habit       : (n_groups, n_kinds, n_labels)
    """

    size: Int
    reliability: Float
    habit: Float


class Scratch(NamedTuple):
    """What a thread weighs sources in.

    turn : (1,)    how many it has weighed
    """

    turn: Int
    without: Without
    apart: Apart
    lone: Lone
    landmarks: Landmarks
    near: Near
    right_alone: Float
    mass: Float
    reliable: Float
    said: Float

    @staticmethod
    def room(shard: Shard, n_claims: int, n_candidates: int, voices: Voices, landmarks: Landmarks) -> Scratch:
        """Room for any source of the shard, with so many claims on objects with so many candidates at the most."""
        kinds, (n_groups, n_labels, n_kinds) = voices.kinds, voices.habit.shape
        return Scratch(
            np.zeros(1, np.int64), Without(np.empty((n_candidates, n_kinds)), np.empty((n_claims, n_kinds))),
            Apart.room(shard, kinds), Lone.room(n_claims, n_labels, kinds), landmarks.own(),
            Near(np.empty(n_groups + 1, np.int64), np.zeros(n_groups), lines((n_groups, TURN + 2))),
            np.empty(n_kinds), np.empty(n_kinds), np.empty((n_kinds, 2)), np.empty((n_kinds, n_labels + 1)),
        )  # fmt: skip


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
        for d in range(len(lone.kinds)):
            own = habit[label[j], d] if n_labels > 1 else habit[0, d] / domain[j]
            each += right[d] * (here[j, d] * eta + elsewhere[j, d] * theta)
            each += (here[j, d] + elsewhere[j, d]) * (own * (eta - theta) + habits[d] * theta)
        lone.chance[j] = each * per_total
        product *= each * per_total
        if product < SMALL:
            evidence += log(product)
            product = 1.0
        per_each = 1.0 / each
        for d in range(len(lone.kinds)):
            reliable[d, 1] += right[d] * (here[j, d] * eta + elsewhere[j, d] * theta) * per_each
            mass = (here[j, d] + elsewhere[j, d]) * per_each
            said[d, n_labels] += mass * theta
            if n_labels > 1:
                said[d, label[j]] += mass * (eta - theta)
            else:
                said[d, 0] += mass * (eta - theta) / domain[j]
    for d in range(len(lone.kinds)):
        for k in range(n_labels):
            reliable[d, 0] += habit[k, d] * (said[d, k] + said[d, n_labels])
    return evidence + log(product)


@inlined
def _tangent(g, voices, right, habit, reliable, said):  # type: ignore[no-untyped-def]
    """What `_lone` would at the most be more for group g than for `right` and `habit`: it is concave in them, so it
    lies below its tangent there."""
    n_labels = len(habit)
    more = 0.0
    for d in range(len(voices.kinds)):
        more += reliable[d, 1] * (voices.right[g, d] / right[d] - 1.0)
        for k in range(n_labels):
            more += (said[d, k] + said[d, n_labels]) * (voices.habit[g, k, d] - habit[k, d])
    return more


@once
def _most(lone):  # type: ignore[no-untyped-def]
    """What `_tangent` is at the most, whatever a group is like: it is linear, and what a group is like sums to at most
    one."""
    n_labels = len(lone.habit)
    more = 0.0
    for d in range(len(lone.kinds)):
        steepest, now = lone.reliable[d, 1] / lone.right[d], lone.reliable[d, 1]
        for k in range(n_labels):
            slope = lone.said[d, k] + lone.said[d, n_labels]
            steepest = max(steepest, slope)
            now += slope * lone.habit[k, d]
        more += steepest - now
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
            for d in range(len(voices.kinds)):
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


@once
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
    for d in range(len(voices.kinds)):
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


@once
def _joined_single(g, value, said, y, label, n_labels, domain, counts, heard, apart, here, right_alone, mass):  # type: ignore[no-untyped-def]
    """As `_joined`, of a pair with a single claim, of `value`, whose label is `said`."""
    eta, theta, rest = counts.eta, counts.theta, counts.rest[1]
    total = eta + (domain - 1.0) * theta
    after, before = 0.0, 0.0
    single, habits = heard.single[g * n_labels + said], heard.likeness[g, HABITS]
    for d in range(len(apart.kinds)):
        right, habit = heard.likeness[g, RIGHT, d], heard.single[g * n_labels + label, HABIT, d]
        if value == y:
            more, of_value, of_rest = counts.step[1], here[d], mass[d] - here[d]
            careless = single[CARELESS, d] + habit * (more - 1.0)
            after_rest = max(of_rest, 0.0) * (right * rest + careless)
        else:
            more, of_value, of_rest = 1.0, apart.q[value, d], mass[d] - here[d] - apart.q[value, d]
            careless = single[CARELESS, d] + habit * (1.0 - rest)
            after_rest = here[d] * (right + careless) + max(of_rest, 0.0) * (right * rest + careless)
        after += of_value * (right * more + careless) * single[PER_CELL, d]
        after += after_rest * single[PER_REST, d]
        before += right * right_alone[d] + mass[d] * (habit * (eta - theta) + habits[d] * theta)
    votes = theta + 1.0 if value == y else theta
    return after * votes * total / ((total + 1.0) * before)


@bare
def copy_matrix(source, target):  # type: ignore[no-untyped-def]
    """Matrix to matrix, without the room that an assignment would take."""
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            target[i, j] = source[i, j]


@bare
def _likeness(priors, lone):  # type: ignore[no-untyped-def]
    """What a source alone is like by its parameters; returns their divergence from the prior."""
    n_labels = len(lone.habit)
    x, psi, log_gamma = lone.gamma[0], lone.gamma[1], lone.gamma[2]
    n = len(x) // len(lone.kinds)  # of each kind: reliability, habit, and the sums of both
    for d in range(len(lone.kinds)):
        x[(d + 1) * n - 2], x[(d + 1) * n - 1] = 0.0, 0.0
        for r in range(2):
            x[d * n + r] = lone.beta[d, r]
            x[(d + 1) * n - 2] += lone.beta[d, r]
        for k in range(n_labels):
            x[d * n + 2 + k] = lone.alpha[d, k]
            x[(d + 1) * n - 1] += lone.alpha[d, k]
    gammas(x, psi, log_gamma, lone.gamma[3:])
    divergence = priors.log_norm
    for d in range(len(lone.kinds)):
        first, of_u, of_x = d * n, (d + 1) * n - 2, (d + 1) * n - 1
        divergence += log_gamma[of_u] + log_gamma[of_x]
        for r in range(2):
            more = lone.beta[d, r] - priors.reliability[d, r]
            divergence += more * (psi[first + r] - psi[of_u]) - log_gamma[first + r]
        lone.right[d] = max(exp(psi[first + 1] - psi[of_u]), LEAST)
        lone.habits[d] = 0.0
        for k in range(n_labels):
            log_x, more = psi[first + 2 + k] - psi[of_x], lone.alpha[d, k] - priors.habit[d, k]
            divergence += more * log_x - log_gamma[first + 2 + k]
            lone.habit[k, d] = max(exp(psi[first] - psi[of_u] + log_x), LEAST)
            lone.habits[d] += lone.habit[k, d]
    return divergence


@bare
def _learn_likeness(b, h, lone):  # type: ignore[no-untyped-def]
    """The parameters of a source alone, from what its claims say of it."""
    n_labels = len(lone.habit)
    for d in range(len(lone.kinds)):
        for r in range(2):
            lone.beta[d, r] = b[d, r] + lone.reliable[d, r]
        for k in range(n_labels):
            lone.alpha[d, k] = h[d, k]
            if n_labels > 1:
                lone.alpha[d, k] += lone.habit[k, d] * (lone.said[d, k] + lone.said[d, n_labels])


@once
def _set_silent(j, counts, scratch):  # type: ignore[no-untyped-def]
    """What claim j makes of a group that is silent on its object: `_adds` needs it of every group."""
    here, elsewhere = scratch.lone.here, scratch.lone.elsewhere
    for d in range(len(scratch.lone.kinds)):
        scratch.right_alone[d] = here[j, d] * counts.eta + elsewhere[j, d] * counts.theta
        scratch.mass[d] = here[j, d] + elsewhere[j, d]


@inlined
def _adds(m, y, j, first, past, without, objects, voices, counts, heard, scratch):  # type: ignore[no-untyped-def]
    """How much more probable a source's claim j, of y on object m, is from a group with claims there, from `first` on,
    than were it silent there; but for one claim of the key `without`."""
    apart, lone, right_alone, mass = scratch.apart, scratch.lone, scratch.right_alone, scratch.mass
    n_labels, key, bits = voices.habit.shape[1], heard.key, objects.bits
    if past - first == (1 if without < 0 else 2) and n_labels > 1:
        value = (key[first] if key[first] != without else key[first + 1]) & ((1 << bits) - 1)
        return _joined_single(
            key[first] >> bits, value, objects.label[objects.first_candidate[m] + value], y, lone.label[j], n_labels,
            lone.domain[j], counts, heard, apart, lone.here[j], right_alone, mass,
        )  # fmt: skip
    take_apart(m, key, first, past - first, without, objects, voices, counts, apart)
    return _joined(
        0, y, lone.label[j], lone.domain[j], voices, counts, apart, lone.here[j], right_alone, mass
    )


@inlined
def _note_added(g, factor, added):  # type: ignore[no-untyped-def]
    """Claims of group g multiply the evidence by so much more."""
    added[g, FACTOR] *= factor
    if not SMALL < added[g, FACTOR] < LARGE:
        added[g, NATS] += log(added[g, FACTOR])
        added[g, FACTOR] = 1.0


@once
def _stand_back(m, y, j, old, is_close, at_q, n_near, objects, voices, counts, heard, scratch):  # type: ignore[no-untyped-def]
    """What the others say of object m, that a source's claim j is on and was taken out of, and what its own group adds,
    or all groups. Returns where q of the next object begins, and how many groups have been met."""
    apart, lone, near, key, bits = scratch.apart, scratch.lone, scratch.near, heard.key, objects.bits
    at, past, start = objects.first_claim[m], objects.first_claim[m + 1], objects.first_candidate[m]
    size, turn = objects.first_candidate[m + 1] - start, scratch.turn[0]
    lone.domain[j] = domain_of(m, objects)
    lone.label[j] = objects.label[start + y] if voices.habit.shape[1] > 1 else -1
    for d in range(len(apart.kinds)):
        lone.here[j, d] = apart.q[y, d]
        lone.elsewhere[j, d] = apart.q_unclaimed[d]
        for k in range(size):
            if k != y:
                lone.elsewhere[j, d] += apart.q[k, d]
    for d in range(len(apart.kinds)):
        scratch.without.q_unclaimed[j, d] = apart.q_unclaimed[d]
        for k in range(size):
            scratch.without.q[at_q + k, d] = apart.q[k, d]
    if not is_close:
        while key[at] >> bits != old:
            at += 1
        past = end_of_run(at, past, bits, key)
    _set_silent(j, counts, scratch)
    while at < past:
        first, at = at, end_of_run(at, past, bits, key)
        g = key[first] >> bits
        if g == old and at - first == 1:
            continue
        if near.added[g, TURN] != turn:
            near.added[g, NATS], near.added[g, FACTOR], near.added[g, TURN] = 0.0, 1.0, turn
            near.groups[n_near] = g
            n_near += 1
        without = (old << bits) + y if g == old else np.int64(-1)
        factor = _adds(m, y, j, first, at, without, objects, voices, counts, heard, scratch)
        _note_added(g, factor, near.added)
    return at_q + size, n_near


@once
def _alone(old, n_claims, now, groups, counts, priors, lone):  # type: ignore[no-untyped-def]
    """The bound with a source on its own: its own reliability and habit, from where they are or from the prior, found
    in a few rounds, or fewer where it cannot be better than now. Returns what it is, what it is now, and the evidence
    that is part of it."""
    alone = groups.size[old] == 1
    value, evidence = 0.0, 0.0
    copy_matrix(groups.reliability[old] if alone else priors.reliability, lone.beta)
    copy_matrix(groups.habit[old] if alone else priors.habit, lone.alpha)
    for r in range(SETTLING + 1):
        divergence = _likeness(priors, lone)
        evidence = _lone(
            n_claims, lone, lone.right, lone.habit, lone.habits, counts, lone.reliable, lone.said
        )
        value = log(priors.kappa) - divergence + evidence
        if alone and r == 0:
            now = value
        if r == SETTLING or (not alone and log(priors.kappa) + evidence + _most(lone) < now):
            break
        _learn_likeness(priors.reliability, priors.habit, lone)
    return value, now, evidence


@once
def _hope(m, y, j, n_near, objects, heard, scratch):  # type: ignore[no-untyped-def]
    """What groups with claims on object m, that a source's claim j is on, can be hoped to add. Returns how many have
    been met.

    With P_j(v) the probability of claim j from a silent group that is like v, linear in v, and g made to sum to one, a
    group g that does not say the same makes it no more probable than P_j(g), and one that does at the most certain. So
    it adds to the evidence of the source alone, like v, at the most its tangent there, Σ_j P_j(g) / P_j(v) - 1, and for
    every claim on which it agrees 1 - ln P_j(v).
    """
    hope, groups = scratch.near.hope, scratch.near.groups
    key, bits, mask = heard.key, objects.bits, (np.int64(1) << objects.bits) - 1
    of_claim = 1.0 - log(scratch.lone.chance[j])
    last = np.int64(-1)
    for i in range(objects.first_claim[m], objects.first_claim[m + 1]):
        new = key[i]
        g = new >> bits
        # Whether claims agree is not to be foreseen: so nothing branches on it.
        agrees = (new & mask == y) & (new != last)
        last = new
        groups[n_near] = g
        n_near += 1 if hope[g] == 0.0 else 0
        hope[g] += of_claim if agrees else MET
    return n_near


@once
def _choose_hopeful(old, n_near, best, evidence, groups, heard, scratch):  # type: ignore[no-untyped-def]
    """Of the groups that were met, those that can be better. Returns how many. Its own has been weighed."""
    near, lone, turn = scratch.near, scratch.lone, scratch.turn[0]
    n_labels, slope, n = len(lone.habit), lone.slope, np.int64(0)
    least = best - evidence  # to be hoped for, and what the tangent is at the source's own likeness
    for d in range(len(lone.kinds)):
        slope[0, d] = lone.reliable[d, 1] / lone.right[d]
        least += lone.reliable[d, 1]
        for k in range(n_labels):
            slope[1 + k, d] = lone.said[d, k] + lone.said[d, n_labels]
            least += slope[1 + k, d] * lone.habit[k, d]
    for t in range(n_near):
        if t + AHEAD < n_near:
            prefetch(heard.to_one, near.groups[t + AHEAD])
            prefetch(groups.size, near.groups[t + AHEAD])
        g = near.groups[t]
        hope = near.hope[g]
        near.hope[g] = 0.0
        for c in range(1 + n_labels):
            for d in range(len(lone.kinds)):
                hope += slope[c, d] * heard.to_one[g, c, d]
        # ln x is at most x - 1: most are ruled out without a logarithm.
        if g == old or hope + (groups.size[g] - 1.0) < least or hope + log(groups.size[g]) < least:
            continue
        near.groups[n] = g
        near.added[g, NATS], near.added[g, FACTOR], near.added[g, TURN] = 0.0, 1.0, turn
        n += 1
    return n


@once
def _weigh(m, y, j, at_q, objects, voices, counts, heard, scratch):  # type: ignore[no-untyped-def]
    """What groups that can be better add on object m, that a source's claim j is on. Returns where q of the next object
    begins."""
    apart, near, turn = scratch.apart, scratch.near, scratch.turn[0]
    key, bits = heard.key, objects.bits
    at, past = objects.first_claim[m], objects.first_claim[m + 1]
    size, is_set = objects.first_candidate[m + 1] - objects.first_candidate[m], False
    while at < past:
        first, at = at, end_of_run(at, past, bits, key)
        g = key[first] >> bits
        if near.added[g, TURN] != turn:
            continue
        if not is_set:
            is_set = True
            _set_silent(j, counts, scratch)
            for d in range(len(apart.kinds)):
                for k in range(size):
                    apart.q[k, d] = scratch.without.q[at_q + k, d]
        factor = _adds(m, y, j, first, at, np.int64(-1), objects, voices, counts, heard, scratch)
        _note_added(g, factor, near.added)
    return at_q + size


@inlined
def _value_in(g, others, n_claims, voices, counts, scratch):  # type: ignore[no-untyped-def]
    """The bound with a source in group g, of so many others, whose claims on the source's objects are weighed."""
    added = scratch.near.added
    value = added[g, NATS] + log(added[g, FACTOR] * others)
    return value + _lone(
        n_claims, scratch.lone, voices.right[g], voices.habit[g], voices.habits[g], counts,
        scratch.reliable, scratch.said,
    )  # fmt: skip


@once
def _choose(old, n_near, n_claims, best, best_group, evidence, voices, groups, counts, scratch):  # type: ignore[no-untyped-def]
    """The group in which the bound is highest, and how high, of those that were weighed and the best so far."""
    lone, landmarks, added, turn = scratch.lone, scratch.landmarks, scratch.near.added, scratch.turn[0]
    for t in range(n_near):
        g = scratch.near.groups[t]
        if g == old:
            continue
        more = _tangent(g, voices, lone.right, lone.habit, lone.reliable, lone.said)
        # ln x is at most x - 1: most are ruled out without a logarithm.
        if added[g, NATS] + added[g, FACTOR] * groups.size[g] - 1.0 + evidence + more < best:
            continue
        value = added[g, NATS] + log(added[g, FACTOR] * groups.size[g])
        if value + evidence + more < best:
            continue
        p = landmarks.nearest[g]
        if landmarks.turn[p] != turn:
            landmarks.turn[p] = turn
            landmarks.evidence[p] = _lone(
                n_claims, lone, landmarks.right[p], landmarks.habit[p], landmarks.habits[p], counts,
                landmarks.reliable[p], landmarks.said[p],
            )  # fmt: skip
        more = _tangent(
            g, voices, landmarks.right[p], landmarks.habit[p], landmarks.reliable[p], landmarks.said[p]
        )
        if value + landmarks.evidence[p] + more < best:
            continue
        value = _value_in(g, groups.size[g], n_claims, voices, counts, scratch)
        if value > best:
            best, best_group = value, g
    return best, best_group


@once
def weigh(n, only, sources, objects, voices, groups, counts, priors, heard, scratch):  # type: ignore[no-untyped-def]
    """The group in which the bound is highest with source n, or OWN, and by how much it rises: of those that it meets,
    or of `only` this one, its own and where it is. What the source would be like on its own is left in
    `scratch.lone`, and its objects without it in `scratch.without`."""
    old, start, n_claims = voices.group[n], sources.first[n], sources.first[n + 1] - sources.first[n]
    scratch.turn[0] += 1
    scratch.near.added[old, NATS], scratch.near.added[old, FACTOR] = 0.0, 1.0
    at_q, n_near, is_close = np.int64(0), np.int64(0), sources.is_close[n] and only == ANY
    for j in range(n_claims):
        m, y = np.int64(sources.object_of[start + j]), np.int64(sources.value_of[start + j])
        fetch(start + j, start + n_claims, sources.object_of, objects, heard)
        take_out(m, old, y, objects, voices, counts, priors.share, heard, scratch.apart)
        at_q, n_near = _stand_back(
            m, y, j, old, is_close, at_q, n_near, objects, voices, counts, heard, scratch
        )
    # Where it is now comes first: the higher the best so far, the more are ruled out.
    now, to = -np.inf, np.int64(OWN)
    if groups.size[old] > 1:
        now = _value_in(old, groups.size[old] - 1, n_claims, voices, counts, scratch)
    best, now, evidence = _alone(old, n_claims, now, groups, counts, priors, scratch.lone)
    if now > best and groups.size[old] > 1:
        best, to = now, old
    if not is_close:
        n_near = np.int64(0)
        for j in range(n_claims if only == ANY else 0):
            m, y = np.int64(sources.object_of[start + j]), np.int64(sources.value_of[start + j])
            n_near = _hope(m, y, j, n_near, objects, heard, scratch)
        if only >= 0 and groups.size[only] > 0:
            scratch.near.groups[0], scratch.near.hope[only], n_near = only, np.inf, np.int64(1)
        n_near = _choose_hopeful(old, n_near, best, evidence, groups, heard, scratch)
        at_q, scratch.near.added[old, TURN] = np.int64(0), 0.0
        for j in range(n_claims if n_near > 0 else 0):
            m, y = np.int64(sources.object_of[start + j]), np.int64(sources.value_of[start + j])
            at_q = _weigh(m, y, j, at_q, objects, voices, counts, heard, scratch)
    best, to = _choose(old, n_near, n_claims, best, to, evidence, voices, groups, counts, scratch)
    return to, best - now
