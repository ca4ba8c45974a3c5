"""Groups that err together make us less sure, by how much they do; independent ones do not."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.claims.reading import read_claims
from consilience.datasets.synthetic import planted
from consilience.models.mss.model import MSS
from consilience.results.temper import (
    INDEPENDENT_OBJECTS,
    shared_errors,
    temperature,
    tempered,
    voices_by_object,
)
from consilience.testing.strategies import random_claims


def answers(kind, n_sources=8, n_objects=400, seed=0):
    """Sources right 75 % of the time, on their own; or all of them 95 % of the time on one half of the objects and 55 %
    on the other, though nobody copies."""
    rng = np.random.default_rng(seed)
    accuracy = np.full(n_objects, 0.75) if kind == "independent" else np.repeat([0.95, 0.55], n_objects // 2)
    right = rng.random((n_sources, n_objects)) < accuracy
    value = np.where(right, 0, rng.integers(1, 4, size=right.shape))
    shift = rng.integers(4, size=n_objects)  # the truth, so that no label stands out
    triples = [
        (f"s{n}", f"o{m:03}", f"v{(value[n, m] + shift[m]) % 4}")
        for n in range(n_sources)
        for m in range(n_objects)
    ]
    claims = read_claims(triples)
    truth = np.zeros(claims.n_candidates)
    truth[claims.first_candidate[:-1] + shift] = 1.0
    return claims, truth


def slow_shared_errors(claims, truth, group):
    """The formula of the docstring, by loops over objects, candidates and pairs of groups."""
    share = {}
    for m in range(claims.n_objects):
        here = range(claims.first_claim[m], claims.first_claim[m + 1])
        for g in {group[claims.claim_source[i]] for i in here}:
            said = [claims.claim_candidate[i] for i in here if group[claims.claim_source[i]] == g]
            share[m, g] = {z: said.count(z) / len(said) for z in set(said)}
    right = {key: sum(truth[z] * part for z, part in said.items()) for key, said in share.items()}
    overall = np.mean(list(right.values()))
    mean = {}
    for g in {g for _, g in share}:
        of_group = [value for (_, h), value in right.items() if h == g]
        mean[g] = (sum(of_group) + 2 * overall) / (len(of_group) + 2)
    together = apart = pairs = 0.0
    for m in range(claims.n_objects):
        groups = [g for n, g in share if n == m]
        pairs += len(groups) * (len(groups) - 1)
        for z in range(claims.first_candidate[m], claims.first_candidate[m + 1]):
            domain = range(claims.first_candidate[m], claims.first_candidate[m + 1])
            values = [*domain, "another"] if len(domain) == 1 else domain
            e = {
                g: np.array(
                    [
                        share[m, g].get(k, 0.0) - (mean[g] if k == z else (1 - mean[g]) / (len(values) - 1))
                        for k in values
                    ]
                )
                for g in groups
            }
            together += truth[z] * sum(e[a] @ e[b] for a, b in permutations(groups, 2))
            apart += truth[z] * (len(groups) - 1) * sum(each @ each for each in e.values())
    by_chance = INDEPENDENT_OBJECTS * pairs / claims.n_objects / 2
    return max(together, 0.0) / (apart + by_chance) if by_chance else 0.0


@pytest.mark.parametrize("seed", range(20))
def test_shared_errors_equal_the_slow_loops(seed):
    claims = random_claims(seed, domain=("given", "common", "claimed")[seed % 3])
    rng = np.random.default_rng(seed)
    group = rng.integers(1 + seed % 4, size=claims.n_sources)
    truth = np.concatenate([rng.dirichlet(np.ones(k)) for k in np.diff(claims.first_candidate)])
    found = shared_errors(claims, group, truth)
    assert found == pytest.approx(slow_shared_errors(claims, truth, group), abs=1e-12)
    assert 0 <= found <= 1


def test_independent_errors_are_not_shared_and_hard_objects_are():
    for kind, low, high in (("independent", 0.0, 0.03), ("hard objects", 0.1, 0.4)):
        claims, truth = answers(kind)
        shared = shared_errors(claims, np.arange(claims.n_sources), truth)
        assert low <= shared <= high, kind


def test_members_of_one_group_share_no_errors_with_themselves():
    claims, truth = answers("hard objects")
    group = np.zeros(claims.n_sources, np.int64)
    assert shared_errors(claims, group, truth) == 0.0
    assert np.all(temperature(voices_by_object(claims, group), 0.5) == 1.0)


@given(st.integers(0, 10_000), st.floats(0, 1))
def test_tempering_keeps_order_and_certainty_and_never_makes_surer(seed, shared):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, size=8)
    first = np.concatenate([[0], np.cumsum(sizes)])
    truth = np.concatenate([rng.dirichlet(np.full(k, 0.3)) for k in sizes])
    truth[first[0] : first[1]] = 0.0
    truth[first[0]] = 1.0
    calm = tempered(truth, first, temperature(rng.integers(0, 40, size=8), shared))
    assert np.allclose(np.add.reduceat(calm, first[:-1]), 1.0)
    assert calm[first[0]] == 1.0
    for a, b in pairwise(first):
        assert np.all(np.diff(calm[a:b][np.argsort(truth[a:b], kind="stable")]) >= -1e-12)
        assert calm[a:b].max() <= truth[a:b].max() + 1e-12


def test_where_difficulty_is_a_continuum_tempered_probabilities_are_nearer_the_truth():
    """Twelve who never met; on the hardest objects most of them fall for the same wrong value."""
    rng = np.random.default_rng(0)
    accuracy, truth = rng.beta(2.25, 0.75, size=500), rng.integers(2, size=500)
    said = np.where(rng.random((12, 500)) < accuracy, truth, 1 - truth)
    claims = read_claims([(f"s{n}", f"o{m}", f"v{said[n, m]}") for n in range(12) for m in range(500)])
    gold = {f"o{m}": f"v{truth[m]}" for m in range(500)}
    fit = MSS(n_starts=1).fit(claims)
    group = fit.groups_found.group[:, 0].astype(np.int64)
    undone = 1 / temperature(voices_by_object(claims, group), fit.learned["shared_errors"])
    before = replace(fit, truth=tempered(fit.truth, claims.first_candidate, undone))
    assert fit.score(gold).accuracy == before.score(gold).accuracy
    assert fit.score(gold).calibration_error < 0.5 * before.score(gold).calibration_error
    assert fit.score(gold).log_loss < 0.8 * before.score(gold).log_loss


def test_planted_groups_share_no_errors():
    for case in ("copied-leader", "six-groups", "independent"):
        fit = MSS(n_starts=2).fit(planted(case, n_objects=300, seed=1).claims)
        assert fit.learned["shared_errors"] < 0.03


def test_explanations_weigh_as_the_probabilities_do():
    """What a voice says is divided by the temperature of its object."""
    claims, _ = answers("hard objects", n_objects=200)
    fit = MSS(n_starts=1).fit(claims)
    raw = replace(fit, learned={**fit.learned, "shared_errors": 0.0})
    effect = 1 + (fit.n_groups - 1) * fit.learned["shared_errors"]
    assert effect > 1.5
    for calm, loud in zip(fit.explain("o001").voices, raw.explain("o001").voices, strict=True):
        assert np.array(calm.contributions) * effect == pytest.approx(loud.contributions)
