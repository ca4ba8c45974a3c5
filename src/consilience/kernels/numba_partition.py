"""The partition inference compiled: its local step, and the relocation of sources. As in `numpy_partition`, but an
object costs its claims, not groups × values, and a relocation reads only the objects that the source claims.

An object is taken apart into *pairs* (a group with claims on it) and *cells* (a value claimed by a pair). Whatever a
pair does not claim is alike to it, so every sum over the domain is one over its cells and a rest. With

    E_s = B(a^s + n) B(a) / B(a + n) B(a^s)      what claims gain when s is the opinion (a: all θ); 1 off the cells
    W   = exp(E ln(1 - u)) Σ_s exp(E ln ξ_s) E_s     an unreliable group, its opinion summed out

the pair says exp(E ln u) E_z + W of the truth z, up to a factor that all z share. One claim more or less multiplies E
by (η + n) / (θ + n), so that relocation needs no special function: it multiplies and divides.
"""

from __future__ import annotations

from math import exp, lgamma, log
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from consilience.claims.encoding import Claims, Float, Int, Shard
from consilience.kernels.compiled import add_term, compiled, fixed, inlined
from consilience.kernels.compiled import digamma as digamma_of
from consilience.kernels.numpy_partition import expected_log, rising_tables
from consilience.kernels.state import Beliefs, Grouping, GroupingStats, Locals

SETTLING = 3
"""Updates in which a source that may stand alone finds its own reliability."""
LEAST = 1e-300
"""Weights below this are taken for this: their logarithms stay finite."""


class Objects(NamedTuple):
    """A shard, as compiled code takes it."""

    claim_source: Int
    claim_candidate: Int
    first_claim: Int
    first_candidate: Int
    log_truth: Float
    label: Int
    log_unclaimed: Float


class Voices(NamedTuple):
    """What groups are like: exp E ln, which sum to less than one.

    reliable : (n_groups, n_kinds, 2)        u, in the order r = 0, 1
    habit    : (n_groups, n_kinds, n_labels) ξ
    habits   : (n_groups, n_kinds)           Σ ξ; where there are no labels each value of a domain has ξ = 1 / K
    """

    group: Int
    reliable: Float
    habit: Float
    habits: Float


class Counts(NamedTuple):
    """η, θ and tables by number of claims n.

    swap        : ln E of a value with n claims
    step        : by what one more claim multiplies E
    as_false    : ln Γ(θ+n) / Γ(θ)
    slope_true  : the derivative of ln Γ(η+n) / Γ(η) in η
    slope_false : likewise for θ

    For a domain of K values ln Γ(A+n) / Γ(A), A = η + (K - 1) θ, and its slope in A lie from first_total[K] on.
    """

    eta: float
    theta: float
    swap: Float
    step: Float
    as_false: Float
    slope_true: Float
    slope_false: Float
    first_total: Int
    log_total: Float
    slope_total: Float


class Apart(NamedTuple):
    """Objects taken apart: pairs and cells lie from a given place on, at the most one each a claim.

    group, total, first, past : (n,)         of a pair: its group, its claims, and its cells first : past
    rest                      : (n,)         of a pair: E of the values that it does not claim, scaled
    careless                  : (n, n_kinds) of a pair: W, scaled
    per_rest                  : (n, n_kinds) of a pair: 1 / what it says of a value that it does not claim
    offset, votes, weight     : (n,)         of a cell: its value within the domain, its claims, and E, scaled
    per_cell                  : (n, n_kinds) of a cell: 1 / what its pair says of it
    """

    group: Int
    total: Int
    first: Int
    past: Int
    rest: Float
    careless: Float
    per_rest: Float
    offset: Int
    votes: Int
    weight: Float
    per_cell: Float

    @staticmethod
    def empty(n: int, n_kinds: int) -> Apart:
        """Room for n claims."""
        return Apart(
            np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64),
            np.empty(n), np.empty((n, n_kinds)), np.empty((n, n_kinds)),
            np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n), np.empty((n, n_kinds)),
        )  # fmt: skip


