"""Of a large table some objects tell where to look for groups; what is found is an answer about all of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

import consilience as cs
from consilience.claims.encoding import Claims
from consilience.datasets.synthetic import planted
from consilience.models.mss import samples as module
from consilience.models.mss.samples import samples
from consilience.models.mss.table import Table, with_domains
from consilience.runners.inline import Inline


@pytest.fixture
def small_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a table of a thousand objects is large: first about 300 objects, then 600, then all."""
    monkeypatch.setattr(module, "FEW_CLAIMS", 4_000)
    monkeypatch.setattr(module, "FEW_OF_SOURCE", 1)
    monkeypatch.setattr(module, "MANY_OF_SOURCE", 130)


def table_of(claims: Claims, is_known: NDArray[np.bool_] | None = None, shards: int = 1) -> Table:
    """With candidates that carry the number of their object as ln p, to be known by."""
    whole, n_labels = with_domains(claims, np.zeros(claims.n_candidates), is_known)
    named = replace(whole, log_truth=claims.candidate_object().astype(float))
    return Table.of(named, n_labels, Inline(shards=shards), 1)


def objects_of(sample: Table) -> set[int]:
    return set(sample.here.log_truth.astype(int).tolist())


def test_samples_are_nested_of_the_size_wanted_and_the_same_however_the_table_is_cut(
    small_samples: None,
) -> None:
    claims = cs.read_claims(planted("six-groups", seed=0).claims)
    few, many = samples(table_of(claims), seed=0)
    assert objects_of(few) < objects_of(many)
    for sample, wanted in ((few, 4_000), (many, 130 * claims.n_sources)):
        assert wanted <= sample.n_claims <= wanted + claims.n_sources
    for shards in (2, 7):
        again = samples(table_of(claims, shards=shards), seed=0)
        assert [objects_of(sample) for sample in again] == [objects_of(few), objects_of(many)]
        assert np.array_equal(again[1].here.claim_candidate, many.here.claim_candidate)
    assert objects_of(samples(table_of(claims), seed=1)[0]) != objects_of(few)


def test_small_tables_are_taken_whole() -> None:
    table = table_of(cs.read_claims(planted("six-groups", seed=0).claims))
    assert samples(table, seed=0) == (table, table)


@pytest.mark.parametrize("case", ["copied-leader", "six-groups", "independent"])
def test_a_sampled_search_ends_where_the_whole_one_does(case: str, small_samples: None) -> None:
    made = planted(case, n_objects=2_000, seed=0)
    claims = cs.read_claims(made.claims)
    sampled = cs.MSS().fit(claims, seed=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FEW_CLAIMS", 10**9)
        whole = cs.MSS().fit(claims, seed=0)
    assert abs(sampled.n_groups - whole.n_groups) <= 1
    assert sampled.bound == pytest.approx(whole.bound, rel=2e-3)
    assert sampled.score(made.truth).accuracy == pytest.approx(whole.score(made.truth).accuracy, abs=0.005)
    bounds = [record["bound"] for record in sampled.trace]
    assert bounds == sorted(bounds)
    assert bounds[-1] == sampled.bound
    assert sampled.bound == max(start["bound"] for start in sampled.starts)


def test_a_sampled_search_has_the_same_bits_again_and_heeds_known_truths(small_samples: None) -> None:
    made = planted("copied-leader", n_objects=2_000, seed=1)
    claims = cs.read_claims(made.claims)
    known = dict(
        list(zip(made.truth["object"].to_pylist(), made.truth["value"].to_pylist(), strict=True))[:200]
    )
    one, other = (cs.MSS().fit(claims, known=known, seed=3) for _ in range(2))
    assert np.array_equal(one.truth, other.truth)
    assert one.bound == other.bound
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FEW_CLAIMS", 10**9)
        whole = cs.MSS().fit(claims, known=known, seed=3)
    assert one.bound > whole.bound - 2e-3 * abs(whole.bound)
    found = dict(zip(one.truths["object"].to_pylist(), one.truths["value"].to_pylist(), strict=True))
    assert all(found[name] == value for name, value in known.items())


def test_light_sources_and_known_truths_are_not_sampled_away(small_samples: None) -> None:
    """A few copiers that share a batch of a table whose other sources claim everything."""
    rng = np.random.default_rng(0)
    n_objects, batch = 2_000, 20
    truth, copied = rng.integers(4, size=n_objects), rng.integers(4, size=n_objects)
    rows = []
    for n in range(8):
        said = np.where(rng.random(n_objects) < 0.75, truth, rng.integers(4, size=n_objects))
        rows += [(f"heavy{n}", f"object{m}", f"v{said[m]}") for m in range(n_objects)]
    for n in range(30):
        rows += [(f"copier{n}", f"object{m}", f"v{copied[m]}") for m in range(batch)]
    claims = cs.read_claims(rows)
    is_known = np.zeros(claims.n_objects, np.bool_)
    is_known[-3:] = True
    few, _ = samples(table_of(claims, is_known), seed=0)
    names = {str(claims.objects[m]) for m in objects_of(few)}
    assert {f"object{m}" for m in range(batch)} <= names
    assert set(np.flatnonzero(is_known).tolist()) <= objects_of(few)

    fit = cs.MSS().fit(claims, seed=0)
    group = dict(zip(fit.sources["source"].to_pylist(), fit.sources["group"].to_pylist(), strict=True))
    assert len({group[f"copier{n}"] for n in range(30)}) == 1
    gold = {f"object{m}": f"v{truth[m]}" for m in range(batch)}
    assert fit.score(gold).accuracy > 0.8
