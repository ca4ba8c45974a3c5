"""Wawa and zero-based skill: a case by hand, and slow loops written from the definition."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from consilience.claims.reading import read_claims
from consilience.errors import SettingsError
from consilience.models.vote import Vote
from consilience.models.wawa import Wawa, ZeroBasedSkill
from consilience.testing.checks import check_model, tables

Triples = list[tuple[str, str, str]]

BY_HAND: Triples = [
    ("s1", "o1", "a"), ("s1", "o2", "a"), ("s1", "o3", "a"),
    ("s2", "o1", "a"), ("s2", "o2", "a"), ("s2", "o3", "b"),
    ("s3", "o1", "b"), ("s3", "o2", "a"), ("s3", "o3", "b"),
]  # fmt: skip


@pytest.mark.parametrize("model", [Wawa(), ZeroBasedSkill(), ZeroBasedSkill(rate=0.5, period=3)])
def test_what_every_model_must_satisfy(model: Wawa | ZeroBasedSkill) -> None:
    check_model(model)


def test_wawa_by_hand() -> None:
    # The vote says a, a, b: s2 agrees always, the others twice of three times.
    fit = Wawa().fit(read_claims(BY_HAND))
    assert np.allclose(fit.source_reliability[:, 0], [2 / 3, 1, 2 / 3], atol=1e-12)
    assert np.allclose(probability(fit, "o1", "a"), (2 / 3 + 1) / (2 / 3 + 1 + 2 / 3), atol=1e-12)
    assert np.allclose(probability(fit, "o2", "a"), 1, atol=1e-12)
    assert np.allclose(probability(fit, "o3", "b"), (1 + 2 / 3) / (2 / 3 + 1 + 2 / 3), atol=1e-12)


def test_a_tied_vote_counts_half_for_both() -> None:
    fit = Wawa().fit(read_claims([("s", "o", "v"), ("t", "o", "w")]))
    assert fit.source_reliability[:, 0].tolist() == [0.5, 0.5]
    assert fit.ties == 1


def test_the_better_source_outweighs_two_that_agree_seldom() -> None:
    triples: Triples = [("poor", "o0", "w"), ("poor too", "o0", "w"), ("good", "o0", "v")]
    for i in range(1, 9):
        triples += [("good", f"o{i}", "v"), ("witness", f"o{i}", "v"), ("witness too", f"o{i}", "v")]
        triples += [("poor" if i % 2 else "poor too", f"o{i}", "w")]
    claims = read_claims(triples)
    assert probability(Vote().fit(claims), "o0", "v") < 0.5
    assert probability(Wawa().fit(claims), "o0", "v") > 0.5
    assert probability(ZeroBasedSkill().fit(claims), "o0", "v") > 0.5


@pytest.mark.parametrize(
    ("rate", "period", "reduction", "rounds"), [(1.0, 20, 0.5, 100), (0.5, 3, 0.5, 10), (0.3, 1, 0.9, 7)]
)
def test_zero_based_skill_follows_its_definition(
    rate: float, period: int, reduction: float, rounds: int
) -> None:
    for triples in tables():
        model = ZeroBasedSkill(
            rate=rate, period=period, reduction=reduction, max_rounds=rounds, tolerance=1e-300
        )
        fit = model.fit(read_claims(triples))
        skill, vote = slowly(triples, rate, period, reduction, rounds)
        assert np.allclose(
            fit.source_reliability[:, 0], [skill[s] for s in fit.claims.sources.to_pylist()], atol=1e-9
        )
        for object_, shares in vote.items():
            for value, share in shares.items():
                assert abs(probability(fit, object_, value) - share) < 1e-9


def test_wawa_is_the_first_round_of_zero_based_skill() -> None:
    for triples in tables():
        claims = read_claims(triples)
        once = ZeroBasedSkill(max_rounds=1).fit(claims)
        assert np.allclose(once.truth, Wawa().fit(claims).truth, atol=1e-12)


def test_known_truths_teach_the_skills() -> None:
    triples: Triples = [("liar", f"o{i}", "w") for i in range(3)] + [
        ("honest", f"o{i}", "v") for i in range(3)
    ]
    fit = Wawa().fit(read_claims(triples), known={"o0": "v"})
    assert np.allclose(fit.source_reliability[:, 0], [2 / 3, 1 / 3], atol=1e-12)
    assert probability(fit, "o1", "v") > 0.5


@pytest.mark.parametrize(
    "settings",
    [
        {"max_rounds": 0}, {"period": 0}, {"period": 1.5}, {"rate": 0}, {"rate": 1.5}, {"reduction": 2},
        {"reduction": float("nan")}, {"tolerance": 0},
    ],
)  # fmt: skip
def test_settings_out_of_range_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(SettingsError, match=next(iter(settings))):
        ZeroBasedSkill(**settings)  # type: ignore[arg-type]


def probability(fit, object_: str, value: str) -> float:  # type: ignore[no-untyped-def]
    """T of a value, by name."""
    claims = fit.claims
    m = claims.objects.to_pylist().index(object_)
    domain = slice(claims.first_candidate[m], claims.first_candidate[m + 1])
    names = [claims.values[int(i)].as_py() for i in claims.candidate_value[domain]]
    return float(fit.truth[domain][names.index(value)])


def slowly(
    triples: Triples, rate: float, period: int, reduction: float, rounds: int
) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """Zero-based skill claim by claim; ties count in part."""
    n_labels = len({value for _, _, value in triples})
    skill = {source: 1 / n_labels + 1e-5 for source, _, _ in triples}

    def weighted() -> dict[str, dict[str, float]]:
        score: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        for source, object_, value in triples:
            score[object_][value] += skill[source]
        return {o: {v: x / sum(of.values()) for v, x in of.items()} for o, of in score.items()}

    for i in range(1, rounds + 1):
        if i % period == 0:
            rate *= reduction
        vote = weighted()
        agreed, said = defaultdict(float), defaultdict(int)
        for source, object_, value in triples:
            best = [v for v, x in vote[object_].items() if x >= max(vote[object_].values()) - 1e-9]
            agreed[source] += (value in best) / len(best)
            said[source] += 1
        skill = {s: skill[s] + rate * (agreed[s] / said[s] - skill[s]) for s in skill}
    return skill, weighted()
