"""The partition inference compiled: its local step, and the relocation of sources. As in `numpy_partition`, but an
object costs its claims, not groups × values, and a relocation reads only the objects that the source claims.

An object is taken apart into *pairs* (a group with claims on it) and *cells* (a value claimed by a pair). Whatever a
pair does not claim is alike to it, so every sum over the domain is one over its cells and a rest.
"""

from __future__ import annotations

from math import exp, lgamma, log

import numpy as np

from consilience.claims.encoding import Claims, Int, Shard
from consilience.kernels.compiled import add_term, compiled, digamma, fixed, log_add
from consilience.kernels.numpy_partition import expected_log, rising_tables
from consilience.kernels.state import Beliefs, Grouping, GroupingStats, Locals

INNER = 4
"""Rounds in which a source that may stand alone finds its own reliability."""
SLACK = 3.0
"""A group is weighed in full where it may come within this many nats of standing alone."""


def partition(
    shard: Shard, given: Grouping, beliefs: Beliefs, warm: Locals | None = None
) -> tuple[Locals, GroupingStats]:
    """As `numpy_partition.partition`."""
    n_kinds, n_labels = beliefs.share.shape
    truth = np.empty(shard.n_candidates)
    reliable = np.zeros(given.reliability.shape, np.int64)
    habit = np.zeros(given.habit.shape, np.int64)
    habit_rest = np.zeros(given.reliability.shape[:2], np.int64)
    share = np.zeros((n_kinds, n_labels), np.int64)
    counts, terms = np.zeros(4, np.int64), np.zeros((1, 2), np.int64)
    log_habit = expected_log(given.habit)
    _partition(
        shard.claim_source, shard.claim_candidate, shard.first_claim, shard.first_candidate,
        shard.log_truth, shard.label, shard.log_unclaimed,
        given.group, expected_log(given.reliability), log_habit, np.exp(log_habit).sum(axis=2), np.log(beliefs.share),
        beliefs.true_count, beliefs.false_count, *rising_tables(beliefs, _deepest(shard.first_claim)),
        truth, reliable, habit, habit_rest, share, counts, terms,
    )  # fmt: skip
    return Locals(truth), GroupingStats(reliable, habit, habit_rest, share, counts, terms)


def relocate(
    claims: Claims, shard: Shard, given: Grouping, beliefs: Beliefs, order: Int
) -> tuple[Grouping, int, float]:
    """As `numpy_partition.relocate`."""
    by_source = np.argsort(claims.claim_source, kind="stable")
    first_of_source = np.searchsorted(claims.claim_source[by_source], np.arange(claims.n_sources + 1))
    group, reliability, habit = given.group.copy(), given.reliability.copy(), given.habit.copy()
    log_habit = expected_log(habit)
    moved, gain = _relocate(
        order, by_source, first_of_source, claims.claim_object(),
        shard.claim_source, shard.claim_candidate, shard.first_claim, shard.first_candidate,
        shard.log_truth, shard.label, shard.log_unclaimed,
        group, given.size, reliability, habit,
        expected_log(reliability), log_habit, np.exp(log_habit).sum(axis=2), np.log(beliefs.share),
        beliefs.true_count, beliefs.false_count, beliefs.reliability, beliefs.habit_prior, beliefs.concentration,
        *rising_tables(beliefs, _deepest(shard.first_claim) + 1)[:2],
    )  # fmt: skip
    return Grouping(group, reliability, habit), int(moved), float(gain)


def _deepest(first_claim: Int) -> int:
    """The most claims an object has."""
    return int(np.diff(first_claim).max(initial=0))


