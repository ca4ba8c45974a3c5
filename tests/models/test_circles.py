"""Circles: who belongs together where there are too many sources to compare them all."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import consilience as cs
from consilience.datasets.simulated import Simulated
from consilience.datasets.synthetic import bloc
from consilience.models.mss import circles as circles_
from consilience.models.mss import partition, search
from consilience.models.mss.circles import circles, is_minority

LARGE = bloc(n_sources=600, n_objects=6_000, seed=3)


def found(table: Simulated, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of every source, the circle that it is put in, first on one side then on the other, and its planted group."""
    claims = cs.read_claims(table.claims)
    order = np.random.default_rng(seed).permutation(claims.n_sources)
    one, other = circles(claims, is_minority(claims), order, np.random.default_rng(seed))
    names, groups = (table.groups.column(name).to_pylist() for name in ("source", "group"))
    group = dict(zip(names, groups, strict=True))
    return one, other, np.array([group[source] for source in claims.sources.to_pylist()])


@pytest.mark.parametrize("seed", [0, 1])
def test_a_bloc_is_one_circle_and_all_others_are_in_none(seed: int) -> None:
    circle, _, group = found(LARGE, seed=seed)
    is_bloc = group == np.bincount(group).argmax()
    assert circle.max() == 0
    assert np.mean(circle[is_bloc] == 0) > 0.95
    assert np.mean(circle[~is_bloc] == -1) > 0.95


def test_what_stands_out_has_another_side() -> None:
    one, other, group = found(LARGE)
    assert np.mean((one >= 0) & (other >= 0)) < 0.05
    assert np.mean(group[other >= 0] == np.bincount(group).argmax()) < 0.05


def drawn(group: np.ndarray, seed: int, n_objects: int = 6_000) -> cs.Claims:
    """Ten claims on each object; all in a group repeat nine times in ten what its leader says."""
    rng, n_sources, shape = np.random.default_rng(seed), len(group), (n_objects, 10)
    truth = rng.integers(4, size=(n_objects, 1))

    def said(right: np.ndarray) -> np.ndarray:
        return np.where(right, truth, (truth + rng.integers(1, 4, right.shape)) % 4)

    source = np.argsort(rng.random((n_objects, n_sources)), axis=1)[:, :10]
    leader = said(rng.random((n_objects, n_sources)) < 0.6)
    repeats = (group >= 0)[source] & (rng.random(shape) < 0.9)
    led = leader[np.arange(n_objects)[:, None], group[source]]
    value = np.where(repeats, led, said(rng.random(shape) < rng.uniform(0.4, 0.95, n_sources)[source]))
    rows = zip(source.ravel(), np.repeat(np.arange(n_objects), 10), value.ravel(), strict=True)
    return cs.read_claims([(f"s{n:03}", f"o{m}", f"v{z}") for n, m, z in rows])


def test_groups_are_circles_of_their_own() -> None:
    group = np.repeat(np.maximum(np.arange(-5, 6), -1), 50)
    claims = drawn(group, seed=1)
    circle, _ = circles(claims, is_minority(claims), np.arange(550), np.random.default_rng(0))
    assert 5 <= circle.max() + 1 <= 6  # the last may be seen only once the others are together
    for i in range(circle.max() + 1):
        members = group[circle == i]
        assert np.bincount(members + 1).max() >= 0.9 * len(members)
    assert np.mean(circle[group >= 0] >= 0) > 0.7


TWELVE = np.concatenate([np.repeat(np.arange(12), 40), np.full(300, -1)])
"""Groups that hardly stand out of what chance leaves, with 9,000 objects, and some of them not at all."""