def partition(
    shard: Shard, given: Grouping, beliefs: Beliefs, warm: Locals | None = None
) -> tuple[Locals, GroupingStats]:
    """As `numpy_partition.partition`."""
    n_kinds, n_labels = beliefs.share.shape
    deepest, widest = _largest(shard)
    truth = np.empty(shard.n_candidates)
    stats = GroupingStats(
        reliable=np.zeros(given.reliability.shape, np.int64),
        habit=np.zeros(given.habit.shape, np.int64),
        habit_rest=np.zeros(given.reliability.shape[:2], np.int64),
        share=np.zeros((n_kinds, n_labels), np.int64),
        counts=np.zeros((4, 2), np.int64),
        terms=np.zeros((1, 2), np.int64),
    )
    _partition(
        _objects(shard), _voices(given), _counts(shard, beliefs), np.log(beliefs.share),
        Apart.empty(deepest, n_kinds), np.empty(deepest, np.int64), np.empty((n_kinds, widest)), np.empty(n_kinds),
        truth, stats.reliable, stats.habit, stats.habit_rest, stats.share, stats.counts, stats.terms,
    )  # fmt: skip
    return Locals(truth), stats


def relocate(
    claims: Claims, shard: Shard, given: Grouping, beliefs: Beliefs, order: Int
) -> tuple[Grouping, int, float]:
    """As `numpy_partition.relocate`."""
    n_kinds = beliefs.n_kinds
    deepest, widest = _largest(shard)
    by_source, first_of_source = claims.by_source
    most = int(np.diff(first_of_source).max(initial=1))
    group, reliability, habit = given.group.copy(), given.reliability.copy(), given.habit.copy()
    moved, gain = _relocate(
        order, by_source, first_of_source, claims.claim_object(), _objects(shard),
        Voices(group, *_voices(given)[1:]), given.size, reliability, habit,
        _counts(shard, beliefs), np.log(beliefs.share),
        beliefs.reliability, beliefs.habit_prior, beliefs.concentration,
        Apart.empty(claims.n_claims, n_kinds), np.empty(deepest, np.int64), np.empty(claims.n_objects, np.int64),
        np.empty((n_kinds, claims.n_candidates)), np.empty((n_kinds, claims.n_objects)), np.empty((n_kinds, widest)),
        np.empty((most, n_kinds)), np.empty((most, n_kinds)), np.empty(most), np.empty(most, np.int64),
    )  # fmt: skip
    return Grouping(group, reliability, habit), int(moved), float(gain)


def _objects(shard: Shard) -> Objects:
    return Objects(
        shard.claim_source, shard.claim_candidate, shard.first_claim, shard.first_candidate,
        shard.log_truth, shard.label, shard.log_unclaimed,
    )  # fmt: skip


def _voices(given: Grouping) -> Voices:
    reliable, habit = (
        np.maximum(np.exp(expected_log(part)), LEAST) for part in (given.reliability, given.habit)
    )
    return Voices(given.group, reliable, habit, habit.sum(axis=2))


def _counts(shard: Shard, beliefs: Beliefs) -> Counts:
    """Tables for as many claims as there are on an object, and one more."""
    n_claims = np.diff(shard.first_claim)
    domain_size = np.diff(shard.first_candidate) + (shard.log_unclaimed > -np.inf)
    as_true, as_false, slope_true, slope_false = rising_tables(beliefs, int(n_claims.max(initial=0)) + 1)
    most = np.zeros(int(domain_size.max(initial=0)) + 2, np.int64)  # by domain size, one place further
    np.maximum.at(most, domain_size + 1, n_claims + 1)
    first_total = np.cumsum(most)
    sizes = np.repeat(np.arange(len(most) - 1), most[1:])
    n = np.arange(len(sizes)) - first_total[sizes]
    total = beliefs.true_count + (sizes - 1) * beliefs.false_count
    eta, theta, counts = beliefs.true_count, beliefs.false_count, np.arange(len(as_true))
    return Counts(
        eta, theta, as_true - as_false, (eta + counts) / (theta + counts), as_false, slope_true, slope_false,
        first_total, gammaln(total + n) - gammaln(total), digamma(total + n) - digamma(total),
    )  # fmt: skip


def _largest(shard: Shard) -> tuple[int, int]:
    """The most claims and the most candidates that an object has."""
    return int(np.diff(shard.first_claim).max(initial=1)), int(np.diff(shard.first_candidate).max(initial=1))


