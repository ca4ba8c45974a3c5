"""Encoding: the flat arrays against plain loops."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from consilience.claims.encoding import (
    common_domains,
    domains,
    find_candidates,
    find_common_candidates,
    joined,
    offsets,
    sort_claims,
    sort_distinct,
)
from consilience.claims.reading import read_claims

small = st.integers(0, 5)
pairs = st.lists(st.tuples(small, small), max_size=30)


def arrays(rows: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    columns = np.array(rows, dtype=np.int32).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]


@given(pairs)
def test_claims_are_sorted_by_object_then_source_then_row(rows: list[tuple[int, int]]) -> None:
    object_, source = arrays(rows)
    assert sort_claims(object_, source, 6).tolist() == sorted(range(len(rows)), key=lambda i: (*rows[i], i))


def test_sorting_does_not_depend_on_how_keys_fit_into_a_word() -> None:
    rng = np.random.default_rng(0)
    object_ = rng.choice(np.array([0, 3, 2**31 - 2], dtype=np.int32), 500)
    source = rng.choice(np.array([0, 1, 2**31 - 2], dtype=np.int32), 500)
    expected = np.lexsort((np.arange(500), source, object_))
    np.testing.assert_array_equal(sort_claims(object_, source, 2**31 - 1), expected)


@given(st.lists(st.tuples(small, small, small), max_size=30), st.sampled_from([6, 2**12, 2**20, 2**30]))
def test_distinct_rows_are_sorted_whole_and_others_left(rows: list[tuple[int, int, int]], size: int) -> None:
    columns = np.array(rows, dtype=np.int32).reshape(-1, 3).T * np.int32(size // 6)
    packed = sort_distinct(list(columns), [size] * 3)
    if len({row[:2] for row in rows}) < len(rows) or 3 * (size - 1).bit_length() > 64:
        assert packed is None
    else:
        assert packed is not None
        assert np.transpose(packed).tolist() == sorted(columns.T.tolist())


@given(st.lists(small), st.integers(6, 9))
def test_offsets_delimit_runs(index: list[int], n: int) -> None:
    index = sorted(index)
    first = offsets(np.array(index, dtype=np.int32), n)
    assert len(first) == n + 1
    assert [index[a:b] for a, b in pairwise(first)] == [[m] * index.count(m) for m in range(n)]


@given(pairs, pairs)
def test_domains_hold_each_pair_once_and_candidates_are_found(
    rows: list[tuple[int, int]], wanted: list[tuple[int, int]]
) -> None:
    first, value = domains(*arrays(rows), 6, 6)
    held = [(m, int(v)) for m in range(6) for v in value[first[m] : first[m + 1]]]
    assert held == sorted(set(rows))
    found = find_candidates(*arrays(wanted), first, value, 6)
    assert found.tolist() == [held.index(pair) if pair in held else -1 for pair in wanted]
    nowhere = np.full(len(wanted), -1, dtype=np.int32)
    assert (find_candidates(arrays(wanted)[0], nowhere, first, value, 6) == -1).all()


@given(pairs, st.integers(6, 8))
def test_common_domains_are_domains(rows: list[tuple[int, int]], n_values: int) -> None:
    object_, value = arrays(rows)
    first, candidate_value = common_domains(6, n_values)
    grid = domains(np.repeat(np.arange(6), n_values), np.tile(np.arange(n_values), 6), 6, n_values)
    np.testing.assert_array_equal(first, grid[0])
    np.testing.assert_array_equal(candidate_value, grid[1])
    np.testing.assert_array_equal(
        find_common_candidates(object_, value, n_values),
        find_candidates(object_, value, first, candidate_value, n_values),
    )
    assert (find_common_candidates(object_, value * 0 - 1, n_values) == -1).all()


@given(st.lists(st.tuples(small, small, small), min_size=1), st.integers(1, 8))
def test_shards_are_the_claims_cut_between_objects(rows: list[tuple[int, int, int]], n_shards: int) -> None:
    claims = read_claims(rows, on_conflict="first")
    log_truth = np.arange(claims.n_candidates, dtype=np.float64)
    shards = list(claims.shards(n_shards, log_truth))
    assert 1 <= len(shards) <= n_shards
    assert sum(shard.n_objects for shard in shards) == claims.n_objects
    candidate_shift = np.cumsum([0, *(shard.n_candidates for shard in shards)])
    moved = [s.claim_candidate + shift for s, shift in zip(shards, candidate_shift, strict=False)]
    np.testing.assert_array_equal(np.concatenate(moved), claims.claim_candidate)
    np.testing.assert_array_equal(np.concatenate([s.claim_source for s in shards]), claims.claim_source)
    np.testing.assert_array_equal(np.concatenate([s.log_truth for s in shards]), log_truth)
    sizes = np.concatenate([np.diff(s.first_claim) for s in shards])
    np.testing.assert_array_equal(sizes, np.diff(claims.first_claim))


def test_claims_say_what_they_are() -> None:
    claims = read_claims([("a", "o", "x"), ("b", "o", "y")])
    assert repr(claims) == "Claims(n_claims=2, n_sources=2, n_objects=1, n_candidates=2, domain='claimed')"
    assert claims.n_values == 2


def test_claims_on_some_objects_are_those_of_the_whole_table():
    triples = [("a", "x", "1"), ("b", "x", "2"), ("c", "y", "1"), ("a", "z", "3"), ("c", "z", "1")]
    whole = read_claims(triples, domain="claimed")
    (shard,) = whole.shards(1, np.arange(whole.n_candidates, dtype=float))
    some = shard.of_objects(np.array([True, False, True]))
    again = read_claims([triple for triple in triples if triple[1] != "y"], domain="claimed")
    assert some.n_sources == whole.n_sources
    for name in ("first_claim", "first_candidate", "claim_candidate", "claim_source"):
        assert np.array_equal(getattr(some, name), getattr(again, name))
    said = whole.candidate_value[some.log_truth.astype(int)][some.claim_candidate]
    assert [str(whole.values[v]) for v in said] == ["1", "2", "3", "1"]


@given(st.lists(st.tuples(small, small, small), min_size=1), st.integers(1, 8))
def test_shards_put_together_are_the_whole(rows: list[tuple[int, int, int]], n_shards: int) -> None:
    claims = read_claims(rows, on_conflict="first")
    (whole,) = claims.shards(1, np.arange(claims.n_candidates, dtype=np.float64))
    again = joined(list(whole.cut(n_shards)))
    for name in ("claim_source", "claim_candidate", "first_claim", "first_candidate", "log_truth"):
        assert np.array_equal(getattr(again, name), getattr(whole, name))
        assert getattr(again, name).dtype == getattr(whole, name).dtype