@pytest.mark.parametrize("seed", [0, 1])
def test_circles_that_pass_for_one_are_taken_apart(seed: int) -> None:
    claims = drawn(TWELVE, seed, n_objects=9_000)
    circle, _ = circles(claims, is_minority(claims), np.arange(len(TWELVE)), np.random.default_rng(0))
    assert len(np.unique(circle[circle >= 0])) >= 8
    for i in np.unique(circle[circle >= 0]):
        members = TWELVE[circle == i]
        assert np.bincount(members + 1).max() > 0.6 * len(members)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_most_groups_of_many_sources_are_found_whole(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """A story in which many are put together at once must not be given up because its first sweep brings little, nor
    one bad circle spoil all."""
    for module in (search, partition):
        monkeypatch.setattr(module, "MOST_SOURCES", 100)
    claims = drawn(TWELVE, seed, n_objects=9_000)
    fit = cs.MSS().fit(claims, seed=seed)
    planted = TWELVE[[int(name[1:]) for name in claims.sources.to_pylist()]]
    group = fit.groups_found.group[:, 0]
    assert sum(np.bincount(group[planted == g]).max() >= 38 for g in range(12)) >= 9


def test_independent_sources_are_in_none() -> None:
    claims = drawn(np.full(450, -1), seed=5)
    assert not circles(claims, is_minority(claims), np.arange(450), np.random.default_rng(0))


@pytest.mark.parametrize(("n_mistakes", "n_sharing"), [(20, 5), (10, 10), (20, 100)])
def test_mistakes_that_many_share_by_chance_are_no_circle(n_mistakes: int, n_sharing: int) -> None:
    """All who make a mistake share it, two by two: entries are not independent, and Wigner's bound is too low."""
    rng, n_sources = np.random.default_rng(0), 1_500
    n_objects = n_sources * n_mistakes // (3 * n_sharing)
    source = np.array([rng.permutation(n_sources)[: 3 * n_sharing] for _ in range(n_objects)])
    rows = [(f"s{n}", f"o{m}", f"v{i % 3}") for m in range(n_objects) for i, n in enumerate(source[m])]
    claims = cs.read_claims(rows)
    order = np.arange(claims.n_sources)
    assert not circles(claims, is_minority(claims), order, np.random.default_rng(0))


def test_a_loose_circle_that_hardly_stands_out_is_seen() -> None:
    """Forty of 1,000 sources make some of sixty mistakes that they alone make, beside ten of anybody's each."""
    n_sources, n_common, n_own, seen = 1_000, 1_000, 60, 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        makes = [(n, m) for n in range(n_sources) for m in rng.permutation(n_common)[:10]]
        makes += [(n, n_common + m) for n in range(40) for m in np.flatnonzero(rng.random(n_own) < 0.14)]
        claims = cs.read_claims([(f"s{n}", f"o{m}", "x") for n, m in makes], domain=["x", "y"])
        everything, order = np.ones(claims.n_candidates, bool), np.arange(claims.n_sources)
        seen += bool(circles(claims, everything, order, np.random.default_rng(seed)))
    assert seen >= 11


def test_where_pairs_are_too_many_the_rarest_mistakes_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    claims = cs.read_claims(LARGE.claims)
    is_mistake = is_minority(claims)
    all_of_them = circles_._mistakes(claims, is_mistake)
    votes = np.unique(all_of_them.sum(axis=0))
    monkeypatch.setattr(circles_, "MOST_PAIRS", 4 * int(np.sum(all_of_them.sum(axis=0) == 2)))
    rarest = circles_._mistakes(claims, is_mistake)
    assert votes.max() > 2
    assert 0 < rarest.shape[1] < all_of_them.shape[1]
    assert np.all(rarest.sum(axis=0) == 2)


def test_nothing_shared_is_no_circle() -> None:
    claims = cs.read_claims([(f"s{n}", f"o{n}", "x") for n in range(20)], domain=["x", "y"])
    assert not circles(claims, is_minority(claims), np.arange(20), np.random.default_rng(0))


def test_many_sources_are_searched_from_their_circles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Voting has .72 here, every source alone .5; and who is called what changes nothing."""
    for module in (search, partition):
        monkeypatch.setattr(module, "MOST_SOURCES", 100)
    fit = cs.MSS().fit(LARGE.claims)
    assert len(fit.starts) == 2
    assert fit.score(LARGE.truth).accuracy > 0.9
    assert fit.groups_found.group[:, 0].max() > 100  # all others are alone

    names = [f"{int(name[-3:]) * 7 % 1000:03}" for name in LARGE.claims.column("source").to_pylist()]
    renamed = LARGE.claims.set_column(0, "source", pa.array(names))
    again = cs.MSS().fit(renamed)
    assert np.allclose(again.truth, fit.truth, atol=1e-9)
