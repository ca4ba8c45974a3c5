"""Each slip of the printed paper (docs/theory/errata.md), shown on many random tables."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy.special import digamma, entr, gammaln, logsumexp

from consilience.kernels import numpy_
from consilience.kernels.state import Globals, from_fixed
from consilience.models.base import truth_prior
from consilience.models.mss.bound import bound_terms
from consilience.models.mss.updates import global_step
from consilience.testing.strategies import random_claims, random_globals, random_prior


def falls(step, seeds=range(60), sweeps=10):
    """On how many tables the bound falls when `step` replaces the mean-field local step."""
    count = 0
    for seed in seeds:
        claims, prior = random_claims(seed), random_prior(seed)
        (shard,) = claims.shards(1, truth_prior(claims, None)[1])
        given, warm, path = random_globals(claims, prior, seed, tail=True), None, []
        for _ in range(sweeps):
            warm, stats = step(shard, given, prior, warm)
            path.append(sum(bound_terms(stats, given, prior).values()))
            given = global_step(stats, given, prior)
        count += np.any(np.diff(path) < -1e-9 * np.maximum(1, np.abs(path[1:])))
    return count


def test_derived_afresh_the_bound_never_falls():
    assert falls(numpy_.mean_field) == 0


def test_slip_1_expected_logarithms_have_the_wrong_sign(monkeypatch):
    """ψ(Σα) - ψ(α) is positive: no expectation of a logarithm of a probability is."""
    alpha = np.array([0.5, 2.0, 3.0])
    draws = np.random.default_rng(0).dirichlet(alpha, 200_000)
    right, printed = digamma(alpha) - digamma(alpha.sum()), digamma(alpha.sum()) - digamma(alpha)
    assert np.allclose(np.log(draws).mean(axis=0), right, atol=0.03)
    assert np.all(printed > 0)
    monkeypatch.setattr(
        numpy_, "expected_log_reliability", lambda beta: digamma(beta.sum(1, keepdims=True)) - digamma(beta)
    )
    assert falls(numpy_.mean_field) > 20


def test_slip_2_entropy_is_added_not_subtracted():
    """E ln p + H is highest at the posterior, where it is the evidence; E ln p - H is higher at a point mass."""
    fooled = 0
    for seed in range(40):
        claims, prior = random_claims(seed), random_prior(seed)
        (shard,) = claims.shards(1, truth_prior(claims, None)[1])
        given = random_globals(claims, prior, seed, tail=False)
        found = numpy_.evidence(shard, given, prior)
        logit = shard.log_truth + np.bincount(
            found.cell_candidate, found.cell_nats, minlength=shard.n_candidates
        )
        posterior = numpy_.structured(shard, given, prior)[0].truth
        for start, stop in pairwise(shard.first_candidate):
            log_p, q = logit[start:stop], posterior[start:stop]
            point = np.eye(stop - start)[np.argmax(log_p)]
            evidence = logsumexp(log_p)
            assert np.isclose(np.sum(q * log_p) + np.sum(entr(q)), evidence)
            assert np.sum(point * log_p) <= evidence + 1e-12
            fooled += np.sum(point * log_p) > np.sum(q * log_p) - np.sum(entr(q)) + 1e-9
    assert fooled > 100


def test_slip_3_reliability_needs_the_dirichlets_normaliser(monkeypatch):
    """Without lnΓ(A) - lnΓ(η) - (K-1)lnΓ(θ), which depends on r, q(r) is not the optimum."""
    complete = numpy_._log_normaliser

    def step(shard, given, prior, warm):
        # the update as printed leaves the constant out of q(r); the bound keeps it
        start = numpy_.start_locals(shard, given) if warm is None else (warm.truth, warm.object_reliability)
        monkeypatch.setattr(numpy_, "_log_normaliser", lambda size, p: np.zeros((len(size), 2)))
        printed, _ = numpy_.mean_field(shard, given, prior, numpy_.Locals(*start))
        monkeypatch.setattr(numpy_, "_log_normaliser", complete)
        return printed, _stats_at(shard, given, prior, start, printed)

    assert falls(step) > 10


def _stats_at(shard, given, prior, before, after):
    """The statistics and complete bound terms of a mean-field step that ended at `after` (answers from `before`)."""
    object_of = np.repeat(np.arange(shard.n_objects), np.diff(shard.first_candidate))
    starts, size = shard.first_candidate[:-1], np.diff(shard.first_candidate).astype(float)
    count = np.zeros((shard.n_candidates, given.n_groups + 1))
    np.add.at(count, shard.claim_candidate, given.membership[shard.claim_source])
    count, tail = count[:, :-1], count[:, -1]

    def soft(truth):
        return truth[:, None] * prior.true_count + (1 - truth[:, None]) * prior.false_count

    q_before = np.stack([1 - before[1], before[1]], axis=2)
    alpha = count + np.sum(q_before[object_of] * soft(before[0])[:, None, :], axis=2)
    log_answer = digamma(alpha) - digamma(np.add.reduceat(alpha, starts))[object_of]
    q = np.stack([1 - after.object_reliability, after.object_reliability], axis=2)
    log_r = numpy_.expected_log_reliability(given.group_reliability)
    same, other = numpy_._tail_log_answer(size, prior)
    tail_answer = after.truth * same[object_of] + (1 - after.truth) * other[object_of]
    drawn = np.add.reduceat(log_answer[:, :, None] * (soft(after.truth) - 1)[:, None, :], starts)
    answers = (
        np.sum(q * (numpy_._log_normaliser(size, prior)[:, None, :] + drawn))
        + np.sum(gammaln(alpha) - (alpha - 1) * log_answer)
        - np.sum(gammaln(np.add.reduceat(alpha, starts)))
    )
    positive = np.where(q > 0, q, 1.0)
    log_t = np.where(after.truth > 0, np.log(np.maximum(after.truth, 1e-300)), 0.0)
    terms = np.array(
        [
            np.sum(count * log_answer) + np.sum(tail * tail_answer),
            answers,
            np.sum(q * (log_r - np.log(positive))),
            np.sum(after.truth * (np.where(after.truth > 0, shard.log_truth, 0.0) - log_t)),
        ]
    )
    score = np.zeros(given.group.shape, np.int64)
    every = np.column_stack([log_answer, tail_answer])
    np.add.at(score, shard.claim_source, numpy_.to_fixed(every[shard.claim_candidate]))
    return numpy_.Stats(score, numpy_.to_fixed(q).sum(axis=0), numpy_.to_two_words(terms))


def test_slip_4_objects_a_group_does_not_claim_echo_on_its_reliability():
    """Mean-field counts q(r) on every object, also where the group is silent; structured inference does not."""
    claims, prior = random_claims(11), random_prior(11)
    (shard,) = claims.shards(1, truth_prior(claims, None)[1])
    given = random_globals(claims, prior, 11, tail=True)
    _, stats = numpy_.mean_field(shard, given, prior)
    assert np.allclose(from_fixed(stats.reliable).sum(axis=1), claims.n_objects)

    alone = Globals(
        (np.arange(claims.n_sources) > 0).astype(np.int32)[:, None], np.ones((claims.n_sources, 1)),
        np.tile(prior.reliability, (2, 1)), np.ones((2, 2)),
    )  # fmt: skip
    _, stats = numpy_.structured(shard, alone, prior)
    claimed = np.sum(claims.claim_source == 0)
    assert np.isclose(from_fixed(stats.reliable)[0].sum(), claimed)


def test_slip_5_the_tail_speaks_in_the_truth_update():
    """A claim beyond the truncation still depends on the truth: leaving it out of q(t) misses the optimum."""
    missed = 0
    for seed in range(60):
        claims, prior = random_claims(seed), random_prior(seed)
        (shard,) = claims.shards(1, truth_prior(claims, None)[1])
        given = random_globals(claims, prior, seed, tail=True)
        start = numpy_.start_locals(shard, given)
        silent = replace(
            given, membership=given.membership * (np.arange(given.n_groups + 1) < given.n_groups)
        )
        heard, _ = numpy_.mean_field(shard, given, prior)
        unheard, _ = numpy_.mean_field(shard, silent, prior)
        # only q(t) is taken from the update as printed
        printed = numpy_.Locals(unheard.truth, heard.object_reliability)
        bounds = [
            sum(bound_terms(_stats_at(shard, given, prior, start, locals_), given, prior).values())
            for locals_ in (heard, printed)
        ]
        assert bounds[1] <= bounds[0] + 1e-9 * abs(bounds[0])
        missed += bounds[1] < bounds[0] - 1e-6
    assert missed > 30
