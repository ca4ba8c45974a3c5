"""The partition inference: both kernels against slow loops and each other, relocation, and sweeps that learn."""

from __future__ import annotations

import time
from dataclasses import fields, replace

import numpy as np
import pytest

from consilience.claims.reading import read_claims
from consilience.kernels import numba_relocate, weights
from consilience.kernels.choose import choose
from consilience.kernels.lures import folded, unfolded
from consilience.kernels.numba_partition import _partition, partition
from consilience.kernels.numba_relocate import _relocate, relocate
from consilience.kernels.numpy_partition import evidence, group_divergence, log_partition, update_groups
from consilience.kernels.state import Grouping, expected_log, from_fixed, from_two_words
from consilience.kernels.weights import counts_of
from consilience.models.base import truth_prior
from consilience.models.mss.beliefs import LEAST_FAITHFUL, MOST_LURED, STANDING_OUT, start_beliefs
from consilience.models.mss.table import Table, with_domains
from consilience.runners.inline import Inline
from consilience.testing import oracle
from consilience.testing.strategies import random_beliefs, random_claims, random_grouping, random_lures
from tests.engines.engines import ENGINES, TOLERANCE
from tests.searching import search_of

FIXED = 1e-7  # statistics are rounded to 2**-30, once an object
DOMAINS = ("common", "claimed", "given")
CROWD = 80  # beyond 64 claims an object is sorted another way


