"""BWA against its updates, written as slow loops, and its objective, integrated numerically."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad

from consilience.claims.reading import read_claims
from consilience.errors import SettingsError, UnsuitableTableError
from consilience.models.bwa import BWA
from consilience.models.vote import Vote
from consilience.testing.checks import check_model, tables

Triples = list[tuple[str, str, str]]

BY_HAND: Triples = [("s", "o", "a"), ("t", "o", "a"), ("u", "o", "b"), ("s", "p", "b"), ("t", "p", "b")]


def test_what_every_model_must_satisfy() -> None:
    check_model(BWA())


def test_the_first_round_by_hand() -> None:
    # For a: z = (2/3, 0), μ = 1/3, b = 15 · 2 · (3 · 2/9 + 2 · 0) / 5 = 4. Σ(y - z)² is 1/9 for s and t, 4/9 for u.
    fit = BWA(max_rounds=1).fit(read_claims(BY_HAND))
    b, mean = 4.0, 1 / 3
    s, u = 17 / (b + 1 / 9), 16 / (b + 4 / 9)
    a_of_o = (mean + 2 * s) / (1 + 2 * s + u)
    a_of_p = mean / (1 + 2 * s)
    assert np.allclose(fit.truth, [a_of_o, 1 - a_of_o, a_of_p, 1 - a_of_p], atol=1e-12)
    assert fit.learned["prior_variance"] == pytest.approx([4 / 15, 4 / 15])


@pytest.mark.parametrize("rounds", [1, 2, 7])
@pytest.mark.parametrize("correct", [True, False])
def test_the_published_updates_by_slow_loops(rounds: int, correct: bool) -> None:
    for triples in tables():
        model = BWA(
            max_rounds=rounds, correct_prior=correct, prior_precision=1.5, prior_claims=4.0, tolerance=1e-300
        )
        fit = model.fit(read_claims(triples, domain="common"))
        score = slowly(model, triples, rounds)[0]
        objects, values = fit.claims.objects.to_pylist(), fit.claims.values.to_pylist()
        for m, object_ in enumerate(objects):
            total = sum(score[object_, value] for value in values)
            for k, value in enumerate(values):
                assert abs(fit.truth[m * len(values) + k] - score[object_, value] / total) < 1e-9


def test_what_is_climbed_is_the_likelihood_with_precisions_integrated_out() -> None:
    triples = BY_HAND
    model = BWA(max_rounds=3, tolerance=1e-300)
    fit = model.fit(read_claims(triples))
    for rounds, record in enumerate(fit.trace):
        score, b = slowly(model, triples, rounds)
        total = 0.0
        for value in ("a", "b"):
            z = {object_: score[object_, value] for object_ in ("o", "p")}
            mean = sum(z.values()) / 2
            for x in z.values():
                total += normal(x, mean, model.prior_precision)
            for source in ("s", "t", "u"):
                seen = [(float(v == value), z[o]) for s, o, v in triples if s == source]

                def density(v: float, seen: Any = seen, rate: float = b[value] / 2) -> float:
                    shape = model.prior_claims / 2
                    log_prior = (
                        shape * math.log(rate) - math.lgamma(shape) + (shape - 1) * math.log(v) - rate * v
                    )
                    return math.exp(log_prior + sum(normal(y, x, v) for y, x in seen))

                total += math.log(quad(density, 0, 100, epsabs=1e-13, limit=200)[0])
        assert record["bound"] == pytest.approx(total, abs=1e-8)


def test_noisy_sources_weigh_less() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=300)
    triples: Triples = []
    for n in range(9):
        accuracy = 0.95 if n < 3 else 0.55
        triples += [
            (f"s{n}", f"o{m:03}", f"v{truth[m] if rng.random() < accuracy else 1 - truth[m]}")
            for m in range(300)
        ]
    claims = read_claims(triples)
    fit = BWA().fit(claims)
    assert fit.source_reliability[:3, 0].min() > fit.source_reliability[3:, 0].max() + 0.2
    assert np.mean(fit.decision % 2 == truth) > np.mean(Vote().fit(claims).decision % 2 == truth) + 0.03


def test_where_all_agree_the_answer_is_what_they_say() -> None:
    fit = BWA().fit(read_claims([(f"s{n}", f"o{m}", f"v{m % 2}") for n in range(3) for m in range(4)]))
    assert np.allclose(fit.truth[fit.decision], 1, atol=1e-6)
    assert fit.converged


def test_known_truths_stay_and_teach() -> None:
    triples = [("a", f"o{m}", "v") for m in range(10)] + [("b", f"o{m}", "w") for m in range(10)]
    fit = BWA().fit(read_claims(triples), known={f"o{m}": "w" for m in range(6)})
    assert [fit.claims.values[int(i)].as_py() for i in fit.claims.candidate_value[fit.decision]] == ["w"] * 10
    assert fit.source_reliability[1, 0] > fit.source_reliability[0, 0]


def test_open_domains_are_refused() -> None:
    with pytest.raises(UnsuitableTableError, match="bwa"):
        BWA().fit(read_claims([("s", f"o{m}", f"v{m}") for m in range(101)]))


@pytest.mark.parametrize(
    "settings",
    [{"max_rounds": 0}, {"tolerance": 0}, {"prior_precision": -1}, {"prior_claims": 0}, {"correct_prior": 2}],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=next(iter(settings))):
        BWA(**settings)


def normal(x: float, mean: float, precision: float) -> float:
    """ln N(x; mean, 1 / precision)"""
    return (math.log(precision / (2 * math.pi)) - precision * (x - mean) ** 2) / 2


def slowly(
    model: BWA, triples: Triples, rounds: int
) -> tuple[dict[tuple[str, str], float], dict[str, float]]:
    """z by (object, value) after so many rounds, and b by value: label by label, as published."""
    objects, sources = sorted({o for _, o, _ in triples}), sorted({s for s, _, _ in triples})
    values = sorted({v for _, _, v in triples})
    score, bs = {}, {}
    for value in values:
        on = {o: [float(v == value) for _, p, v in triples if p == o] for o in objects}
        z = {o: sum(y) / len(y) for o, y in on.items()}
        spread = sum(len(on[o]) * z[o] * (1 - z[o]) for o in objects) / len(triples)
        correction = 4 * (1 - 1 / len(values)) if model.correct_prior else 1
        b = bs[value] = model.prior_claims * spread * correction
        for _ in range(rounds):
            mean = sum(z.values()) / len(objects)
            v = {}
            for source in sources:
                errors = [(z[o] - float(said == value)) ** 2 for s, o, said in triples if s == source]
                v[source] = (model.prior_claims + len(errors)) / (b + sum(errors))
            for o in objects:
                claims = [(v[s], float(said == value)) for s, p, said in triples if p == o]
                z[o] = (model.prior_precision * mean + sum(w * y for w, y in claims)) / (
                    model.prior_precision + sum(w for w, _ in claims)
                )
        score.update({(o, value): z[o] for o in objects})
    return score, bs
