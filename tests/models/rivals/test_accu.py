"""Accu against its equations in slow loops, against the publication's example, and against copiers."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from consilience.claims.reading import read_claims
from consilience.errors import SettingsError, UnsuitableTableError
from consilience.kernels.segments import Segments
from consilience.models import accu
from consilience.models.accu import SMALLEST, Accu, AccuIndependent, CoClaims
from consilience.models.base import truth_prior
from consilience.models.order import structural_order
from consilience.testing.checks import Triples, check_model, tables

VARIANTS = (
    AccuIndependent(),
    Accu(),
    Accu(from_start=True),
    Accu(order="dependence"),
    Accu(order="dependence", from_start=True),
)

RESEARCHERS = {
    "Stonebraker": ("MIT", "Berkeley", "MIT", "MIT", "MS"),
    "Dewitt": ("MSR", "MSR", "UWisc", "UWisc", "UWisc"),
    "Bernstein": ("MSR", "MSR", "MSR", "MSR", "MSR"),
    "Carey": ("UCI", "AT&T", "BEA", "BEA", "BEA"),
    "Halevy": ("Google", "Google", "UW", "UW", "UW"),
}
"""The publication's example: S1 is right throughout; S4 and S5 copy from S3, S5 with an error of its own."""
EXAMPLE = [
    (f"S{n + 1}", name, said) for name, all_said in RESEARCHERS.items() for n, said in enumerate(all_said)
]
PUBLISHED = {"dependence": 0.5, "error_rate": 0.5, "n_false": 5, "order": "dependence", "from_start": True}


@pytest.mark.parametrize("model", VARIANTS, ids=repr)
def test_checks(model):
    check_model(model)


@pytest.mark.parametrize("rounds", [1, 2, 3, 6])
@pytest.mark.parametrize("model", VARIANTS, ids=repr)
@pytest.mark.parametrize("domain", ["claimed", "common"])
def test_rounds_follow_the_equations(model, rounds, domain):
    for triples, known in zip(tables(), ({}, {}, {"o0": "v2", "o1": "nobody says this"}, {}), strict=True):
        model = replace(model, max_rounds=rounds, tolerance=1e-300)
        fit = model.fit(read_claims(triples, domain=domain), known=known or None)
        accuracy, truth = slow(model, triples, known, fit)
        assert fit.source_reliability[:, 0] == pytest.approx(accuracy, abs=1e-9)
        assert fit.truth == pytest.approx(truth, abs=1e-9)


def slow(model: Any, triples: Triples, known: dict[str, str], fit: Any) -> tuple[list[float], list[float]]:
    """The model by its equations, with dictionaries and loops: accuracies by source, truths by candidate."""
    claims = fit.claims
    sources = [str(name) for name in claims.sources]
    standing = {sources[n]: i for i, n in enumerate(structural_order(claims))}
    said = {(s, o): v for s, o, v in triples}
    domain = {
        str(claims.objects[m]): [
            str(claims.values[int(z)])
            for z in claims.candidate_value[claims.first_candidate[m] : claims.first_candidate[m + 1]]
        ]
        for m in range(claims.n_objects)
    }
    largest = max(len(values) for values in domain.values())
    n = model.n_false if claims.domain == "claimed" else largest - 1
    copies = isinstance(model, Accu)
    copy_rate = model.copy_rate if copies else 0.0
    accuracy = dict.fromkeys(sources, 1 - model.error_rate)
    decided: dict[tuple[str, str], float] = {}
    before: list[dict[tuple[str, str], float]] = []
    for _ in range(model.max_rounds):
        accuracy = {s: min(max(a, SMALLEST), 1 - SMALLEST) for s, a in accuracy.items()}
        dependence = slow_dependence(model, said, sources, accuracy, decided, n) if copies else {}
        if not decided and copies and not model.from_start:
            dependence = dict.fromkeys(dependence, 0.0)
        confidence = {}
        for o, values in domain.items():
            for v in values:
                voices = sorted(
                    (s for s in sources if said.get((s, o)) == v),
                    key=lambda s: (-round(accuracy[s], 9), standing[s]),
                )
                if copies and model.order == "dependence":
                    voices = slow_order(voices, dependence)
                confidence[o, v] = sum(
                    math.log(n * accuracy[s] / (1 - accuracy[s]))
                    * math.prod(1 - copy_rate * dependence.get(frozenset((s, t)), 0.0) for t in voices[:i])
                    for i, s in enumerate(voices)
                )
        probability, decided = {}, {}
        for o, values in domain.items():
            total = sum(math.exp(confidence[o, v]) for v in values) + max(n + 1 - len(values), 0)
            left = [known[o]] if o in known else values
            best = [v for v in left if confidence[o, v] >= max(confidence[o, w] for w in left) - 1e-9]
            for v in values:
                probability[o, v] = float(known[o] == v) if o in known else math.exp(confidence[o, v]) / total
                decided[o, v] = 1 / len(best) if v in best else 0.0
        accuracy = {s: np.mean([probability[o, v] for (t, o), v in said.items() if t == s]) for s in sources}
        before.append(decided)
        if len(before) > 2 and before[-1] == before[-3] != before[-2]:
            break
    shares = []
    for o, values in domain.items():
        weight = [(o not in known or known[o] == v) * math.exp(confidence[o, v]) for v in values]
        shares += [w / sum(weight) for w in weight]
    return [accuracy[s] for s in sources], shares