def table(seed, *, crowded=False, lured=False):
    """Claims with any domains, some truths known in every fourth table; a grouping and beliefs to go with them, four of
    five with lures if they are wanted."""
    claims = random_claims(seed, DOMAINS[seed % 3], n_sources=CROWD if crowded else None)
    _, log_truth, _ = truth_prior(claims, None)
    is_known = np.zeros(claims.n_objects, np.bool_)
    if seed % 4 == 0:
        rng = np.random.default_rng(seed)
        is_known[rng.choice(claims.n_objects, size=max(1, claims.n_objects // 3), replace=False)] = True
        for m in np.flatnonzero(is_known):
            domain = slice(claims.first_candidate[m], claims.first_candidate[m + 1])
            log_truth[domain] = -np.inf
            log_truth[rng.integers(domain.start, domain.stop)] = 0.0
    whole, n_labels = with_domains(claims, log_truth, is_known)
    beliefs = random_beliefs(seed, n_labels)
    if lured and seed % 5:
        beliefs = random_lures(beliefs, seed)
    return claims, whole, random_grouping(claims, beliefs, seed), beliefs


def close(found, expected, tolerance):
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    assert np.all(np.abs(found - expected) <= tolerance * np.maximum(1.0, np.abs(expected)))


def bound_of(shard, grouping, beliefs, engine="numpy"):
    """All of the bound that a relocation may change."""
    _, stats = choose(engine).partition(shard, grouping, beliefs)
    occupied = grouping.size > 0
    return (
        float(from_two_words(stats.terms)[0])
        - float(group_divergence(grouping, beliefs)[occupied].sum())
        + log_partition(grouping.size, beliefs)
    )


def local_step(engine, shard, given, beliefs):
    kernel, classes = choose(engine), unfolded(given, beliefs)
    locals_, stats = kernel.partition(shard, *classes)
    return locals_, folded(kernel.completed(stats, *classes), given, beliefs)


def canonical(group):
    """The same partition with groups numbered in the order of their first sources."""
    first = {g: i for i, g in enumerate(dict.fromkeys(group.tolist()))}
    return [first[g] for g in group.tolist()]


@pytest.mark.parametrize("engine", ENGINES)
def test_local_step_equals_the_slow_loops(engine):
    domain_sizes, depths, n_lured = set(), set(), 0
    for seed, crowded in [*((seed, False) for seed in range(90)), *((seed, True) for seed in range(6))]:
        _, shard, given, beliefs = table(seed, crowded=crowded, lured=True)
        domain_sizes |= set(np.diff(shard.first_candidate).tolist())
        depths |= set(np.diff(shard.first_claim).tolist())
        expected = oracle.partition(shard, given, beliefs)
        locals_, stats = local_step(engine, shard, given, beliefs)
        close(locals_.truth, expected.truth, TOLERANCE[engine])
        close(from_two_words(stats.terms), [sum(expected.objects)], TOLERANCE[engine])
        close(from_fixed(stats.reliable), expected.reliable, FIXED)
        close(from_fixed(stats.share), expected.share, FIXED)
        close(from_two_words(stats.counts), expected.counts, FIXED)
        updated = update_groups(stats, given, beliefs)
        close(updated.reliability, beliefs.reliability + np.array(expected.reliable), FIXED)
        close(updated.habit, beliefs.habit_prior + np.array(expected.habit), FIXED)
        if beliefs.lured.any():
            close(from_fixed(stats.lured), expected.lured, FIXED)
            n_lured += 1
    assert n_lured >= 10
    assert domain_sizes >= set(range(1, 21))
    assert max(depths) > 64


def test_what_groups_add_adds_up_where_there_are_lures():
    n_lured = 0
    for seed in range(60):
        _, shard, given, beliefs = table(seed, lured=True)
        if not beliefs.lured.any():
            continue
        n_lured += 1
        expected = oracle.partition(shard, given, beliefs).truth
        told = evidence(shard, *unfolded(given, beliefs))
        nats = told.before + np.bincount(told.cell_candidate, told.cell_nats, minlength=shard.n_candidates)
        weight = np.exp(
            nats - np.maximum.reduceat(nats, shard.first_candidate[:-1])[shard.candidate_object()]
        )
        total = np.bincount(shard.candidate_object(), weight)[shard.candidate_object()]
        close(weight / total, expected, 1e-9)
    assert n_lured > 5


@pytest.mark.parametrize("engine", ENGINES[1:])
def test_kernels_agree(engine):
    for seed in range(300):
        _, shard, given, beliefs = table(seed, crowded=seed % 25 == 0, lured=True)
        (truth, stats), (other_truth, other) = (
            local_step(each, shard, given, beliefs) for each in ("numpy", engine)
        )
        close(other_truth.truth, truth.truth, TOLERANCE[engine])
        close(from_two_words(other.terms), from_two_words(stats.terms), TOLERANCE[engine])
        close(from_two_words(other.counts), from_two_words(stats.counts), FIXED)
        for name in ("reliable", "share", "lured"):
            close(from_fixed(getattr(other, name)), from_fixed(getattr(stats, name)), FIXED)
        updated, other_updated = (update_groups(each, given, beliefs) for each in (stats, other))
        close(other_updated.reliability, updated.reliability, FIXED)
        close(other_updated.habit, updated.habit, FIXED)


@pytest.mark.parametrize("engine", ENGINES[1:])
def test_tables_by_count_end_where_no_group_can_have_more_claims(engine):
    """However many claims an object has: a million sources apart once had tables of a million."""
    for seed in range(6):
        claims, shard, given, beliefs = table(seed, crowded=True)
        for largest in (1, 3):
            group = np.arange(claims.n_sources) // largest
            n = group.max() + 1
            apart = Grouping(
                group, given.reliability[:1].repeat(n, axis=0), given.habit[:1].repeat(n, axis=0)
            )
            assert len(counts_of(shard, beliefs, largest).swap) == largest + 2
            (truth, stats), (other_truth, other) = (
                local_step(each, shard, apart, beliefs) for each in ("numpy", engine)
            )
            close(other_truth.truth, truth.truth, TOLERANCE[engine])
            close(from_two_words(other.terms), from_two_words(stats.terms), TOLERANCE[engine])
            close(from_two_words(other.counts), from_two_words(stats.counts), FIXED)


@pytest.mark.parametrize("engine", ENGINES)
def test_any_number_of_shards_and_threads_gives_the_same_bits(engine):
    for seed in range(30):
        claims, whole, given, beliefs = table(seed, crowded=seed % 10 == 0, lured=True)
        seen = []
        for shards, threads in ((1, 1), (7, 1), (7, 2), (3, 2)):
            cut = list(claims.shards(shards, whole.log_truth, whole.label, whole.log_unclaimed))
            locals_, stats = Inline(shards, threads).map_sum(
                choose(engine).partition, cut, *unfolded(given, beliefs), [None] * len(cut)
            )
            truth = np.concatenate([each.truth for each in locals_])
            seen.append((truth.tobytes(), *(part.tobytes() for part in vars(stats).values())))
        assert len(set(seen)) == 1


def test_code_for_one_kind_or_two_gives_the_bits_of_code_for_any_number(monkeypatch):
    """So how a table is cut, which decides what code its shards are given to, does not show."""
    seen = set()
    for seed in range(60):
        claims, shard, given, beliefs = table(seed, crowded=seed % 10 == 9)
        order = np.random.default_rng(seed).permutation(claims.n_sources)
        found = []
        for unrolled in (0, np.inf):
            monkeypatch.setattr(weights, "UNROLLED", unrolled)
            locals_, stats = partition(shard, given, beliefs)
            grouping, moved, gain = relocate(shard, given, beliefs, order)
            arrays = (
                locals_.truth,
                *vars(stats).values(),
                grouping.group,
                grouping.reliability,
                grouping.habit,
            )
            found.append((moved, gain, *(each.tobytes() for each in arrays)))
        assert found[0] == found[1], seed
        seen.add(len(beliefs.share[beliefs.occurring]))
    assert seen == {1, 2}


def test_arrays_that_cannot_be_written_to_are_taken_by_the_same_code():
    """As a cluster's: to compile the kernels once more for them would take each of its machines half a minute."""
    _, shard, given, beliefs = table(1)
    order = np.arange(len(given.group))
    _, expected = partition(shard, given, beliefs)
    moved = relocate(shard, given, beliefs, order)[1:]
    before = _partition.signatures, _relocate.signatures

    def read_only(part):
        held = {field.name: np.copy(getattr(part, field.name)) for field in fields(part)}
        held = {name: array for name, array in held.items() if array.ndim}
        for array in held.values():
            array.flags.writeable = False
        return replace(part, **held)

    _, found = partition(read_only(shard), read_only(given), read_only(beliefs))
    assert np.array_equal(found.reliable, expected.reliable)
    assert relocate(read_only(shard), given, beliefs, order)[1:] == moved
    assert (_partition.signatures, _relocate.signatures) == before


def test_monte_carlo_confirms_the_objects_and_the_groups_terms():
    """Habits of 0.4 up in each label: draws of ln ξ have a finite, bearable variance there."""
    checked = n_lured = 0
    for seed in (3, 4, 6, 8, 11, 42):
        _, shard, given, beliefs = table(seed, lured=True)
        n_lured += bool(beliefs.lured.any())
        beliefs = replace(beliefs, habit=np.maximum(beliefs.habit, 0.4 * beliefs.n_labels))
        given = replace(given, habit=np.maximum(given.habit, 0.4))
        _, stats = local_step("numpy", shard, given, beliefs)
        terms = {
            "objects": from_two_words(stats.terms)[0],
            "groups": -group_divergence(given, beliefs)[given.size > 0].sum(),
        }
        sampled = oracle.sample_partition_terms(shard, given, beliefs, 300, np.random.default_rng(seed))
        for name, (mean, error) in sampled.items():
            assert abs(mean - terms[name]) <= 4.5 * error + 1e-9, (
                f"{seed} {name}: {terms[name]} or {mean} ± {error}"
            )
            checked += error > 0
    assert (checked, n_lured) == (12, 2)


def test_claims_drawn_from_the_model_have_the_objects_term_as_their_probability():
    """No shortcut at all: draw kind, truth, r, opinion and π from their priors, and see how often the claims follow."""
    checked = 0
    for seed in range(40):
        claims, shard, given, beliefs = table(seed)
        if np.diff(claims.first_claim).max() > 4 or np.diff(claims.first_candidate).max() > 4:
            continue
        expected = oracle.partition(shard, given, beliefs).objects
        rng = np.random.default_rng(seed)
        for m in range(min(claims.n_objects, 4)):
            drawn = _likelihood_of_draws(shard, given, beliefs, m, 20_000, rng)
            error = drawn.std() / np.sqrt(len(drawn))
            assert abs(drawn.mean() - np.exp(expected[m])) <= 4.5 * error + 1e-9, (seed, m)
            checked += 1
    assert checked > 20


def _likelihood_of_draws(shard, given, beliefs, m, n_draws, rng):
    """p(claims on object m | π) for π drawn from the model, with u and ξ at exp E ln (which sum to less than one)."""
    start, stop = shard.first_candidate[m], shard.first_candidate[m + 1]
    log_z = np.append(shard.log_truth[start:stop], shard.log_unclaimed[m])
    size = len(log_z) if log_z[-1] > -np.inf or stop - start == len(log_z) else len(log_z) - 1
    log_z = log_z[:size]
    label = shard.label[start:stop] if beliefs.n_labels > 1 else np.zeros(size, np.int64)
    joint = np.exp(log_z) * beliefs.share[:, label]
    drawn = rng.choice(joint.size, size=n_draws, p=joint.ravel() / joint.sum())
    kind, truth = np.unravel_index(drawn, joint.shape)
    likelihood = np.full(n_draws, joint.sum())
    here = slice(shard.first_claim[m], shard.first_claim[m + 1])
    said, group_of = shard.claim_candidate[here] - start, given.group[shard.claim_source[here]]
    for d in range(beliefs.n_kinds):
        of_kind = np.flatnonzero(kind == d)
        for g in np.unique(group_of):
            u, x = expected_log(given.reliability[g, d]), np.full(size, -np.log(size))
            if beliefs.n_labels > 1:
                x = expected_log(given.habit[g, d])[label]
            weight = np.exp(np.append(u[0] + x, u[1]))  # an opinion by habit, or the truth
            which = rng.choice(size + 1, size=len(of_kind), p=weight / weight.sum())
            opinion = np.where(which == size, truth[of_kind], which)
            a = np.where(np.arange(size) == opinion[:, None], beliefs.true_count, beliefs.false_count)
            pi = rng.gamma(a)
            pi /= pi.sum(axis=1, keepdims=True)
            likelihood[of_kind] *= weight.sum() * np.prod(pi[:, said[group_of == g]], axis=1)
    return likelihood


def test_partitions_have_the_probability_of_their_seating_and_these_add_up_to_one():
    def partitions(n):
        if n == 0:
            yield []
        else:
            for rest in partitions(n - 1):
                yield from ([*rest, g] for g in range(max(rest, default=-1) + 2))

    for concentration in (0.1, 1.0, 7.0, 1e9):
        beliefs = replace(random_beliefs(0, 1), concentration=concentration)
        found = [log_partition(np.bincount(group), beliefs) for group in partitions(6)]
        expected = [oracle.log_seating(group, concentration) for group in partitions(6)]
        assert len(found) == 203  # Bell's number
        close(found, expected, 1e-12)
        assert np.exp(found).sum() == pytest.approx(1.0)


def test_relocation_gains_what_it_says_and_kernels_move_alike():
    moves = 0
    for seed in range(120):
        claims, shard, given, beliefs = table(seed)
        if claims.n_candidates == claims.n_objects and np.all(np.isneginf(shard.log_unclaimed)):
            continue  # where only one value is possible claims say nothing: every group of a size is as good
        order = np.random.default_rng(seed).permutation(claims.n_sources)
        before = bound_of(shard, given, beliefs)
        found = {engine: choose(engine).relocate(shard, given, beliefs, order) for engine in TOLERANCE}
        for engine, (grouping, moved, gain) in found.items():
            assert gain >= 0
            assert bound_of(shard, grouping, beliefs) - before == pytest.approx(gain, abs=1e-6), (
                seed,
                engine,
            )
            assert np.sum(grouping.group != given.group) <= moved
        one, moved, gain = found["numpy"]
        for other, other_moved, other_gain in found.values():
            assert canonical(one.group) == canonical(other.group), seed
            assert moved == other_moved
            assert gain == pytest.approx(other_gain, abs=1e-6)
            occupied = one.size > 0
            assert np.array_equal(occupied, other.size > 0)
            close(other.reliability[occupied], one.reliability[occupied], FIXED)
            close(other.habit[occupied], one.habit[occupied], FIXED)
        moves += moved
    assert moves > 100


def wide_table(seed):
    """Up to a hundred sources in loose groups, of which nothing is known yet and that are easily joined."""
    rng = np.random.default_rng(seed)
    n_sources, n_objects, n_labels = rng.integers(20, 100), rng.integers(5, 100), rng.choice([3, 5, 10, 30])
    group = rng.integers(max(2, n_sources // 4), size=n_sources)
    opinion = np.where(rng.random((n_objects, group.max() + 1)) < 0.5, 0, rng.integers(n_labels))
    claims = read_claims(
        [
            (f"s{n}", f"o{m}", f"v{opinion[m, group[n]] if rng.random() < 0.7 else rng.integers(n_labels)}")
            for n in range(n_sources)
            for m in np.flatnonzero(rng.random(n_objects) < rng.choice([0.1, 0.3])).tolist() or [0]
        ],
        domain=("common", "claimed")[seed % 2],
    )
    shard, n_labels = with_domains(*truth_prior(claims, None))
    beliefs = replace(
        random_beliefs(seed, n_labels),
        true_count=20.0,
        false_count=20.0 * rng.choice([0.3, 0.05, 0.005]),
        concentration=float(rng.choice([1e-6, 1e-2, 1.0])),
    )
    alone = np.arange(claims.n_sources)
    given = Grouping(
        np.where(rng.random(claims.n_sources) < 0.5, alone // 5, alone),
        np.tile(beliefs.reliability, (claims.n_sources, 1, 1)),
        np.tile(beliefs.habit_prior, (claims.n_sources, 1, 1)),
    )
    return claims, shard, given, beliefs


def test_groups_without_hope_would_not_have_been_chosen(monkeypatch):
    """Whether all groups are weighed exactly or only those that can be better, the same moves are made."""
    moves = 0
    for seed in range(200):
        claims, shard, given, beliefs = (wide_table if seed % 4 else table)(seed)
        order = np.random.default_rng(seed).permutation(claims.n_sources)
        found = []
        for often in (0.0, np.inf):
            monkeypatch.setattr(numba_relocate, "OFTEN", often)
            found.append(relocate(shard, given, beliefs, order))
        (one, *told), (other, *told_other) = found
        assert told[0] == told_other[0], seed
        assert told[1] == pytest.approx(told_other[1], rel=1e-12)
        for f in fields(one):
            assert np.array_equal(getattr(one, f.name), getattr(other, f.name)), (seed, f.name)
        moves += told[0]
    assert moves > 1000


def test_threads_that_look_ahead_change_no_move(monkeypatch):
    monkeypatch.setattr(numba_relocate, "TOGETHER", 10)
    moves = 0
    for seed in range(40):
        claims, shard, given, beliefs = table(seed, crowded=seed % 10 == 9)
        order = np.random.default_rng(seed).permutation(claims.n_sources)
        (one, *told), (other, *told_other) = (
            choose("numba").relocate(shard, given, beliefs, order, threads) for threads in (1, 3)
        )
        assert told[0] == told_other[0]
        assert told[1] == pytest.approx(told_other[1], rel=1e-12)
        for f in fields(one):
            assert np.array_equal(getattr(one, f.name), getattr(other, f.name)), (seed, f.name)
        moves += told[0]
    assert moves > 100


def test_what_was_proposed_before_others_moved_is_still_weighed_exactly(monkeypatch):
    monkeypatch.setattr(numba_relocate, "TOGETHER", 100)
    moves = 0
    for seed in range(120):
        claims, shard, given, beliefs = table(seed, crowded=seed % 10 == 9)
        order = np.random.default_rng(seed).permutation(claims.n_sources)
        before = bound_of(shard, given, beliefs)
        grouping, moved, gain = relocate(shard, given, beliefs, order)
        assert bound_of(shard, grouping, beliefs) - before == pytest.approx(gain, abs=1e-6), seed
        moves += moved
    assert moves > 300


def test_threads_wait_for_each_other_before_anything_changes(monkeypatch):
    """Some find at once what others still look for."""
    running, really = [], numba_relocate._relocate

    def watched(order, would, only_look, *rest):
        assert only_look or not running
        if only_look:
            running.append(tuple(order))
            time.sleep(0.002 * (len(running) - 1))
        done = really(order, would, only_look, *rest)
        if only_look:
            running.remove(tuple(order))
        return done

    monkeypatch.setattr(numba_relocate, "_relocate", watched)
    monkeypatch.setattr(numba_relocate, "TOGETHER", 40)
    for seed in range(20):
        claims, shard, given, beliefs = table(seed)
        order = np.random.default_rng(seed).permutation(claims.n_sources)
        relocate(shard, given, beliefs, order, 3)


def test_relocation_of_a_crowd_gains_what_it_says():
    for seed in range(12):
        claims, shard, given, beliefs = table(seed, crowded=True)
        order = np.random.default_rng(seed).permutation(claims.n_sources)
        grouping, moved, gain = choose("numba").relocate(shard, given, beliefs, order)
        assert moved > 0
        rise = bound_of(shard, grouping, beliefs) - bound_of(shard, given, beliefs)
        assert rise == pytest.approx(gain, rel=1e-7)
        assert np.all(grouping.group >= 0)
        assert grouping.size.sum() == claims.n_sources


def test_relocation_keeps_count_of_what_was_next_to_impossible():
    """Alone, 400 sources leave other values less than the smallest number; in groups they are few voices."""
    rows = [(f"s{n}", f"o{m}", "x" if n % 40 else "y") for n in range(400) for m in range(3)]
    claims = read_claims([*rows, ("s1", "o3", "z")], domain="common")
    shard, n_labels = with_domains(claims, np.zeros(claims.n_candidates), None)
    beliefs = start_beliefs(claims.n_sources, n_labels, 3.0, 0.99, 1e-3)
    given = Grouping(
        np.arange(claims.n_sources),
        np.tile([[1.0, 50.0], [1.0, 50.0]], (claims.n_sources, 1, 1)),
        np.tile(beliefs.habit_prior, (claims.n_sources, 1, 1)),
    )
    grouping, moved, gain = choose("numba").relocate(shard, given, beliefs, np.arange(claims.n_sources))
    assert moved > 300
    rise = bound_of(shard, grouping, beliefs) - bound_of(shard, given, beliefs)
    assert rise == pytest.approx(gain, rel=1e-9)


def test_relocation_leaves_what_it_was_given_alone():
    claims, shard, given, beliefs = table(1)
    kept = [getattr(given, f.name).copy() for f in fields(given)]
    for engine in TOLERANCE:
        choose(engine).relocate(shard, given, beliefs, np.arange(claims.n_sources))
        for f, copy in zip(fields(given), kept, strict=True):
            assert np.array_equal(getattr(given, f.name), copy)


def settled(shard, given, beliefs, g):
    """One group as the objects say that it is."""
    for _ in range(20):
        _, stats = choose("numpy").partition(shard, given, beliefs)
        found = update_groups(stats, given, beliefs)
        is_it = (np.arange(len(given.reliability)) == g)[:, None, None]
        given = Grouping(
            given.group,
            np.where(is_it, found.reliability, given.reliability),
            np.where(is_it, found.habit, given.habit),
        )
    return given


def test_a_source_that_relocates_alone_is_where_the_bound_is_highest():
    """One source, all partitions of it enumerated by hand: no group has a higher bound than the one chosen."""
    for seed in range(40):
        claims, shard, given, beliefs = table(seed)
        n = seed % claims.n_sources
        # One that stays alone is told what it is like only where that is worth it: let it know beforehand.
        if given.size[given.group[n]] == 1:
            given = settled(shard, given, beliefs, given.group[n])
        grouping, _, _ = choose("numba").relocate(shard, given, beliefs, np.array([n]))
        best = bound_of(shard, grouping, beliefs)
        for g in np.unique(given.group):
            group = given.group.copy()
            group[n] = g
            left = np.bincount(group, minlength=len(given.reliability)) == 0
            other = Grouping(
                group,
                np.where(left[:, None, None], beliefs.reliability, given.reliability),
                np.where(left[:, None, None], beliefs.habit_prior, given.habit),
            )
            shares_an_object = np.isin(
                claims.claim_object()[claims.claim_source == n],
                claims.claim_object()[(given.group[claims.claim_source] == g) & (claims.claim_source != n)],
            ).any()
            if shares_an_object or g == given.group[n]:
                assert bound_of(shard, other, beliefs) <= best + 1e-8, (seed, g)


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("concentration", [None, 3.0])
def test_sweeps_that_learn_never_lower_the_bound(counts, concentration):
    for seed in range(100):
        _, shard, given, beliefs = table(seed, lured=True)
        if concentration is not None:
            beliefs = replace(beliefs, concentration=concentration)
        path = []
        for engine in TOLERANCE:
            search = search_of(
                Table.of(shard, beliefs.n_labels, Inline(1, 1), 1), engine=engine, concentration=concentration
            )
            story = search._evaluate(given, beliefs)
            for _ in range(6):
                path.append(story.bound)
                story = search.converge(story, counts=counts, sweeps=1)
            path.append(story.bound)
            assert np.all(np.diff(path) >= -1e-9 * np.maximum(1, np.abs(path[1:]))), (seed, engine, path)
            if concentration is not None:
                assert story.beliefs.concentration == concentration
            if not counts:
                assert story.beliefs.true_count == beliefs.true_count
            ends = path
            path = []
        assert np.all(np.isfinite(ends))


def test_learning_ends_where_no_block_of_beliefs_can_be_bettered():
    """Nudge every belief of a converged story: the bound, its priors included, does not rise."""
    for seed in (0, 2, 6, 10, 12, 9, 15):
        _, shard, given, beliefs = table(seed, lured=True)
        search = search_of(
            Table.of(shard, beliefs.n_labels, Inline(1, 1), 1), max_sweeps=1000, tolerance=1e-9
        )
        story = search.converge(search._evaluate(given, beliefs))
        found = story.beliefs
        slack = 1e-4 * max(1.0, abs(story.bound))
        faithful = (search.table.domain_size - 1) * LEAST_FAITHFUL / (1 - LEAST_FAITHFUL)
        bar = faithful if found.n_labels == 1 else STANDING_OUT
        standing_out = min(bar, found.true_count / found.false_count)
        if found.n_labels > 1:
            assert found.true_count > 1.3 * found.false_count  # or counts stand at their limit
        for factor in (0.97, 1.03):
            nudged = [
                replace(found, reliability=found.reliability * [1.0, factor]),
                replace(found, reliability=found.reliability * [factor, 1.0]),
                replace(found, concentration=found.concentration * factor),
                replace(found, true_count=found.true_count * factor),
                replace(found, false_count=found.false_count * factor),
                replace(found, true_count=found.true_count * factor, false_count=found.false_count * factor),
            ]
            if found.n_labels > 1:  # without labels there are no habits
                nudged.append(replace(found, habit=np.clip(found.habit * factor, 0.3, 400.0)))
            if found.lured.any():
                nudged.append(replace(found, lured=np.minimum(found.lured * factor, MOST_LURED)))
            share = found.share.copy()
            share[0, 0] *= factor
            nudged.append(replace(found, share=share / share.sum()))
            for i, other in enumerate(nudged):
                if other.true_count < (1 - 1e-9) * standing_out * other.false_count:
                    continue  # members must be faithful
                if other.reliability[0, 1] < other.reliability[0, 0]:
                    continue  # reliable and unreliable must not change places
                assert search._evaluate(story.grouping, other).bound <= story.bound + slack, (seed, factor, i)


def test_a_kind_that_does_not_occur_does_not_set_the_scale():
    """Reliable sources, each with a value of its own: a kind of unreliable ones would explain that far better."""
    claims = read_claims([(f"s{n:03}", "o", f"v{n:03}") for n in range(400)], domain="claimed")
    shard, n_labels = with_domains(*truth_prior(claims, None))
    beliefs = start_beliefs(400, n_labels, 400.0, 0.99, None)
    assert beliefs.share.tolist() == [[1.0], [0.0]]
    reliability = np.tile(beliefs.reliability, (400, 1, 1))
    reliability[:, 0] = 0.5, 500.0
    given = Grouping(np.arange(400), reliability, np.tile(beliefs.habit_prior, (400, 1, 1)))
    bounds, gains = [], []
    for engine in ("numpy", "numba"):
        kernel = choose(engine)
        bounds.append(from_two_words(kernel.partition(shard, given, beliefs)[1].terms)[0])
        gains.append(kernel.relocate(shard, given, beliefs, np.arange(3))[2])
    assert bounds[1] == pytest.approx(bounds[0], rel=1e-9)
    assert gains[1] == pytest.approx(gains[0], rel=1e-6)
