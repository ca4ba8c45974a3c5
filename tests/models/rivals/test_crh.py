"""CRH and CATD against their formulas, worked by hand and by slow loops, and against what they minimise."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import chi2

from consilience.claims.reading import read_claims
from consilience.errors import SettingsError
from consilience.kernels.segments import Segments
from consilience.models.base import truth_prior
from consilience.models.crh import CATD, CRH, disagreements, weighted_vote
from consilience.testing.checks import check_model, tables

VARIANTS = (CRH(), CRH(scale="max"), CRH(per_claim=True), CRH(scale="max", per_claim=True), CATD())
KNOWN = {"o0": "v2", "o1": "nobody says this", "o4": "v0"}


@pytest.mark.parametrize("model", VARIANTS, ids=repr)
def test_checks(model):
    check_model(model)


# Every source speaks on p, q and r. a never disagrees with the vote, b once, c twice.
BY_HAND = [
    ("a", "p", "x"), ("b", "p", "x"), ("c", "p", "y"),
    ("a", "q", "x"), ("b", "q", "y"), ("c", "q", "x"),
    ("a", "r", "x"), ("b", "r", "x"), ("c", "r", "y"),
]  # fmt: skip


def test_crh_by_hand():
    """Losses 1/2, 3/2 and 5/2 with the half that is added: weights ln 9, ln 3 and ln 1.8, and nothing changes."""
    fit = CRH().fit(read_claims(BY_HAND))
    weight = np.log([9, 3, 1.8])
    assert fit.source_reliability[:, 0] == pytest.approx(weight / weight[0])
    assert fit.truth[:2] == pytest.approx([weight[:2].sum() / weight.sum(), weight[2] / weight.sum()])
    assert fit.converged
    first, second, third = (record["bound"] for record in fit.trace)
    assert first == pytest.approx(-math.log(3) * 4.5)
    assert second == third == pytest.approx(-(0.5 * math.log(9) + 1.5 * math.log(3) + 2.5 * math.log(1.8)))


def test_crh_by_hand_with_other_scales():
    greatest = CRH(scale="max").fit(read_claims(BY_HAND))
    assert greatest.source_reliability[:, 0] == pytest.approx([1, math.log(5 / 3) / math.log(5), 0])
    more = [("a", f"s{m}", "x") for m in range(3)] + [("b", f"s{m}", "x") for m in range(3)]
    per_claim = CRH(per_claim=True).fit(read_claims(BY_HAND + more))
    losses = np.array([0.5 / 6, 1.5 / 6, 2.5 / 3])
    weight = np.log(losses.sum() / losses)
    assert per_claim.source_reliability[:, 0] == pytest.approx(weight / weight[0])


@pytest.mark.parametrize(
    ("n_claims", "quantile"),
    [(1, 0.000982), (2, 0.0506), (5, 0.831), (10, 3.247), (30, 16.791), (100, 74.222)],
)
def test_catd_weighs_by_the_tabled_quantiles_of_chi_squared(n_claims, quantile):
    """A source with n claims and one error, against one with 30 claims and one error."""
    triples = [(f"rest{i}", f"o{m}", "x") for i in range(5) for m in range(100)]
    triples += [("few", f"o{m}", "x" if m else "y") for m in range(n_claims)]
    triples += [("thirty", f"o{m}", "x" if m else "y") for m in range(30)]
    fit = CATD().fit(read_claims(triples))
    weight = dict(zip(map(str, fit.claims.sources), fit.source_reliability[:, 0], strict=True))
    assert weight["few"] / weight["thirty"] == pytest.approx(quantile / 16.791, rel=1e-3)


@pytest.mark.parametrize("model", VARIANTS, ids=repr)
@pytest.mark.parametrize("known", [{}, KNOWN])
@pytest.mark.parametrize("rounds", [1, 2, 3, 10])
def test_against_slow_loops(model, known, rounds):
    for triples in tables(3):
        claims = read_claims(triples, domain="claimed")
        fit = replace(model, max_rounds=rounds).fit(claims, known=known or None)
        weight, share, path = slow_weights(model, triples, fit.sweeps, known)
        assert fit.source_reliability[:, 0] == pytest.approx(
            [weight[f"s{n}"] / max(weight.values()) for n in range(8)], abs=1e-9
        )
        claims = fit.claims
        for i, m in enumerate(claims.candidate_object()):
            value = str(claims.values[int(claims.candidate_value[i])])
            assert fit.truth[i] == pytest.approx(share[str(claims.objects[m])].get(value, 0.0), abs=1e-9)
        assert [record["bound"] for record in fit.trace] == pytest.approx(path, abs=1e-9)


def test_crh_weights_are_the_minimum_that_keeps_the_constraint():
    """The weights of the second round, brought back from shares of the greatest to the scale where Σ exp(-w) = 1."""
    claims, log_truth, _ = truth_prior(read_claims(next(tables())), None)
    table = Segments(claims, log_truth)
    loss = disagreements(table, weighted_vote(table, np.ones(claims.n_sources))) + 0.5
    share = CRH(max_rounds=2).fit(claims).source_reliability[:, 0]
    weight = brentq(lambda scale: np.exp(-scale * share).sum() - 1, 1e-6, 1e6) * share
    rng = np.random.default_rng(0)
    for concentration in (0.1, 1.0, 100.0):
        for _ in range(200):
            other = -np.log(np.maximum(rng.dirichlet(concentration * loss), 1e-300))
            assert other @ loss >= weight @ loss - 1e-9


def test_crh_truths_are_the_minimum_for_the_weights():
    """All choices of truths, one by one; ties cost what each of the tied costs."""
    rng = np.random.default_rng(1)
    triples = [(f"s{n}", f"o{m}", f"v{rng.integers(3)}") for n in range(4) for m in range(4)]
    claims, log_truth, _ = truth_prior(read_claims(triples), None)
    table = Segments(claims, log_truth)
    for weight in (np.ones(4), rng.random(4), np.array([1.0, 1.0, 2.0, 0.0])):
        named = dict(zip(("s0", "s1", "s2", "s3"), weight, strict=True))
        costs = [
            sum(named[n] for n, m, z in triples if z != choice[int(m[1])])
            for choice in itertools.product(("v0", "v1", "v2"), repeat=4)
        ]
        found = weight @ disagreements(table, weighted_vote(table, weight))
        assert found == pytest.approx(min(costs), abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_the_objective_of_crh_never_falls(seed):
    """On ragged tables with many ties, and with known truths. `ascend` raises where it does."""
    rng = np.random.default_rng(seed)
    triples = {
        (f"s{rng.integers(12)}", f"o{rng.integers(20)}"): f"v{rng.integers(2 + seed % 4)}" for _ in range(90)
    }
    known = {"o3": "v0", "o5": "v1"} if seed % 2 else None
    fit = CRH().fit([(*key, value) for key, value in triples.items()], known=known)
    path = [record["bound"] for record in fit.trace]
    assert fit.converged
    assert len(path) > 2
    assert np.diff(path).min() >= -1e-12


def test_no_trace_where_nothing_is_minimised():
    for model in VARIANTS[1:]:
        assert model.fit(next(tables())).trace == ()
    assert CRH().fit(next(tables())).trace


@pytest.mark.parametrize("model", VARIANTS, ids=repr)
def test_sources_that_are_often_right_outweigh_more_that_are_not(model):
    """Three against four on one object. The three agree on all others, the four with nobody."""
    triples = [(f"good{n}", f"o{m}", "right") for n in range(3) for m in range(20)]
    triples += [(f"poor{n}", f"o{m}", f"wrong{n}") for n in range(4) for m in range(1, 20)]
    triples += [(f"poor{n}", "o0", "wrong") for n in range(4)]
    fit = model.fit(read_claims(triples, domain="claimed"))
    assert _decided(fit)["o0"] == "right"
    assert fit.source_reliability[:3, 0].min() > fit.source_reliability[3:, 0].max()


def test_catd_does_not_believe_a_long_tail():
    """Three sources with one claim each against one that is nearly always right. CRH counts errors and is misled."""
    triples = [(f"rest{i}", f"o{m}", "x") for i in range(3) for m in range(60)]
    triples += [("proven", f"o{m}", "x" if m > 2 else "y") for m in range(60)] + [("proven", "rare", "right")]
    triples += [(f"tail{n}", "rare", "wrong") for n in range(3)]
    claims = read_claims(triples, domain="claimed")
    assert _decided(CRH().fit(claims))["rare"] == "wrong"
    fit = CATD().fit(claims)
    assert _decided(fit)["rare"] == "right"
    weight = dict(zip(map(str, fit.claims.sources), fit.source_reliability[:, 0], strict=True))
    assert weight["tail0"] < 0.01 * weight["proven"]


@pytest.mark.parametrize("model", VARIANTS, ids=repr)
def test_known_truths_teach_the_weights(model):
    """Two against two on every object; the truths of some are known."""
    triples = [(f"{side}{n}", f"o{m}", side) for side in ("good", "bad") for n in range(2) for m in range(10)]
    claims = read_claims(triples)
    assert model.fit(claims).ties == 10
    fit = model.fit(claims, known={f"o{m}": "good" for m in range(3)})
    assert set(_decided(fit).values()) == {"good"}
    assert fit.source_reliability[2:, 0].min() > fit.source_reliability[:2, 0].max()


def test_a_source_without_weight_still_speaks_where_it_is_alone():
    """The worst source has weight ln 1 = 0 when losses are divided by the greatest."""
    triples = [(f"good{n}", f"o{m}", "x") for n in range(3) for m in range(5)]
    triples += [("worst", f"o{m}", "y") for m in range(5)] + [("worst", "alone", "y")]
    fit = CRH(scale="max").fit(read_claims(triples, domain=["x", "y", "z"]))
    assert fit.source_reliability[3, 0] == 0.0
    assert _decided(fit)["alone"] == "y"


def test_rounds_that_were_not_enough_are_reported():
    fit = CATD(max_rounds=1).fit(next(tables()))
    assert not fit.converged
    assert "Not converged" in fit.warnings[0]


def test_settings():
    assert (CATD().alpha, CRH().scale, CRH().per_claim) == (0.05, "sum", False)
    wrong = [
        (CRH, {"scale": "mean"}),
        (CRH, {"scale": None}),
        (CRH, {"per_claim": 1}),
        (CRH, {"smoothing": 0}),
        (CRH, {"max_rounds": 0}),
        (CATD, {"alpha": 0}),
        (CATD, {"alpha": 1}),
        (CATD, {"alpha": math.nan}),
        (CATD, {"least_errors": -1}),
        (CATD, {"max_rounds": 1.5}),
    ]
    for model, settings in wrong:
        with pytest.raises(SettingsError, match=next(iter(settings))):
            model(**settings)


def slow_weights(model, triples, sweeps, known):
    """weights, {object: {value: share}} and -objective round by round: the published formulas, claim by claim."""
    sources = sorted({n for n, _, _ in triples})
    objects = sorted({m for _, m, _ in triples})
    made = {n: [(m, z) for k, m, z in triples if k == n] for n in sources}

    def vote(weight):
        share = {}
        for m in objects:
            if m in known:
                share[m] = {known[m]: 1.0}
                continue
            votes: dict[str, float] = {}
            for n, about, z in triples:
                if about == m:
                    votes[z] = votes.get(z, 0.0) + weight[n]
            share[m] = {z: v / sum(votes.values()) for z, v in votes.items()}
        return share

    def losses(share):
        """Wrong claims; where several values are best each is the truth in part."""
        loss = {}
        for n in sources:
            loss[n] = 0.0
            for m, z in made[n]:
                best = [value for value, s in share[m].items() if s > max(share[m].values()) - 1e-10]
                loss[n] += 1 - (z in best) / len(best)
        return loss

    climbs = isinstance(model, CRH) and model.scale == "sum" and not model.per_claim
    weight, path = dict.fromkeys(sources, math.log(len(sources))), []
    for _ in range(sweeps):
        if climbs:
            path.append(-sum(weight[n] * (loss + 0.5) for n, loss in losses(vote(weight)).items()))
            if len(path) == sweeps:
                break
        loss = losses(vote(weight))
        if isinstance(model, CATD):
            weight = {n: chi2.ppf(0.025, len(made[n])) / max(loss[n], 0.5) for n in sources}
        else:
            loss = {n: (loss[n] + 0.5) / (len(made[n]) if model.per_claim else 1) for n in sources}
            whole = sum(loss.values()) if model.scale == "sum" else max(loss.values())
            weight = {n: -math.log(loss[n] / whole) for n in sources}
    return weight, vote(weight), path


def _decided(fit):
    """object → value"""
    values = fit.claims.candidate_value[fit.decision]
    return {str(fit.claims.objects[m]): str(fit.claims.values[int(z)]) for m, z in enumerate(values)}
