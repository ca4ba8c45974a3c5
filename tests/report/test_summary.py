"""The summary against slow, obvious loops over the fit's own tables."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import consilience as cs
from consilience.claims.encoding import Claims
from consilience.kernels.state import Globals
from consilience.report import summarise as picking
from consilience.report import words
from consilience.report.formats import interval
from consilience.report.gold import Ran, run_rivals
from consilience.report.html import html
from consilience.report.summarise import summarise
from tests.results.made_fits import (
    capitals_fit,
    claims_of,
    fit_of,
    random_fit,
    random_globals,
    random_triples,
)

TRUTH = {"Australia": "Canberra", "Brazil": "Brasília", "Canada": "Ottawa"}
GOLD = pa.table({"object": list(TRUTH), "value": list(TRUTH.values())})


@pytest.mark.parametrize("seed", range(5))
def test_decisions_against_the_majority(seed: int) -> None:
    fit = random_fit(seed)
    found = summarise(fit).majority
    votes = claims_by_value(fit)
    expected = []
    for row in fit.truths.to_pylist():
        most = max(votes[row["object"]].values())
        mine = votes[row["object"]][row["value"]]
        if mine < most:
            expected.append((row["object"], row["value"], row["probability"] * (most - mine)))
    assert found.n_different == len(expected)
    assert found.n_found == fit.claims.n_objects
    best = sorted((weight for *_, weight in expected), reverse=True)[: picking.CASES]
    assert [case.probability * (case.n_majority - case.n_claims) for case in found.cases] == pytest.approx(
        best
    )
    for case in found.cases:
        assert votes[case.object][case.value] == case.n_claims
        assert votes[case.object][case.majority] == case.n_majority
    assert all(case.why for case in found.cases[: picking.EXPLAINED])
    assert not any(case.why for case in found.cases[picking.EXPLAINED :])


@pytest.mark.parametrize("seed", range(3))
def test_objects_in_dispute_and_the_least_certain(seed: int) -> None:
    fit = random_fit(seed)
    summary = summarise(fit)
    assert summary.n_disputed == sum(len(values) > 1 for values in claims_by_value(fit).values())
    rows = [row for row in fit.truths.to_pylist() if row["runner_up"] is not None]
    margins = sorted(row["margin"] for row in rows)[: picking.CASES]
    assert [row.margin for row in summary.certainty.least] == pytest.approx(margins)
    by_object = {row["object"]: row for row in rows}
    for row in summary.certainty.least:
        assert (row.value, row.runner_up) == (
            by_object[row.object]["value"],
            by_object[row.object]["runner_up"],
        )
    doubtful = [row for row in fit.truths.to_pylist() if row["probability"] < 0.9]
    assert summary.certainty.n_doubtful == len(doubtful)


def test_groups_have_the_rows_of_the_fit_and_their_busiest_members() -> None:
    fit = random_fit(1)
    summary = summarise(fit)
    assert summary.groups is not None
    rows, sources = fit.groups.to_pylist(), fit.sources.to_pylist()
    assert summary.groups.n_shared == sum(row["n_sources"] > 1 for row in rows)
    apart = sum(row["n_sources"] == 1 for row in rows) + sum(s["group"] is None for s in sources)
    assert summary.groups.n_apart == apart
    for row, group in zip(rows, summary.groups.largest, strict=True):
        assert (group.group, group.n_sources, group.kind) == (row["group"], row["n_sources"], row["kind"])
        members = [s for s in sources if s["group"] == row["group"]]
        assert set(group.members) == {s["source"] for s in members}
        n_claims = {s["source"]: s["n_claims"] for s in members}
        assert [n_claims[name] for name in group.members] == sorted(n_claims.values(), reverse=True)


@pytest.mark.parametrize("seed", range(3))
def test_the_heat_map_holds_groups_below_and_shared_mistakes_above(seed: int) -> None:
    fit = random_fit(seed)
    summary = summarise(fit)
    assert summary.groups is not None
    heat = summary.groups.heat
    assert heat is not None
    assert list(heat.groups) == sorted(heat.groups)
    together = {
        frozenset((row["source_a"], row["source_b"])): row["probability"]
        for row in fit.dependence(0.0001).to_pylist()
    }
    cells = {(row, column): share for row, column, share in heat.cells}
    said = {(s, o): v for s, o, v in triples_of(fit)}
    truth = {row["object"]: row["value"] for row in fit.truths.to_pylist()}
    for i, a in enumerate(heat.sources):
        for j, b in enumerate(heat.sources):
            if i > j:
                assert cells.get((i, j), 0.0) == pytest.approx(together.get(frozenset((a, b)), 0.0), abs=1e-3)
            elif i < j:
                both = [o for o in truth if (a, o) in said and (b, o) in said]
                err = [o for o in both if not said[a, o] == said[b, o] == truth[o]]
                alike = [o for o in err if said[a, o] == said[b, o]]
                assert cells.get((i, j), 0.0) == pytest.approx(len(alike) / max(len(err), 1), abs=1e-3)


def test_independent_sources_are_counted_by_object() -> None:
    fit = random_fit(2)
    worth = summarise(fit).worth
    per_object = fit.effective_sources.per_object
    assert worth.overall == fit.effective_sources.overall
    assert worth.median_worth == np.median(per_object)
    for b in worth.bins:
        n_claims = Counter(o for _, o, _ in triples_of(fit))
        assert b.n_claimed == sum(b.low <= n <= b.high for n in n_claims.values())
        assert b.n_worth == sum(b.low <= round(x) <= b.high for x in per_object)
    assert sum(b.n_claimed for b in worth.bins) == sum(b.n_worth for b in worth.bins) == fit.claims.n_objects


def test_a_model_without_groups_has_none_and_counts_every_source_in_full() -> None:
    fit = cs.Vote().fit(random_triples(np.random.default_rng(0)))
    summary = summarise(fit)
    assert summary.groups is None
    assert summary.worth.bins == ()
    assert summary.worth.overall == fit.claims.n_sources
    assert summary.majority.n_different == 0
    assert "group" not in summary.found


def test_the_paragraph_says_what_was_found() -> None:
    fit = capitals_fit()
    found = summarise(fit, GOLD, run_rivals(fit, ["vote"])).found
    for part in (
        "7 sources make 21 claims about 3 objects, and contradict one another on 2.",
        "differs from majority vote on 2 of 3 objects",
        "form 1 group; 2 stand apart",
        "The group has 5 sources",
        "right on 3 of 3 objects (100.0%), majority vote on 33.3%",
    ):
        assert part in found, found


def test_given_truths_are_counted_apart() -> None:
    known = {"object": ["Australia"], "value": ["Canberra"]}
    fit = cs.Vote().fit(triples_of(capitals_fit()), known=pa.table(known))
    summary = summarise(fit, GOLD, run_rivals(fit, ["truthfinder"]))
    assert (summary.majority.n_found, summary.majority.n_given) == (2, 1)
    assert all(row.object != "Australia" for row in summary.certainty.least)
    assert summary.gold is not None
    assert (summary.gold.n_known, summary.gold.n_gold) == (1, 2)
    assert {rival.model for rival in summary.gold.rivals} == {"vote", "truthfinder"}
    all_given = cs.Vote().fit(triples_of(capitals_fit()), known=GOLD)
    nothing = summarise(all_given, GOLD, run_rivals(all_given, ["vote", "truthfinder"])).gold
    assert nothing is not None
    assert (nothing.accuracy, nothing.rivals, nothing.calibration) == (None, (), ())


def test_gold_gives_calibration_and_rivals_and_says_who_could_not_run() -> None:
    rng = np.random.default_rng(4)
    claims = claims_of(random_triples(rng, n_sources=12, n_objects=60))
    fit = fit_of(claims, random_globals(rng, claims.n_sources))
    objects = claims.objects.to_pylist()
    gold = {"object": objects, "value": [f"v{rng.integers(4)}" for _ in objects]}
    truth = pa.table(gold)
    ran = [*run_rivals(fit, ["vote", "truthfinder"]), Ran("oracle", error="oracle is out of town")]
    found = summarise(fit, truth, ran).gold
    assert found is not None
    score = fit.score(truth)
    assert (found.accuracy, found.n_gold) == (score.accuracy, score.n_gold)
    assert sum(b.n for b in found.calibration) == score.n_gold
    gap = sum(b.n * abs(b.probability - b.right) for b in found.calibration) / score.n_gold
    assert gap == pytest.approx(score.calibration_error)
    accuracies = [rival.accuracy for rival in found.rivals[:-1]]
    assert accuracies == sorted(accuracies, reverse=True, key=float)  # type: ignore[arg-type]
    by_name = {rival.model: rival for rival in found.rivals}
    assert by_name["vote"].accuracy == cs.Vote().fit(claims).score(truth).accuracy
    assert by_name["made"].accuracy == score.accuracy
    assert found.rivals[-1].error == "oracle is out of town"


def test_rivals_that_fail_do_not_end_the_report() -> None:
    many = [(f"s{i % 5}", f"o{i // 5}", f"value {i}") for i in range(600)]
    fit = cs.Vote().fit(many)
    by_name = {ran.model: ran for ran in run_rivals(fit, "all")}
    assert "vote" not in by_name
    assert by_name["dawid-skene"].fit is None
    assert "needs labels" in (by_name["dawid-skene"].error or "")
    assert by_name["truthfinder"].fit is not None


def test_a_loaded_fit_has_the_same_summary(tmp_path: Path) -> None:
    for fit in (
        random_fit(3),
        cs.MSS(n_starts=1).fit(triples_of(capitals_fit())),
        cs.Vote().fit(triples_of(random_fit(3))),
    ):
        fit.save(tmp_path / "saved")
        assert summarise(cs.load(tmp_path / "saved")).as_dict() == summarise(fit).as_dict()


def test_json_knows_every_kind_of_id() -> None:
    day = datetime.date(2026, 1, 1)
    fit = cs.Vote().fit(
        pa.table({"source": [1, 2, 3], "object": [day] * 3, "value": [0.5, 0.5, float("inf")]})
    )
    text = json.dumps(summarise(fit).as_dict(), allow_nan=False)
    assert "2026-01-01" in text
    assert json.loads(text)["sources"]["best"][0]["source"] in (1, 2, 3)


def test_groups_that_err_alike_beyond_chance_are_linked() -> None:
    """Eight groups err on half of the objects, half of the time with the popular mistake; the second repeats the first
    one's mistakes, and a ninth is right. A popular mistake links nobody."""
    rng, said = np.random.default_rng(1), {}
    for m in range(120):
        for n in range(8):
            wrong = "popular" if rng.random() < 0.5 else f"wrong{rng.integers(4)}"
            said[n, m] = "right" if rng.random() < 0.5 else wrong
            if n == 1 and said[0, m] != "right" and rng.random() < 0.8:
                said[n, m] = said[0, m]
    said |= {(8, m): "right" for m in range(120)}
    claims = claims_of([(f"s{n}", f"o{m:03d}", value) for (n, m), value in said.items()])
    counts = np.ones((9, 2))
    fit = fit_of(claims, Globals(np.arange(9, dtype=np.int32)[:, None], np.ones((9, 1)), counts, counts))
    is_right = np.array([claims.values[v].as_py() == "right" for v in claims.candidate_value])
    fit = replace(fit, decision=np.flatnonzero(is_right))
    groups = summarise(fit).groups
    assert groups is not None
    assert [(link.group_a, link.group_b) for link in groups.links] == [(1, 2)]
    either = [m for m in range(120) if not said[0, m] == said[1, m] == "right"]
    alike = [m for m in either if said[0, m] == said[1, m]]
    assert groups.links[0].share == pytest.approx(len(alike) / len(either))


