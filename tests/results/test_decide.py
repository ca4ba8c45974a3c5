from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.results.decide import decide


def offsets(sizes: list[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(sizes)])


@given(
    st.lists(st.lists(st.sampled_from([0.1, 0.2, 0.3]), min_size=1, max_size=6), max_size=20),
    st.integers(0, 99),
)
def test_the_decision_is_among_the_best_and_ties_are_counted(objects: list[list[float]], seed: int) -> None:
    truth = np.array([p for candidates in objects for p in candidates])
    first = offsets([len(candidates) for candidates in objects])
    decision, ties = decide(truth, first, seed)
    assert len(decision) == len(objects)
    for m, candidates in enumerate(objects):
        assert first[m] <= decision[m] < first[m + 1]
        assert truth[decision[m]] == max(candidates)
    assert ties == sum(candidates.count(max(candidates)) > 1 for candidates in objects)


def test_a_difference_of_rounding_is_a_tie_and_a_larger_one_is_not() -> None:
    decision, ties = decide(np.array([0.5, 0.5 + 1e-12, 0.5, 0.5 + 1e-6]), np.array([0, 2, 4]), seed=0)
    assert ties == 1
    assert decision[1] == 3


def test_ties_do_not_favour_a_place() -> None:
    n, k = 6000, 3
    decision, ties = decide(np.full(n * k, 1 / k), offsets([k] * n), seed=7)
    assert ties == n
    share = np.bincount(decision % k, minlength=k) / n
    assert share == pytest.approx(np.full(k, 1 / k), abs=0.03)


def test_the_seed_decides_ties_and_nothing_else_does() -> None:
    truth, first = np.full(40, 0.5), offsets([2] * 20)
    again = [decide(truth, first, seed)[0].tolist() for seed in (1, 1, 2)]
    assert again[0] == again[1] != again[2]
    # An object keeps its decision when objects behind it are added: shards cannot matter.
    assert decide(truth[:20], first[:11], 1)[0].tolist() == again[0][:10]


@pytest.mark.parametrize("seed", [0, -1, 2**63, 2**70])
def test_any_whole_number_is_a_seed(seed: int) -> None:
    assert decide(np.array([0.5, 0.5]), np.array([0, 2]), seed)[0][0] in (0, 1)
