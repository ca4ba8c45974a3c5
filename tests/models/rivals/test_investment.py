"""Sums, Average·Log and both investments against the published formulas, by hand and by slow loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from consilience.claims.reading import read_claims
from consilience.errors import SettingsError
from consilience.models.investment import AverageLog, Investment, PooledInvestment, Sums
from consilience.models.vote import Vote
from consilience.testing.checks import check_model, tables

MODELS = (Sums, AverageLog, Investment, PooledInvestment)
SMALL = [("a", "o", "x"), ("a", "p", "y"), ("b", "o", "x"), ("c", "o", "z")]


@pytest.mark.parametrize("model", MODELS)
def test_checks(model):
    check_model(model())


@pytest.mark.parametrize(
    ("model", "trust", "belief_in_x"),
    [
        # Votes give x 2/3, z 1/3, y 1: trusts 5/3, 2/3, 1/3, so beliefs 1.4, 0.2 and 1.
        (Sums, (1, 0.4, 0.2), 1.4 / 1.6),
        # Sources with one claim have ln 1 = 0: only a is heard.
        (AverageLog, (1, 0, 0), 1.0),
        # a puts 1/2 on x and y, b 1 on x, c 1 on z: returns 2/3 · 1/3 + 1, 2/3 · 2/3 and 1/3. Then x gets 11/18 + 4/9
        # and z 1/3.
        (Investment, (1, 4 / 11, 3 / 11), (19 / 18) ** 1.2 / ((19 / 18) ** 1.2 + (1 / 3) ** 1.2)),
        # Beliefs 1/2, 1/2, 1 return 7/6, 1/3 and 1/2: investments 11/12 and 1/2, each times its power 1.4.
        (PooledInvestment, (1, 2 / 7, 3 / 7), (11 / 12) ** 2.4 / ((11 / 12) ** 2.4 + 0.5**2.4)),
    ],
)
def test_one_round_by_hand(model, trust, belief_in_x):
    fit = model(rounds=1).fit(read_claims(SMALL, domain="claimed"))
    assert fit.source_reliability[:, 0] == pytest.approx(trust, abs=1e-12)
    assert _truths(fit)["o", "x"] == pytest.approx(belief_in_x, abs=1e-12)
    assert _truths(fit)["p", "y"] == 1.0


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("rounds", [1, 2, 5, 20])
@pytest.mark.parametrize("known", [{}, {"o0": "v2", "o1": "nobody says this", "o4": "v0"}])
def test_against_slow_loops(model, rounds, known):
    for triples in tables(2):
        fit = model(rounds=rounds).fit(read_claims(triples, domain="claimed"), known=known or None)
        trust, belief = slow_fact_finder(model.name, triples, rounds, known)
        assert [fit.source_reliability[n, 0] for n in range(8)] == pytest.approx(
            [trust[f"s{n}"] for n in range(8)], abs=1e-9
        )
        total = {m: sum(b for (o, _), b in belief.items() if o == m) for m, _ in belief}
        found = _truths(fit)
        assert found == pytest.approx({(m, z): belief.get((m, z), 0) / total[m] for m, z in found}, abs=1e-9)


@pytest.mark.parametrize("model", [Investment, PooledInvestment])
def test_dividing_by_the_maximum_changes_nothing_for_investments(model):
    triples = next(tables())
    trust, belief = slow_fact_finder(model.name, triples, 8, {}, divide=False)
    divided_trust, divided_belief = slow_fact_finder(model.name, triples, 8, {})
    assert {n: t / max(trust.values()) for n, t in trust.items()} == pytest.approx(divided_trust)
    assert {c: b / max(belief.values()) for c, b in belief.items()} == pytest.approx(divided_belief)


def test_sums_listens_to_whoever_talks_most_and_average_log_does_not():
    """A chatterbox alone on forty objects, wrong where it meets four careful sources."""
    alone = [("chatterbox", f"alone{i}", "x") for i in range(40)]
    met = [(f"careful{n}", f"met{i}", "right") for n in range(4) for i in range(6)]
    met += [("chatterbox", f"met{i}", "wrong") for i in range(3)]
    claims = read_claims(alone + met, domain="claimed")
    assert _decided(Sums().fit(claims))["met0"] == "wrong"
    assert _decided(AverageLog().fit(claims))["met0"] == "right"
    assert Sums().fit(claims).source_reliability[4, 0] == 1.0


@pytest.mark.parametrize("model", MODELS)
def test_a_few_good_sources_are_heard_among_many_poor_ones(model):
    """Five sources right nine times in ten, fifteen right three times in ten, five values."""
    gain = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        truth = rng.integers(5, size=200)
        triples = []
        for n in range(20):
            for m in np.flatnonzero(rng.random(200) < 0.5):
                is_right = rng.random() < (0.9 if n < 5 else 0.3)
                value = truth[m] if is_right else (truth[m] + rng.integers(1, 5)) % 5
                triples.append((f"s{n:02}", f"o{m}", f"v{value}"))
        gold = {f"o{m}": f"v{z}" for m, z in enumerate(truth)}
        fit, vote = model().fit(triples), Vote().fit(triples)
        gain.append(fit.score(gold).accuracy - vote.score(gold).accuracy)
        assert fit.source_reliability[:5, 0].min() > fit.source_reliability[5:, 0].max()
    assert np.mean(gain) > 0.07


def test_an_even_start_pays_whoever_stands_alone():
    """Three who agree on twenty objects, and four who agree with nobody but on one. Investment starts from votes and
    believes the three; PooledInvestment starts from 1 / K, of which a lone source gets all, and believes the four."""
    triples = [(f"three{n}", f"o{m}", "right") for n in range(3) for m in range(20)]
    triples += [(f"four{n}", f"o{m}", f"wrong{n}") for n in range(4) for m in range(1, 20)]
    triples += [(f"four{n}", "o0", "wrong") for n in range(4)]
    claims = read_claims(triples, domain="claimed")
    assert _decided(Investment().fit(claims))["o0"] == "right"
    assert _decided(PooledInvestment().fit(claims))["o0"] == "wrong"


@pytest.mark.parametrize("model", [Investment, PooledInvestment])
def test_growth_sharpens(model):
    even, sharp = (_truths(model(growth=g, rounds=1).fit(SMALL))["o", "x"] for g in (1.0, 3.0))
    assert sharp > even + 0.05


@pytest.mark.parametrize("model", MODELS)
def test_known_truths_teach_whom_to_trust(model):
    """Two against two on every object; the truths of some are known."""
    triples = [(f"{side}{n}", f"o{m}", side) for side in ("good", "bad") for n in range(2) for m in range(10)]
    claims = read_claims(triples)
    assert np.ptp(model().fit(claims).source_reliability[:, 0]) < 1e-9
    fit = model().fit(claims, known={f"o{m}": "good" for m in range(3)})
    assert set(_decided(fit).values()) == {"good"}
    assert fit.source_reliability[2:, 0].min() > fit.source_reliability[:2, 0].max()


def test_votes_decide_where_nobody_has_trust():
    triples = [("a", "o", "x"), ("b", "o", "x"), ("c", "o", "y")]
    fit = AverageLog().fit(read_claims(triples, domain=["w", "x", "y"]))
    assert fit.truth == pytest.approx([0, 2 / 3, 1 / 3])


@pytest.mark.parametrize("model", MODELS)
def test_values_that_nobody_claims_change_nothing(model):
    triples = next(tables())
    bare = _truths(model().fit(read_claims(triples, domain="claimed")))
    fit = model().fit(read_claims(triples, domain=["v0", "v1", "v2", "v3"]))
    assert _truths(fit) == pytest.approx({c: bare.get(c, 0.0) for c in _truths(fit)}, abs=1e-12)


@pytest.mark.parametrize("model", MODELS)
def test_many_rounds_stay_finite(model):
    for triples in tables():
        fit = model(rounds=500).fit(triples, known={"o2": "v1"})
        assert np.isfinite(fit.truth).all()
        assert fit.source_reliability[:, 0].max() == 1.0


def test_a_fixed_number_of_rounds_and_no_test_of_convergence():
    heard: list[int] = []
    fit = Sums(rounds=7).fit(SMALL, progress=lambda stage, i, bound: heard.append(i))
    assert heard == [1, 2, 3, 4, 5, 6, 7]
    assert fit.converged
    assert fit.sweeps == 7
    assert fit.trace == ()


def test_settings():
    assert [model().rounds for model in MODELS] == [20] * 4
    assert (Investment().growth, PooledInvestment().growth) == (1.2, 1.4)
    for model in MODELS:
        for rounds in (0, 2.5, True):
            with pytest.raises(SettingsError, match="rounds"):
                model(rounds=rounds)
    for model in (Investment, PooledInvestment):
        for growth in (0, -1, math.inf, "1.2"):
            with pytest.raises(SettingsError, match="growth"):
                model(growth=growth)


def slow_fact_finder(name, triples, rounds, known, divide=True):
    """trust of each source, belief in each (object, value): the published formulas, claim by claim."""
    claims_of: dict[str, list[tuple[str, str]]] = {}
    sources_of: dict[tuple[str, str], list[str]] = {}
    for n, m, z in triples:
        claims_of.setdefault(n, []).append((m, z))
        sources_of.setdefault((m, z), []).append(n)
    values_of: dict[str, list[str]] = {}
    for m, z in sources_of:
        values_of.setdefault(m, []).append(z)

    def fixed(beliefs):
        """Beliefs, with those of known objects as they are known."""
        beliefs = {(m, z): (float(z == known[m]) if m in known else b) for (m, z), b in beliefs.items()}
        return beliefs | dict.fromkeys(known.items(), 1.0)

    def divided(numbers):
        return {key: x / max(numbers.values()) for key, x in numbers.items()} if divide else numbers

    trust = dict.fromkeys(claims_of, 1.0)
    belief = {}
    for m, z in sources_of:
        votes = sum(len(sources_of[m, other]) for other in values_of[m])
        even = name == "pooled-investment"
        belief[m, z] = 1 / len(values_of[m]) if even else len(sources_of[m, z]) / votes
    belief = fixed(belief)
    for _ in range(rounds):
        new = {}
        for n, made in claims_of.items():
            if name == "sums":
                new[n] = sum(belief[c] for c in made)
            elif name == "average-log":
                new[n] = math.log(len(made)) * sum(belief[c] for c in made) / len(made)
            else:
                new[n] = 0.0
                for c in made:
                    everyone = sum(trust[r] / len(claims_of[r]) for r in sources_of[c])
                    new[n] += belief[c] * trust[n] / (len(made) * everyone)
        trust = divided(new)
        if name in ("sums", "average-log"):
            belief = {c: sum(trust[n] for n in sources_of[c]) for c in sources_of}
        else:
            belief = {c: sum(trust[n] / len(claims_of[n]) for n in sources_of[c]) for c in sources_of}
            if name == "investment":
                belief = {c: h**1.2 for c, h in belief.items()}
            else:
                belief = {
                    (m, z): h * h**1.4 / sum(belief[m, other] ** 1.4 for other in values_of[m])
                    for (m, z), h in belief.items()
                }
        belief = fixed(divided(belief))
    return trust, belief


def _truths(fit):
    """(object, value) → probability"""
    claims = fit.claims
    return {
        (str(claims.objects[m]), str(claims.values[int(claims.candidate_value[i])])): float(fit.truth[i])
        for i, m in enumerate(claims.candidate_object())
    }


def _decided(fit):
    """object → value"""
    values = fit.claims.candidate_value[fit.decision]
    return {str(fit.claims.objects[m]): str(fit.claims.values[int(z)]) for m, z in enumerate(values)}