@inlined
def _take_apart(m, base, objects, voices, counts, apart, key):  # type: ignore[no-untyped-def]
    """Take object m apart, from `base` on. Returns the number of pairs."""
    first, past = objects.first_claim[m], objects.first_claim[m + 1]
    start, size = objects.first_candidate[m], objects.first_candidate[m + 1] - objects.first_candidate[m]
    n = past - first
    for i in range(n):
        new = voices.group[objects.claim_source[first + i]] * size + (
            objects.claim_candidate[first + i] - start
        )
        j = i
        if n <= 64:
            while j > 0 and key[j - 1] > new:
                key[j] = key[j - 1]
                j -= 1
        key[j] = new
    if n > 64:
        key[:n].sort()

    n_pairs, n_cells = 0, 0
    group, group_start = np.int64(-1), np.int64(0)
    for j in range(n):
        if j > 0 and key[j] == key[j - 1]:
            apart.votes[base + n_cells - 1] += 1
        else:
            if j == 0 or key[j] >= group_start + size:
                group = key[j] // size
                group_start = group * size
                apart.group[base + n_pairs] = group
                apart.total[base + n_pairs] = 0
                apart.first[base + n_pairs] = base + n_cells
                n_pairs += 1
            apart.offset[base + n_cells] = key[j] - group_start
            apart.votes[base + n_cells] = 1
            n_cells += 1
        apart.total[base + n_pairs - 1] += 1
        apart.past[base + n_pairs - 1] = base + n_cells

    for p in range(base, base + n_pairs):
        most = 0
        for c in range(apart.first[p], apart.past[p]):
            most = max(most, apart.votes[c])
        apart.rest[p] = exp(-counts.swap[most])
        for c in range(apart.first[p], apart.past[p]):
            apart.weight[c] = (
                1.0 if apart.votes[c] == most else exp(counts.swap[apart.votes[c]] - counts.swap[most])
            )
        _weigh(m, p, objects, voices, apart)
    return n_pairs


@inlined
def _weigh(m, p, objects, voices, apart):  # type: ignore[no-untyped-def]
    """What a pair says, its cells being given."""
    g, start = apart.group[p], objects.first_candidate[m]
    n_labels = voices.habit.shape[2]
    even = 1.0 / _domain(m, objects)
    for d in range(voices.reliable.shape[1]):
        unclaimed, weight = voices.habits[g, d] if n_labels > 1 else 1.0, 0.0
        for c in range(apart.first[p], apart.past[p]):
            own = voices.habit[g, d, objects.label[start + apart.offset[c]]] if n_labels > 1 else even
            unclaimed -= own
            weight += own * apart.weight[c]
        careless = voices.reliable[g, d, 0] * (max(unclaimed, 0.0) * apart.rest[p] + weight)
        apart.careless[p, d] = careless
        apart.per_rest[p, d] = 1.0 / max(voices.reliable[g, d, 1] * apart.rest[p] + careless, LEAST)
        for c in range(apart.first[p], apart.past[p]):
            apart.per_cell[c, d] = 1.0 / max(voices.reliable[g, d, 1] * apart.weight[c] + careless, LEAST)


@inlined
def _domain(m, objects):  # type: ignore[no-untyped-def]
    """K_m, the unclaimed value included where it is possible."""
    size = objects.first_candidate[m + 1] - objects.first_candidate[m]
    return size + (1 if objects.log_unclaimed[m] > -np.inf else 0)


@inlined
def _posterior(m, base, n_pairs, objects, voices, log_share, apart, q, at, q_unclaimed, i):  # type: ignore[no-untyped-def]
    """q(d, z) of object m into q[:, at:], and q(d, unclaimed) into q_unclaimed[:, i]; returns the object's part of the
    bound, but for the factors of its pairs that all z share."""
    start, size = objects.first_candidate[m], objects.first_candidate[m + 1] - objects.first_candidate[m]
    n_kinds, n_labels = log_share.shape
    highest = -np.inf
    for d in range(n_kinds):
        for k in range(size):
            share = log_share[d, objects.label[start + k]] if n_labels > 1 else log_share[d, 0]
            q[d, at + k] = objects.log_truth[start + k] + share
        everywhere = 0.0
        for p in range(base, base + n_pairs):
            log_rest = log(apart.per_rest[p, d])
            everywhere -= log_rest
            for c in range(apart.first[p], apart.past[p]):
                q[d, at + apart.offset[c]] += log_rest - log(apart.per_cell[c, d])
        q_unclaimed[d, i] = objects.log_unclaimed[m] + log_share[d, 0] + everywhere
        highest = max(highest, q_unclaimed[d, i])
        for k in range(size):
            q[d, at + k] += everywhere
            highest = max(highest, q[d, at + k])
    total = 0.0
    for d in range(n_kinds):
        q_unclaimed[d, i] = exp(q_unclaimed[d, i] - highest)
        total += q_unclaimed[d, i]
        for k in range(size):
            q[d, at + k] = exp(q[d, at + k] - highest)
            total += q[d, at + k]
    for d in range(n_kinds):
        q_unclaimed[d, i] /= total
        for k in range(size):
            q[d, at + k] /= total
    return highest + log(total)


