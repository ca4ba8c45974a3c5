"""Dawid–Skene and one coin against slow loops."""

from __future__ import annotations

import numpy as np
import pytest

from consilience.claims.reading import read_claims
from consilience.datasets.synthetic import planted
from consilience.errors import SettingsError, UnsuitableTableError
from consilience.models.dawid_skene import DawidSkene, OneCoin
from consilience.models.vote import Vote
from consilience.testing.checks import check_model, tables


def loops(triples, rounds, coin):
    """EM as printed, with dictionaries: {object: {label: probability}} and the ln likelihood of every round."""
    labels = sorted({v for _, _, v in triples})
    objects = sorted({o for _, o, _ in triples})
    sources = sorted({s for s, _, _ in triples})
    truth = {}
    for o in objects:
        said = [v for _, p, v in triples if p == o]
        truth[o] = {z: said.count(z) / len(said) for z in labels}
    path = []
    for _ in range(rounds):
        share = {z: max(sum(truth[o][z] for o in objects) / len(objects), 1e-12) for z in labels}
        chance = {}
        for s in sources:
            mine = [(o, v) for t, o, v in triples if t == s]
            right = sum(truth[o][v] for o, v in mine) / len(mine)
            right = min(max(right, 1e-12), 1 - 1e-12)
            for z in labels:
                total = sum(truth[o][z] for o, _ in mine)
                for v in labels:
                    if coin:
                        chance[s, z, v] = right if z == v else (1 - right) / (len(labels) - 1)
                    else:
                        said = sum(truth[o][z] for o, w in mine if w == v)
                        chance[s, z, v] = max(said / total if total > 0 else 0.0, 1e-12)
        likelihood = 0.0
        for o in objects:
            joint = {
                z: share[z] * np.prod([chance[s, z, v] for s, p, v in triples if p == o]) for z in labels
            }
            total = sum(joint.values())
            likelihood += np.log(total)
            truth[o] = {z: joint[z] / total for z in labels}
        path.append(likelihood)
    return truth, path


@pytest.mark.parametrize("model", [DawidSkene, OneCoin])
def test_every_round_equals_the_slow_loops(model):
    for triples in tables():
        claims = read_claims(triples, domain="common")
        for rounds in (1, 2, 5):
            fit = model(max_rounds=rounds, tolerance=1e-300).fit(claims)
            truth, path = loops(triples, rounds, coin=model is OneCoin)
            expected = [truth[o][v] for o in sorted(truth) for v in sorted(truth[o])]
            assert np.allclose(fit.truth, expected, atol=1e-9)
            assert np.allclose([record["bound"] for record in fit.trace], path, rtol=1e-9)


def test_a_worked_case():
    """Two that agree and one that differs, on each of two objects with two labels, one round by hand.

    Votes: T = (2/3, 1/3) for x and (1/3, 2/3) for y. a says 1 on x and 2 on y: π_a(1|1) = 2/3 = π_a(2|2); b likewise; c
    says 2 and 1: π_c(1|1) = 1/3. So on x, T_1 : T_2 = (2/3)(2/3)(2/3) : (1/3)(1/3)(1/3) = 8 : 1.
    """
    triples = [
        ("a", "x", "1"),
        ("b", "x", "1"),
        ("c", "x", "2"),
        ("a", "y", "2"),
        ("b", "y", "2"),
        ("c", "y", "1"),
    ]
    for model in (DawidSkene, OneCoin):
        fit = model(max_rounds=1).fit(read_claims(triples, domain="common"))
        assert fit.truth == pytest.approx([8 / 9, 1 / 9, 1 / 9, 8 / 9])


def test_a_source_that_always_lies_is_as_good_as_one_that_never_does():
    """Only a confusion matrix can use it: labels 1 and 2 turned around, by a source with many claims."""
    rng = np.random.default_rng(0)
    truth = rng.integers(1, 3, size=200)
    triples = [
        (f"s{n}", f"o{m}", str(z if rng.random() < 0.7 else 3 - z))
        for n in range(4)
        for m, z in enumerate(truth)
    ]
    triples += [("liar", f"o{m}", str(3 - z)) for m, z in enumerate(truth)]
    gold = {f"o{m}": str(z) for m, z in enumerate(truth)}
    claims = read_claims(triples)
    voting = Vote().fit(claims).score(gold).accuracy
    assert DawidSkene().fit(claims).score(gold).accuracy > 0.97 > voting + 0.1


@pytest.mark.parametrize("model", [DawidSkene(), OneCoin()])
def test_guessers_are_weighed_down(model):
    data = planted("guessers", seed=0)
    claims = read_claims(data.claims)
    voting = Vote().fit(claims).score(data.truth).accuracy
    assert model.fit(claims).score(data.truth).accuracy > 0.95 > voting


@pytest.mark.parametrize("model", [DawidSkene(), OneCoin(), DawidSkene(max_rounds=3)])
def test_checks(model):
    check_model(model)


@pytest.mark.parametrize("model", [DawidSkene, OneCoin])
@pytest.mark.parametrize("wrong", [{"max_rounds": 0}, {"tolerance": 0.0}, {"tolerance": float("nan")}])
def test_settings_out_of_range_are_refused(model, wrong):
    with pytest.raises(SettingsError):
        model(**wrong)


def test_too_many_labels_are_refused_with_a_way_out():
    triples = [("s", f"o{m}", f"v{m}") for m in range(200)]
    with pytest.raises(
        UnsuitableTableError, match="dawid-skene needs labels that all objects share, at most 100"
    ):
        DawidSkene().fit(read_claims(triples))
    assert OneCoin().fit(read_claims(triples)).converged


def test_stopping_early_is_said():
    data = planted("six-groups", n_objects=60, seed=0)
    fit = DawidSkene(max_rounds=1).fit(data.claims)
    assert not fit.converged
    assert any("Not converged" in warning for warning in fit.warnings)