@compiled
def _read_object(  # type: ignore[no-untyped-def]
    m, without, claim_source, claim_candidate, first_claim, first_candidate, label, unclaimed,
    group, log_reliable, log_habit, habit_total, eta, theta, as_true, as_false,
    key, pair_group, pair_total, first_cell, cell_offset, cell_count, swap, common, log_wrong, rest_nats, nats,
):  # fmt: skip
    """Take object m apart, leaving out the claim `without`. Returns the number of pairs.

    swap     : (cells,) what a value's evidence gains when it is the opinion
    common   : (pairs,) evidence of all its claims were none of them the opinion
    log_wrong: (pairs, kinds) ln Σ_s ξ_s exp(swap_s), the opinion of an unreliable group summed out
    rest_nats, nats : S_lm(d, z) where z is not claimed by the pair, and where it is a cell
    """
    start, size = first_candidate[m], first_candidate[m + 1] - first_candidate[m]
    domain = size + unclaimed
    n_labels, n_kinds = log_habit.shape[2], log_reliable.shape[1]
    n = 0
    for i in range(first_claim[m], first_claim[m + 1]):
        if i == without:
            continue
        new = group[claim_source[i]] * size + (claim_candidate[i] - start)
        if first_claim[m + 1] - first_claim[m] <= 64:
            j = n
            while j > 0 and key[j - 1] > new:
                key[j] = key[j - 1]
                j -= 1
            key[j] = new
        else:
            key[n] = new
        n += 1
    if first_claim[m + 1] - first_claim[m] > 64:
        key[:n].sort()

    n_pairs, n_cells = 0, 0
    for j in range(n):
        if j > 0 and key[j] == key[j - 1]:
            cell_count[n_cells - 1] += 1
        else:
            if j == 0 or key[j] // size != key[j - 1] // size:
                pair_group[n_pairs] = key[j] // size
                pair_total[n_pairs] = 0
                first_cell[n_pairs] = n_cells
                n_pairs += 1
            cell_offset[n_cells] = key[j] % size
            cell_count[n_cells] = 1
            n_cells += 1
        pair_total[n_pairs - 1] += 1
    first_cell[n_pairs] = n_cells

    total = eta + (domain - 1) * theta
    for p in range(n_pairs):
        g = pair_group[p]
        common[p] = lgamma(total) - lgamma(total + pair_total[p])
        for c in range(first_cell[p], first_cell[p + 1]):
            common[p] += as_false[cell_count[c]]
            swap[c] = as_true[cell_count[c]] - as_false[cell_count[c]]
        for d in range(n_kinds):
            highest, claimed = 0.0, 0.0
            for c in range(first_cell[p], first_cell[p + 1]):
                own = log_habit[g, d, label[start + cell_offset[c]]] if n_labels > 1 else -log(domain)
                highest = max(highest, swap[c] + own)
                claimed += exp(own)
            everything = habit_total[g, d] if n_labels > 1 else 1.0
            mass = max(everything - claimed, 0.0) * exp(-highest)
            for c in range(first_cell[p], first_cell[p + 1]):
                own = log_habit[g, d, label[start + cell_offset[c]]] if n_labels > 1 else -log(domain)
                mass += exp(swap[c] + own - highest)
            log_wrong[p, d] = highest + log(mass)
            wrong, right = log_reliable[g, d, 0] + log_wrong[p, d], log_reliable[g, d, 1]
            rest_nats[p, d] = common[p] + log_add(wrong, right)
            for c in range(first_cell[p], first_cell[p + 1]):
                nats[c, d] = common[p] + log_add(wrong, right + swap[c])
    return n_pairs


@compiled
def _posterior(  # type: ignore[no-untyped-def]
    m, n_pairs, first_candidate, log_truth, label, log_unclaimed, log_share, n_labels,
    first_cell, cell_offset, rest_nats, nats, q, q_unclaimed,
):  # fmt: skip
    """q(d, z) of object m, and q(d, unclaimed); returns the object's part of the bound."""
    start, size = first_candidate[m], first_candidate[m + 1] - first_candidate[m]
    n_kinds = len(log_share)
    highest = -np.inf
    for d in range(n_kinds):
        everywhere = 0.0
        for p in range(n_pairs):
            everywhere += rest_nats[p, d]
        for k in range(size):
            share = log_share[d, label[start + k]] if n_labels > 1 else log_share[d, 0]
            q[d, k] = log_truth[start + k] + share + everywhere
        for p in range(n_pairs):
            for c in range(first_cell[p], first_cell[p + 1]):
                q[d, cell_offset[c]] += nats[c, d] - rest_nats[p, d]
        q_unclaimed[d] = log_unclaimed[m] + log_share[d, 0] + everywhere
        highest = max(highest, q_unclaimed[d])
        for k in range(size):
            highest = max(highest, q[d, k])
    total = 0.0
    for d in range(n_kinds):
        q_unclaimed[d] = exp(q_unclaimed[d] - highest)
        total += q_unclaimed[d]
        for k in range(size):
            q[d, k] = exp(q[d, k] - highest)
            total += q[d, k]
    for d in range(n_kinds):
        q_unclaimed[d] /= total
        for k in range(size):
            q[d, k] /= total
    return highest + log(total)