@compiled
def _partition(  # type: ignore[no-untyped-def]
    objects, voices, counts, log_share, apart, key, q, q_unclaimed,
    truth, reliable, habit, habit_rest, share, slopes, terms,
):  # fmt: skip
    n_kinds, n_labels = log_share.shape
    of_kind = np.empty(n_kinds)
    unclaimed = q_unclaimed.reshape(n_kinds, 1)
    for m in range(len(objects.first_claim) - 1):
        start, size = objects.first_candidate[m], objects.first_candidate[m + 1] - objects.first_candidate[m]
        domain = _domain(m, objects)
        n_pairs = _take_apart(m, 0, objects, voices, counts, apart, key)
        evidence = _posterior(m, 0, n_pairs, objects, voices, log_share, apart, q, 0, unclaimed, 0)

        claimed = 0.0
        of_kind[:] = q_unclaimed
        for k in range(size):
            truth[start + k] = 0.0
            for d in range(n_kinds):
                truth[start + k] += q[d, k]
                of_kind[d] += q[d, k]
                share[d, objects.label[start + k] if n_labels > 1 else 0] += fixed(q[d, k])
            claimed += truth[start + k]
        for k in range(size):
            truth[start + k] = truth[start + k] / claimed if claimed > 0.0 else 1.0 / size
        for d in range(n_kinds):
            share[d, 0] += fixed(q_unclaimed[d])

        for p in range(n_pairs):
            g = apart.group[p]
            at = counts.first_total[domain] + apart.total[p]
            evidence -= counts.log_total[at]
            slope = counts.slope_total[at]
            add_term(slopes, 1, slope)
            add_term(slopes, 3, (domain - 1) * slope)
            every_slope, most = 0.0, 0
            for c in range(apart.first[p], apart.past[p]):
                every_slope += counts.slope_false[apart.votes[c]]
                evidence += counts.as_false[apart.votes[c]]
                most = max(most, apart.votes[c])
            evidence += counts.swap[most]
            gain_true, gain_false = 0.0, 0.0
            for d in range(n_kinds):
                one, careless = voices.reliable[g, d, 1], apart.careless[p, d]
                elsewhere, right = of_kind[d], 0.0
                for c in range(apart.first[p], apart.past[p]):
                    here, slope_false = q[d, apart.offset[c]], counts.slope_false[apart.votes[c]]
                    elsewhere -= here
                    weight = here * one * apart.weight[c] * apart.per_cell[c, d]
                    right += weight
                    gain_true += weight * counts.slope_true[apart.votes[c]]
                    gain_false += weight * (every_slope - slope_false)
                weight = max(elsewhere, 0.0) * one * apart.rest[p] * apart.per_rest[p, d]
                right += weight
                gain_false += weight * every_slope
                wrong = max(of_kind[d] - right, 0.0)
                reliable[g, d, 1] += fixed(right)
                reliable[g, d, 0] += fixed(wrong)
                left, per_habit = wrong, wrong * voices.reliable[g, d, 0] / max(careless, LEAST)
                for c in range(apart.first[p], apart.past[p]):
                    label = objects.label[start + apart.offset[c]] if n_labels > 1 else 0
                    own = voices.habit[g, d, label] if n_labels > 1 else 1.0 / domain
                    weight = per_habit * own * apart.weight[c]
                    left -= weight
                    gain_true += weight * counts.slope_true[apart.votes[c]]
                    gain_false += weight * (every_slope - counts.slope_false[apart.votes[c]])
                    if n_labels > 1:
                        habit[g, d, label] += fixed(weight - per_habit * own * apart.rest[p])
                gain_false += max(left, 0.0) * every_slope
                if n_labels > 1:
                    habit_rest[g, d] += fixed(per_habit * apart.rest[p])
            add_term(slopes, 0, gain_true)
            add_term(slopes, 2, gain_false)
        add_term(terms, 0, evidence)


