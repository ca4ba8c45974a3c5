from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.errors import InputError, SettingsError
from consilience.kernels.state import Globals
from consilience.results.dependence import dependent_pairs, effective_sources, memberships
from tests.results.made_fits import capitals_fit, claims_of, fit_of, random_fit, random_globals


def shared_slowly(found: Globals) -> np.ndarray:
    """(n_sources, n_sources) probability of sharing a group, in loops."""
    n = len(found.group)
    shared = np.eye(n)
    for a in range(n):
        for b in range(n):
            if a != b:
                for l_a, w_a in zip(found.group[a], found.membership[a], strict=True):
                    for l_b, w_b in zip(found.group[b], found.membership[b], strict=True):
                        if l_a == l_b and 0 <= l_a < found.n_groups:
                            shared[a, b] += w_a * w_b
    return shared


@given(st.integers(0, 10_000), st.floats(0.01, 1.0), st.booleans())
def test_pairs_are_all_those_above_the_threshold(seed: int, threshold: float, tail: bool) -> None:
    found = random_globals(np.random.default_rng(seed), n_sources=9, tail=tail)
    a, b, probability = dependent_pairs(found, threshold)
    expected = shared_slowly(found)
    near = np.abs(expected - threshold) < 1e-9
    wanted = {
        (i, j) for i in range(9) for j in range(i + 1, 9) if expected[i, j] >= threshold and not near[i, j]
    }
    assert wanted <= set(zip(a.tolist(), b.tolist(), strict=True))
    assert all(expected[i, j] >= threshold - 1e-9 for i, j in zip(a, b, strict=True))
    assert probability == pytest.approx(expected[a, b])
    assert np.all(np.diff(probability) <= 0)


@pytest.mark.parametrize("threshold", [0.0, -1.0, 1.5, float("nan")])
def test_a_threshold_that_would_list_every_pair_is_refused(threshold: float) -> None:
    with pytest.raises(SettingsError, match="above 0"):
        dependent_pairs(random_globals(np.random.default_rng(0), 3), threshold)


def test_many_sources_in_small_groups_stay_sparse() -> None:
    n = 200_000
    group = (np.arange(n) // 2).astype(np.int32)[:, None]
    found = Globals(group, np.ones((n, 1)), np.ones((n // 2, 2)), np.ones((n // 2, 2)))
    a, b, probability = dependent_pairs(found, 0.5)
    assert a.tolist() == list(range(0, n, 2))
    assert np.array_equal(b, a + 1)
    assert np.all(probability == 1.0)


def test_more_pairs_than_can_be_listed_are_refused_with_advice() -> None:
    n = 100_000  # 5e9 pairs
    one = {"membership": np.ones((n, 1)), "group_reliability": np.ones((1, 2)), "sticks": np.ones((1, 2))}
    found = Globals(group=np.zeros((n, 1), np.int32), **one)
    with pytest.raises(InputError, match=r"4,999,950,000 pairs.*Raise min_probability.*fit.sources"):
        dependent_pairs(found, 1.0)


@given(st.integers(0, 10_000), st.booleans())
def test_effective_sources_are_kishs_over_all_and_over_each_object(seed: int, tail: bool) -> None:
    fit = random_fit(seed, tail=tail)
    assert fit.groups_found is not None
    shared, claims = shared_slowly(fit.groups_found), fit.claims
    worth = effective_sources(claims, fit.groups_found)
    assert worth.overall == pytest.approx(claims.n_sources**2 / shared.sum())
    for m in range(claims.n_objects):
        here = claims.claim_source[claims.first_claim[m] : claims.first_claim[m + 1]]
        assert worth.per_object[m] == pytest.approx(len(here) ** 2 / shared[np.ix_(here, here)].sum())


def test_copies_are_worth_one_and_strangers_are_worth_themselves() -> None:
    claims = claims_of([(f"s{i}", "x", "1") for i in range(6)])
    globals_ = {
        "membership": np.ones((6, 1)),
        "group_reliability": np.ones((6, 2)),
        "sticks": np.ones((6, 2)),
    }
    copies = Globals(group=np.zeros((6, 1), np.int32), **globals_)
    strangers = Globals(group=np.arange(6, dtype=np.int32)[:, None], **globals_)
    assert effective_sources(claims, copies).overall == pytest.approx(1.0)
    assert effective_sources(claims, strangers).per_object == pytest.approx([6.0])
    assert effective_sources(claims, None).overall == 6.0
    assert "overall=6" in repr(effective_sources(claims, None))


def test_frames_name_the_sources() -> None:
    pairs = capitals_fit().dependence()
    assert pairs.column_names == ["source_a", "source_b", "probability"]
    assert len(pairs) == 10
    assert pairs.slice(0, 1).to_pylist() == [
        {"source_a": "copier0", "source_b": "copier1", "probability": 1.0}
    ]
    assert len(fit_of(claims_of([("a", "x", "1"), ("b", "x", "2")])).dependence()) == 0


def test_memberships_leave_the_tail_out() -> None:
    found = Globals(np.array([[0, 1]], np.int32), np.array([[0.3, 0.7]]), np.ones((1, 2)), np.ones((1, 2)))
    assert memberships(found).toarray().tolist() == [[0.3]]
