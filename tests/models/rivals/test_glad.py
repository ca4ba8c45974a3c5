"""GLAD against its equations: by hand, by enumeration, and by the published gradient."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from consilience.claims.reading import read_claims
from consilience.errors import SettingsError
from consilience.kernels.segments import Segments
from consilience.models.base import truth_prior
from consilience.models.glad import GLAD, Skills, curvature, expect
from consilience.testing.checks import check_model, tables


def segments(triples: Any, known: Any = None, domain: Any = "auto") -> Segments:
    claims, log_truth, _ = truth_prior(read_claims(triples, domain=domain), known)
    return Segments(claims, log_truth)


def sigma(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_what_every_model_must_satisfy() -> None:
    check_model(GLAD())


@pytest.mark.parametrize("labels", ["ab", "abc", "abcdef"])
def test_the_first_round_by_hand(labels: str) -> None:
    # α = β = 1 at first, so one claim is right with probability σ(e), however many labels share the rest.
    one = GLAD(max_rounds=1).fit(read_claims([("s", "o", "a")], domain=list(labels)))
    assert abs(one.truth[one.decision[0]] - sigma(math.e)) < 1e-12
    # Two agreeing claims: σ² against (1 - σ)² / (K - 1), K - 1 times.
    right, wrong = sigma(math.e) ** 2, (1 - sigma(math.e)) ** 2 / (len(labels) - 1)
    two = GLAD(max_rounds=1).fit(read_claims([("s", "o", "a"), ("t", "o", "a")], domain=list(labels)))
    assert abs(two.truth[two.decision[0]] - right / (right + wrong)) < 1e-12


@pytest.mark.parametrize("domain", ["claimed", "common"])
def test_expectations_by_slow_loops(domain: str) -> None:
    for seed, triples in enumerate(tables()):
        table, rng = segments(triples, domain=domain), np.random.default_rng(seed)
        skills = random_skills(table, rng)
        truth, likelihood = expect(table, skills)
        slow_truth, slow_likelihood = slow_expect(table, skills)
        assert np.allclose(truth, slow_truth, atol=1e-9)
        assert abs(likelihood - slow_likelihood) < 1e-9 * abs(slow_likelihood)


@pytest.mark.parametrize("steps", [1, 4])
def test_every_climb_raises_the_expected_log_posterior(steps: int) -> None:
    model = GLAD(steps=steps, prior_mean=0.5, prior_variance=2.0)
    for seed, triples in enumerate(tables()):
        table, rng = segments(triples), np.random.default_rng(seed)
        for _ in range(20):
            skills = random_skills(table, rng, spread=3.0)
            truth = table.shares(rng.random(table.claims.n_candidates))
            after = model.climb(table, truth, skills)
            assert slow_q(model, table, truth, after) > slow_q(model, table, truth, skills)


def test_the_climb_ends_where_the_published_gradient_is_nought() -> None:
    table = segments(next(tables()))
    truth = table.shares(np.random.default_rng(0).random(table.claims.n_candidates))
    end = GLAD(steps=2000).climb(table, truth, start(table))
    by_ability, by_ease = slow_gradient(GLAD(), table, truth, end)
    assert max(map(abs, by_ability)) < 1e-7
    assert max(map(abs, by_ease)) < 1e-7


def test_the_end_is_a_maximum_of_the_marginal_posterior() -> None:
    triples = [triple for triple in next(tables()) if triple[1] in ("o0", "o1", "o2", "o3", "o4")]
    table = segments(triples)
    n_sources = table.claims.n_sources
    model = GLAD(tolerance=1e-14, max_rounds=5000)

    def negative(both: np.ndarray) -> float:
        skills = Skills(both[:n_sources], both[n_sources:])
        return -(slow_expect(table, skills)[1] + slow_log_prior(model, skills))

    found = minimize(
        negative, np.ones(n_sources + table.claims.n_objects), method="BFGS", options={"gtol": 1e-6}
    )
    fit = model.fit(read_claims(triples))
    assert abs(fit.trace[-1]["bound"] + found.fun) < 1e-6
    assert np.allclose(
        fit.truth, slow_expect(table, Skills(found.x[:n_sources], found.x[n_sources:]))[0], atol=1e-4
    )


def test_the_quadratic_bound_holds_and_touches() -> None:
    rng = np.random.default_rng(0)
    x, at = rng.normal(0, 5, 2000), rng.normal(0, 5, 2000)

    def gap(x: np.ndarray) -> np.ndarray:
        """ln(1 + e^x) less the bound at `at`, whose constant makes both equal there."""
        return (np.logaddexp(0, x) - np.logaddexp(0, at)) - (x - at) / 2 - curvature(at) * (x**2 - at**2) / 2

    assert np.all(gap(x) <= 1e-9)
    assert np.allclose(gap(at), 0)
    assert curvature(np.zeros(1))[0] == pytest.approx(0.25)


def test_a_source_that_misleads_has_a_negative_ability_and_is_turned_round() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=200)
    triples = [
        (f"s{n}", f"o{m}", f"v{truth[m] if rng.random() < 0.85 else 1 - truth[m]}")
        for n in range(5)
        for m in range(200)
    ]
    triples += [("liar", f"o{m}", f"v{1 - truth[m]}") for m in range(200)]
    triples += [("liar", "alone", "v0")]
    fit = GLAD().fit(read_claims(triples))
    reliability = dict(zip(fit.claims.sources.to_pylist(), fit.source_reliability[:, 0], strict=True))
    assert reliability.pop("liar") < 0.1
    assert min(reliability.values()) > 0.8
    alone = fit.claims.objects.to_pylist().index("alone")
    decided = fit.claims.values[int(fit.claims.candidate_value[fit.decision[alone]])].as_py()
    assert decided == "v1"


def test_contested_objects_are_found_difficult() -> None:
    rng = np.random.default_rng(1)
    triples = []
    for m in range(100):
        for n in range(10):
            right = rng.random() < (0.95 if m < 50 else 0.6)
            triples.append((f"s{n}", f"o{m:02}", "right" if right else "wrong"))
    table = segments(triples)
    model, skills = GLAD(), start(table)
    for _ in range(10):
        skills = model.climb(table, expect(table, skills)[0], skills)
    assert skills.ease[:50].mean() > skills.ease[50:].mean() + 0.5


def test_known_truths_teach_the_abilities() -> None:
    triples = [("a", f"o{m}", "v") for m in range(10)] + [("b", f"o{m}", "w") for m in range(10)]
    fit = GLAD().fit(read_claims(triples), known={f"o{m}": "w" for m in range(6)})
    assert fit.source_reliability[1, 0] > 0.9 > 0.1 > fit.source_reliability[0, 0]
    names = [fit.claims.values[int(i)].as_py() for i in fit.claims.candidate_value[fit.decision]]
    assert names == ["w"] * 10


@pytest.mark.parametrize(
    "settings",
    [
        {"max_rounds": 0}, {"tolerance": 0}, {"steps": 0}, {"prior_variance": 0}, {"prior_mean": float("inf")},
        {"prior_mean": "1"},
    ],
)  # fmt: skip
def test_settings_out_of_range_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=next(iter(settings))):
        GLAD(**settings)


def start(table: Segments) -> Skills:
    return Skills(np.ones(table.claims.n_sources), np.ones(table.claims.n_objects))


def random_skills(table: Segments, rng: np.random.Generator, spread: float = 1.0) -> Skills:
    return Skills(rng.normal(1, spread, table.claims.n_sources), rng.normal(0, 1, table.claims.n_objects))


def each_claim(table: Segments) -> list[tuple[int, int, int]]:
    """source, object, candidate"""
    claims = table.claims
    return [
        (int(claims.claim_source[i]), m, int(claims.claim_candidate[i]))
        for m in range(claims.n_objects)
        for i in range(claims.first_claim[m], claims.first_claim[m + 1])
    ]


def slow_expect(table: Segments, skills: Skills) -> tuple[np.ndarray, float]:
    """T and ln p(claims), claim by claim and candidate by candidate, in plain probabilities."""
    claims = table.claims
    truth, likelihood = np.zeros(claims.n_candidates), 0.0
    for m in range(claims.n_objects):
        domain = range(claims.first_candidate[m], claims.first_candidate[m + 1])
        joint = dict.fromkeys(domain, 1 / len(domain))
        for n, of, said in each_claim(table):
            if of == m:
                right = sigma(skills.ability[n] * math.exp(skills.ease[m]))
                for z in domain:
                    joint[z] *= right if z == said else (1 - right) / (len(domain) - 1)
        for z in domain:
            truth[z] = joint[z] / sum(joint.values())
        likelihood += math.log(sum(joint.values()))
        if len(domain) == 1:  # nothing to share 1 - σ among
            assert truth[domain[0]] == 1
    return truth, likelihood


def slow_log_prior(model: GLAD, skills: Skills) -> float:
    total = 0.0
    for x in [*skills.ability, *skills.ease]:
        total -= (x - model.prior_mean) ** 2 / (2 * model.prior_variance)
        total -= math.log(2 * math.pi * model.prior_variance) / 2
    return total


def slow_q(model: GLAD, table: Segments, truth: np.ndarray, skills: Skills) -> float:
    """E ln p(claims | truths, α, β) + ln p(α, β), less what does not depend on α and β."""
    total = slow_log_prior(model, skills)
    for n, m, said in each_claim(table):
        x = skills.ability[n] * math.exp(skills.ease[m])
        total += truth[said] * -np.logaddexp(0, -x) + (1 - truth[said]) * -np.logaddexp(0, x)
    return float(total)


def slow_gradient(
    model: GLAD, table: Segments, truth: np.ndarray, skills: Skills
) -> tuple[list[float], list[float]]:
    """dQ/dα = Σ (T - σ) e^β and dQ/dβ = Σ (T - σ) α e^β, with the priors' pull to their mean."""
    by_ability = [-(a - model.prior_mean) / model.prior_variance for a in skills.ability]
    by_ease = [-(b - model.prior_mean) / model.prior_variance for b in skills.ease]
    for n, m, said in each_claim(table):
        scale = math.exp(skills.ease[m])
        excess = truth[said] - sigma(skills.ability[n] * scale)
        by_ability[n] += excess * scale
        by_ease[m] += excess * skills.ability[n] * scale
    return by_ability, by_ease