@inlined
def _wrong(own, everything, eta, theta, total):  # type: ignore[no-untyped-def]
    """Probability of a lone claim by an unreliable group: its opinion is that value by habit, or another."""
    return (own * eta + (everything - own) * theta) / total


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
    total = digamma_of(total)
    for r in range(len(parameters)):
        out[r] = digamma_of(parameters[r]) - total


@inlined
def _without(m, p, y, objects, voices, counts, apart, q, q_unclaimed, less, less_unclaimed):  # type: ignore[no-untyped-def]
    """Take one claim of value y out of pair p, and find q(d, z) and q(d, unclaimed) of object m without it.

    The pair's cells remain where they are; a cell may be left with no claim, and so may the pair.
    """
    at, size = objects.first_candidate[m], objects.first_candidate[m + 1] - objects.first_candidate[m]
    for d in range(len(q)):
        for k in range(size):
            less[d, k] = q[d, at + k] * apart.per_rest[p, d]
        less_unclaimed[d] = q_unclaimed[d, m] * apart.per_rest[p, d]
        for c in range(apart.first[p], apart.past[p]):
            k = apart.offset[c]
            less[d, k] = q[d, at + k] * apart.per_cell[c, d]
    for c in range(apart.first[p], apart.past[p]):
        if apart.offset[c] == y:
            apart.votes[c] -= 1
            apart.weight[c] /= counts.step[apart.votes[c]]
    apart.total[p] -= 1
    total = 0.0
    if apart.total[p] > 0:
        _weigh(m, p, objects, voices, apart)
    for d in range(len(q)):
        if apart.total[p] > 0:
            rest = 1.0 / apart.per_rest[p, d]
            for c in range(apart.first[p], apart.past[p]):
                less[d, apart.offset[c]] *= apart.per_rest[p, d] / apart.per_cell[c, d]
            for k in range(size):
                less[d, k] *= rest
            less_unclaimed[d] *= rest
        total += less_unclaimed[d]
        for k in range(size):
            total += less[d, k]
    for d in range(len(q)):
        less_unclaimed[d] /= total
        for k in range(size):
            less[d, k] /= total


@inlined
def _joined(p, y, own, even, voices, counts, apart, less, here, right, mass, per_total, total):  # type: ignore[no-untyped-def]
    """How much more probable a claim of y is from a pair's group, given its claims here, than were it silent here."""
    g, theta = apart.group[p], counts.theta
    count, weight, cell = 0, apart.rest[p], -1
    for c in range(apart.first[p], apart.past[p]):
        if apart.offset[c] == y:
            count, weight, cell = apart.votes[c], apart.weight[c], c
    more = weight * counts.step[count]
    after, before = 0.0, 0.0
    for d in range(len(less)):
        zero, one, careless = voices.reliable[g, d, 0], voices.reliable[g, d, 1], apart.careless[p, d]
        habit = voices.habit[g, d, own] if own >= 0 else even
        everything = voices.habits[g, d] if own >= 0 else 1.0
        more_careless = careless + zero * habit * (more - weight)
        left = mass[d] - here[d]
        for c in range(apart.first[p], apart.past[p]):
            if c != cell:
                z = less[d, apart.offset[c]]
                left -= z
                after += z * (one * apart.weight[c] + more_careless) * apart.per_cell[c, d]
        per_here = apart.per_cell[cell, d] if cell >= 0 else apart.per_rest[p, d]
        after += here[d] * (one * more + more_careless) * per_here
        after += max(left, 0.0) * (one * apart.rest[p] + more_careless) * apart.per_rest[p, d]
        before += (
            one * right[d] + zero * mass[d] * (habit * (counts.eta - theta) + everything * theta) * per_total
        )
    return after * (theta + count) / ((total + apart.total[p]) * before)


