"""Every kernel against slow loops and against each other, on many random tables. Tolerances in one table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from consilience.kernels.choose import choose
from consilience.kernels.numpy_ import evidence, start_locals
from consilience.kernels.state import LOCAL_TERMS, Globals, Locals, from_fixed, from_two_words
from consilience.models.base import truth_prior
from consilience.models.mss.bound import TERMS, bound_terms
from consilience.models.mss.updates import expected_log_weights, global_step, update_sticks
from consilience.runners.inline import Inline
from consilience.testing import oracle
from consilience.testing.strategies import random_claims, random_globals, random_prior
from tests.engines.engines import ENGINES, TOLERANCE

INFERENCES = ("structured", "mean_field")


def table(seed, inference):
    claims, prior = random_claims(seed), random_prior(seed)
    _, log_truth, _ = truth_prior(claims, None)
    if seed % 3 == 0:  # some truths known
        rng = np.random.default_rng(seed)
        for m in rng.choice(claims.n_objects, size=max(1, claims.n_objects // 3), replace=False):
            domain = slice(claims.first_candidate[m], claims.first_candidate[m + 1])
            log_truth[domain] = -np.inf
            log_truth[rng.integers(domain.start, domain.stop)] = 0.0
    (shard,) = claims.shards(1, log_truth)
    return claims, shard, random_globals(claims, prior, seed, tail=inference == "mean_field"), prior


def close(found, expected, tolerance):
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    assert np.all(np.abs(found - expected) <= tolerance * np.maximum(1.0, np.abs(expected)))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("inference", INFERENCES)
def test_local_step_equals_the_slow_loops(engine, inference):
    for seed in range(40):
        _, shard, given, prior = table(seed, inference)
        warm = Locals(*start_locals(shard, given))
        expected = (
            oracle.structured(shard, given, prior)
            if inference == "structured"
            else oracle.mean_field(shard, given, prior, warm)
        )
        locals_, stats = getattr(choose(engine), inference)(shard, given, prior, warm)
        close(locals_.truth, expected.truth, TOLERANCE[engine])
        close(
            np.where(given.membership > 0, from_fixed(stats.score), 0), expected.score, 1e-7
        )  # fixed point: 2**-30 a claim
        close(from_fixed(stats.reliable), expected.reliable, 1e-7)
        close(from_two_words(stats.terms), [expected.terms[name] for name in LOCAL_TERMS], TOLERANCE[engine])
        if inference == "mean_field":
            close(locals_.object_reliability, expected.object_reliability, TOLERANCE[engine])


@pytest.mark.parametrize("inference", INFERENCES)
def test_the_bound_never_falls_and_kernels_agree(inference):
    """300 random tables, K from 1 to 20, both kernels side by side, sweep by sweep."""
    domain_sizes = set()
    for seed in range(300):
        claims, shard, given, prior = table(seed, inference)
        domain_sizes |= set(np.diff(claims.first_candidate).tolist())
        paths = {}
        for engine in TOLERANCE:
            step, at, warm, path = getattr(choose(engine), inference), given, None, []
            for _ in range(12):
                locals_, stats = step(shard, at, prior, warm)
                warm = locals_ if inference == "mean_field" else None
                path.append(sum(bound_terms(stats, at, prior).values()))
                at = global_step(stats, at, prior)
            paths[engine] = np.array(path)
            fall = np.diff(path) / np.maximum(1.0, np.abs(path[1:]))
            assert fall.min() >= -1e-9, (
                f"table {seed}, {engine}: the bound falls by {-fall.min():.2e} of itself"
            )
        for engine, path in paths.items():
            close(path, paths["numpy"], TOLERANCE[engine])
    assert domain_sizes >= set(range(1, 21))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("inference", INFERENCES)
def test_any_number_of_shards_and_threads_gives_the_same_bits(engine, inference):
    for seed in range(20):
        claims, shard, given, prior = table(seed, inference)
        seen = []
        for shards, threads in ((1, 1), (7, 1), (7, 2), (3, 2)):
            cut = list(claims.shards(shards, shard.log_truth))
            locals_, stats = Inline(shards, threads).map_sum(
                getattr(choose(engine), inference), cut, given, prior, [None] * len(cut)
            )
            truth = np.concatenate([each.truth for each in locals_])
            seen.append(
                (truth.tobytes(), stats.score.tobytes(), stats.reliable.tobytes(), stats.terms.tobytes())
            )
        assert len(set(seen)) == 1


@pytest.mark.parametrize("inference", INFERENCES)
def test_monte_carlo_confirms_every_term_of_the_bound(inference):
    """Counts from 0.4 up: draws of ln π have a finite, bearable variance there."""
    checked = 0
    for seed in (2, 5, 8):
        _, shard, given, prior = table(seed, inference)
        prior = replace(
            prior,
            true_count=np.maximum(prior.true_count, 0.4),
            false_count=np.maximum(prior.false_count, 0.4),
        )
        rng = np.random.default_rng(seed)
        warm = Locals(*start_locals(shard, given))
        _, stats = getattr(choose("numpy"), inference)(shard, given, prior, warm)
        terms = bound_terms(stats, given, prior)
        if inference == "structured":
            sampled = oracle.sample_terms(shard, given, prior, 400, rng)
        else:
            sampled = oracle.sample_mean_field_terms(shard, given, prior, warm, 400, rng)
        for name in TERMS:
            mean, error = sampled[name]
            assert abs(mean - terms[name]) <= 4.5 * error + 1e-9, (
                f"{seed} {name}: {terms[name]} or {mean} ± {error}"
            )
            checked += error > 0
    assert checked >= 18


def test_structured_bound_is_the_evidence_when_everything_can_be_summed():
    """One source, one object, memberships certain: the object's part is ln p(y) given E ln p(r | u)."""
    claims, prior = random_claims(0), random_prior(1)
    _, log_truth, _ = truth_prior(claims, None)
    (shard,) = claims.shards(1, log_truth)
    given = Globals(
        np.zeros((claims.n_sources, 1), np.int32),
        np.ones((claims.n_sources, 1)),
        np.array([[2.0, 3.0]]),
        np.array([[1.0, 1.0]]),
    )
    _, stats = choose("numpy").structured(shard, given, prior)
    expected = 0.0
    for m in range(shard.n_objects):
        start, stop = shard.first_candidate[m], shard.first_candidate[m + 1]
        count = np.bincount(
            shard.claim_candidate[shard.first_claim[m] : shard.first_claim[m + 1]] - start,
            minlength=stop - start,
        )
        total = 0.0
        for z in range(stop - start):
            for r in (0, 1):
                a = oracle.dirichlet_parameters(int(stop - start), z, r, prior)
                total += np.exp(
                    oracle.expected_log_r(given, 0, r)
                    + oracle.log_beta(list(np.array(a) + count))
                    - oracle.log_beta(a)
                ) / (stop - start)
        expected += np.log(total)
    close(from_two_words(stats.terms).sum(), expected, 1e-9)


