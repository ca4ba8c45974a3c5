"""2-Estimates, 3-Estimates and Cosine against slow loops over statements, a case by hand, and what they are for."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from consilience.claims.reading import read_claims
from consilience.errors import SettingsError
from consilience.models.base import Rival
from consilience.models.estimates import Cosine, ThreeEstimates, TwoEstimates
from consilience.results.fit import Fit
from consilience.testing.checks import check_model

Triples = list[tuple[str, str, str]]
Fact = tuple[str, str]
NEVER = 1e-300
"""A tolerance that stops no round early, unless nothing at all changes."""
BY_HAND = [
    ("a", "o", "x"),
    ("b", "o", "x"),
    ("c", "o", "y"),
    ("a", "p", "x"),
    ("b", "p", "x"),
    ("c", "p", "x"),
]


def statements(triples: Triples) -> dict[tuple[str, Fact], bool]:
    """Who affirms and who denies what: a source denies the values claimed by others where it claims another."""
    facts = {(object_, value) for _, object_, value in triples}
    return {
        (source, (object_, z)): z == value
        for source, object_, value in triples
        for o, z in facts
        if o == object_
    }


def normalised(x: dict) -> dict:
    low, high = min(x.values()), max(x.values())

    def one(value: float) -> float:
        scaled = (value - low) / (high - low) if high - low > 1e-9 else min(max(value, 0.0), 1.0)
        rounded = 0.5 if abs(value - 0.5) < 1e-9 else float(value > 0.5)
        return round(0.5 * scaled + 0.5 * rounded, 9)

    return {key: one(value) for key, value in x.items()}


def mean(x: list[float]) -> float:
    return sum(x) / len(x)


def slow_estimates(
    triples: Triples, rounds: int, difficult: bool
) -> tuple[dict[str, float], dict[Fact, float]]:
    """Errors of the sources and truths of the facts, one statement at a time."""
    said = statements(triples)
    error = {n: 0.0 for n, _ in said}
    difficulty = {f: 0.1 if difficult else 1.0 for _, f in said}

    def believed() -> dict[Fact, float]:
        wrong = {(n, f): error[n] * difficulty[f] for n, f in said}
        return normalised(
            {f: mean([1 - wrong[s] if said[s] else wrong[s] for s in said if s[1] == f]) for f in difficulty}
        )

    for _ in range(rounds):
        truth = believed()
        missed = {(n, f): 1 - truth[f] if said[n, f] else truth[f] for n, f in said}
        if difficult:
            found = {
                f: [missed[s] / error[s[0]] for s in said if s[1] == f and error[s[0]]] for f in difficulty
            }
            difficulty |= (
                normalised({f: mean(x) for f, x in found.items() if x}) if any(found.values()) else {}
            )
        shares = {
            n: [missed[s] / difficulty[s[1]] for s in said if s[0] == n and difficulty[s[1]]] for n in error
        }
        error |= normalised({n: mean(x) for n, x in shares.items() if x}) if any(shares.values()) else {}
    return error, believed()


def slow_cosine(triples: Triples, rounds: int) -> tuple[dict[str, float], dict[Fact, float]]:
    """Trust in the sources, from -1 to 1, and estimates of the facts, from -1 to 1."""
    said = statements(triples)
    trust = {n: 1.0 for n, _ in said}

    def believed() -> dict[Fact, float]:
        found = {}
        for f in {f for _, f in said}:
            speak = [(trust[n] ** 3, said[n, g]) for n, g in said if g == f]
            found[f] = sum(w if yes else -w for w, yes in speak) / sum(abs(w) for w, _ in speak)
        return found

    for _ in range(rounds):
        estimate = believed()
        for n in trust:
            mine = [(estimate[f], 1 if yes else -1) for (m, f), yes in said.items() if m == n]
            product = sum(e * sign for e, sign in mine)
            trust[n] = 0.8 * trust[n] + 0.2 * product / math.sqrt(len(mine) * sum(e * e for e, _ in mine))
    return trust, believed()


def random_table(seed: int) -> Triples:
    rng = np.random.default_rng(seed)
    return [
        (f"s{n}", f"o{m}", f"v{0 if rng.random() < 0.3 + 0.1 * n else rng.integers(4)}")
        for n in range(6)
        for m in range(8)
        if rng.random() < 0.7
    ]


def reliability(fit: Fit) -> dict[str, float]:
    return {
        str(name): float(u) for name, u in zip(fit.claims.sources, fit.source_reliability[:, 0], strict=True)
    }


def truths(fit: Fit) -> dict[Fact, float]:
    claims = fit.claims
    return {
        (str(claims.objects[int(m)]), str(claims.values[int(z)])): float(p)
        for m, z, p in zip(claims.candidate_object(), claims.candidate_value, fit.truth, strict=True)
    }


def winner(fit: Fit, object_: str) -> str:
    return max((p, z) for (o, z), p in truths(fit).items() if o == object_)[1]


def assert_shares(fit: Fit, estimate: dict[Fact, float]) -> None:
    """The truths are the estimates made to sum to one for each object; values that nobody claims have none."""
    for (object_, z), p in truths(fit).items():
        total = sum(max(w, 1e-12) for (o, _), w in estimate.items() if o == object_)
        expected = max(estimate[object_, z], 1e-12) / total if (object_, z) in estimate else 0.0
        assert p == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("domain", ["claimed", "common"])
@pytest.mark.parametrize("rounds", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("model", [TwoEstimates, ThreeEstimates])
def test_every_round_is_that_of_the_equations(
    model: Callable[..., Rival], seed: int, rounds: int, domain: str
) -> None:
    triples = random_table(seed)
    fit = model(max_rounds=rounds, tolerance=NEVER).fit(read_claims(triples, domain=domain))
    error, truth = slow_estimates(triples, rounds, difficult=model is ThreeEstimates)
    assert reliability(fit) == pytest.approx({n: 1 - e for n, e in error.items()}, abs=1e-9)
    assert_shares(fit, truth)


@pytest.mark.parametrize("rounds", [1, 2, 10])
@pytest.mark.parametrize("seed", range(4))
def test_every_round_of_cosine_is_that_of_the_equations(seed: int, rounds: int) -> None:
    triples = random_table(seed)
    fit = Cosine(max_rounds=rounds, tolerance=NEVER).fit(triples)
    trust, estimate = slow_cosine(triples, rounds)
    assert reliability(fit) == pytest.approx({n: (1 + t) / 2 for n, t in trust.items()}, abs=1e-9)
    assert_shares(fit, {f: (1 + e) / 2 for f, e in estimate.items()})


def test_2_estimates_by_hand() -> None:
    """W is 2/3, 1/3, 1 for x and y of o and x of p, normalised 3/4, 0, 1; so errors are 1/12, 1/12, 7/12: 0, 0, 1."""
    once = TwoEstimates(max_rounds=1).fit(BY_HAND)
    assert reliability(once) == pytest.approx({"a": 1, "b": 1, "c": 0}, abs=1e-9)
    fit = TwoEstimates().fit(BY_HAND)
    assert fit.sweeps == 2
    assert fit.converged
    assert truths(fit)["o", "x"] == pytest.approx(1, abs=1e-9)


def test_3_estimates_by_hand() -> None:
    """Round 1: errors are those of 2-Estimates by the difficulty 0.1: 5/6, 5/6, 35/6, normalised 1/2, 1/2, 1. Round 2:
    W is 2/3, 1/3, 14/15, normalised 7/9, 0, 1; φ is 5/9, 1/3, 0, normalised 1, 0.3, 0. The third is left out of the
    errors, 1/9, 1/9 and (7/9 + 1 / 0.3) / 2."""
    once = ThreeEstimates(max_rounds=1).fit(BY_HAND)
    assert reliability(once) == pytest.approx({"a": 0.5, "b": 0.5, "c": 0}, abs=1e-9)
    twice = ThreeEstimates(max_rounds=2).fit(BY_HAND)
    assert reliability(twice) == pytest.approx({"a": 1, "b": 1, "c": 0}, abs=1e-9)


def test_cosine_by_hand() -> None:
    """E is 1/3, -1/3, 1, of length √(11/9); a says 1, -1, 1 of them, c says -1, 1, 1."""
    once = reliability(Cosine(max_rounds=1).fit(BY_HAND))
    trust = {
        n: 0.8 + 0.2 * dot / math.sqrt(3 * 11 / 9) for n, dot in {"a": 5 / 3, "b": 5 / 3, "c": 1 / 3}.items()
    }
    assert once == pytest.approx({n: (1 + t) / 2 for n, t in trust.items()}, abs=1e-9)


def two_good_against_three_bad() -> Triples:
    triples = [(f"bad{i}", "hard", "wrong") for i in range(3)] + [
        (f"good{i}", "hard", "right") for i in range(2)
    ]
    for m in range(6):
        triples += [(name, f"o{m}", "agreed") for name in ("good0", "good1", "witness0", "witness1")]
        triples += [(f"bad{i}", f"o{m}", f"odd{i}") for i in range(3)]
    return triples


@pytest.mark.parametrize("model", [TwoEstimates(), ThreeEstimates(), Cosine()])
def test_a_reliable_minority_wins(model: Rival) -> None:
    fit = model.fit(two_good_against_three_bad())
    assert winner(fit, "hard") == "right"
    u = reliability(fit)
    assert min(u["good0"], u["good1"]) > max(u["bad0"], u["bad1"], u["bad2"]) + 0.2


@pytest.mark.parametrize("model", [TwoEstimates(), ThreeEstimates(max_rounds=5), Cosine()])
def test_values_nobody_claims_change_nothing(model: Rival) -> None:
    triples = random_table(1)
    few = truths(model.fit(read_claims(triples, domain="claimed")))
    many = truths(model.fit(read_claims(triples, domain=[f"v{i}" for i in range(9)])))
    assert {fact: many[fact] for fact in few} == pytest.approx(few, abs=1e-12)
    assert sum(p for fact, p in many.items() if fact not in few) == 0


@pytest.mark.parametrize("model", [TwoEstimates(), ThreeEstimates(), Cosine()])
def test_a_value_nobody_claims_is_never_the_truth(model: Rival) -> None:
    """Four sources, four values: no fact of the table is less true than these, but what nobody says is not as true."""
    triples = [(f"s{n}", "o", f"v{n}") for n in range(4)] + [(f"s{n}", "p", "v0") for n in range(4)]
    truth = truths(model.fit(read_claims(triples, domain=[f"v{i}" for i in range(9)])))
    assert [truth["o", f"v{i}"] for i in range(9)] == pytest.approx([0.25] * 4 + [0] * 5, abs=1e-9)


def test_difficulties_tell_errors_apart() -> None:
    """`easy` errs where all others agree, `hard` and `s4` where opinions are split. `s4` has five more objects, where
    nobody errs: their difficulty is 0, and for 3-Estimates they say nothing of a source."""
    triples = [(f"s{n}", f"o{m}", "v") for n in range(6) for m in range(6)]
    triples += [("easy", "o0", "odd"), ("hard", "o0", "v")]
    triples += [(f"s{n}", "split", "v" if n < 4 else "w") for n in range(6)]
    triples += [("easy", "split", "v"), ("hard", "split", "w")]
    three, two = (reliability(model.fit(triples)) for model in (ThreeEstimates(), TwoEstimates()))
    assert three["s0"] > three["hard"] > three["easy"]
    assert three["s4"] == pytest.approx(three["hard"], abs=1e-6)
    assert two["s4"] > two["hard"] + 0.1


def test_cosine_counts_against_what_a_liar_says() -> None:
    """A source that contradicts everybody has negative trust; where it speaks against one other, the other is right,
    by more than the other's word alone would say."""
    triples = [(f"s{n}", f"o{m}", "yes") for n in range(4) for m in range(8)]
    triples += [("liar", f"o{m}", "no") for m in range(8)]
    triples += [("liar", "duel", "no"), ("s0", "duel", "yes")]
    fit = Cosine().fit(triples)
    assert reliability(fit)["liar"] < 0.2
    assert truths(fit)["duel", "yes"] > 0.99