def test_a_large_fit_has_a_small_summary() -> None:
    n_objects, n_sources, each = 40_000, 3_000, 3
    rng = np.random.default_rng(0)
    source = np.sort(rng.integers(0, n_sources - each, (n_objects, each)), axis=1) + np.arange(each)
    candidate = 2 * np.arange(n_objects)[:, None] + (rng.random((n_objects, each)) < 0.3)
    claims = Claims(
        sources=pa.array([f"s{i:04d}" for i in range(n_sources)]),
        objects=pa.array([f"o{i:05d}" for i in range(n_objects)]),
        values=pa.array(["a", "b"]),
        claim_source=source.ravel().astype(np.int32),
        claim_candidate=candidate.ravel().astype(np.int32),
        first_claim=np.arange(0, each * n_objects + 1, each),
        first_candidate=np.arange(0, 2 * n_objects + 1, 2),
        candidate_value=np.tile(np.array([0, 1], np.int32), n_objects),
        domain="common",
    )
    group = rng.integers(0, 200, (n_sources, 1)).astype(np.int32)
    counts = rng.uniform(0.5, 20, (200, 2))
    fit = fit_of(claims, Globals(group, np.ones((n_sources, 1)), counts, counts))
    fit = replace(fit, decision=claims.first_candidate[:-1] + (rng.random(n_objects) < 0.2))
    summary = summarise(fit)
    assert summary.majority.n_different > 1_000
    assert len(summary.majority.cases) == len(summary.certainty.least) == picking.CASES
    assert summary.sources.n_between == n_sources - 2 * picking.ENDS
    assert summary.groups is not None
    assert summary.groups.heat is not None
    assert len(summary.groups.heat.sources) == 60
    assert len(json.dumps(summary.as_dict())) < 200_000


