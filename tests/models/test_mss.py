"""MSS as a user meets it: settings, selection, known truths, reliabilities, and what it finds in planted tables."""

from __future__ import annotations

import numpy as np
import pytest

from consilience.claims.reading import read_claims
from consilience.datasets.synthetic import planted
from consilience.errors import SettingsError
from consilience.kernels.choose import choose
from consilience.models.base import truth_prior
from consilience.models.mss.bound import bound_terms
from consilience.models.mss.model import MSS
from consilience.models.mss.reliability import of_groups
from consilience.models.mss.select import grid
from consilience.models.mss.updates import group_mass
from consilience.models.order import structural_order
from consilience.models.vote import Vote

STRUCTURED = {"inference": "structured"}
INFERENCES = ("partition", "structured")


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"inference": "magic"}, "'inference' must be one of partition, structured, mean-field"),
        ({**STRUCTURED, "true_count": (1.0, 0.5), "false_count": (1.0, 0.5)}, "greater than false_count"),
        ({**STRUCTURED, "true_count": (2.0, 10.0), "false_count": (1.0, 1.0)}, "at most false_count"),
        ({**STRUCTURED, "false_count": (0.0, 1.0)}, "two positive numbers"),
        ({**STRUCTURED, "reliability": (1.0, float("nan"))}, "two positive numbers"),
        ({**STRUCTURED, "true_count": 5}, "two positive numbers"),
        ({**STRUCTURED, "false_count": ("a", "b")}, "two positive numbers"),
        ({**STRUCTURED, "select": "grid", "true_count": (1.0, 2.0)}, "the grid chooses them"),
        ({"concentration": 0.0}, "a positive number"),
        ({"concentration": "5"}, "a positive number"),
        ({**STRUCTURED, "concentration": -1.0}, "a positive number"),
        ({**STRUCTURED, "max_groups": 0}, "a whole number of at least 1"),
        ({**STRUCTURED, "max_groups": True}, "a whole number of at least 1"),
        ({"n_starts": 2.5}, "a whole number of at least 1"),
        ({"select": "oracle"}, "None or 'grid'"),
    ],
)
def test_settings_outside_their_range_are_refused(settings, complaint):
    with pytest.raises(SettingsError, match=complaint):
        MSS(**settings)


def test_the_grid_is_the_papers():
    settings = list(grid())
    assert len(settings) == 6 * 10 * 9 * 3
    assert all(p.true_count[1] > p.false_count[1] and p.false_count[0] >= p.true_count[0] for p in settings)


def test_grid_selection_keeps_the_highest_bound():
    claims = read_claims(planted("copied-leader", n_objects=30, seed=1).claims)
    small = {**STRUCTURED, "max_groups": 3, "n_starts": 1, "max_sweeps": 8}
    fit = MSS(select="grid", **small).fit(claims)
    assert fit.learned["concentration"] in (1.0, 5.0, 10.0)
    rival = MSS(true_count=(1.0, 2.0), false_count=(1.0, 1.0), **small).fit(claims)
    assert fit.bound >= rival.bound


def test_known_truths_help_where_the_majority_is_wrong():
    """The bloc outvotes everybody. From random memberships it takes some known truths to unmask it, and then not only
    on the objects they name; the search unmasks it by itself."""
    data = planted("malicious-bloc", n_objects=300, seed=0)
    claims = read_claims(data.claims)
    truth = dict(zip(data.truth["object"].to_pylist(), data.truth["value"].to_pylist(), strict=True))
    known = dict(list(truth.items())[:100])
    rest = {name: value for name, value in truth.items() if name not in known}
    without, informed = (
        {name: MSS(inference=name).fit(claims, known=given).score(truth=rest).accuracy for name in INFERENCES}
        for given in (None, known)
    )
    assert informed["structured"] > without["structured"] + 0.3
    assert without["partition"] > 0.9
    assert informed["partition"] > 0.9
    assert Vote().fit(claims).score(truth=rest).accuracy < 0.3


