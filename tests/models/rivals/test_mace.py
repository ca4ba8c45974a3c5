"""MACE against its equations, written as slow loops over sources, objects and labels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import digamma, gammaln

from consilience.claims.reading import read_claims
from consilience.errors import SettingsError, UnsuitableTableError
from consilience.kernels.segments import Labels, Segments
from consilience.models.base import common_labels, truth_prior
from consilience.models.mace import MACE, Weights, expect, random_starts
from consilience.models.vote import Vote
from consilience.testing.checks import check_model, tables


def labels_of(triples: Any, known: Any = None) -> Labels:
    claims, log_truth, _ = truth_prior(read_claims(triples, domain="common"), known)
    return common_labels("mace", Segments(claims, log_truth))


@pytest.mark.parametrize("model", [MACE(), MACE(method="em"), MACE(n_restarts=1, max_rounds=3)])
def test_what_every_model_must_satisfy(model: MACE) -> None:
    check_model(model)


def test_the_truths_of_given_weights_by_hand() -> None:
    # s knows with 0.6 and else says a with 0.5: it says a with 0.2 + 0.6 where a is true, with 0.2 where b is.
    # t knows with 0.2 and else says b with 0.25: 0.2 + 0.2 where b is true, 0.2 where a is.
    labels = labels_of([("s", "o", "a"), ("t", "o", "b")])
    weights = Weights(np.log([0.6, 0.2]), np.log([0.4 * 0.5, 0.8 * 0.25]), 0.0, np.array([0.6, 0.2]))
    truth, counts = expect(labels, weights)
    a, b = 0.8 * 0.2, 0.2 * 0.4
    assert np.allclose(truth, [a / (a + b), b / (a + b)], atol=1e-12)
    assert abs(counts.likelihood - math.log((a + b) / 2)) < 1e-12
    assert np.allclose(counts.knows, [a / (a + b) * 0.6 / 0.8, b / (a + b) * 0.2 / 0.4], atol=1e-12)


@pytest.mark.parametrize("method", ["vb", "em"])
def test_round_by_round_by_slow_loops(method: str) -> None:
    model = MACE(method=method, knowing_prior=(0.7, 0.4), strategy_prior=3.0, smoothing=0.2)
    for seed, triples in enumerate(tables()):
        labels = labels_of(triples)
        start = next(random_starts(labels, 1, np.random.default_rng(seed)))
        slow = Slow(labels, model)
        theta, xi = slow.given(start)
        weights = start
        for _ in range(5):
            truth, counts = expect(labels, weights)
            slow_truth, likelihood, knows, spams = slow.expect(theta, xi)
            assert np.allclose(truth, slow_truth.ravel(), atol=1e-9)
            assert abs(counts.likelihood - likelihood) < 1e-9 * abs(likelihood)
            assert np.allclose(labels.sum_by_source(counts.knows), knows, atol=1e-9)
            weights = model.posterior(labels, counts) if method == "vb" else model.smoothed(labels, counts)
            theta, xi, knowing, log_prior = slow.maximise(knows, spams)
            assert np.allclose(weights.log_knows, np.log(theta[:, 0]), atol=1e-9)
            assert np.allclose(weights.knowing, knowing, atol=1e-9)
            assert abs(weights.log_prior - log_prior) < 1e-9 * max(1, abs(log_prior))


def test_the_bound_is_below_the_evidence() -> None:
    triples = [
        (s, o, v) for s, says in (("s", "aab"), ("t", "aba")) for o, v in zip("opq", says, strict=True)
    ]
    bound = MACE().fit(read_claims(triples, domain="common")).trace[-1]["bound"]
    rng, n = np.random.default_rng(0), 400_000
    theta = rng.beta(0.5, 0.5, (n, 2))
    xi = rng.dirichlet([10, 10], (n, 2))
    says = np.array([[0, 0, 1], [0, 1, 0]])
    evidence = np.ones(n)
    for m in range(3):
        each = np.zeros(n)
        for t in range(2):
            joint = np.full(n, 0.5)
            for s in range(2):
                y = says[s, m]
                joint *= (1 - theta[:, s]) * xi[:, s, y] + theta[:, s] * (y == t)
            each += joint
        evidence *= each
    exact, noise = math.log(evidence.mean()), evidence.std() / evidence.mean() / math.sqrt(n)
    assert bound < exact + 3 * noise
    assert bound > exact - 2  # not far below: no term is missing


@pytest.mark.parametrize("method", ["vb", "em"])
def test_spammers_are_found_and_outvoted(method: str) -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=200)
    triples = [(f"spam{n}", f"o{m:03}", "v0") for n in range(4) for m in range(200) if rng.random() < 0.9]
    triples += [
        (f"know{n}", f"o{m:03}", f"v{truth[m] if rng.random() < 0.8 else rng.integers(3)}")
        for n in range(4)
        for m in range(200)
    ]
    claims = read_claims(triples)
    fit = MACE(method=method).fit(claims)
    reliability = dict(zip(fit.claims.sources.to_pylist(), fit.source_reliability[:, 0], strict=True))
    assert max(u for s, u in reliability.items() if s.startswith("spam")) < 0.1
    assert all(abs(u - 0.8) < 0.1 for s, u in reliability.items() if s.startswith("know"))
    assert (
        np.mean(fit.decision % 3 == truth) > 0.95 > 0.75 > np.mean(Vote().fit(claims).decision % 3 == truth)
    )


def test_the_best_of_the_starts_is_kept() -> None:
    for triples in tables():
        fit = MACE(method="em").fit(read_claims(triples), seed=5)
        bounds = fit.learned["start_bounds"]
        assert len(bounds) == 10
        assert fit.trace[-1]["bound"] == pytest.approx(max(bounds), rel=1e-8)


def test_starts_differ_and_do_not_depend_on_names() -> None:
    triples = next(tables())
    renamed = [(f"z{9 - int(s[1:])}", f"x{99 - int(o[1:])}", f"y{3 - int(v[1:])}") for s, o, v in triples]
    first, second = random_starts(labels_of(triples), 2, np.random.default_rng(0))
    again, _ = random_starts(labels_of(renamed), 2, np.random.default_rng(0))
    assert not np.allclose(first.log_knows, second.log_knows)
    assert np.allclose(first.log_knows, again.log_knows[::-1])
    assert np.allclose(np.sort(first.log_spams), np.sort(again.log_spams))


def test_known_truths_teach_who_knows() -> None:
    triples = [("a", f"o{m}", f"v{m % 2}") for m in range(12)] + [("b", f"o{m}", "v0") for m in range(12)]
    known = {f"o{m}": f"v{m % 2}" for m in range(8)}
    fit = MACE().fit(read_claims(triples), known=known)
    assert fit.source_reliability[0, 0] > 0.8 > fit.source_reliability[1, 0]


def test_open_domains_are_refused() -> None:
    with pytest.raises(UnsuitableTableError, match="mace"):
        MACE().fit(read_claims([("s", f"o{m}", f"v{m}") for m in range(101)]))


@pytest.mark.parametrize(
    "settings",
    [
        {"method": "gibbs"}, {"n_restarts": 0}, {"max_rounds": 0}, {"tolerance": 0}, {"knowing_prior": (0.5, 0)},
        {"knowing_prior": 0.5}, {"strategy_prior": 0}, {"smoothing": 0},
    ],
)  # fmt: skip
def test_settings_out_of_range_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=next(iter(settings))):
        MACE(**settings)


class Slow:
    """The published steps with dense θ (n_sources, 2: knows, spams) and ξ (n_sources, n_labels)."""

    def __init__(self, labels: Labels, model: MACE) -> None:
        claims = labels.segments.claims
        self.model, self.n_sources, self.n_labels = model, claims.n_sources, labels.n_labels
        objects = labels.segments.claim_object
        self.claims = [
            [(int(claims.claim_source[i]), int(labels.said[i])) for i in np.flatnonzero(objects == m)]
            for m in range(claims.n_objects)
        ]
        self.habits = list(zip(labels.habit_source, labels.habit_label, strict=True))

    def given(self, start: Weights) -> tuple[np.ndarray, np.ndarray]:
        """θ and ξ of a start; what a source never says is not in the start, and is never asked for."""
        theta = np.stack([np.exp(start.log_knows), 1 - np.exp(start.log_knows)], axis=1)
        xi = np.full((self.n_sources, self.n_labels), np.nan)
        for (n, label), log_spams in zip(self.habits, start.log_spams, strict=True):
            xi[n, label] = math.exp(log_spams) / theta[n, 1]
        return theta, xi

    def expect(self, theta: np.ndarray, xi: np.ndarray) -> tuple[np.ndarray, float, np.ndarray, np.ndarray]:
        truth, likelihood = np.zeros((len(self.claims), self.n_labels)), 0.0
        knows, spams = np.zeros(self.n_sources), np.zeros((self.n_sources, self.n_labels))
        for m, said in enumerate(self.claims):
            for t in range(self.n_labels):
                truth[m, t] = 1 / self.n_labels
                for n, y in said:
                    truth[m, t] *= theta[n, 1] * xi[n, y] + theta[n, 0] * (y == t)
            likelihood += math.log(truth[m].sum())
            truth[m] /= truth[m].sum()
            for n, y in said:
                for t in range(self.n_labels):
                    either = theta[n, 1] * xi[n, y] + theta[n, 0] * (y == t)
                    spams[n, y] += truth[m, t] * theta[n, 1] * xi[n, y] / either
                    knows[n] += truth[m, t] * theta[n, 0] * (y == t) / either
        return truth, likelihood, knows, spams

    def maximise(
        self, knows: np.ndarray, spams: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        model = self.model
        theta, xi = np.zeros((self.n_sources, 2)), np.zeros((self.n_sources, self.n_labels))
        knowing, log_prior = np.zeros(self.n_sources), 0.0
        for n in range(self.n_sources):
            counts = np.array([knows[n], spams[n].sum()])
            if model.method == "em":
                extra = model.smoothing / self.n_labels
                theta[n] = (counts + extra) / (counts + extra).sum()
                xi[n] = (spams[n] + extra) / (spams[n] + extra).sum()
                knowing[n] = theta[n, 0]
                log_prior += extra * (np.log(theta[n]).sum() + np.log(xi[n]).sum())
            else:
                for prior, seen, mean in (
                    (np.array(model.knowing_prior), counts, theta),
                    (np.full(self.n_labels, model.strategy_prior), spams[n], xi),
                ):
                    posterior = prior + seen
                    mean[n] = np.exp(digamma(posterior) - digamma(posterior.sum()))
                    log_prior -= dirichlet_divergence(posterior, prior)
                knowing[n] = (model.knowing_prior[0] + knows[n]) / (sum(model.knowing_prior) + counts.sum())
        return theta, xi, knowing, log_prior


def dirichlet_divergence(q: np.ndarray, p: np.ndarray) -> float:
    """KL(Dirichlet(q) ‖ Dirichlet(p))"""

    def log_norm(x: np.ndarray) -> float:
        return float(gammaln(x).sum() - gammaln(x.sum()))

    return float(log_norm(p) - log_norm(q) + (q - p) @ (digamma(q) - digamma(q.sum())))
