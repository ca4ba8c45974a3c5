"""CoBayes against slow loops, its bound against the evidence, and on sources that know different things."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log
from statistics import NormalDist

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

from consilience.claims.encoding import Claims
from consilience.claims.reading import read_claims
from consilience.errors import SettingsError
from consilience.models.cobayes import CoBayes, Gaussians
from consilience.models.dawid_skene import OneCoin
from consilience.models.order import structural_order
from consilience.models.vote import Vote
from consilience.testing.checks import check_model

Array = NDArray[np.float64]
NORMAL = NormalDist()
TABLE = [
    ("ann", "o1", "a"), ("bob", "o1", "a"), ("cat", "o1", "b"),
    ("ann", "o2", "b"), ("bob", "o2", "c"), ("cat", "o2", "b"), ("dan", "o2", "b"),
    ("ann", "o3", "c"), ("dan", "o3", "a"),
    ("bob", "o4", "a"), ("cat", "o4", "a"), ("dan", "o4", "c"),
    ("ann", "o5", "b"), ("cat", "o5", "c"), ("bob", "o6", "a"),
]  # fmt: skip


def slow_fit(claims: Claims, model: CoBayes, seed: int, n_rounds: int) -> tuple[list[float], float]:
    """The truths and the bound after so many rounds; e = (b, u), w = (1, v), one claim at a time."""
    p = 1 + model.n_areas
    prior_mean = np.array([model.bias_mean] + [0.0] * model.n_areas)
    prior = np.diag([model.bias_variance] + [model.expertise_variance] * model.n_areas)
    e_mean = {n: prior_mean.copy() for n in range(claims.n_sources)}
    drawn = np.random.default_rng(seed).standard_normal((claims.n_sources, model.n_areas))
    for rank, n in enumerate(structural_order(claims)):
        e_mean[int(n)][1:] = np.sqrt(model.expertise_variance) * drawn[rank]
    e_cov = dict.fromkeys(e_mean, prior)
    v_mean = {m: np.zeros(model.n_areas) for m in range(claims.n_objects)}
    v_cov = dict.fromkeys(v_mean, np.eye(model.n_areas) * model.area_variance)
    said = [
        (int(n), int(m), int(z))
        for n, m, z in zip(claims.claim_source, claims.claim_object(), claims.claim_candidate, strict=True)
    ]
    truth: list[float] = []
    bound = 0.0
    for _ in range(n_rounds):
        s = {(n, m): e_mean[n] @ np.array([1.0, *v_mean[m]]) for n, m, _ in said}
        truth, bound = [], 0.0
        for m in range(claims.n_objects):
            domain = range(int(claims.first_candidate[m]), int(claims.first_candidate[m + 1]))
            weight = []
            for z in domain:
                product = 1 / len(domain)
                for n, about, y in said:
                    if about == m:
                        right = NORMAL.cdf(s[n, m])
                        product *= right if y == z else (1 - right) / (len(domain) - 1)
                weight.append(product)
            truth += [x / sum(weight) for x in weight]
            bound += log(sum(weight))
        x = {}
        for n, m, y in said:
            moment = e_cov[n] + np.outer(e_mean[n], e_mean[n])
            where = np.array([1.0, *v_mean[m]])
            area = np.zeros((p, p))
            area[1:, 1:] = v_cov[m]
            bound -= 0.5 * (float(np.sum(moment * (area + np.outer(where, where)))) - s[n, m] ** 2)
            density, above = NORMAL.pdf(s[n, m]), NORMAL.cdf(s[n, m])
            x[n, m] = s[n, m] + truth[y] * density / above - (1 - truth[y]) * density / (1 - above)
        bound -= sum(gaussian_divergence(e_mean[n], e_cov[n], prior_mean, prior) for n in e_mean)
        flat = np.eye(model.n_areas) * model.area_variance
        bound -= sum(gaussian_divergence(v_mean[m], v_cov[m], np.zeros(model.n_areas), flat) for m in v_mean)
        for m in v_mean:
            precision, shift = np.linalg.inv(flat), np.zeros(model.n_areas)
            for n, about, _ in said:
                if about == m:
                    moment = e_cov[n] + np.outer(e_mean[n], e_mean[n])
                    precision = precision + moment[1:, 1:]
                    shift = shift + e_mean[n][1:] * x[n, m] - moment[1:, 0]
            v_cov[m] = np.linalg.inv(precision)
            v_mean[m] = v_cov[m] @ shift
        for n in e_mean:
            precision = np.linalg.inv(prior)
            shift = precision @ prior_mean
            for who, m, _ in said:
                if who == n:
                    where = np.array([1.0, *v_mean[m]])
                    area = np.zeros((p, p))
                    area[1:, 1:] = v_cov[m]
                    precision = precision + area + np.outer(where, where)
                    shift = shift + where * x[n, m]
            e_cov[n] = np.linalg.inv(precision)
            e_mean[n] = e_cov[n] @ shift
    return truth, bound


def gaussian_divergence(mean: Array, cov: Array, prior_mean: Array, prior: Array) -> float:
    inverse, gap = np.linalg.inv(prior), mean - prior_mean
    ratio = np.linalg.det(prior) / np.linalg.det(cov)
    return 0.5 * float(np.trace(inverse @ cov) + gap @ inverse @ gap - len(mean) + np.log(ratio))


@pytest.mark.parametrize("model", [CoBayes(), CoBayes(n_areas=1, area_variance=2.0, bias_mean=0.5)])
def test_it_goes_the_way_of_the_equations(model: CoBayes) -> None:
    claims = read_claims(TABLE, domain="common")
    for rounds in (1, 2, 3, 6):
        truth, bound = slow_fit(claims, model, 5, rounds)
        fit = replace(model, max_rounds=rounds, tolerance=1e-12).fit(claims, seed=5)
        assert fit.truth == pytest.approx(truth, abs=1e-9)
        assert fit.trace[-1]["bound"] == pytest.approx(bound, abs=1e-9)


@pytest.mark.parametrize(("variance", "gap"), [(0.02, 0.1), (0.2, 0.7), (1.0, 4.0)])
def test_the_bound_is_below_the_evidence(variance: float, gap: float) -> None:
    """ln p(claims) by drawing everything but the truths, which are summed, from the prior. The less is left to mean
    field, the nearer the bound."""
    triples = [("s", "o", "a"), ("s", "p", "b"), ("t", "o", "a"), ("t", "p", "a"), ("w", "o", "b")]
    claims = read_claims(triples, domain="common")
    rng, n = np.random.default_rng(0), 400_000
    bias = 1 + np.sqrt(variance) * rng.standard_normal((3, n))
    expertise, area = (np.sqrt(variance) * rng.standard_normal((count, 2, n)) for count in (3, 2))
    likelihood = np.ones(n)
    for m, said in enumerate(({0: 0, 1: 0, 2: 1}, {0: 1, 1: 0})):
        by_truth = np.zeros(n)
        for z in range(2):
            term = np.full(n, 0.5)
            for source, y in said.items():
                right = ndtr(bias[source] + (expertise[source] * area[m]).sum(axis=0))
                term *= right if y == z else 1 - right
            by_truth += term
        likelihood *= by_truth
    evidence = log(likelihood.mean())
    error = likelihood.std() / likelihood.mean() / np.sqrt(n)
    model = CoBayes(
        bias_variance=variance, expertise_variance=variance, area_variance=variance, tolerance=1e-12
    )
    assert evidence - gap < model.fit(claims).trace[-1]["bound"] < evidence + 3 * error


def test_one_claim_by_hand() -> None:
    """After one round nothing is known but the bias: q(t) is Φ(1) and what is left."""
    fit = CoBayes(max_rounds=1).fit(read_claims([("s", "o", "a"), ("t", "p", "b")], domain=["a", "b", "c"]))
    right = NORMAL.cdf(1.0)
    assert fit.truth[:3] == pytest.approx([right, (1 - right) / 2, (1 - right) / 2], abs=1e-12)
    assert fit.source_reliability[:, 0] == pytest.approx([right, right], abs=1e-12)


def test_the_divergence_of_a_gaussian_from_itself_is_none() -> None:
    variance = np.array([1.0, 2.0])
    same = Gaussians(np.array([[0.5, -1.0]]), np.diag(variance)[None])
    assert same.divergence(np.array([0.5, -1.0]), variance) == pytest.approx(0, abs=1e-12)
    assert same.divergence(np.array([1.5, -1.0]), variance) == pytest.approx(0.5)


def two_areas(seed: int) -> tuple[list[tuple[str, str, str]], dict[str, str]]:
    """Five sources know the one half of the objects, five the other; elsewhere they do worse than guess."""
    rng = np.random.default_rng(seed)
    truth, area = rng.integers(3, size=200), rng.integers(2, size=200)
    triples = []
    for n in range(10):
        for m in range(200):
            right = rng.random() < (0.9 if area[m] == n % 2 else 0.1)
            value = truth[m] if right else (truth[m] + rng.integers(1, 3)) % 3
            triples.append((f"s{n}", f"o{m}", str(value)))
    return triples, {f"o{m}": str(z) for m, z in enumerate(truth)}


def test_sources_are_trusted_where_they_know() -> None:
    gains = []
    for seed in range(3):
        triples, truth = two_areas(seed)
        claims = read_claims(triples)
        accuracy = {
            model.name: model.fit(claims).score(truth).accuracy for model in (CoBayes(), OneCoin(), Vote())
        }
        assert accuracy["cobayes"] > accuracy["one-coin"] + 0.2
        gains.append(accuracy["cobayes"] - accuracy["vote"])
    assert np.mean(gains) > 0.02


def test_areas_are_not_made_up() -> None:
    """Where sources are as good everywhere, the answers are those of one error rate a source."""
    rng = np.random.default_rng(1)
    truth, reliability = rng.integers(3, size=150), np.linspace(0.4, 0.95, 8)
    triples = []
    for n, u in enumerate(reliability):
        for m, z in enumerate(truth):
            value = z if rng.random() < u else (z + rng.integers(1, 3)) % 3
            triples.append((f"s{n}", f"o{m}", str(value)))
    fit = CoBayes().fit(read_claims(triples))
    assert fit.score({f"o{m}": str(z) for m, z in enumerate(truth)}).accuracy > 0.95
    assert np.abs(fit.source_reliability[:, 0] - reliability).max() < 0.12


def test_an_object_with_one_value_is_no_trouble() -> None:
    fit = CoBayes().fit(read_claims([("s", "o", "a"), ("t", "o", "a"), ("s", "p", "b")], domain="claimed"))
    assert fit.truth == pytest.approx([1.0, 1.0])
    assert exp(fit.trace[-1]["bound"]) < 1


def test_the_checks_of_all_models() -> None:
    check_model(CoBayes())


@pytest.mark.parametrize(
    "setting",
    [
        {"n_areas": 0}, {"n_areas": 1.5}, {"bias_mean": 0.0}, {"bias_variance": -1}, {"expertise_variance": "1"},
        {"area_variance": float("inf")}, {"tolerance": 0}, {"max_rounds": 0},
    ],
)  # fmt: skip
def test_settings_out_of_range_are_refused(setting: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match=next(iter(setting))):
        CoBayes(**setting)  # type: ignore[arg-type]