def test_a_table_of_one_claim_is_told_with_sense() -> None:
    summary = summarise(cs.Vote().fit([("s", "o", "v")]))
    assert summary.found == (
        "1 source makes 1 claim about 1 object. The answer is that of majority vote. The decision has a probability of "
        "at least 90%."
    )
    grouped = summarise(cs.MSS(n_starts=1).fit([("s", "o", "v")]))
    assert "share a group" not in grouped.found
    assert "worth" not in grouped.found
    assert words.median_worth(grouped.worth) == "The median object has 1 claim: there is only 1 source."
    pair = summarise(cs.MSS(n_starts=1).fit([("s", "o", "v"), ("t", "o", "w")]))
    assert pair.found.startswith("2 sources make 2 claims about 1 object, and contradict one another on it. ")
    assert interval(0.996, 0.999) == "about 100%"
    assert interval(0.5, 0.999) == "50% to 100%"


def test_the_test_of_independence_is_not_told_against_itself() -> None:
    worth = summarise(capitals_fit()).worth
    told = [
        words.independence(replace(worth, shared=shared, p_value=p))
        for shared in (0.6, 1.04, 1.5)
        for p in (0.01, 0.6)
    ]
    for sentence in (*told[:2], told[3]):
        assert "about as many mistakes as independent ones would" in sentence
        assert "more than chance" not in sentence
    assert "4.0% more mistakes than independent ones would, more than chance explains" in told[2]
    assert "1.5 times the mistakes that independent ones would, more than chance explains" in told[4]
    assert "1.5 times the mistakes that independent ones would, which may be chance" in told[5]