@compiled
def _partition(  # type: ignore[no-untyped-def]
    claim_source, claim_candidate, first_claim, first_candidate, log_truth, label, log_unclaimed,
    group, log_reliable, log_habit, habit_total, log_share, eta, theta, as_true, as_false, slope_true, slope_false,
    truth, reliable, habit, habit_rest, share, counts, terms,
):  # fmt: skip
    n_objects, n_kinds, n_labels = len(first_claim) - 1, log_reliable.shape[1], log_habit.shape[2]
    deepest, widest = 1, 1
    for m in range(n_objects):
        deepest = max(deepest, first_claim[m + 1] - first_claim[m])
        widest = max(widest, first_candidate[m + 1] - first_candidate[m])
    key = np.empty(deepest, np.int64)
    pair_group, pair_total = np.empty(deepest, np.int64), np.empty(deepest, np.int64)
    first_cell = np.empty(deepest + 1, np.int64)
    cell_offset, cell_count = np.empty(deepest, np.int64), np.empty(deepest, np.int64)
    swap, common = np.empty(deepest), np.empty(deepest)
    log_wrong, rest_nats = np.empty((deepest, n_kinds)), np.empty((deepest, n_kinds))
    nats = np.empty((deepest, n_kinds))
    q, q_unclaimed = np.empty((n_kinds, widest)), np.empty(n_kinds)

    for m in range(n_objects):
        start, size = first_candidate[m], first_candidate[m + 1] - first_candidate[m]
        unclaimed = 1 if log_unclaimed[m] > -np.inf else 0
        domain = size + unclaimed
        n_pairs = _read_object(
            m, -1, claim_source, claim_candidate, first_claim, first_candidate, label, unclaimed,
            group, log_reliable, log_habit, habit_total, eta, theta, as_true, as_false,
            key, pair_group, pair_total, first_cell, cell_offset, cell_count, swap, common, log_wrong, rest_nats, nats,
        )  # fmt: skip
        evidence = _posterior(
            m, n_pairs, first_candidate, log_truth, label, log_unclaimed, log_share, n_labels,
            first_cell, cell_offset, rest_nats, nats, q, q_unclaimed,
        )  # fmt: skip
        add_term(terms, 0, evidence)

        claimed = 0.0
        for k in range(size):
            truth[start + k] = 0.0
            for d in range(n_kinds):
                truth[start + k] += q[d, k]
                share[d, label[start + k] if n_labels > 1 else 0] += fixed(q[d, k])
            claimed += truth[start + k]
        for k in range(size):
            truth[start + k] = truth[start + k] / claimed if claimed > 0.0 else 1.0 / size
        for d in range(n_kinds):
            share[d, 0] += fixed(q_unclaimed[d])

        total = eta + (domain - 1) * theta
        for p in range(n_pairs):
            g = pair_group[p]
            slope = digamma(total + pair_total[p]) - digamma(total)
            counts[1] += fixed(slope)
            counts[3] += fixed((domain - 1) * slope)
            every_slope = 0.0
            for c in range(first_cell[p], first_cell[p + 1]):
                every_slope += slope_false[cell_count[c]]
            gain_true, gain_false = 0.0, 0.0
            for d in range(n_kinds):
                of_kind = q_unclaimed[d]
                for k in range(size):
                    of_kind += q[d, k]
                elsewhere, right = of_kind, 0.0
                for c in range(first_cell[p], first_cell[p + 1]):
                    here = q[d, cell_offset[c]]
                    elsewhere -= here
                    weight = here * exp(log_reliable[g, d, 1] + swap[c] + common[p] - nats[c, d])
                    right += weight
                    gain_true += weight * slope_true[cell_count[c]]
                    gain_false += weight * (every_slope - slope_false[cell_count[c]])
                weight = max(elsewhere, 0.0) * exp(log_reliable[g, d, 1] + common[p] - rest_nats[p, d])
                right += weight
                gain_false += weight * every_slope
                wrong = max(of_kind - right, 0.0)
                reliable[g, d, 1] += fixed(right)
                reliable[g, d, 0] += fixed(wrong)
                left = wrong
                for c in range(first_cell[p], first_cell[p + 1]):
                    at = label[start + cell_offset[c]] if n_labels > 1 else 0
                    own = log_habit[g, d, at] if n_labels > 1 else -log(domain)
                    weight = wrong * exp(swap[c] + own - log_wrong[p, d])
                    left -= weight
                    gain_true += weight * slope_true[cell_count[c]]
                    gain_false += weight * (every_slope - slope_false[cell_count[c]])
                    if n_labels > 1:
                        habit[g, d, at] += fixed(weight - wrong * exp(own - log_wrong[p, d]))
                gain_false += max(left, 0.0) * every_slope
                if n_labels > 1:
                    habit_rest[g, d] += fixed(wrong * exp(-log_wrong[p, d]))
            counts[0] += fixed(gain_true)
            counts[2] += fixed(gain_false)


