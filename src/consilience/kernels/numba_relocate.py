"""The relocation of sources, compiled. As in `numpy_partition`, but a source costs its claims and those of others on
their objects.

Of every object that the source claims, what the others say is found without it, in linear weights: one claim more
multiplies E by (η + n) / (θ + n). Which groups are better than where it is now is decided exactly; most are ruled out
before by a tangent of the evidence, which is concave in what a group is like.
"""

from __future__ import annotations

from math import lgamma, log

import numpy as np

from consilience.claims.encoding import Int, Shard, offsets
from consilience.kernels.compiled import compiled, digamma, inlined
from consilience.kernels.numba_partition import (
    LARGE,
    LEAST,
    SMALL,
    Apart,
    Voices,
    counts_of,
    domain_of,
    objects_of,
    posterior,
    take_apart,
    voices_of,
)
from consilience.kernels.state import KINDS, Beliefs, Grouping

SETTLING = 3
"""Updates in which a source that may stand alone finds its own reliability."""
LANDMARKS = 32
"""Groups at which a source's evidence is found, so that its tangents tell of most others that they cannot be better."""


def relocate(shard: Shard, given: Grouping, beliefs: Beliefs, order: Int) -> tuple[Grouping, int, float]:
    """As `numpy_partition.relocate`."""
    first_of_source = offsets(shard.claim_source, len(given.group))
    most = int(np.diff(first_of_source).max(initial=1))
    group, reliability, habit = given.group.copy(), given.reliability.copy(), given.habit.copy()
    moved, gain = _relocate(
        order, _by_source(shard.claim_source, shard.first_claim, first_of_source), first_of_source, objects_of(shard),
        Voices(group, *voices_of(given)[1:]), given.size, reliability, habit,
        counts_of(shard, beliefs), np.ascontiguousarray(beliefs.share.T),
        beliefs.reliability, beliefs.habit_prior, beliefs.concentration, Apart.room(shard),
        np.empty((most, KINDS)), np.empty((most, KINDS)), np.empty(most), np.empty(most, np.int64),
    )  # fmt: skip
    return Grouping(group, reliability, habit), int(moved), float(gain)


@compiled
def _divergence(prior, parameters, log_mean):  # type: ignore[no-untyped-def]
    """KL(Dirichlet(parameters) || Dirichlet(prior)), with log_mean = E ln under the first."""
    divergence, total, prior_total = 0.0, 0.0, 0.0
    for r in range(len(prior)):
        divergence += lgamma(prior[r]) - lgamma(parameters[r]) + (parameters[r] - prior[r]) * log_mean[r]
        total += parameters[r]
        prior_total += prior[r]
    return divergence + lgamma(total) - lgamma(prior_total)


@compiled
def _expected_log(parameters, out):  # type: ignore[no-untyped-def]
    total = 0.0
    for r in range(len(parameters)):
        total += parameters[r]
    total = digamma(total)
    for r in range(len(parameters)):
        out[r] = digamma(parameters[r]) - total


@compiled
def _by_source(claim_source, first_claim, first_of_source):  # type: ignore[no-untyped-def]
    """(n_claims,) the objects that each source claims, source by source."""
    place = first_of_source[:-1].copy()
    object_of = np.empty(len(claim_source), np.int32)
    for m in range(len(first_claim) - 1):
        for i in range(first_claim[m], first_claim[m + 1]):
            object_of[place[claim_source[i]]] = m
            place[claim_source[i]] += 1
    return object_of


@inlined
def _lone(n_claims, alone_on, right, habit, habits, counts, reliable, said):  # type: ignore[no-untyped-def]
    """ln probability of a source's claims, were nobody else of its group on their objects.

    Leaves Σ q(r = 1, d) and Σ q(r = 0, d) in `reliable`, and in `said` the slopes of the evidence in `habit`: of each
    label beyond what all have, and in the last column what all have.
    """
    n_labels = len(habit)
    here, elsewhere, domain, label = alone_on
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