def test_tail_is_the_sum_of_the_infinitely_many_groups_beyond():
    prior = random_prior(3)
    group, weight = np.tile(np.arange(4, dtype=np.int32), (5, 1)), np.full((5, 4), 0.25)
    sticks = update_sticks(group, weight, 3, prior)
    log_weights = expected_log_weights(sticks, prior)
    far = np.vstack([sticks, np.tile([1.0, prior.concentration], (4000, 1))])
    each = expected_log_weights(far, prior)[3:-1]
    assert np.isclose(np.log(np.sum(np.exp(each))), log_weights[3], atol=1e-6)


def test_evidence_adds_up_to_the_truth():
    for seed in range(10):
        _, shard, given, prior = table(seed, "structured")
        locals_, stats = choose("numpy").structured(shard, given, prior)
        found = evidence(shard, given, prior)
        logit = shard.log_truth + np.bincount(
            found.cell_candidate, found.cell_nats, minlength=shard.n_candidates
        )
        for m in range(shard.n_objects):
            domain = slice(shard.first_candidate[m], shard.first_candidate[m + 1])
            p = np.exp(logit[domain] - logit[domain].max())
            close(p / p.sum(), locals_.truth[domain], 1e-12)
        reliable = np.bincount(found.pair_group, found.pair_reliability, minlength=given.n_groups)
        close(reliable, from_fixed(stats.reliable)[:, 1], 1e-7)


def test_an_unreliable_group_that_repeats_itself_has_bounded_weight():
    """MODEL.md §5: with counts well below one, a hundred copies of a claim weigh little more than two."""

    def advantage(copies, prior):
        claims = random_claims(0)
        first_claim = np.array([0, copies])
        shard = type(next(claims.shards(1, np.zeros(claims.n_candidates))))(
            np.arange(copies, dtype=np.int32),
            np.zeros(copies, np.int32),
            first_claim,
            np.array([0, 4]),
            np.full(4, -np.log(4)),
        )
        given = Globals(
            np.zeros((copies, 1), np.int32),
            np.ones((copies, 1)),
            np.array([[6.0, 6.0]]),
            np.array([[1.0, 1.0]]),
        )
        nats = evidence(shard, given, prior).cell_nats
        return nats[0] - nats[1]

    sharp = random_prior(0)
    small = type(sharp)(np.array([0.1, 10.0]), np.array([0.1, 0.5]), sharp.reliability, 5.0)
    paper = type(sharp)(np.array([1.0, 10.0]), np.array([1.0, 1.0]), sharp.reliability, 5.0)
    assert advantage(100, small) - advantage(2, small) < 1.0
    assert advantage(100, paper) - advantage(2, paper) > 3.0
