"""DARE against slow loops with numerical integrals, against the exact posterior, and on guessers and hard objects."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

from consilience.claims.encoding import Claims
from consilience.claims.reading import read_claims
from consilience.datasets.synthetic import planted
from consilience.errors import SettingsError
from consilience.models.dare import STEP, WIDTH, Dare, gamma_rule
from consilience.models.vote import Vote
from consilience.testing.checks import check_model

Array = NDArray[np.float64]
TABLE = [
    ("ann", "o1", "a"), ("bob", "o1", "a"), ("cat", "o1", "b"),
    ("ann", "o2", "b"), ("bob", "o2", "c"), ("cat", "o2", "b"),
    ("ann", "o3", "c"), ("cat", "o3", "a"),
    ("bob", "o4", "a"), ("cat", "o4", "a"),
    ("ann", "o5", "b"),
]  # fmt: skip
GRID = np.linspace(-9, 9, 3601)
"""Abilities, for integrals by sums: exact to many digits for what is smooth."""


def claims_on(claims: Claims, m: int) -> list[tuple[int, int]]:
    """Who claims which candidate of object m."""
    mine = slice(int(claims.first_claim[m]), int(claims.first_claim[m + 1]))
    pairs = zip(claims.claim_source[mine], claims.claim_candidate[mine], strict=True)
    return [(int(n), int(z)) for n, z in pairs]


def response(ability: Array | float, d: float, tau: float, right: bool, size: int) -> Array:
    """P(claim | ability, difficulty, discrimination), where what it claims is the truth or is not."""
    known = ndtr(sqrt(tau) * (np.asarray(ability) - d))
    answer: Array = known * right + (1 - known) / size
    return answer


def nodes(model: Dare) -> list[tuple[float, float, float]]:
    """(d, τ, weight) of the grid."""
    taus = zip(*gamma_rule(model.discrimination_mean, model.discrimination_variance), strict=True)
    pairs = [(d, float(tau), float(w)) for tau, w in taus for d in np.arange(-WIDTH, WIDTH + STEP / 2, STEP)]
    weight = [w * NormalDist().pdf(d) for d, _, w in pairs]
    return [(d, tau, w / sum(weight)) for (d, tau, _), w in zip(pairs, weight, strict=True)]


def slow_rounds(claims: Claims, model: Dare, n_rounds: int) -> tuple[list[float], list[float]]:
    """Rounds of expectation propagation: tilted moments of abilities as sums over GRID. Truths and abilities' means."""
    message = {(m, n): (0.0, 0.0) for m in range(claims.n_objects) for n, _ in claims_on(claims, m)}
    truth: list[float] = []
    for _ in range(n_rounds):
        total = {n: [1.0, 0.0] for n in range(claims.n_sources)}
        for (_, n), (precision, shift) in message.items():
            total[n] = [total[n][0] + precision, total[n][1] + shift]
        renewed, truth = {}, []
        for m in range(claims.n_objects):
            said = claims_on(claims, m)
            domain = range(int(claims.first_candidate[m]), int(claims.first_candidate[m + 1]))
            cavity = {n: (total[n][0] - message[m, n][0], total[n][1] - message[m, n][1]) for n, _ in said}
            density = {}
            for n, (precision, shift) in cavity.items():
                weight = np.exp(-0.5 * precision * (GRID - shift / precision) ** 2)
                density[n] = weight / weight.sum()
            mass: dict[int, float] = dict.fromkeys(domain, 0.0)
            tilted = {n: np.zeros_like(GRID) for n in density}
            for z in domain:
                for d, tau, weight in nodes(model):
                    answers = {n: density[n] * response(GRID, d, tau, y == z, len(domain)) for n, y in said}
                    joint = weight * float(np.prod([answer.sum() for answer in answers.values()]))
                    mass[z] += joint
                    for n, answer in answers.items():
                        tilted[n] += joint * answer / answer.sum()
            truth += [mass[z] / sum(mass.values()) for z in domain]
            for n, (precision, shift) in cavity.items():
                q = tilted[n] / tilted[n].sum()
                mean = float(q @ GRID)
                variance = float(q @ (GRID - mean) ** 2)
                to_n = max(1 / variance - precision, 0.0)
                renewed[m, n] = to_n, mean * (precision + to_n) - shift
        message = renewed
    total = {n: [1.0, 0.0] for n in range(claims.n_sources)}
    for (_, n), (precision, shift) in message.items():
        total[n] = [total[n][0] + precision, total[n][1] + shift]
    knows = [
        NormalDist().cdf(shift / precision / sqrt(2 + 1 / precision)) for precision, shift in total.values()
    ]
    return truth, knows


