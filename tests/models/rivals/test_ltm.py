"""LTM against its posterior, summed over all truths, and against counts made by hand."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from consilience.claims.reading import read_claims
from consilience.errors import SettingsError
from consilience.models.ltm import LTM, MOST_LISTED
from consilience.testing.checks import check_model, tables

SMALL = [
    ("a", "o", "x"), ("b", "o", "x"), ("c", "o", "y"),
    ("a", "p", "x"), ("b", "p", "y"),
    ("a", "q", "x"), ("c", "q", "y"), ("d", "q", "z"),
]  # fmt: skip


def test_checks():
    check_model(LTM())


def said(fit):
    """For each source, what it says of the facts that it speaks of: {fact: yes or no}."""
    claims = fit.claims
    domain = [
        range(claims.first_candidate[m], claims.first_candidate[m + 1]) for m in range(claims.n_objects)
    ]
    voices = [{} for _ in range(claims.n_sources)]
    for m in range(claims.n_objects):
        for i in range(claims.first_claim[m], claims.first_claim[m + 1]):
            for fact in domain[m]:
                voices[claims.claim_source[i]][fact] = fact == claims.claim_candidate[i]
    return voices


def posterior(model, fit, allowed):
    """(n_facts,) p(t_f = 1 | o): the joint with rates integrated out, summed over all truths."""
    scale = fit.claims.n_candidates / model.prior_facts
    prior = ([a * scale for a in model.false_positive], model.sensitivity)
    total, true = 0.0, np.zeros(fit.claims.n_candidates)
    for truth in product((0, 1), repeat=fit.claims.n_candidates):
        if not allowed(truth):
            continue
        log_joint = sum(math.log(model.truth[1 - t] / sum(model.truth)) for t in truth)
        for voice in said(fit):
            for t in (0, 1):
                yes = sum(v for fact, v in voice.items() if truth[fact] == t)
                no = sum(not v for fact, v in voice.items() if truth[fact] == t)
                log_joint += log_beta(prior[t][0] + yes, prior[t][1] + no) - log_beta(*prior[t])
        total += math.exp(log_joint)
        true += math.exp(log_joint) * np.array(truth)
    return true / total


def log_beta(a, b):
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


@pytest.mark.parametrize(
    "model",
    [
        LTM(rounds=6000, burn_in=100, gap=0),
        LTM((2.0, 8.0), (3.0, 2.0), (1.0, 2.0), prior_facts=7, rounds=6000, burn_in=100, gap=0),
    ],
    ids=repr,
)
def test_probabilities_are_those_of_the_posterior(model):
    fit = model.fit(read_claims(SMALL, domain="claimed"))
    assert fit.learned["probability"] == pytest.approx(posterior(model, fit, lambda truth: True), abs=0.015)


def test_known_truths_are_in_the_posterior():
    """q is z: the source that alone says so has a hit, the others a miss and a false claim each."""
    model = LTM((2.0, 8.0), (3.0, 2.0), (1.0, 2.0), prior_facts=7, rounds=6000, burn_in=100, gap=0)
    claims = read_claims(SMALL, domain="claimed")
    fit = model.fit(claims, known={"q": "z"})
    expected = posterior(model, fit, lambda truth: truth[-3:] == (0, 0, 1))
    assert fit.learned["probability"] == pytest.approx(expected, abs=0.015)
    without = posterior(model, fit, lambda truth: True)
    assert np.abs(expected - without)[:-3].max() > 0.02


def test_gap_and_burn_in_choose_the_rounds():
    """Rounds 3 and 5 of five, by hand: the mean of what the first three and what all five rounds end with."""
    claims = read_claims(next(tables()), domain="claimed")

    def probability(**chosen):
        return np.array(LTM(**chosen).fit(claims, seed=4).learned["probability"])

    third, fifth = probability(rounds=3, burn_in=2, gap=0), probability(rounds=5, burn_in=4, gap=0)
    assert probability(rounds=5, burn_in=2, gap=1) == pytest.approx((third + fifth) / 2, abs=1e-12)
    assert np.abs(third - fifth).max() > 1e-3


def test_rates_and_precision_by_hand():
    """All truths known, so nothing is drawn that matters: counts with priors."""
    model = LTM(prior_facts=7)
    fit = model.fit(read_claims(SMALL, domain="claimed"), known={"o": "x", "p": "x", "q": "y"})
    # a: 2 of 3 true facts, and 1 of 4 false ones; b: 1 of 2, 1 of 2; c: 1 of 2, 1 of 3; d: 0 of 1, 1 of 2.
    sensitivity = [52 / 103, 51 / 102, 51 / 102, 50 / 101]
    specificity = [1003 / 1014, 1001 / 1012, 1002 / 1013, 1001 / 1012]
    assert fit.learned["sensitivity"] == pytest.approx(sensitivity, abs=1e-12)
    assert fit.learned["specificity"] == pytest.approx(specificity, abs=1e-12)
    precision = [52 / (52 + 11), 51 / (51 + 11), 51 / (51 + 11), 50 / (50 + 11)]
    assert fit.source_reliability[:, 0] == pytest.approx(precision, abs=1e-12)
    assert fit.truth.tolist() == [1, 0, 1, 0, 0, 1, 0]


def test_the_share_is_the_probability_made_to_sum_to_one():
    for triples in tables(2):
        fit = LTM().fit(read_claims(triples))
        probable = np.array(fit.learned["probability"])
        total = np.add.reduceat(probable, fit.claims.first_candidate[:-1])
        assert fit.truth == pytest.approx(probable / np.repeat(total, np.diff(fit.claims.first_candidate)))


def test_several_facts_may_be_true():
    """Half of the sources name one author of each book, half the other; a single source makes names up."""
    rng = np.random.default_rng(0)
    triples = [(f"s{n}", f"book{m}", f"author {rng.integers(2)}") for n in range(10) for m in range(40)]
    triples += [("bad", f"book{m}", f"nobody {m}") for m in range(40)]
    fit = LTM().fit(read_claims(triples, domain="claimed"))
    value = [str(fit.claims.values[int(z)]) for z in fit.claims.candidate_value]
    probable = np.array(fit.learned["probability"])
    is_author = np.array([name.startswith("author") for name in value])
    assert np.mean(probable[is_author] > 0.9) > 0.95
    assert probable[~is_author].max() < 0.5
    assert fit.source_reliability[:, 0].argmin() == 0


def test_facts_that_are_alike_get_the_same():
    """Two objects of which the same sources say the same are told apart by nothing but their names."""
    triples = [*SMALL, ("e", "twin 1", "x"), ("f", "twin 1", "y"), ("e", "twin 2", "y"), ("f", "twin 2", "x")]
    fit = LTM().fit(read_claims(triples, domain="claimed"))
    probable = fit.learned["probability"][-4:]
    assert probable[0] == probable[3]
    assert probable[1] == probable[2]


def test_long_lists_are_left_out():
    triples = [("a", f"o{m}", f"x{m}") for m in range(MOST_LISTED + 1)]
    fit = LTM(rounds=1, burn_in=0).fit(read_claims(triples, domain="claimed"))
    assert set(fit.learned) == {"sensitivity", "specificity"}


@pytest.mark.parametrize(
    ("setting", "given"),
    [
        ("false_positive", (1.0,)), ("false_positive", (0.0, 1.0)), ("sensitivity", 5), ("truth", (1.0, True)),
        ("prior_facts", 0), ("rounds", 0), ("burn_in", -1), ("burn_in", 100), ("gap", -1),
    ],
)  # fmt: skip
def test_settings_are_checked(setting, given):
    with pytest.raises(SettingsError, match=setting):
        LTM(**{setting: given})
