"""SSTF against the graph itself, built edge by edge."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from consilience.claims.reading import read_claims
from consilience.errors import SettingsError
from consilience.models.sstf import SSTF
from consilience.testing.checks import check_model, tables

KNOWN = {"o0": "v2", "o1": "nobody says this", "o4": "v0"}


def test_checks():
    check_model(SSTF())


def graph(model, fit):
    """(n_facts, n_facts) W, edge by edge; what each source claims."""
    claims = fit.claims
    weight = np.zeros((claims.n_candidates, claims.n_candidates))
    facts = [claims.claim_candidate[claims.claim_source == n].tolist() for n in range(claims.n_sources)]
    for claimed in facts:
        for i, j in combinations(claimed, 2):
            weight[i, j] += model.same_source
            weight[j, i] += model.same_source
    for m in range(claims.n_objects):
        for i, j in combinations(range(claims.first_candidate[m], claims.first_candidate[m + 1]), 2):
            weight[i, j] = weight[j, i] = -1.0
    absent = ~is_fact(fit)
    weight[absent] = weight[:, absent] = 0.0
    return weight, facts


def is_fact(fit):
    """(n_candidates,) claimed by somebody, or known to be true."""
    claims = fit.claims
    claimed = np.bincount(claims.claim_candidate, minlength=claims.n_candidates) > 0
    known = np.zeros(claims.n_objects, bool) if fit.known is None else fit.known
    given = np.repeat(known, np.diff(claims.first_candidate))
    return claimed | (given & (fit.truth == 1.0))


def labels(fit, known):
    """(n_facts,) 1, -1, or NaN where nothing is known."""
    claims = fit.claims
    label = np.full(claims.n_candidates, np.nan)
    for m, name in enumerate(map(str, claims.objects)):
        domain = range(claims.first_candidate[m], claims.first_candidate[m + 1])
        for z in domain:
            if name in known:
                label[z] = 1.0 if str(claims.values[int(claims.candidate_value[z])]) == known[name] else -1.0
    label[~is_fact(fit)] = 0.0
    return label


def energy(weight, score, neutral, lean):
    total = sum(
        abs(weight[i, j]) * (score[i] - np.sign(weight[i, j]) * score[j]) ** 2 / 2
        for i in range(len(score))
        for j in range(len(score))
    )
    return total + neutral * ((score - lean) ** 2).sum()


@pytest.mark.parametrize("domain", ["claimed", "common"])
@pytest.mark.parametrize("model", [SSTF(tolerance=1e-13), SSTF(0.3, 2.0, tolerance=1e-13)], ids=repr)
def test_the_end_is_the_minimum_in_closed_form(model, domain):
    """c_u = (D - W)_uu⁻¹ W_uk c_k, shares and reliabilities of it; and E is what the trace says."""
    for triples in tables(3):
        fit = model.fit(read_claims(triples, domain=domain), known=KNOWN)
        weight, facts = graph(model, fit)
        score = labels(fit, KNOWN)
        free = np.isnan(score)
        system = np.diag(np.abs(weight).sum(axis=1) + model.neutral) - weight
        score[free] = np.linalg.solve(system[np.ix_(free, free)], weight[np.ix_(free, ~free)] @ score[~free])
        assert np.abs(score).max() <= 1
        belief = is_fact(fit) * (1 + score) / 2
        total = np.add.reduceat(belief, fit.claims.first_candidate[:-1])
        assert fit.truth == pytest.approx(
            belief / np.repeat(total, np.diff(fit.claims.first_candidate)), abs=1e-9
        )
        assert fit.source_reliability[:, 0] == pytest.approx(
            [belief[claimed].mean() for claimed in facts], abs=1e-9
        )
        assert -fit.bound == pytest.approx(
            energy(weight, score, model.neutral, np.zeros_like(score)), abs=1e-9
        )
        start = np.where(free, 0.0, score)
        assert -fit.trace[0]["bound"] == pytest.approx(
            energy(weight, start, model.neutral, np.zeros_like(score))
        )
        assert fit.warnings == ()


def test_the_end_is_where_the_published_iteration_rests():
    """c ← D⁻¹ W c, again and again."""
    model = SSTF(tolerance=1e-12)
    fit = model.fit(read_claims(next(tables()), domain="claimed"), known=KNOWN)
    weight, facts = graph(model, fit)
    label = labels(fit, KNOWN)
    score = np.zeros_like(label)
    for _ in range(3000):
        spread = weight @ score / (np.abs(weight).sum(axis=1) + model.neutral)
        score = np.where(np.isnan(label), spread, label)
    expected = [(1 + score[claimed]).mean() / 2 for claimed in facts]
    assert fit.source_reliability[:, 0] == pytest.approx(expected, abs=1e-9)


def test_without_known_truths_scores_spread_from_the_votes():
    model = SSTF(tolerance=1e-13)
    for triples in tables(3):
        fit = model.fit(read_claims(triples))
        weight, facts = graph(model, fit)
        votes = np.bincount(fit.claims.claim_candidate, minlength=fit.claims.n_candidates).astype(float)
        n_claims = np.add.reduceat(votes, fit.claims.first_candidate[:-1])
        lean = 2 * votes / np.repeat(n_claims, np.diff(fit.claims.first_candidate)) - 1
        system = np.diag(np.abs(weight).sum(axis=1) + model.neutral) - weight
        score = np.linalg.solve(system, model.neutral * lean)
        expected = [(1 + score[claimed]).mean() / 2 for claimed in facts]
        assert fit.source_reliability[:, 0] == pytest.approx(expected, abs=1e-9)
        assert -fit.bound == pytest.approx(energy(weight, score, model.neutral, lean), abs=1e-9)
        assert fit.warnings == ("No truth is known: scores spread from the votes instead.",)


def test_known_truths_say_whom_to_believe():
    """Two sources against three: what is known of other objects decides."""
    triples = [(f"good{n}", f"o{m}", "right") for n in range(2) for m in range(6)]
    triples += [(f"bad{n}", f"o{m}", "wrong") for n in range(3) for m in range(6)]
    claims = read_claims(triples)
    for truth in ("right", "wrong"):
        fit = SSTF().fit(claims, known={"o0": truth})
        assert {row["value"] for row in fit.truths.to_pylist()} == {truth}
        bad, good = fit.source_reliability[:3, 0], fit.source_reliability[3:, 0]
        assert (good.min() > bad.max()) == (truth == "right")
    assert {row["value"] for row in SSTF().fit(claims).truths.to_pylist()} == {"wrong"}


def test_facts_that_no_known_truth_reaches_are_tied():
    triples = [("a", "o0", "x"), ("b", "o0", "y"), ("c", "o1", "x"), ("d", "o1", "y"), ("e", "o1", "y")]
    fit = SSTF().fit(read_claims(triples), known={"o0": "x"})
    assert fit.truth == pytest.approx([1, 0, 0.5, 0.5])


def test_rounds_run_out():
    fit = SSTF(max_rounds=2).fit(read_claims(next(tables())), known=KNOWN)
    assert (fit.sweeps, fit.converged) == (2, False)


@pytest.mark.parametrize(
    ("setting", "given"),
    [("same_source", 0.0), ("same_source", "1"), ("neutral", -1.0), ("max_rounds", 0), ("tolerance", 0.0)],
)
def test_settings_are_checked(setting, given):
    with pytest.raises(SettingsError, match=setting):
        SSTF(**{setting: given})


def test_a_label_that_nobody_says_is_never_the_answer():
    rows = [("a", "o0", "x"), ("b", "o0", "y"), *((s, f"o{i}", "x") for i in range(1, 8) for s in "cd")]
    claims = read_claims(rows, domain=list("xyzuvw"))
    for known in (None, {"o0": "x"}):
        fit = SSTF().fit(claims, known=known)
        assert [row["value"] for row in fit.truths.to_pylist()][1:] == ["x"] * 7
