"""TruthFinder against slow loops over its equations, a case by hand, and what it is for."""

from __future__ import annotations

import math

import numpy as np
import pytest

from consilience.claims.encoding import Claims
from consilience.claims.reading import read_claims
from consilience.errors import SettingsError
from consilience.models.truthfinder import CommonWords, TruthFinder, words_of
from consilience.results.fit import Fit
from consilience.testing.checks import check_model

Triples = list[tuple[str, str, str]]
NEVER = 1e-300
"""A tolerance that stops no round early."""


def slow(
    triples: Triples, rounds: int, similarity: bool = True
) -> tuple[dict[str, float], dict[tuple[str, str], float]]:
    """Trust of the sources and confidence in the values after so many rounds, by the equations of the publication."""
    rho, gamma, base_sim = 0.5, 0.3, 0.5
    said = {(source, object_): value for source, object_, value in triples}
    facts = sorted({(object_, value) for _, object_, value in triples})
    trust = {source: 0.9 for source, _, _ in triples}

    def imp(y: str, z: str) -> float:
        share = len(set(y.split()) & set(z.split())) / len(set(y.split()))
        return share - base_sim

    def confidences() -> dict[tuple[str, str], float]:
        score = {}
        for object_, z in facts:
            score[object_, z] = sum(
                -math.log(1 - trust[s]) for (s, o), v in said.items() if o == object_ and v == z
            )
        adjusted = dict(score)
        for object_, z in facts if similarity else ():
            for other, y in facts:
                if other == object_ and y != z:
                    adjusted[object_, z] += rho * score[other, y] * imp(y, z)
        return {fact: 1 / (1 + math.exp(-gamma * adjusted[fact])) for fact in facts}

    for _ in range(rounds):
        confidence = confidences()
        trust = {
            source: float(np.mean([confidence[o, v] for (s, o), v in said.items() if s == source]))
            for source in trust
        }
    return trust, confidences()


def author_lists(seed: int) -> Triples:
    rng = np.random.default_rng(seed)
    names = ["ann", "bob", "cy", "dee", "eve"]
    triples = []
    for m in range(7):
        for n in range(6):
            if rng.random() < 0.7:
                chosen = rng.choice(names, size=rng.integers(1, 4), replace=False)
                triples.append((f"s{n}", f"o{m}", " ".join(sorted(chosen))))
    return triples


def reliability(fit: Fit) -> dict[str, float]:
    return {
        str(name): float(u) for name, u in zip(fit.claims.sources, fit.source_reliability[:, 0], strict=True)
    }


def truths(fit: Fit) -> dict[tuple[str, str], float]:
    claims = fit.claims
    return {
        (str(claims.objects[int(m)]), str(claims.values[int(z)])): float(p)
        for m, z, p in zip(claims.candidate_object(), claims.candidate_value, fit.truth, strict=True)
    }


def winner(fit: Fit, object_: str) -> str:
    return max((p, z) for (o, z), p in truths(fit).items() if o == object_)[1]


@pytest.mark.parametrize("similarity", ["text", None])
@pytest.mark.parametrize("rounds", [1, 2, 3, 6])
@pytest.mark.parametrize("seed", range(3))
def test_every_round_is_that_of_the_equations(seed: int, rounds: int, similarity: str | None) -> None:
    triples = author_lists(seed)
    claims = read_claims(triples, domain="claimed")
    fit = TruthFinder(similarity=similarity, max_rounds=rounds, tolerance=NEVER).fit(claims)
    trust, confidence = slow(triples, rounds, similarity is not None)
    assert fit.sweeps == rounds
    for source, u in reliability(fit).items():
        assert u == pytest.approx(trust[source], abs=1e-9)
    odds = {fact: s / (1 - s) for fact, s in confidence.items()}
    for (object_, z), p in truths(fit).items():
        total = sum(odds[o, y] for o, y in odds if o == object_)
        assert p == pytest.approx(odds[object_, z] / total, abs=1e-9)