def test_reliability_is_the_papers_formula_under_its_inferences():
    fit = MSS(inference="structured").fit(read_claims(planted("six-groups", n_objects=60, seed=0).claims))
    found, prior = fit.groups_found, fit.prior
    expected = np.zeros(fit.claims.n_sources)
    for n in range(fit.claims.n_sources):
        for group, weight in zip(found.group[n], found.membership[n], strict=True):
            if weight > 0:
                expected[n] += (
                    weight * found.group_reliability[group, 1] / found.group_reliability[group].sum()
                )
    assert np.allclose(fit.source_reliability[:, 0], expected)
    low, high = of_groups(found, prior)[:, 1:].T
    assert np.all(low <= expected)
    assert np.all(expected <= high)


def test_mean_field_sources_in_the_tail_are_as_reliable_as_the_prior():
    fit = MSS(inference="mean-field", max_groups=3, n_starts=1, reliability=(1.0, 3.0)).fit(
        read_claims(planted("independent", n_objects=20, seed=0).claims)
    )
    tail = fit.groups_found.membership[:, -1]
    mean = fit.groups_found.group_reliability[:, 1] / fit.groups_found.group_reliability.sum(axis=1)
    assert np.allclose(fit.source_reliability[:, 0], fit.groups_found.membership[:, :-1] @ mean + tail * 0.75)


def test_progress_is_told_and_the_bound_rises():
    told = []
    MSS(**STRUCTURED, n_starts=2).fit(
        read_claims(planted("six-groups", n_objects=50, seed=0).claims),
        progress=lambda *what: told.append(what),
    )
    assert {stage for stage, _, _ in told} == {"start 1/2", "start 2/2"}
    for stage in {stage for stage, _, _ in told}:
        bounds = [bound for s, _, bound in told if s == stage]
        assert np.all(np.diff(bounds) >= -1e-9 * abs(bounds[-1]))


def test_settings_of_numpy_are_as_good_as_pythons():
    model = MSS(**STRUCTURED, max_groups=np.int64(3), true_count=[0.1, np.float64(10)])
    same = MSS(**STRUCTURED, max_groups=3, true_count=(0.1, 10.0))
    assert model == same
    assert hash(model) == hash(same)


@pytest.mark.parametrize("seed", [-1, 1.5, None, "a", True])
@pytest.mark.parametrize("model", [MSS(), Vote()])
def test_a_seed_is_a_whole_number(model, seed):
    with pytest.raises(SettingsError, match="'seed' must be a whole number of at least 0"):
        model.fit([("a", "o", "x")], seed=seed)


def test_the_seed_decides_the_starts():
    claims = read_claims(planted("six-groups", n_objects=50, seed=0).claims)
    model = MSS(**STRUCTURED, n_starts=1)
    first, again, other = (model.fit(claims, seed=seed) for seed in (1, np.int64(1), 2))
    assert first.trace == again.trace
    assert first.trace[0] != other.trace[0]


@pytest.mark.parametrize("inference", ["structured", "mean-field"])
def test_the_groups_kept_are_those_of_the_bound(inference):
    """Recomputed from what the fit stores, the bound is the one it reports; bigger groups weigh more."""
    claims = read_claims(planted("six-groups", n_objects=80, seed=0).claims)
    fit = MSS(inference=inference, n_starts=1).fit(claims)
    if inference == "structured":
        _, log_truth, _ = truth_prior(claims, None)
        (shard,) = claims.shards(1, log_truth)
        _, stats = choose("numpy").structured(shard, fit.groups_found, fit.prior)
        assert np.isclose(sum(bound_terms(stats, fit.groups_found, fit.prior).values()), fit.bound, rtol=1e-9)
        mass = group_mass(fit.groups_found.group, fit.groups_found.membership, fit.groups_found.n_groups)
        assert np.all(np.diff(mass[:-1]) <= 1e-9)
    weight = np.array(fit.groups["weight"].to_pylist())
    size = np.array(fit.groups["n_sources"].to_pylist())
    share = size / size.sum()
    assert np.all(np.abs(weight - share)[size > 3] < 0.1)