def slow_dependence(model, said, sources, accuracy, decided, n):
    """P(1 ~ 2 | Φ) by Bayes' rule from the likelihoods of what two sources say under the three hypotheses."""
    c, found = model.copy_rate, {}
    for pair in itertools.combinations(sources, 2):
        log_likelihood = dict.fromkeys(("neither", *pair), 0.0)
        for o in {o for _, o in said}:
            if any((s, o) not in said for s in pair):
                continue
            same = said[pair[0], o] == said[pair[1], o]
            if decided:
                p_true = accuracy[pair[0]] * accuracy[pair[1]]
                p_false = (1 - accuracy[pair[0]]) * (1 - accuracy[pair[1]]) / n
                true = decided[o, said[pair[0], o]] if same else 0.0
                for copier, origin in (pair, pair[::-1]):
                    log_likelihood[copier] += (
                        true * math.log(accuracy[origin] * c + p_true * (1 - c))
                        + (1 - true) * math.log((1 - accuracy[origin]) * c + p_false * (1 - c))
                        if same
                        else math.log((1 - p_true - p_false) * (1 - c))
                    )
                log_likelihood["neither"] += (
                    true * math.log(p_true) + (1 - true) * math.log(p_false)
                    if same
                    else math.log(1 - p_true - p_false)
                )
            else:
                p_same = (1 - model.error_rate) ** 3 + model.error_rate**3 / n
                log_likelihood["neither"] += math.log(p_same if same else 1 - p_same)
                for s in pair:
                    log_likelihood[s] += math.log(c + (1 - c) * p_same if same else (1 - c) * (1 - p_same))
        weight = {
            hypothesis: math.exp(x - log_likelihood["neither"])
            * (1 - model.dependence if hypothesis == "neither" else model.dependence / 2)
            for hypothesis, x in log_likelihood.items()
        }
        found[frozenset(pair)] = 1 - weight["neither"] / sum(weight.values())
    return found


def slow_order(voices, dependence):
    """First a source of the surest pair, then always the one that is surest to depend on one before it."""
    chosen: list[str] = []
    left = list(voices)
    while left:
        nearest = {
            s: max((dependence[frozenset((s, t))] for t in (chosen or voices) if t != s), default=0.0)
            for s in left
        }
        surest = max(nearest.values())
        chosen.append(next(s for s in left if nearest[s] >= surest - 1e-9))
        left.remove(chosen[-1])
    return chosen


def test_the_example_of_the_publication():
    """Vote counts of Carey at UCI (which S1 alone says) and at AT&T (S2 alone), in rounds 2, 3, 4 and 11; of BEA and
    of Halevy in round 1; accuracies in round 11. The figures are quoted from memory."""
    for rounds, uci, att in ((1, 1.68, 1.3), (2, 2.12, 1.47), (3, 2.51, 1.68), (10, 4.73, 2.08)):
        right = Accu(**PUBLISHED, max_rounds=rounds).fit(read_claims(EXAMPLE)).source_reliability[:2, 0]
        assert np.log(5 * right / (1 - right)) == pytest.approx([uci, att], abs=0.011)
    first = Accu(**PUBLISHED, max_rounds=1).fit(read_claims(EXAMPLE))
    assert log_ratio(first, "Carey", "BEA", "UCI") == pytest.approx(2.0 - 1.61, abs=0.01)
    assert log_ratio(first, "Halevy", "Google", "UW") == pytest.approx(2.1 - 2.0, abs=0.01)
    last = Accu(**PUBLISHED, max_rounds=11).fit(read_claims(EXAMPLE))
    assert last.source_reliability[:, 0] == pytest.approx([0.97, 0.61, 0.40, 0.40, 0.21], abs=0.005)
    assert decisions(last) == {name: said[0] for name, said in RESEARCHERS.items()}
    wrong = {"Dewitt": "UWisc", "Carey": "BEA", "Halevy": "UW"}
    independent = decisions(AccuIndependent(n_false=5, error_rate=0.5).fit(read_claims(EXAMPLE)))
    assert independent == {name: wrong.get(name, said[0]) for name, said in RESEARCHERS.items()}


def log_ratio(fit, name, one, other):
    claims = fit.claims
    m = list(map(str, claims.objects)).index(name)
    domain = range(claims.first_candidate[m], claims.first_candidate[m + 1])
    share = {str(claims.values[int(claims.candidate_value[z])]): fit.truth[z] for z in domain}
    return math.log(share[one] / share[other])


def decisions(fit):
    return {row["object"]: row["value"] for row in fit.truths.to_pylist()}


