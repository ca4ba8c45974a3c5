"""What is most worth checking: against slow loops, and against reviewing at random and by uncertainty."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from consilience.claims.reading import read_claims
from consilience.datasets.synthetic import planted
from consilience.models.mss.model import MSS
from consilience.results import worth as module
from consilience.results.evidence import evidence_of, shard_of
from consilience.results.fit import Fit
from consilience.results.worth import DOUBT, worth
from tests.results.made_fits import partition_fit, random_fit


def slow_worth(fit: Fit) -> list[float]:
    """The docstring's formulas, object by object, group by group."""
    claims, found, prior = fit.claims, fit.groups_found, fit.prior
    assert found is not None
    assert prior is not None
    e: dict[tuple[int, int], float] = {}
    h: dict[tuple[int, int], float] = {}
    for m in range(claims.n_objects):
        shard = shard_of(fit, m, m + 1)
        first = claims.first_candidate[m]
        votes = np.bincount(shard.claim_candidate, minlength=shard.n_candidates)
        doubt = 0.0 if fit.known is not None and fit.known[m] else DOUBT
        p = (1 - doubt) * fit.truth[first : first + shard.n_candidates] + doubt * votes / votes.sum()
        told = evidence_of(shard, found, prior)
        for i, group in enumerate(told.pair_group):
            rho = told.cell_reliability[told.first_cell[i] : told.first_cell[i + 1]]
            mean = sum(p * rho)
            a0, a1 = found.group_reliability[group]
            e[m, group] = sum(p * abs(rho - mean)) / (a0 * a1 / (a0 + a1))
            best = fit.decision[m] - first
            h[m, group] = p[best] * abs(rho[best] - mean)
    values = []
    for m in range(claims.n_objects):
        value = 1 - fit.truth[fit.decision[m]]
        for (i, group), moved in e.items():
            if i == m:
                value += moved * sum(h[k, g] for k, g in h if g == group and k != m)
        values.append(0.0 if fit.known is not None and fit.known[m] else value)
    return values


@pytest.mark.parametrize(
    "made",
    [
        partial(random_fit, 0),
        partial(random_fit, 1, tail=True),
        partial(partition_fit, "claimed"),
        partial(partition_fit, known=True),
    ],
)
def test_worth_is_what_its_docstring_says(made: Callable[[], Fit], monkeypatch: pytest.MonkeyPatch) -> None:
    fit = made()
    monkeypatch.setattr(module, "CLAIMS_AT_A_TIME", 37)
    np.testing.assert_allclose(worth(fit), slow_worth(fit), rtol=1e-5, atol=1e-7)


def test_without_groups_only_uncertainty_counts() -> None:
    fit = random_fit(0, groups=False)
    np.testing.assert_allclose(worth(fit), 1 - fit.truth[fit.decision])


def accuracies(case: str, seed: int, policy: str, n_rounds: int, n_answers: int = 3) -> list[float]:
    """Review a few objects, refit with the answers, again and again: the accuracy after each refit."""
    data = planted(case, n_objects=60, seed=seed)
    claims, rng = read_claims(data.claims), np.random.default_rng(seed)
    gold = dict(zip(data.truth["object"].to_pylist(), data.truth["value"].to_pylist(), strict=True))
    known: dict[Any, Any] = {}
    found = []
    for i in range(n_rounds + 1):
        fit = MSS(n_starts=2).fit(claims, known=known or None, seed=0)
        if i:
            found.append(np.mean([row["value"] == gold[row["object"]] for row in fit.truths.to_pylist()]))
        value = worth(fit)
        if policy == "uncertainty":
            value = 1 - fit.truth[fit.decision]
        elif policy == "random":
            value = rng.random(claims.n_objects)
        value = np.where([name.as_py() in known for name in claims.objects], -1.0, value)
        for m in np.argsort(-value, kind="stable")[:n_answers]:
            known[claims.objects[m].as_py()] = gold[claims.objects[m].as_py()]
    return [float(accuracy) for accuracy in found]


def means(cases: tuple[str, ...], n_seeds: int, n_rounds: int) -> dict[str, float]:
    return {
        policy: float(
            np.mean([accuracies(case, seed, policy, n_rounds) for case in cases for seed in range(n_seeds)])
        )
        for policy in ("worth", "uncertainty", "random")
    }


def test_answers_on_what_is_most_worth_checking_help_most() -> None:
    """Eight tables: of two, an answer more or less would decide."""
    mean = means(("copied-leader",), n_seeds=8, n_rounds=2)
    assert mean["worth"] > mean["random"] + 0.02
    assert mean["worth"] >= mean["uncertainty"]


@pytest.mark.recovery
@pytest.mark.parametrize("case", ["copied-leader", "malicious-bloc", "six-groups", "good-leader"])
def test_answers_help_most_in_every_planted_case(case: str) -> None:
    mean = means((case,), n_seeds=8, n_rounds=3)
    assert 1 - mean["worth"] < 0.8 * (1 - mean["random"]), mean  # of mistakes that are left
    assert mean["worth"] >= mean["uncertainty"] - 0.002, mean
