"""The fast kernel for CPUs: the loops of `numpy_`, object by object, compiled by Numba."""

from __future__ import annotations

from math import exp, lgamma, log

import numpy as np

from consilience.claims.encoding import Shard
from consilience.kernels.compiled import add_term, compiled, digamma, fixed, gammas, log_add, logs
from consilience.kernels.numba_partition import completed, partition
from consilience.kernels.numba_relocate import relocate
from consilience.kernels.numpy_ import expected_log_reliability, start_locals
from consilience.kernels.segments import Segments as segments
from consilience.kernels.state import Globals, Locals, Prior, Stats
from consilience.kernels.weights import read_only

__all__ = ["completed", "fewest", "mean_field", "name", "partition", "relocate", "segments", "structured"]

name = "numba"
fewest = 10_000


def structured(
    shard: Shard, given: Globals, prior: Prior, warm: Locals | None = None
) -> tuple[Locals, Stats]:
    """As `numpy_.structured`."""
    truth = np.empty(shard.n_candidates)
    score = np.zeros(given.group.shape, np.int64)
    reliable = np.zeros((given.n_groups, 2), np.int64)
    terms = np.zeros((4, 2), np.int64)
    _structured(
        read_only(shard.claim_source), read_only(shard.claim_candidate), read_only(shard.first_claim),
        read_only(shard.first_candidate), read_only(shard.log_truth), read_only(given.group),
        read_only(given.membership), expected_log_reliability(given.group_reliability),
        read_only(prior.true_count), read_only(prior.false_count), truth, score, reliable, terms,
    )  # fmt: skip
    return Locals(truth), Stats(score, reliable, terms)


def mean_field(
    shard: Shard, given: Globals, prior: Prior, warm: Locals | None = None
) -> tuple[Locals, Stats]:
    """As `numpy_.mean_field`."""
    if warm is None:
        warm = Locals(*start_locals(shard, given))
    assert warm.object_reliability is not None, "mean-field carries object reliabilities from sweep to sweep"
    truth, object_reliability = warm.truth.copy(), warm.object_reliability.copy()
    score = np.zeros(given.group.shape, np.int64)
    reliable = np.zeros((given.n_groups, 2), np.int64)
    terms = np.zeros((4, 2), np.int64)
    _mean_field(
        read_only(shard.claim_source), read_only(shard.claim_candidate), read_only(shard.first_claim),
        read_only(shard.first_candidate), read_only(shard.log_truth), read_only(given.membership),
        expected_log_reliability(given.group_reliability),
        read_only(prior.true_count), read_only(prior.false_count), prior.reliability / prior.reliability.sum(),
        truth, object_reliability, score, reliable, terms,
    )  # fmt: skip
    return Locals(truth, object_reliability), Stats(score, reliable, terms)


@compiled
def _normalise(logit, probability):  # type: ignore[no-untyped-def]
    """Softmax of `logit` into `probability`; leaves ln q in `logit`."""
    highest = logit.max()
    total = 0.0
    for k in range(len(logit)):
        probability[k] = exp(logit[k] - highest)
        total += probability[k]
    log_total = highest + log(total)
    for k in range(len(logit)):
        logit[k] -= log_total
        probability[k] /= total