def test_one_round_by_hand() -> None:
    """τ of trust 0.9 is ln 10, so confidences are 1 / (1 + 10^(-0.3 k)), with k what a value has of sources: its own,
    less a quarter of those of a value without a word in common."""
    claims = [("a", "o", "x"), ("b", "o", "x"), ("c", "o", "y")]
    one_round = reliability(TruthFinder(max_rounds=1, similarity=None).fit(claims))
    assert one_round["a"] == one_round["b"] == pytest.approx(1 / (1 + 10**-0.6), abs=1e-12)
    assert one_round["c"] == pytest.approx(1 / (1 + 10**-0.3), abs=1e-12)
    one_round = reliability(TruthFinder(max_rounds=1).fit(claims))
    assert one_round["a"] == pytest.approx(1 / (1 + 10 ** (-0.3 * 1.75)), abs=1e-12)
    assert one_round["c"] == pytest.approx(1 / (1 + 10 ** (-0.3 * 0.5)), abs=1e-12)


def test_like_values_help_each_other() -> None:
    """Two short lists of authors imply the long one that holds both; as bare labels, one claim each, all are equal."""
    claims = [
        ("a", "book", "Jeffrey Ullman"),
        ("b", "book", "Jennifer Widom"),
        ("c", "book", "Jeffrey Ullman, Jennifer Widom"),
        ("d", "book", "Somebody Else"),
    ]
    truth = truths(TruthFinder(max_rounds=1).fit(claims))
    long, short, other = (truth["book", claims[i][2]] for i in (2, 0, 3))
    assert long > short > other
    alike = truths(TruthFinder(max_rounds=1, similarity=None).fit(claims))
    assert np.ptp(list(alike.values())) < 1e-12


def test_trusted_sources_win_against_as_many_others() -> None:
    """Good and bad sources meet on one contested object; elsewhere the bad ones stand alone."""
    claims = [
        ("bad1", "hard", "wrong"),
        ("bad2", "hard", "wrong"),
        ("good1", "hard", "right"),
        ("good2", "hard", "right"),
    ]
    for m in range(5):
        claims += [(name, f"o{m}", "agreed") for name in ("good1", "good2", "witness")]
        claims += [(bad, f"o{m}", f"odd {bad}") for bad in ("bad1", "bad2")]
    fit = TruthFinder().fit(claims)
    assert winner(fit, "hard") == "right"
    assert fit.ties == 0
    u = reliability(fit)
    assert min(u["good1"], u["good2"]) > max(u["bad1"], u["bad2"]) + 0.2


def test_many_sources_do_not_make_ties() -> None:
    """200 against 199: both confidences are 1 to the last digit of a float, their odds are not."""
    claims = [(f"s{n}", "o", "more" if n < 200 else "less") for n in range(399)]
    fit = TruthFinder(similarity=None).fit(claims)
    assert winner(fit, "o") == "more"
    assert fit.ties == 0
    assert np.all(np.isfinite(fit.source_reliability[:, 0]))


def test_known_truths_teach_whom_to_trust() -> None:
    claims = [
        ("a", "o", "x"),
        ("b", "o", "y"),
        ("a", "p", "x"),
        ("b", "p", "y"),
        ("a", "q", "x"),
        ("b", "q", "y"),
    ]
    fit = TruthFinder().fit(claims, known={"p": "y", "q": "y"})
    assert winner(fit, "o") == "y"
    assert truths(fit)["p", "y"] == 1.0
    assert reliability(fit)["a"] < 0.5 < reliability(fit)["b"]


