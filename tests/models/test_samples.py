"""Of a large table some objects tell where to look for groups; what is found is an answer about all of them."""

from __future__ import annotations

import numpy as np
import pytest

import consilience as cs
from consilience.datasets.synthetic import planted
from consilience.models.mss import model as module
from consilience.models.mss.model import _samples


@pytest.fixture
def small_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a table of a thousand objects is large: first about 300 objects, then 600, then all."""
    monkeypatch.setattr(module, "FEW_CLAIMS", 4_000)
    monkeypatch.setattr(module, "FEW_OF_SOURCE", 1)
    monkeypatch.setattr(module, "MANY_OF_SOURCE", 130)


def test_samples_are_nested_and_of_the_size_wanted(small_samples: None) -> None:
    claims = cs.read_claims(planted("six-groups", seed=0).claims)
    few, many = _samples(claims, np.random.default_rng(0))
    assert few is not None
    assert many is not None
    assert np.all(many[few])
    for chosen, wanted in ((few, 4_000), (many, 130 * claims.n_sources)):
        assert wanted <= claims.of_objects(chosen).n_claims <= wanted + claims.n_sources


def test_small_tables_are_taken_whole() -> None:
    claims = cs.read_claims(planted("six-groups", seed=0).claims)
    assert _samples(claims, np.random.default_rng(0)) == [None, None]


@pytest.mark.parametrize("case", ["copied-leader", "six-groups", "independent"])
def test_a_sampled_search_ends_where_the_whole_one_does(case: str, small_samples: None) -> None:
    made = planted(case, n_objects=2_000, seed=0)
    claims = cs.read_claims(made.claims)
    sampled = cs.MSS().fit(claims, seed=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FEW_CLAIMS", 10**9)
        whole = cs.MSS().fit(claims, seed=0)
    assert sampled.n_groups == whole.n_groups
    assert sampled.bound == pytest.approx(whole.bound, rel=2e-3)
    assert sampled.score(made.truth).accuracy == pytest.approx(whole.score(made.truth).accuracy, abs=0.005)
    bounds = [record["bound"] for record in sampled.trace]
    assert bounds == sorted(bounds)
    assert bounds[-1] == sampled.bound


def test_a_sampled_search_has_the_same_bits_again_and_heeds_known_truths(small_samples: None) -> None:
    made = planted("copied-leader", n_objects=2_000, seed=1)
    claims = cs.read_claims(made.claims)
    known = dict(
        list(zip(made.truth["object"].to_pylist(), made.truth["value"].to_pylist(), strict=True))[:200]
    )
    one, other = (cs.MSS().fit(claims, known=known, seed=3) for _ in range(2))
    assert np.array_equal(one.truth, other.truth)
    assert one.bound == other.bound
    found = dict(zip(one.truths["object"].to_pylist(), one.truths["value"].to_pylist(), strict=True))
    assert all(found[name] == value for name, value in known.items())