@compiled
def _structured(  # type: ignore[no-untyped-def]
    claim_source, claim_candidate, first_claim, first_candidate, log_truth,
    group, weight, log_reliable, true_count, false_count,
    truth, score, reliable, terms,
):  # fmt: skip
    n_objects, width = len(first_claim) - 1, group.shape[1]
    place = np.full(len(log_reliable), -1, np.int64)  # group -> its row among the object's pairs
    widest = 0
    for m in range(n_objects):
        widest = max(widest, first_candidate[m + 1] - first_candidate[m])
    deepest = 16
    active = np.empty(deepest, np.int64)
    count = np.zeros((deepest, widest))
    q = np.empty((deepest, widest, 2))  # ln of the summands of S_lm(z), then q(r | z), then q(z, r)
    evidence = np.empty((deepest, widest, 2))
    logit = np.empty(widest)
    log_eta = np.array([lgamma(true_count[0]), lgamma(true_count[1])])
    log_theta = np.array([lgamma(false_count[0]), lgamma(false_count[1])])

    for m in range(n_objects):
        start, size = first_candidate[m], first_candidate[m + 1] - first_candidate[m]
        n_pairs = 0
        for i in range(first_claim[m], first_claim[m + 1]):
            n, k = claim_source[i], claim_candidate[i] - start
            for w in range(width):
                if weight[n, w] <= 0.0:
                    continue
                p = place[group[n, w]]
                if p < 0:
                    p = n_pairs
                    n_pairs += 1
                    if n_pairs > deepest:
                        deepest *= 2
                        active, old_active = np.empty(deepest, np.int64), active
                        active[:p] = old_active[:p]
                        count, old_count = np.zeros((deepest, widest)), count
                        count[:p] = old_count[:p]
                        q = np.empty((deepest, widest, 2))
                        evidence = np.empty((deepest, widest, 2))
                    place[group[n, w]] = p
                    active[p] = group[n, w]
                    count[p, :size] = 0.0
                count[p, k] += weight[n, w]

        # S_lm(z), added to the truth's log prior
        for k in range(size):
            logit[k] = log_truth[start + k]
        for p in range(n_pairs):
            for r in range(2):
                eta, theta = true_count[r], false_count[r]
                total, prior_total, all_false = 0.0, eta + (size - 1) * theta, 0.0
                for k in range(size):
                    c = count[p, k]
                    evidence[p, k, r] = 0.0
                    if c > 0.0:
                        as_false = lgamma(theta + c) - log_theta[r]
                        total += c
                        all_false += as_false
                        evidence[p, k, r] = lgamma(eta + c) - log_eta[r] - as_false
                common = all_false + lgamma(prior_total) - lgamma(prior_total + total)
                for k in range(size):
                    evidence[p, k, r] += common
                    q[p, k, r] = log_reliable[active[p], r] + evidence[p, k, r]
            for k in range(size):
                nats = log_add(q[p, k, 0], q[p, k, 1])
                logit[k] += nats
                q[p, k, 0] = exp(q[p, k, 0] - nats)
                q[p, k, 1] = exp(q[p, k, 1] - nats)
        _normalise(logit[:size], truth[start : start + size])

        # E ln π_lmk replaces the counts; the bound's terms
        claims = answers = reliability = truth_term = 0.0
        for k in range(size):
            if truth[start + k] > 0.0:
                truth_term += truth[start + k] * (log_truth[start + k] - logit[k])
        for p in range(n_pairs):
            total = 0.0
            unreliable_mass = reliable_mass = 0.0
            for k in range(size):
                total += count[p, k]
                for r in range(2):
                    q_r = q[p, k, r]
                    joint = truth[start + k] * q_r
                    if joint > 0.0:
                        reliability += joint * (log_reliable[active[p], r] - log(q_r))
                    answers += joint * evidence[p, k, r]
                    q[p, k, r] = joint
                unreliable_mass += q[p, k, 0]
                reliable_mass += q[p, k, 1]
            reliable[active[p], 0] += fixed(unreliable_mass)
            reliable[active[p], 1] += fixed(reliable_mass)
            common = unreliable_mass * digamma(
                true_count[0] + (size - 1) * false_count[0] + total
            ) + reliable_mass * digamma(true_count[1] + (size - 1) * false_count[1] + total)
            for k in range(size):
                c = count[p, k]
                if c > 0.0:
                    log_answer = (
                        q[p, k, 0] * digamma(true_count[0] + c)
                        + (unreliable_mass - q[p, k, 0]) * digamma(false_count[0] + c)
                        + q[p, k, 1] * digamma(true_count[1] + c)
                        + (reliable_mass - q[p, k, 1]) * digamma(false_count[1] + c)
                        - common
                    )
                    claims += c * log_answer
                    count[p, k] = log_answer
        add_term(terms, 0, claims)
        add_term(terms, 1, answers - claims)
        add_term(terms, 2, reliability)
        add_term(terms, 3, truth_term)

        for i in range(first_claim[m], first_claim[m + 1]):
            n, k = claim_source[i], claim_candidate[i] - start
            for w in range(width):
                if weight[n, w] > 0.0:
                    score[n, w] += fixed(count[place[group[n, w]], k])
        for p in range(n_pairs):
            place[active[p]] = -1