def test_a_change_of_all_trust_alike_is_a_change() -> None:
    """Trust stays equal in all sources: its cosine to the last one is always 1, but its level still moves."""
    claims = [(f"s{n}", f"o{(n + i) % 4}", "v") for n in range(4) for i in range(2)]
    fit = TruthFinder().fit(claims)
    assert np.ptp(fit.source_reliability[:, 0]) < 1e-12
    assert fit.converged
    assert fit.sweeps > 2
    before = TruthFinder(max_rounds=fit.sweeps - 1).fit(claims).source_reliability[:, 0]
    now = fit.source_reliability[:, 0]
    assert np.sum((before - now) ** 2) <= 1e-5 * np.sum(before**2 + now**2)
    before, now = (
        TruthFinder(max_rounds=fit.sweeps - i).fit(claims).source_reliability[:, 0] for i in (2, 1)
    )
    assert np.sum((before - now) ** 2) > 1e-5 * np.sum(before**2 + now**2)


def test_it_goes_on_until_the_trust_vector_rests() -> None:
    triples = author_lists(5)
    fit = TruthFinder(tolerance=1e-14).fit(triples)
    trust, _ = slow(triples, 300)
    assert fit.converged
    assert not TruthFinder(max_rounds=2).fit(triples).converged
    for source, u in reliability(fit).items():
        assert u == pytest.approx(trust[source], abs=1e-5)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Jennifer WIDOM", ["jennifer", "widom"]),
        ("O'Leary; T. J.", ["o", "leary", "t", "j"]),
        ("naïve Straße", ["naïve", "strasse"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("東京", ["東京"]),
        ("14:07", ["14:07"]),
        ("-3.5", ["-3.5"]),
        ("2011-12-08", ["2011-12-08"]),
        ("1.5 kg", ["1", "5", "kg"]),
        ("!?", ["!?"]),
        ("", [""]),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_support_is_that_of_all_pairs() -> None:
    claims = read_claims(author_lists(2), domain="claimed")
    common = CommonWords.of(claims)
    score = np.random.default_rng(0).random(claims.n_candidates)
    expected = np.zeros(claims.n_candidates)
    words = [set(str(claims.values[int(z)]).split()) for z in claims.candidate_value]
    object_ = claims.candidate_object()
    for z in range(claims.n_candidates):
        for y in range(claims.n_candidates):
            if y != z and object_[y] == object_[z]:
                expected[z] += score[y] * len(words[y] & words[z]) / len(words[y])
    assert np.allclose(common.support(score), expected, atol=1e-12)


def test_labels_of_one_word_have_nothing_in_common() -> None:
    common = CommonWords.of(
        read_claims([(f"s{n}", f"o{m}", f"v{n % 3}") for n in range(6) for m in range(4)])
    )
    assert len(common.candidate) == 0


def test_an_object_of_very_many_values_costs_no_pairs() -> None:
    """20,000 values of one object that all share a word: 400 million pairs would not fit into memory."""
    n = 20_000
    claims = Claims(
        sources=range(n),  # type: ignore[arg-type]
        objects=["o"],
        values=[f"shared {i:06}" for i in range(n)],
        claim_source=np.arange(n),
        claim_candidate=np.arange(n),
        first_claim=np.array([0, n]),
        first_candidate=np.array([0, n]),
        candidate_value=np.arange(n),
    )
    common = CommonWords.of(claims)
    assert len(common.candidate) == n
    assert np.allclose(common.support(np.ones(n)), (n - 1) / 2)


def test_values_that_are_no_text() -> None:
    fit = TruthFinder().fit([("a", "o", 1.5), ("b", "o", 1.5), ("c", "o", 2.5)])
    assert winner(fit, "o") == "1.5"


@pytest.mark.parametrize("similarity", ["text", None])
def test_checks(similarity: str | None) -> None:
    check_model(TruthFinder(similarity=similarity))


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("similarity", "numbers"),
        ("base_sim", -0.1),
        ("base_sim", "half"),
        ("rho", 1.1),
        ("rho", True),
        ("gamma", 0),
        ("initial_trust", 1.0),
        ("initial_trust", 0),
        ("max_rounds", 0),
        ("tolerance", 0.0),
    ],
)
def test_settings_out_of_range(setting: str, value: object) -> None:
    with pytest.raises(SettingsError, match=f"'{setting}' must be"):
        TruthFinder(**{setting: value})  # type: ignore[arg-type]
