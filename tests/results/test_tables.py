from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.kernels.state import Globals, Prior
from consilience.results.groups import Numbering, expected_weights, groups_table
from consilience.results.tables import against_majority, ids, sources_table, truths_table
from tests.results.made_fits import PRIOR, capitals_fit, claims_of, fit_of, random_fit, random_globals


@given(st.integers(0, 10_000), st.booleans())
def test_truths_are_the_most_probable_candidates(seed: int, groups: bool) -> None:
    fit = random_fit(seed, groups=groups)
    table = truths_table(fit)
    assert table.column_names == ["object", "value", "probability", "runner_up", "margin", "n_claims"]
    first, values = fit.claims.first_candidate, ids(fit.claims.values).to_pylist()
    for m, row in enumerate(table.to_pylist()):
        candidates = {
            values[fit.claims.candidate_value[c]]: fit.truth[c] for c in range(first[m], first[m + 1])
        }
        assert row["object"] == fit.claims.objects[m].as_py()
        assert row["probability"] == candidates.pop(row["value"])
        assert row["n_claims"] == fit.claims.first_claim[m + 1] - fit.claims.first_claim[m]
        if candidates:
            assert candidates[row["runner_up"]] == max(candidates.values())
            assert row["margin"] == pytest.approx(row["probability"] - max(candidates.values()), abs=1e-9)
            assert row["margin"] >= 0
        else:
            assert row["runner_up"] is None
            assert row["margin"] == row["probability"] == 1.0


def test_sources_come_by_reliability_then_by_id() -> None:
    rows = sources_table(capitals_fit()).to_pylist()
    assert [row["source"] for row in rows] == ["gazette", "atlas", *(f"copier{i}" for i in range(5))]
    assert [row["group"] for row in rows] == [3, 2, 1, 1, 1, 1, 1]
    assert {row["n_claims"] for row in rows} == {3}
    assert all(row["low"] <= row["reliability"] <= row["high"] for row in rows)


def test_a_model_without_groups_or_intervals_leaves_them_null() -> None:
    table = sources_table(random_fit(3, groups=False))
    assert table.column("group").type == pa.int64()
    assert table.column("group").null_count == table.column("low").null_count == len(table)
    assert groups_table(None, None).num_rows == 0
    assert random_fit(3, groups=False).n_groups is None


def test_groups_are_numbered_by_size_and_empty_ones_left_out() -> None:
    group = np.array([[3], [1], [1], [0], [0], [1]], dtype=np.int32)
    found = Globals(group, np.ones((6, 1)), np.full((5, 2), 2.0), np.full((5, 2), 1.0))
    numbering = Numbering.of(found)
    assert numbering.of_source.tolist() == [3, 1, 1, 2, 2, 1]
    assert groups_table(found, PRIOR).column("n_sources").to_pylist() == [3, 2, 1]


@given(st.integers(0, 10_000))
def test_numbers_do_not_depend_on_the_inner_order_of_groups(seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = random_globals(rng, n_sources=9, n_groups=5)
    shuffle = rng.permutation(5)
    label = np.append(np.argsort(shuffle), -1)  # old group to new group; padding stays
    other = Globals(
        label[found.group].astype(np.int32),
        found.membership,
        found.group_reliability[shuffle],
        found.sticks[shuffle],
    )
    assert Numbering.of(found).of_source.tolist() == Numbering.of(other).of_source.tolist()


def test_sources_in_the_tail_are_in_no_group() -> None:
    group = np.array([[0, 1], [0, 1]], dtype=np.int32)  # one group; 1 is the tail
    found = Globals(group, np.array([[0.9, 0.1], [0.2, 0.8]]), np.ones((1, 2)), np.ones((1, 2)))
    fit = fit_of(claims_of([("a", "x", "1"), ("b", "x", "2")]), found)
    assert dict(
        zip(*(sources_table(fit).column(c).to_pylist() for c in ("source", "group")), strict=True)
    ) == {
        "a": 1,
        "b": None,
    }
    assert groups_table(found, PRIOR).column("n_sources").to_pylist() == [1]


def test_kind_and_interval_of_groups() -> None:
    reliability = np.array([[1.0, 9.0], [9.0, 1.0]])
    found = Globals(np.array([[0], [1]], dtype=np.int32), np.ones((2, 1)), reliability, np.ones((2, 2)))
    malicious = Prior(np.array([0.1, 10.0]), np.array([0.4, 0.5]), PRIOR.reliability, 5.0)
    careless_table, malicious_table = groups_table(found, PRIOR), groups_table(found, malicious)
    assert careless_table.column("kind").to_pylist() == ["reliable", "careless"]
    assert malicious_table.column("kind").to_pylist() == ["reliable", "malicious"]
    # Beta(9, 1) has the distribution function x⁹.
    assert careless_table.column("low")[0].as_py() == pytest.approx(0.05 ** (1 / 9))
    assert careless_table.column("high")[0].as_py() == pytest.approx(0.95 ** (1 / 9))


def test_weights_are_expected_stick_lengths() -> None:
    rng = np.random.default_rng(0)
    sticks = np.array([[2.0, 3.0], [1.0, 4.0], [5.0, 1.0]])
    rho = rng.beta(sticks[:, 0], sticks[:, 1], size=(200_000, 3))
    left = np.cumprod(np.column_stack([np.ones(len(rho)), 1 - rho[:, :-1]]), axis=1)
    assert expected_weights(sticks) == pytest.approx((rho * left).mean(axis=0), abs=3e-3)


def test_against_majority_lists_what_fewer_sources_claim() -> None:
    rows = against_majority(capitals_fit()).to_pylist()
    assert [(r["object"], r["value"], r["majority"]) for r in rows] == [
        ("Australia", "Canberra", "Sydney"),
        ("Brazil", "Brasília", "Rio"),
    ]
    assert {(r["n_claims"], r["n_majority"]) for r in rows} == {(2, 5)}
    assert against_majority(random_fit(1, groups=False)).num_rows == 0, (
        "shares of claims never differ from the vote"
    )


def test_truths_that_were_given_do_not_differ_from_the_majority() -> None:
    fit = dataclasses.replace(capitals_fit(), known=np.array([True, False, False]))
    assert against_majority(fit).column("object").to_pylist() == ["Brazil"]


@pytest.mark.parametrize("vocabulary", [list, pa.array, lambda x: pa.chunked_array([x])])
def test_ids_keep_their_type_whatever_holds_them(vocabulary: Callable[[list[Any]], Any]) -> None:
    triples = [(7, 100, True), (9, 100, False), (9, 200, True)]
    claims = claims_of(triples)
    claims = type(claims)(
        **{
            **vars(claims),
            **{k: vocabulary(getattr(claims, k).to_pylist()) for k in ("sources", "objects", "values")},
        }
    )
    fit = fit_of(claims)
    assert truths_table(fit).column("object").to_pylist() == [100, 200]
    assert truths_table(fit).column("value").type == pa.bool_()
    assert sorted(sources_table(fit).column("source").to_pylist()) == [7, 9]


def test_the_summary_says_what_was_found() -> None:
    text = capitals_fit().summary()
    assert "21 claims by 7 sources on 3 objects" in text
    assert "3 groups" in text
    assert "2 decisions differ" in text
    assert "warning: close call" in text
    assert "3 truths from 21 claims by 7 sources, 3 groups" in repr(capitals_fit())