@compiled
def _mean_field(  # type: ignore[no-untyped-def]
    claim_source, claim_candidate, first_claim, first_candidate, log_truth,
    weight, log_reliable, true_count, false_count, prior_reliability,
    truth, object_reliability, score, reliable, terms,
):  # fmt: skip
    """Groups are the last axis and the innermost loop: they lie side by side in memory, as in `weight` and `score`."""
    n_objects, n_groups = len(first_claim) - 1, len(log_reliable)
    widest = 0
    for m in range(n_objects):
        widest = max(widest, first_candidate[m + 1] - first_candidate[m])
    normaliser, same, other = _by_domain_size(widest, true_count, false_count, prior_reliability)
    count = np.empty((widest, n_groups + 1))  # the last column is the tail's
    to_score = np.empty((widest, n_groups + 1), np.int64)
    shape = (widest + 1, n_groups)  # the row after the object's last candidate is their total
    alpha, log_answer, log_gamma = np.empty(shape), np.empty(shape), np.empty(shape)
    cells = alpha.ravel(), log_answer.ravel(), log_gamma.ravel()
    room = np.empty((3, (widest + 1) * n_groups))
    logit, said = np.empty(widest), np.empty(widest)
    against, sharpness = np.empty(n_groups), np.empty(n_groups)
    either, log_either = np.empty(n_groups), np.empty(n_groups)
    claims, answers, soft_answers = np.empty(n_groups), np.empty(n_groups), np.empty(n_groups)

    for m in range(n_objects):
        start, size = first_candidate[m], first_candidate[m + 1] - first_candidate[m]
        nu = truth[start : start + size]
        q1 = object_reliability[m]
        count[:size] = 0.0
        for i in range(first_claim[m], first_claim[m + 1]):
            n, k = claim_source[i], claim_candidate[i] - start
            for g in range(n_groups + 1):
                count[k, g] += weight[n, g]

        # 1. answers
        alpha[size] = 0.0
        for k in range(size):
            soft_0 = true_count[0] * nu[k] + false_count[0] * (1 - nu[k])
            soft_1 = true_count[1] * nu[k] + false_count[1] * (1 - nu[k])
            for g in range(n_groups):
                alpha[k, g] = count[k, g] + (1 - q1[g]) * soft_0 + q1[g] * soft_1
                alpha[size, g] += alpha[k, g]
        n = (size + 1) * n_groups
        gammas(cells[0][:n], cells[1][:n], cells[2][:n], room)
        # 2. reliability on this object
        for g in range(n_groups):
            against[g] = log_reliable[g, 0] - log_reliable[g, 1] + normaliser[size, 0] - normaliser[size, 1]
            claims[g], answers[g], soft_answers[g] = 0.0, -log_gamma[size, g], 0.0
        for k in range(size):
            soft = (true_count[0] - true_count[1]) * nu[k] + (false_count[0] - false_count[1]) * (1 - nu[k])
            for g in range(n_groups):
                answer = log_answer[k, g] - log_answer[size, g]
                log_answer[k, g] = answer
                against[g] += soft * answer
                claims[g] += count[k, g] * answer
                answers[g] += log_gamma[k, g] - alpha[k, g] * answer
                soft_answers[g] += answer
        for g in range(n_groups):
            either[g] = 1.0 + exp(-abs(against[g]))
        logs(either, log_either)
        reliability = 0.0
        for g in range(n_groups):
            likely = 1.0 / either[g]
            unlikely = 1.0 - likely
            q0, q1[g] = (likely, unlikely) if against[g] > 0.0 else (unlikely, likely)
            reliable[g, 0] += fixed(q0)
            reliable[g, 1] += fixed(q1[g])
            reliability += q0 * log_reliable[g, 0] + q1[g] * log_reliable[g, 1]
            reliability += log_either[g] + unlikely * abs(against[g])  # the entropy of q(r)
            soft_answers[g] *= q0 * false_count[0] + q1[g] * false_count[1]
            answers[g] += q0 * normaliser[size, 0] + q1[g] * normaliser[size, 1]
            sharpness[g] = q0 * (true_count[0] - false_count[0]) + q1[g] * (true_count[1] - false_count[1])
        # 3. truth; a claim in the tail speaks through the prior predictive
        for k in range(size):
            says = 0.0
            for g in range(n_groups):
                says += sharpness[g] * log_answer[k, g]
                to_score[k, g] = fixed(log_answer[k, g])
            said[k] = says
            logit[k] = log_truth[start + k] + count[k, n_groups] * (same[size] - other[size]) + says
        _normalise(logit[:size], nu)

        tail_claims = truth_term = at_truth = 0.0
        for k in range(size):
            tail_answer = nu[k] * same[size] + (1 - nu[k]) * other[size]
            to_score[k, n_groups] = fixed(tail_answer)
            tail_claims += count[k, n_groups] * tail_answer
            at_truth += nu[k] * said[k]
            if nu[k] > 0.0:
                truth_term += nu[k] * (log_truth[start + k] - logit[k])
        for i in range(first_claim[m], first_claim[m + 1]):
            n, k = claim_source[i], claim_candidate[i] - start
            for g in range(n_groups + 1):
                score[n, g] += to_score[k, g]
        add_term(terms, 0, tail_claims + claims.sum())
        add_term(terms, 1, answers.sum() + soft_answers.sum() + at_truth)
        add_term(terms, 2, reliability)
        add_term(terms, 3, truth_term)


@compiled
def _by_domain_size(widest, true_count, false_count, prior_reliability):  # type: ignore[no-untyped-def]
    """For every K up to the widest: the Dirichlets' log normalisers, and the tail's E ln π at the truth and off it."""
    normaliser = np.zeros((widest + 1, 2))
    same, other = np.zeros(widest + 1), np.zeros(widest + 1)
    for size in range(1, widest + 1):
        for r in range(2):
            eta, theta = true_count[r], false_count[r]
            total = eta + (size - 1) * theta
            normaliser[size, r] = lgamma(total) - lgamma(eta) - (size - 1) * lgamma(theta)
            same[size] += prior_reliability[r] * (digamma(eta) - digamma(total))
            other[size] += prior_reliability[r] * (digamma(theta) - digamma(total))
    return normaliser, same, other