def test_it_goes_the_way_of_the_equations() -> None:
    claims = read_claims(TABLE)
    for rounds in (1, 2, 3):
        truth, knows = slow_rounds(claims, Dare(), rounds)
        fit = Dare(max_rounds=rounds, tolerance=1e-12).fit(claims)
        assert fit.truth == pytest.approx(truth, abs=1e-9)
        assert fit.source_reliability[:, 0] == pytest.approx(knows, abs=1e-9)


def exact(claims: Claims) -> Array:
    """(n_candidates,) p(t | claims), by sums over all abilities at once and over fine grids of d and τ."""
    n_sources, points = claims.n_sources, np.linspace(-4.5, 4.5, 25)
    prior = np.exp(-0.5 * points**2)
    difficulty = np.linspace(-5, 5, 41)
    taus, weights = gamma_rule(1.0, 0.01, 4)
    node = [
        (d, tau, np.exp(-0.5 * d * d) * w) for d in difficulty for tau, w in zip(taus, weights, strict=True)
    ]
    everyone = np.ones((1,) * n_sources)
    for n in range(n_sources):
        everyone = everyone * along(prior, n, n_sources)
    by_object = []
    for m in range(claims.n_objects):
        domain = range(int(claims.first_candidate[m]), int(claims.first_candidate[m + 1]))
        likelihood = []
        for z in domain:
            total = np.zeros((1,) * n_sources)
            for d, tau, weight in node:
                term = np.full((1,) * n_sources, weight)
                for n, y in claims_on(claims, m):
                    term = term * along(response(points, d, tau, y == z, len(domain)), n, n_sources)
                total = total + term
            likelihood.append(total)
        by_object.append(likelihood)
        everyone = everyone * sum(likelihood)
    truth = [(everyone * p / sum(likelihood)).sum() for likelihood in by_object for p in likelihood]
    return np.array(truth) / everyone.sum()


def along(x: Array, axis: int, n_axes: int) -> Array:
    return x.reshape([-1 if n == axis else 1 for n in range(n_axes)])