@compiled
def _wrong(own, everything, eta, theta, total):  # type: ignore[no-untyped-def]
    """Probability of a lone claim by an unreliable group: its opinion is that value by habit, or another."""
    return (own * eta + (everything - own) * theta) / total


@compiled
def _log_beta_divergence(b, beta, log_u):  # type: ignore[no-untyped-def]
    """KL(Dirichlet(beta) || Dirichlet(b)) with log_u = E ln u under the first."""
    divergence, total, prior_total = 0.0, 0.0, 0.0
    for r in range(len(b)):
        divergence += lgamma(b[r]) - lgamma(beta[r]) + (beta[r] - b[r]) * log_u[r]
        total += beta[r]
        prior_total += b[r]
    return divergence + lgamma(total) - lgamma(prior_total)


@compiled
def _expected_log(beta, out):  # type: ignore[no-untyped-def]
    total = 0.0
    for r in range(len(beta)):
        total += beta[r]
    total = digamma(total)
    for r in range(len(beta)):
        out[r] = digamma(beta[r]) - total


@compiled
def _relocate(  # type: ignore[no-untyped-def]
    order, by_source, first_of_source, claim_object,
    claim_source, claim_candidate, first_claim, first_candidate, log_truth, label, log_unclaimed,
    group, size_of, reliability, habit, log_reliable, log_habit, habit_total, log_share,
    eta, theta, b, h, kappa, as_true, as_false,
):  # fmt: skip
    n_objects, n_groups, n_kinds, n_labels = len(first_claim) - 1, len(reliability), len(b), h.shape[1]
    deepest, widest = 1, 1
    for m in range(n_objects):
        deepest = max(deepest, first_claim[m + 1] - first_claim[m])
        widest = max(widest, first_candidate[m + 1] - first_candidate[m])
    most = 1
    for n in order:
        most = max(most, first_of_source[n + 1] - first_of_source[n])
    key = np.empty(deepest, np.int64)
    pair_group, pair_total = np.empty(deepest, np.int64), np.empty(deepest, np.int64)
    first_cell = np.empty(deepest + 1, np.int64)
    cell_offset, cell_count = np.empty(deepest, np.int64), np.empty(deepest, np.int64)
    swap, common = np.empty(deepest), np.empty(deepest)
    log_wrong, rest_nats = np.empty((deepest, n_kinds)), np.empty((deepest, n_kinds))
    nats = np.empty((deepest, n_kinds))
    q, q_unclaimed = np.empty((n_kinds, widest)), np.empty(n_kinds)
    # Of each claim of the source: q(d, t = y), q(d, t ≠ y) without it, its domain's size and its label.
    here, elsewhere = np.empty((most, n_kinds)), np.empty((most, n_kinds))
    domain_of, label_of = np.empty(most), np.empty(most, np.int64)
    beta, log_u = np.empty((n_kinds, 2)), np.empty((n_kinds, 2))
    alpha, log_x = np.empty((n_kinds, n_labels)), np.empty((n_kinds, n_labels))
    next_beta, next_alpha = np.empty((n_kinds, 2)), np.empty((n_kinds, n_labels))
    right, wrong, careless, all_habits = (
        np.empty(n_kinds),
        np.empty(n_kinds),
        np.empty(n_kinds),
        np.empty(n_kinds),
    )
    beyond = np.zeros(
        n_groups
    )  # what a group's own claims on shared objects add to an empty group's evidence
    seen = np.full(n_groups, -1, np.int64)
    near = np.empty(n_groups, np.int64)
    empty = 0  # a group below which none is empty
    moved, gain = 0, 0.0

    for n in order:
        old, n_near, n_claims = group[n], 0, first_of_source[n + 1] - first_of_source[n]
        for j in range(n_claims):
            i = by_source[first_of_source[n] + j]
            m = claim_object[i]
            start, size = first_candidate[m], first_candidate[m + 1] - first_candidate[m]
            unclaimed = 1 if log_unclaimed[m] > -np.inf else 0
            domain, y = size + unclaimed, claim_candidate[i] - start
            at = label[start + y] if n_labels > 1 else 0
            n_pairs = _read_object(
                m, i, claim_source, claim_candidate, first_claim, first_candidate, label, unclaimed,
                group, log_reliable, log_habit, habit_total, eta, theta, as_true, as_false,
                key, pair_group, pair_total, first_cell, cell_offset, cell_count, swap, common, log_wrong, rest_nats,
                nats,
            )  # fmt: skip
            _posterior(
                m, n_pairs, first_candidate, log_truth, label, log_unclaimed, log_share, n_labels,
                first_cell, cell_offset, rest_nats, nats, q, q_unclaimed,
            )  # fmt: skip
            for d in range(n_kinds):
                here[j, d] = q[d, y]
                elsewhere[j, d] = q_unclaimed[d]
                for k in range(size):
                    if k != y:
                        elsewhere[j, d] += q[d, k]
            domain_of[j], label_of[j] = domain, at
            total = eta + (domain - 1) * theta
            for p in range(n_pairs):
                g = pair_group[p]
                count, old_swap = 0, 0.0
                for c in range(first_cell[p], first_cell[p + 1]):
                    if cell_offset[c] == y:
                        count, old_swap = cell_count[c], swap[c]
                new_swap = as_true[count + 1] - as_false[count + 1]
                new_common = common[p] + as_false[count + 1] - as_false[count] - log(total + pair_total[p])
                after, before = 0.0, 0.0
                for d in range(n_kinds):
                    own = log_habit[g, d, at] if n_labels > 1 else -log(domain)
                    high = max(log_wrong[p, d], new_swap + own)
                    low = (
                        exp(log_wrong[p, d] - high) - exp(old_swap + own - high) + exp(new_swap + own - high)
                    )
                    log_zero = log_reliable[g, d, 0] + high + log(low)
                    log_one = log_reliable[g, d, 1]
                    left, at_y = here[j, d] + elsewhere[j, d], False
                    for c in range(first_cell[p], first_cell[p + 1]):
                        k = cell_offset[c]
                        new = new_swap if k == y else swap[c]
                        left -= q[d, k]
                        at_y = at_y or k == y
                        after += q[d, k] * exp(new_common + log_add(log_zero, log_one + new) - nats[c, d])
                    rest = new_common - rest_nats[p, d]
                    if not at_y:
                        left -= q[d, y]
                        after += q[d, y] * exp(rest + log_add(log_zero, log_one + new_swap))
                    after += max(left, 0.0) * exp(rest + log_add(log_zero, log_one))
                    before += exp(log_one) * (here[j, d] * eta + elsewhere[j, d] * theta) / total
                    wrong[d] = _wrong(exp(own), habit_total[g, d] if n_labels > 1 else 1.0, eta, theta, total)
                    before += exp(log_reliable[g, d, 0]) * wrong[d] * (here[j, d] + elsewhere[j, d])
                if seen[g] != n:
                    seen[g] = n
                    beyond[g] = 0.0
                    near[n_near] = g
                    n_near += 1
                beyond[g] += log(after) - log(before)

        # Alone: its own reliability and habit, from where they are or from the prior, found in a few rounds.
        alone = size_of[old] == 1
        best, best_group, now = -np.inf, -1, -np.inf
        if seen[old] != n and not alone:
            seen[old] = n
            beyond[old] = 0.0
            near[n_near] = old
            n_near += 1
        for d in range(n_kinds):
            beta[d] = reliability[old, d] if alone else b[d]
            alpha[d] = habit[old, d] if alone else h[d]
        divergence = 0.0
        for r in range(INNER):
            value = log(kappa)
            divergence = 0.0
            for d in range(n_kinds):
                _expected_log(beta[d], log_u[d])
                divergence += _log_beta_divergence(b[d], beta[d], log_u[d])
                all_habits[d] = 1.0
                if n_labels > 1:
                    _expected_log(alpha[d], log_x[d])
                    all_habits[d] = np.exp(log_x[d]).sum()
                    divergence += _log_beta_divergence(h[d], alpha[d], log_x[d])
                next_beta[d] = b[d]
                next_alpha[d] = h[d]
            value -= divergence
            for j in range(n_claims):
                total, each = eta + (domain_of[j] - 1) * theta, 0.0
                for d in range(n_kinds):
                    own = exp(log_x[d, label_of[j]]) if n_labels > 1 else 1.0 / domain_of[j]
                    right[d] = exp(log_u[d, 1]) * (here[j, d] * eta + elsewhere[j, d] * theta) / total
                    careless[d] = exp(log_u[d, 0]) * (here[j, d] + elsewhere[j, d])
                    wrong[d] = careless[d] * _wrong(own, all_habits[d], eta, theta, total)
                    each += right[d] + wrong[d]
                value += log(each)
                for d in range(n_kinds):
                    next_beta[d, 1] += right[d] / each
                    next_beta[d, 0] += wrong[d] / each
                    if n_labels > 1:
                        for k in range(n_labels):
                            likelihood = (eta if k == label_of[j] else theta) / total
                            next_alpha[d, k] += careless[d] * exp(log_x[d, k]) * likelihood / each
            if alone and r == 0:
                now = value
            if r < INNER - 1:
                beta[:] = next_beta
                alpha[:] = next_alpha
        best, best_group = value, -1

        for t in range(n_near):
            g = near[t]
            others = size_of[g] - (1 if g == old else 0)
            if others == 0:
                continue
            value = beyond[g] + log(others)
            if g != old and value < log(kappa) - divergence - SLACK:
                continue
            for j in range(n_claims):
                total, each = eta + (domain_of[j] - 1) * theta, 0.0
                for d in range(n_kinds):
                    own = exp(log_habit[g, d, label_of[j]]) if n_labels > 1 else 1.0 / domain_of[j]
                    each += exp(log_reliable[g, d, 1]) * (here[j, d] * eta + elsewhere[j, d] * theta) / total
                    careless[d] = _wrong(own, habit_total[g, d] if n_labels > 1 else 1.0, eta, theta, total)
                    each += exp(log_reliable[g, d, 0]) * careless[d] * (here[j, d] + elsewhere[j, d])
                value += log(each)
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
                    log_reliable[best_group, d] = log_u[d]
                    habit[best_group, d] = alpha[d]
                    if n_labels > 1:
                        log_habit[best_group, d] = log_x[d]
                        habit_total[best_group, d] = all_habits[d]
            if best_group != old:
                moved += 1
                size_of[old] -= 1
                size_of[best_group] += 1
                group[n] = best_group
    return moved, gain
