"""The summary of a table of claims."""

from __future__ import annotations

import pytest

from consilience.claims.describe import describe
from consilience.claims.reading import read_claims

ROWS = [("a", "o1", "x"), ("b", "o1", "y"), ("a", "o2", "x"), ("b", "o2", "x"), ("c", "o3", "z")]


def test_numbers_of_a_small_table() -> None:
    summary = describe(read_claims([*ROWS, ROWS[0]], domain="common"))
    assert (summary.n_sources, summary.n_objects, summary.n_values) == (3, 3, 3)
    assert (summary.n_claims, summary.n_candidates, summary.domain) == (5, 9, "common")
    assert summary.claims_per_object == (1, 1.5, 2, 2, 2)
    assert summary.claims_per_source == (1, 1.5, 2, 2, 2)
    assert summary.mean_domain == 3
    assert summary.mean_claimed == pytest.approx(4 / 3)
    assert summary.contested == pytest.approx(1 / 3)
    assert summary.density == pytest.approx(5 / 9)
    assert summary.n_components == 2
    assert summary.largest_component == pytest.approx(4 / 5)
    assert summary.notes == ("1 exact repetition merged.",)


def test_one_source_joins_two_parts() -> None:
    assert describe(read_claims([*ROWS, ("a", "o3", "z")])).n_components == 1


def test_values_that_nobody_claims_are_not_contested() -> None:
    summary = describe(read_claims([("a", "o", "x")], domain=["x", "y"]))
    assert summary.contested == 0
    assert summary.mean_domain == 2
    assert summary.mean_claimed == 1