@compiled
def _relocate(  # type: ignore[no-untyped-def]
    order, by_source, first_of_source, claim_object, objects, voices, size_of, reliability, habit, counts, log_share,
    b, h, kappa, apart, key, n_pairs, q, q_unclaimed, less, here, elsewhere, domain_of, label_of,
):  # fmt: skip
    n_groups, n_kinds, n_labels = len(reliability), len(b), h.shape[1]
    eta, theta = counts.eta, counts.theta
    less_unclaimed, mass = np.empty(n_kinds), np.empty(n_kinds)
    beta, log_u, u = np.empty((n_kinds, 2)), np.empty((n_kinds, 2)), np.empty((n_kinds, 2))
    alpha, log_x, x = (
        np.empty((n_kinds, n_labels)),
        np.empty((n_kinds, n_labels)),
        np.empty((n_kinds, n_labels)),
    )
    reliable, habits = (
        np.empty((n_kinds, 2)),
        np.empty((n_kinds, n_labels)),
    )  # of a source alone, its statistics
    right, wrong, careless, all_habits = (
        np.empty(n_kinds),
        np.empty(n_kinds),
        np.empty(n_kinds),
        np.ones(n_kinds),
    )
    # What a group's own claims on shared objects add to the evidence, were it silent on them: ln and a factor to come.
    beyond, factor = np.zeros(n_groups), np.ones(n_groups)
    seen, near = np.full(n_groups, -1, np.int64), np.empty(n_groups, np.int64)
    empty = 0  # a group below which none is empty
    moved, gain = 0, 0.0

    for m in range(len(n_pairs)):
        n_pairs[m] = _take_apart(m, objects.first_claim[m], objects, voices, counts, apart, key)
        _posterior(
            m, objects.first_claim[m], n_pairs[m], objects, voices, log_share, apart,
            q, objects.first_candidate[m], q_unclaimed, m,
        )  # fmt: skip

    for n in order:
        old, n_near, n_claims = voices.group[n], 0, first_of_source[n + 1] - first_of_source[n]
        for j in range(n_claims):
            i = by_source[first_of_source[n] + j]
            m = claim_object[i]
            base, y = objects.first_claim[m], objects.claim_candidate[i] - objects.first_candidate[m]
            own = objects.label[objects.claim_candidate[i]] if n_labels > 1 else -1
            mine = base
            while apart.group[mine] != old:
                mine += 1
            cell = apart.first[mine]
            while apart.offset[cell] != y:
                cell += 1
            kept_weight = apart.weight[cell]
            _without(m, mine, y, objects, voices, counts, apart, q, q_unclaimed, less, less_unclaimed)
            domain = _domain(m, objects)
            total = eta + (domain - 1) * theta
            for d in range(n_kinds):
                here[j, d] = less[d, y]
                elsewhere[j, d] = less_unclaimed[d]
                for k in range(objects.first_candidate[m + 1] - objects.first_candidate[m]):
                    if k != y:
                        elsewhere[j, d] += less[d, k]
                right[d] = (here[j, d] * eta + elsewhere[j, d] * theta) / total
                mass[d] = here[j, d] + elsewhere[j, d]
            domain_of[j], label_of[j] = domain, own
            for p in range(base, base + n_pairs[m]):
                if apart.total[p] == 0:
                    continue
                g = apart.group[p]
                if seen[g] != n:
                    seen[g] = n
                    beyond[g], factor[g] = 0.0, 1.0
                    near[n_near] = g
                    n_near += 1
                factor[g] *= _joined(
                    p,
                    y,
                    own,
                    1.0 / domain,
                    voices,
                    counts,
                    apart,
                    less,
                    here[j],
                    right,
                    mass,
                    1.0 / total,
                    total,
                )
                if not 1e-100 < factor[g] < 1e100:
                    beyond[g] += log(factor[g])
                    factor[g] = 1.0
            apart.votes[cell] += 1
            apart.total[mine] += 1
            apart.weight[cell] = kept_weight
            _weigh(m, mine, objects, voices, apart)

        # Alone: its own reliability and habit, from where they are or from the prior, found in a few rounds.
        alone = size_of[old] == 1
        now, value, evidence = -np.inf, 0.0, 0.0
        for d in range(n_kinds):
            beta[d] = reliability[old, d] if alone else b[d]
            alpha[d] = habit[old, d] if alone else h[d]
        for r in range(SETTLING + 1):
            divergence, evidence = 0.0, 0.0
            for d in range(n_kinds):
                _expected_log(beta[d], log_u[d])
                u[d] = np.maximum(np.exp(log_u[d]), LEAST)
                divergence += _divergence(b[d], beta[d], log_u[d])
                if n_labels > 1:
                    _expected_log(alpha[d], log_x[d])
                    x[d] = np.maximum(np.exp(log_x[d]), LEAST)
                    all_habits[d] = x[d].sum()
                    divergence += _divergence(h[d], alpha[d], log_x[d])
            reliable[:] = 0.0
            habits[:] = 0.0
            for j in range(n_claims):
                total, each = eta + (domain_of[j] - 1) * theta, 0.0
                for d in range(n_kinds):
                    own_habit = x[d, label_of[j]] if n_labels > 1 else 1.0 / domain_of[j]
                    right[d] = u[d, 1] * (here[j, d] * eta + elsewhere[j, d] * theta) / total
                    careless[d] = u[d, 0] * (here[j, d] + elsewhere[j, d])
                    wrong[d] = careless[d] * _wrong(own_habit, all_habits[d], eta, theta, total)
                    each += right[d] + wrong[d]
                evidence += log(each)
                for d in range(n_kinds):
                    reliable[d, 1] += right[d] / each
                    reliable[d, 0] += wrong[d] / each
                    if n_labels > 1:
                        weight = careless[d] / (total * each)
                        for k in range(n_labels):
                            habits[d, k] += weight * x[d, k] * (eta if k == label_of[j] else theta)
            value = log(kappa) - divergence + evidence
            if alone and r == 0:
                now = value
            if r < SETTLING:
                for d in range(n_kinds):
                    beta[d] = b[d] + reliable[d]
                    alpha[d] = h[d] + habits[d]
        best, best_group = value, -1

        if seen[old] != n and not alone:
            seen[old] = n
            beyond[old], factor[old] = 0.0, 1.0
            near[n_near] = old
            n_near += 1
        for t in range(n_near):
            g = near[t]
            others = size_of[g] - (1 if g == old else 0)
            if others == 0:
                continue
            value = beyond[g] + log(factor[g]) + log(others)
            # The evidence is concave in what a group is like, so it lies below its tangent at the source alone.
            highest = value + evidence
            for d in range(n_kinds):
                highest += reliable[d, 1] * (voices.reliable[g, d, 1] / u[d, 1] - 1)
                zero = voices.reliable[g, d, 0] / u[d, 0]
                if n_labels > 1:
                    for k in range(n_labels):
                        highest += habits[d, k] * (zero * voices.habit[g, d, k] / x[d, k] - 1)
                else:
                    highest += reliable[d, 0] * (zero - 1)
            if g != old and highest < best:
                continue
            product = 1.0
            for j in range(n_claims):
                total = eta + (domain_of[j] - 1) * theta
                each = 0.0
                for d in range(n_kinds):
                    own_habit = voices.habit[g, d, label_of[j]] if n_labels > 1 else 1.0 / domain_of[j]
                    everything = voices.habits[g, d] if n_labels > 1 else 1.0
                    each += voices.reliable[g, d, 1] * (here[j, d] * eta + elsewhere[j, d] * theta) / total
                    each += (
                        voices.reliable[g, d, 0]
                        * _wrong(own_habit, everything, eta, theta, total)
                        * (here[j, d] + elsewhere[j, d])
                    )
                product *= each
                if product < 1e-100:
                    value += log(product)
                    product = 1.0
            value += log(product)
            if g == old:
                now = value
            if value > best:
                best, best_group = value, g

        if best > now + 1e-9:
            gain += best - now
            if alone and best_group >= 0:
                empty = min(empty, old)
                for d in range(n_kinds):
                    reliability[old, d] = b[d]
                    habit[old, d] = h[d]
            if best_group < 0:
                if not alone:
                    while size_of[empty] > 0:
                        empty += 1
                best_group = old if alone else empty
                for d in range(n_kinds):
                    reliability[best_group, d] = beta[d]
                    voices.reliable[best_group, d] = u[d]
                    habit[best_group, d] = alpha[d]
                    if n_labels > 1:
                        voices.habit[best_group, d] = x[d]
                        voices.habits[best_group, d] = all_habits[d]
            if best_group != old:
                moved += 1
                size_of[old] -= 1
                size_of[best_group] += 1
                voices.group[n] = best_group
            for j in range(n_claims):
                m = claim_object[by_source[first_of_source[n] + j]]
                n_pairs[m] = _take_apart(m, objects.first_claim[m], objects, voices, counts, apart, key)
                _posterior(
                    m, objects.first_claim[m], n_pairs[m], objects, voices, log_share, apart,
                    q, objects.first_candidate[m], q_unclaimed, m,
                )  # fmt: skip
    return moved, gain
