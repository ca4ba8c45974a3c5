"""A source is as reliable as its claims are right, and the interval says how surely we know that."""

from __future__ import annotations

import numpy as np
import pytest

from consilience.claims.reading import read_claims
from consilience.datasets.synthetic import planted
from consilience.models.mss.model import MSS
from consilience.models.mss.reliability import count_right, right_claims


def covered(case, seed, interval):
    """Whether the interval of each source holds the accuracy that was planted."""
    made = planted(case, n_objects=400, seed=seed)
    fit = MSS(n_starts=2).fit(read_claims(made.claims), seed=seed)
    accuracy = dict(zip(made.groups["source"].to_pylist(), made.groups["accuracy"].to_pylist(), strict=True))
    true = np.array([accuracy[name.as_py()] for name in fit.claims.sources])
    group = fit.groups_found.group[:, 0].astype(np.int64)
    _, low, high = right_claims(count_right(fit.claims, fit.truth), group, interval).T
    return (low <= true) & (true <= high)


def test_intervals_hold_the_planted_accuracy_as_often_as_they_say():
    cases = ("copied-leader", "six-groups", "malicious-bloc", "good-leader", "independent", "guessers")
    shares = [np.mean(covered(case, 3, (0.1, 0.9))) for case in cases]
    assert 0.7 <= np.mean(shares) <= 0.9


def test_a_worked_case():
    """Two claims surely right, one surely wrong, one in doubt; nobody else in the group, all others always right."""
    claims = read_claims(
        [("a", "1", "x"), ("a", "2", "x"), ("a", "3", "y"), ("a", "4", "x"), ("b", "3", "x"), ("b", "4", "y")]
    )
    truth = np.zeros(claims.n_candidates)
    by_name = {
        (claims.objects[int(m)].as_py(), claims.values[int(v)].as_py()): z
        for z, (m, v) in enumerate(zip(claims.candidate_object(), claims.candidate_value, strict=True))
    }
    for (object_, value), probability in {
        ("1", "x"): 1.0, ("2", "x"): 1.0, ("3", "x"): 1.0, ("4", "x"): 0.5, ("4", "y"): 0.5,
    }.items():  # fmt: skip
        truth[by_name[object_, value]] = probability
    mean, low, high = right_claims(count_right(claims, truth), np.array([0, 1])).T
    overall = (2.5 + 1.5) / 6
    assert mean == pytest.approx([(2.5 + 2 * overall) / 6, (1.5 + 2 * overall) / 4])
    assert np.all((low < mean) & (mean < high))
    # Known truths instead of a doubtful one: the interval is narrower.
    truth[by_name["4", "x"]], truth[by_name["4", "y"]] = 1.0, 0.0
    _, surer_low, surer_high = right_claims(count_right(claims, truth), np.array([0, 1])).T
    assert surer_high[0] - surer_low[0] < high[0] - low[0]


def test_a_source_borrows_from_the_others_of_its_group():
    """One claim says little: the newcomer stands near the others of its group, not near all."""
    triples = [(f"s{n}", f"o{m}", "x") for n in range(2) for m in range(30)] + [
        (f"t{n}", f"o{m}", "y") for n in range(2) for m in range(30)
    ]
    claims = read_claims([*triples, ("new", "o0", "x")])
    truth = np.array([claims.values[int(v)].as_py() == "x" for v in claims.candidate_value], float)
    truth = truth / np.repeat(
        np.add.reduceat(truth, claims.first_candidate[:-1]), np.diff(claims.first_candidate)
    )
    names = claims.sources.to_pylist()
    group = np.array([0 if name.startswith("s") else 1 for name in names])
    with_the_wrong = right_claims(count_right(claims, truth), group)[names.index("new"), 0]
    group[names.index("new")] = 0
    with_the_right = right_claims(count_right(claims, truth), group)[names.index("new"), 0]
    assert with_the_right > with_the_wrong + 0.4


def test_reliabilities_are_numbers_at_the_ends():
    claims = read_claims([("a", "1", "x"), ("b", "1", "x"), ("c", "1", "y")])
    for truth in ([1.0, 0.0], [0.0, 1.0]):
        found = right_claims(count_right(claims, np.array(truth)), np.arange(3))
        assert np.all(np.isfinite(found))
        assert np.all((found >= 0) & (found <= 1))
        assert np.all((found[:, 1] <= found[:, 0]) & (found[:, 0] <= found[:, 2]))