@pytest.mark.parametrize("model", [TwoEstimates(), ThreeEstimates(), Cosine()])
def test_known_truths_teach_whom_to_trust(model: Rival) -> None:
    triples = [(source, f"o{m}", value) for m in range(4) for source, value in (("a", "x"), ("b", "y"))]
    assert model.fit(triples).ties == 4
    fit = model.fit(triples, known={"o0": "y", "o1": "y"})
    assert winner(fit, "o3") == "y"
    assert truths(fit)["o0", "y"] == 1.0
    assert reliability(fit)["b"] > reliability(fit)["a"]


@pytest.mark.parametrize("scaling", [0.0, 0.5, 1.0])
def test_estimates_stay_within_their_range(scaling: float) -> None:
    for seed in range(5):
        for model in (TwoEstimates(scaling=scaling), ThreeEstimates(scaling=scaling, max_rounds=50)):
            u = model.fit(random_table(seed)).source_reliability[:, 0]
            assert np.all((u >= 0) & (u <= 1))


def test_3_estimates_says_when_it_does_not_rest() -> None:
    fits = [ThreeEstimates().fit(random_table(seed)) for seed in range(12)]
    restless = [fit for fit in fits if not fit.converged]
    assert restless
    assert all(fit.sweeps == 20 and "Not converged" in fit.warnings[0] for fit in restless)


@pytest.mark.parametrize(
    "model", [TwoEstimates(), ThreeEstimates(), ThreeEstimates(max_rounds=100), Cosine()]
)
def test_checks(model: Rival) -> None:
    check_model(model)


@pytest.mark.parametrize(
    ("model", "setting", "value"),
    [
        (TwoEstimates, "scaling", 1.1),
        (TwoEstimates, "scaling", "half"),
        (TwoEstimates, "max_rounds", 0),
        (TwoEstimates, "tolerance", -1),
        (ThreeEstimates, "scaling", -0.1),
        (ThreeEstimates, "initial_difficulty", 0),
        (ThreeEstimates, "initial_difficulty", 2.0),
        (ThreeEstimates, "max_rounds", 1.5),
        (ThreeEstimates, "tolerance", 0),
        (Cosine, "eta", 0),
        (Cosine, "eta", 1.5),
        (Cosine, "max_rounds", True),
        (Cosine, "tolerance", math.inf),
    ],
)
def test_settings_out_of_range(model: Callable[..., Rival], setting: str, value: object) -> None:
    with pytest.raises(SettingsError, match=f"'{setting}' must be"):
        model(**{setting: value})