def test_ordered_votes_are_near_the_sum_over_all_dependence_graphs():
    """The publication's other example: three sources, each two dependent with probability .4: 2.14 votes for 2.08."""
    claims = read_claims([(f"s{n}", "o", "v") for n in range(3)])
    found = CoClaims.of("accu", Segments(*truth_prior(claims, None)[:2]))
    factor = np.log1p(-0.8 * np.full(3, 0.4))
    ordered = found.product_by_rank(factor, np.arange(3)).sum()
    assert ordered == pytest.approx(1 + 0.68 + 0.68**2)
    assert found.product_by_dependence(factor, np.full(3, 0.4), np.arange(3)).sum() == pytest.approx(ordered)
    # However two dependences lie, two sources keep a fifth of a vote each; with three the last keeps a fifth of that.
    votes = (3, 1 + 1 + 0.2, 1 + 0.2 + 0.2, 1 + 0.2 + 0.2**2)
    exact = sum(math.comb(3, k) * 0.4**k * 0.6 ** (3 - k) * votes[k] for k in range(4))
    assert exact == pytest.approx(2.08, abs=0.005)
    assert ordered == pytest.approx(2.14, abs=0.005)


def copied(seed: int) -> tuple[Triples, dict[str, str]]:
    """Ten independent sources, right with probability .7, and eight that copy one that is right with .4."""
    rng = np.random.default_rng(seed)
    triples, truth = [], {}
    for m in range(60):
        truth[f"o{m}"] = "true"
        leader = "true" if rng.random() < 0.4 else f"false {rng.integers(50)}"
        for n in range(18):
            own = "true" if rng.random() < 0.7 else f"false {rng.integers(50)}"
            triples.append((f"s{n:02}", f"o{m}", leader if n < 8 and rng.random() < 0.9 else own))
    return triples, truth


def test_copiers_count_less():
    for seed in range(3):
        triples, truth = copied(seed)
        claims = read_claims(triples, domain="claimed")
        fit, independent = Accu().fit(claims), AccuIndependent().fit(claims)
        right = np.mean([decisions(fit)[o] == v for o, v in truth.items()])
        right_without = np.mean([decisions(independent)[o] == v for o, v in truth.items()])
        assert right >= 0.95 > right_without
        assert fit.source_reliability[8:, 0].min() > fit.source_reliability[:8, 0].max()


def test_independent_sources_are_not_taken_for_copiers():
    """The negative control: with no copier among them, both models agree."""
    triples, _ = copied(7)
    claims = read_claims([row for row in triples if row[0] >= "s08"], domain="claimed")
    fit, independent = Accu().fit(claims), AccuIndependent().fit(claims)
    assert decisions(fit) == decisions(independent)
    assert fit.source_reliability[:, 0] == pytest.approx(independent.source_reliability[:, 0], abs=0.01)


def test_pairs_are_those_that_share_a_value():
    triples = [
        ("a", "o", "x"),
        ("b", "o", "x"),
        ("c", "o", "y"),
        ("a", "p", "x"),
        ("b", "p", "y"),
        ("d", "q", "x"),
    ]
    claims = read_claims(triples)
    found = CoClaims.of("accu", Segments(*truth_prior(claims, None)[:2]))
    assert (found.one.tolist(), found.other.tolist()) == ([0], [1])
    assert (found.same.tolist(), found.different.tolist()) == ([1.0], [1.0])


def test_blocks_change_nothing(monkeypatch):
    triples, _ = copied(0)
    claims = read_claims(triples, domain="claimed")
    for model in VARIANTS:
        whole = model.fit(claims)
        with monkeypatch.context() as patch:
            patch.setattr(accu, "BLOCK", 100)
            assert model.fit(claims).truth == pytest.approx(whole.truth, abs=1e-12)


def test_too_many_co_claims_are_refused(monkeypatch):
    monkeypatch.setattr(accu, "MOST_CO_CLAIMS", 9)
    AccuIndependent().fit([(f"s{n}", "o", "v") for n in range(5)])
    with pytest.raises(UnsuitableTableError, match=r"at most 9 pairs.*has 10 of them.*accu-independent"):
        Accu().fit([(f"s{n}", "o", "v") for n in range(5)])


def test_decisions_that_swing_end_it():
    *_, triples = tables(3)
    claims, swinging = read_claims(triples, domain="common"), Accu(0.5, order="dependence", error_rate=0.4)
    fit = swinging.fit(claims)
    assert fit.warnings == ("Decisions swing between two answers; the later one is given.",)
    assert fit.converged
    last, before, earlier = (
        decisions(replace(swinging, max_rounds=fit.sweeps - k).fit(claims)) for k in range(3)
    )
    assert last == earlier != before


@pytest.mark.parametrize(
    ("setting", "given"),
    [
        ("dependence", 0.0), ("dependence", 1.0), ("copy_rate", 1.0), ("copy_rate", True), ("n_false", 0),
        ("n_false", 1.5), ("error_rate", 1.0), ("order", "size"), ("from_start", 1), ("max_rounds", 0),
        ("tolerance", 0.0),
    ],
)  # fmt: skip
def test_settings_are_checked(setting, given):
    with pytest.raises(SettingsError, match=setting):
        Accu(**{setting: given})
    if hasattr(AccuIndependent(), setting):
        with pytest.raises(SettingsError, match=setting):
            AccuIndependent(**{setting: given})