@pytest.mark.parametrize("seed", range(4))
def test_truths_are_near_the_exact_posterior(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_labels = 2 + seed % 2
    triples = [
        (f"s{n}", f"o{m}", str(rng.integers(n_labels) if rng.random() < 0.5 else 0))
        for n in range(3)
        for m in range(5)
        if rng.random() < 0.9
    ]
    claims = read_claims(triples, domain="common")
    posterior = exact(claims)
    assert Dare(tolerance=1e-9).fit(claims).truth == pytest.approx(posterior, abs=0.012)
    assert np.abs(Vote().fit(claims).truth - posterior).max() > 0.05


def test_one_claim_by_hand() -> None:
    """A source of unknown ability knows an object of unknown difficulty half of the time."""
    fit = Dare().fit(read_claims([("s", "o", "a"), ("t", "p", "b")], domain=["a", "b", "c", "d"]))
    assert fit.truth[:4] == pytest.approx([0.5 + 0.5 / 4, 0.5 / 4, 0.5 / 4, 0.5 / 4], abs=1e-9)
    assert fit.source_reliability[:, 0] == pytest.approx([0.5, 0.5], abs=0.2)


def test_the_gauss_rule_has_the_moments_of_the_gamma() -> None:
    for mean, variance in ((1.0, 0.01), (2.0, 3.0), (1.0, 1e-6)):
        shape, scale = mean**2 / variance, variance / mean
        x, w = gamma_rule(mean, variance)
        assert w.sum() == pytest.approx(1)
        assert w @ x == pytest.approx(mean)
        assert w @ x**2 == pytest.approx(mean**2 + variance)
        assert w @ x**3 == pytest.approx(shape * (shape + 1) * (shape + 2) * scale**3)


def test_guessers_are_found_out() -> None:
    data = planted("guessers", n_objects=150, seed=0)
    fit = Dare().fit(data.claims)
    assert fit.converged
    assert fit.score(data.truth).accuracy > Vote().fit(data.claims).score(data.truth).accuracy + 0.05
    mean, low, high = fit.source_reliability.T
    assert np.all((low < mean) & (mean < high))
    knows = dict(zip(fit.claims.sources.to_pylist(), mean, strict=True))
    kind = dict(zip(*(data.groups.column(name).to_pylist() for name in ("source", "kind")), strict=True))
    worst = sorted(knows, key=lambda name: knows[name])[:30]
    assert {kind[name] for name in worst} == {"guesser"}


def test_a_majority_is_less_sure_where_the_able_disagree() -> None:
    """Two able sources against three that are often wrong: on easy objects all agree, so abilities show elsewhere."""
    triples = [(f"able{n}", f"o{m}", "right") for n in range(2) for m in range(30)]
    triples += [
        (f"weak{n}", f"o{m}", "right" if (m + n) % 3 else f"wrong{n}") for n in range(3) for m in range(30)
    ]
    triples += [(f"able{n}", "contested", "right") for n in range(2)]
    triples += [(f"weak{n}", "contested", "wrong") for n in range(3)]
    fit = Dare().fit(read_claims(triples, domain="claimed"))
    contested = fit.claims.objects.to_pylist().index("contested")
    decided = fit.claims.values[int(fit.claims.candidate_value[fit.decision[contested]])].as_py()
    assert decided == "right"


def test_known_truths_teach_abilities() -> None:
    triples = [("good", f"o{m}", "a") for m in range(8)] + [("bad", f"o{m}", "b") for m in range(8)]
    claims = read_claims(triples, domain="common")
    good, bad = Dare().fit(claims, known={f"o{m}": "a" for m in range(7)}).source_reliability[::-1, 0]
    assert good > 0.7 > 0.3 > bad
    assert Dare().fit(claims).source_reliability[0, 0] == pytest.approx(
        Dare().fit(claims).source_reliability[1, 0]
    )


def test_damping_leads_to_the_same_place() -> None:
    claims = read_claims(TABLE)
    plain, damped = (Dare(damping=share, tolerance=1e-9).fit(claims) for share in (0.0, 0.5))
    assert damped.truth == pytest.approx(plain.truth, abs=1e-6)
    assert damped.sweeps > plain.sweeps


def test_the_checks_of_all_models() -> None:
    check_model(Dare())


@pytest.mark.parametrize(
    "setting",
    [
        {"ability_mean": float("inf")}, {"difficulty_mean": "0"}, {"ability_variance": 0}, {"tolerance": -1},
        {"difficulty_variance": float("nan")}, {"discrimination_mean": 0}, {"discrimination_variance": 0},
        {"damping": 1.0}, {"damping": True}, {"max_rounds": 0}, {"discrimination_mean": 2**31},
        {"discrimination_mean": 2.0, "difficulty_variance": 1e100},
    ],
)  # fmt: skip
def test_settings_out_of_range_are_refused(setting: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match=next(iter(setting))):
        Dare(**setting)  # type: ignore[arg-type]