def test_intervals_of_sources_are_those_of_their_mixture():
    fit = MSS(inference="structured", n_starts=1).fit(
        read_claims(planted("six-groups", n_objects=30, seed=2).claims)
    )
    found, rng = fit.groups_found, np.random.default_rng(0)
    for n in range(0, fit.claims.n_sources, 7):
        slot = rng.choice(found.membership.shape[1], size=20_000, p=found.membership[n])
        b0, b1 = found.group_reliability[found.group[n, slot]].T
        low, high = np.quantile(rng.beta(b1, b0), [0.05, 0.95])
        assert np.allclose(fit.source_reliability[n, 1:], [low, high], atol=0.04)


def test_counts_that_would_overflow_are_refused():
    triples = [("zealous", f"o{m}", "x") for m in range(5_000)] + [("other", "o1", "y")]
    with pytest.raises(SettingsError, match="for a source with 5,000 claims"):
        MSS(**STRUCTURED, true_count=(1e-9, 1.0), false_count=(1e-9, 1e-9)).fit(triples)


def test_starts_are_reported_the_best_first():
    claims = read_claims(planted("six-groups", n_objects=200, seed=0).claims)
    fit = MSS(**STRUCTURED, n_starts=5).fit(claims, seed=1)
    bounds = [start["bound"] for start in fit.starts]
    assert len(bounds) == 5
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] == fit.bound
    assert fit.starts[0]["agreement"] == 1.0
    assert all(0 <= start["agreement"] <= 1 for start in fit.starts)
    alone = [MSS(**STRUCTURED, n_starts=n).fit(claims, seed=1).bound for n in (1, 2)]
    assert alone[0] in bounds
    assert alone[1] == max(alone)


def test_a_bound_that_only_one_start_reached_is_said():
    fit = MSS(**STRUCTURED, max_groups=4).fit(read_claims(planted("six-groups", seed=0).claims))
    assert any("starts reached this bound" in warning for warning in fit.warnings)
    assert any("All 4 groups are in use" in warning for warning in fit.warnings)


def test_mean_field_has_counts_of_its_own():
    claims = read_claims(planted("independent", n_objects=60, seed=0).claims)
    data = planted("independent", n_objects=60, seed=0)
    fit = MSS(inference="mean-field", max_groups=5, n_starts=1).fit(claims)
    assert fit.learned["true_count"] == [1.0, 5.0]
    assert fit.score(truth=data.truth).accuracy > 0.9


@pytest.mark.parametrize("inference", INFERENCES)
def test_stopping_early_is_said(inference):
    claims = read_claims(planted("six-groups", n_objects=50, seed=0).claims)
    fit = MSS(inference=inference, max_sweeps=2, n_starts=1).fit(claims)
    assert not fit.converged
    assert any("max_sweeps" in warning for warning in fit.warnings)


def test_structural_order_follows_what_sources_claim_not_their_names():
    data = planted("six-groups", n_objects=40, seed=0)
    rows = list(zip(*(data.claims[c].to_pylist() for c in ("source", "object", "value")), strict=True))
    claims = read_claims(rows)
    renamed = read_claims([(f"x{hash_of(s):05}", f"y{hash_of(o):05}", v) for s, o, v in rows])
    before = [claims.sources[int(n)].as_py() for n in structural_order(claims)]
    after = [renamed.sources[int(n)].as_py() for n in structural_order(renamed)]
    assert [f"x{hash_of(s):05}" for s in before] == after


def hash_of(name: str) -> int:
    return sum(ord(character) * 7919**i for i, character in enumerate(name)) % 99991