@compiled
def _relocate(  # type: ignore[no-untyped-def]
    order, object_of, first_of_source, objects, voices, size_of, reliability, habit, counts, share,
    b, h, kappa, apart, here, elsewhere, domain, label,
):  # fmt: skip
    n_groups, n_labels, _ = voices.habit.shape
    eta, theta = counts.eta, counts.theta
    right_alone, mass = np.empty(KINDS), np.empty(KINDS)
    # What a group's own claims on shared objects add to the evidence, were it silent on them: ln and a factor to come.
    beyond, factor = np.zeros(n_groups), np.ones(n_groups)
    seen, near = np.full(n_groups, -1, np.int64), np.empty(n_groups, np.int64)
    # A source alone: its Beta and Dirichlet, what it is like then, and what `_lone` leaves of it.
    beta, log_u = np.empty((KINDS, 2)), np.empty((KINDS, 2))
    alpha, log_x = np.empty((KINDS, n_labels)), np.empty((KINDS, n_labels))
    own_right, own_habit, own_habits = np.empty(KINDS), np.empty((n_labels, KINDS)), np.empty(KINDS)
    reliable, said = np.empty((KINDS, 2)), np.empty((KINDS, n_labels + 1))
    unused, unused_said = np.empty((KINDS, 2)), np.empty((KINDS, n_labels + 1))
    alone_on = (here, elsewhere, domain, label)
    # Landmarks: groups at which the evidence is known, with its tangent, as soon as one is needed.
    landmarks, landmark_of = _landmarks(voices, size_of, LANDMARKS)
    at_right, at_habit, at_habits = voices.right[landmarks], voices.habit[landmarks], voices.habits[landmarks]
    known, known_evidence = np.full(len(landmarks), -1, np.int64), np.empty(len(landmarks))
    known_reliable = np.empty((len(landmarks), KINDS, 2))
    known_said = np.empty((len(landmarks), KINDS, n_labels + 1))
    empty = 0  # a group below which none is empty
    moved, gain = 0, 0.0

    for n in order:
        old, n_near, n_claims = voices.group[n], 0, first_of_source[n + 1] - first_of_source[n]
        for j in range(n_claims):
            m = object_of[first_of_source[n] + j]
            i = objects.first_claim[m]
            while objects.claim_source[i] != n:
                i += 1
            n_pairs = take_apart(m, i, objects, voices, counts, apart)
            posterior(m, n_pairs, objects, voices, share, apart)
            y = objects.claim_candidate[i] - objects.first_candidate[m]
            domain[j] = domain_of(m, objects)
            label[j] = objects.label[objects.claim_candidate[i]] if n_labels > 1 else -1
            for d in range(KINDS):
                here[j, d] = apart.q[y, d]
                elsewhere[j, d] = apart.q_unclaimed[d]
                for k in range(objects.first_candidate[m + 1] - objects.first_candidate[m]):
                    if k != y:
                        elsewhere[j, d] += apart.q[k, d]
                right_alone[d] = here[j, d] * eta + elsewhere[j, d] * theta
                mass[d] = here[j, d] + elsewhere[j, d]
            for p in range(n_pairs):
                g = apart.group[p]
                if seen[g] != n:
                    seen[g] = n
                    beyond[g], factor[g] = 0.0, 1.0
                    near[n_near] = g
                    n_near += 1
                factor[g] *= _joined(
                    p, y, label[j], domain[j], voices, counts, apart, here[j], right_alone, mass
                )
                if not SMALL < factor[g] < LARGE:
                    beyond[g] += log(factor[g])
                    factor[g] = 1.0

        # Alone: its own reliability and habit, from where they are or from the prior, found in a few rounds.
        alone = size_of[old] == 1
        now, value, evidence = -np.inf, 0.0, 0.0
        for d in range(KINDS):
            beta[d] = reliability[old, d] if alone else b[d]
            alpha[d] = habit[old, d] if alone else h[d]
        for r in range(SETTLING + 1):
            divergence = 0.0
            for d in range(KINDS):
                _expected_log(beta[d], log_u[d])
                _expected_log(alpha[d], log_x[d])
                divergence += _divergence(b[d], beta[d], log_u[d]) + _divergence(h[d], alpha[d], log_x[d])
                own_right[d] = max(np.exp(log_u[d, 1]), LEAST)
                own_habit[:, d] = np.maximum(np.exp(log_u[d, 0] + log_x[d]), LEAST)
                own_habits[d] = own_habit[:, d].sum()
            evidence = _lone(n_claims, alone_on, own_right, own_habit, own_habits, counts, reliable, said)
            value = log(kappa) - divergence + evidence
            if alone and r == 0:
                now = value
            if r < SETTLING:
                for d in range(KINDS):
                    beta[d] = b[d] + reliable[d]
                    alpha[d] = h[d]
                    if n_labels > 1:
                        alpha[d] += own_habit[:, d] * (said[d, :n_labels] + said[d, n_labels])
        best, best_group = value, -1

        # Where it is now comes first: the higher the best so far, the more are ruled out.
        if not alone:
            if seen[old] != n:
                beyond[old], factor[old] = 0.0, 1.0
            now = beyond[old] + log(factor[old]) + log(size_of[old] - 1)
            now += _lone(
                n_claims,
                alone_on,
                voices.right[old],
                voices.habit[old],
                voices.habits[old],
                counts,
                unused,
                unused_said,
            )
            if now > best:
                best, best_group = now, old
        for t in range(n_near):
            g = near[t]
            if g == old:
                continue
            value = beyond[g] + log(factor[g]) + log(size_of[g])
            if value + evidence + _tangent(g, voices, own_right, own_habit, reliable, said) < best:
                continue
            p = landmark_of[g]
            if known[p] != n:
                known[p] = n
                known_evidence[p] = _lone(
                    n_claims,
                    alone_on,
                    at_right[p],
                    at_habit[p],
                    at_habits[p],
                    counts,
                    known_reliable[p],
                    known_said[p],
                )
            more = _tangent(g, voices, at_right[p], at_habit[p], known_reliable[p], known_said[p])
            if value + known_evidence[p] + more < best:
                continue
            value += _lone(
                n_claims,
                alone_on,
                voices.right[g],
                voices.habit[g],
                voices.habits[g],
                counts,
                unused,
                unused_said,
            )
            if value > best:
                best, best_group = value, g

        if best > now + 1e-9:
            gain += best - now
            if alone and best_group >= 0:
                empty = min(empty, old)
                reliability[old], habit[old] = b, h
            if best_group < 0:
                if not alone:
                    while size_of[empty] > 0:
                        empty += 1
                best_group = old if alone else empty
                reliability[best_group], habit[best_group] = beta, alpha
                voices.right[best_group], voices.habit[best_group] = own_right, own_habit
                voices.habits[best_group] = own_habits
            if best_group != old:
                moved += 1
                size_of[old] -= 1
                size_of[best_group] += 1
                voices.group[n] = best_group
    return moved, gain