def test_the_lowest_reliability_is_that_of_the_sources_that_have_one() -> None:
    """Unrated sources come last, and may fill the end of a long list."""
    triples = [(f"s{i:02d}", f"o{j}", f"v{(i * j) % 3}") for i in range(60) for j in range(4)]
    fit = cs.Vote().fit(triples)
    reliability = np.full((60, 3), np.nan)
    reliability[:40, 0] = np.linspace(0.1, 0.9, 40)
    sources = summarise(replace(fit, source_reliability=reliability)).sources
    assert (sources.lowest, sources.highest, sources.n_unrated) == (0.1, 0.9, 20)
    assert words.reliability(sources) == "The reliability of a source goes from 10% to 90%; 20 are not rated."


def test_the_smallest_margins_are_counted_among_decisions_that_could_be_otherwise() -> None:
    triples = [(s, f"o{i:02d}", "v" if i > 12 or s == "a" else "w") for s in "abc" for i in range(40)]
    summary = summarise(cs.MSS(n_starts=1).fit(cs.read_claims(triples, domain="claimed")))
    assert (summary.majority.n_found, summary.certainty.n_contested) == (40, 13)
    assert "Decisions with the smallest margin: 10 of 13" in html(summary)


def triples_of(fit: cs.Fit) -> list[tuple[str, str, str]]:
    claims = fit.claims
    objects = claims.claim_object()
    return [
        (
            claims.sources[s].as_py(),
            claims.objects[o].as_py(),
            claims.values[claims.candidate_value[c]].as_py(),
        )
        for s, o, c in zip(claims.claim_source, objects, claims.claim_candidate, strict=True)
    ]


def claims_by_value(fit: cs.Fit) -> dict[str, Counter[str]]:
    votes: dict[str, Counter[str]] = {}
    for _, o, v in triples_of(fit):
        votes.setdefault(o, Counter())[v] += 1
    return votes


def test_that_strangers_err_together_is_said_where_it_made_a_difference() -> None:
    course = summarise(capitals_fit()).course
    doubted = {"shared_errors": 0.256, "design_effect": 1.5}
    assert "correlation 0.26" in words.strangers(replace(course, learned=doubted))
    assert words.strangers(replace(course, learned=doubted | {"design_effect": 1.0})) == ""
    assert words.strangers(replace(course, learned={})) == ""


def test_gold_in_other_capitals_is_told() -> None:
    fit = capitals_fit()
    shouted = {name: value.upper() for name, value in TRUTH.items()}
    assert any("capitals or spaces alone" in line for line in words.scored(summarise(fit, shouted).gold))
    assert not any("capitals" in line for line in words.scored(summarise(fit, TRUTH).gold))
