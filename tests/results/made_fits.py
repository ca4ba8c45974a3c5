"""Fits made by hand, without a model: small tables whose every number slow, obvious code can check. And one by the
search, whose groups are found and not made up.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from consilience.claims.encoding import Claims
from consilience.claims.reading import read_claims
from consilience.datasets.synthetic import planted
from consilience.kernels.numpy_ import structured
from consilience.kernels.state import Globals, Prior
from consilience.models.mss.model import MSS
from consilience.results.decide import decide
from consilience.results.fit import Fit

PRIOR = Prior(np.array([0.1, 10.0]), np.array([0.1, 0.5]), np.array([1.0, 2.0]), 5.0)


def claims_of(triples: Sequence[tuple[Any, Any, Any]], **kwargs: Any) -> Claims:
    """Encode triples the slow way: vocabularies sorted, claims by object then source, candidates by value."""
    sources, objects, values = (sorted({row[i] for row in triples}) for i in range(3))
    rows = sorted(triples, key=lambda row: (objects.index(row[1]), sources.index(row[0])))
    candidates = sorted({(objects.index(o), values.index(v)) for _, o, v in rows})
    claim_object = np.array([objects.index(o) for _, o, _ in rows], dtype=np.int64)
    candidate_object = np.array([m for m, _ in candidates], dtype=np.int64)
    return Claims(
        sources=pa.array(sources),
        objects=pa.array(objects),
        values=pa.array(values),
        claim_source=np.array([sources.index(s) for s, _, _ in rows], dtype=np.int32),
        claim_candidate=np.array(
            [candidates.index((objects.index(o), values.index(v))) for _, o, v in rows], dtype=np.int32
        ),
        first_claim=np.searchsorted(claim_object, np.arange(len(objects) + 1)),
        first_candidate=np.searchsorted(candidate_object, np.arange(len(objects) + 1)),
        candidate_value=np.array([v for _, v in candidates], dtype=np.int32),
        **kwargs,
    )


def random_triples(
    rng: np.random.Generator, n_sources: int = 8, n_objects: int = 12
) -> list[tuple[str, str, str]]:
    rows = [
        (f"s{n}", f"o{m:02d}", f"v{rng.integers(4)}")
        for n in range(n_sources)
        for m in range(n_objects)
        if rng.random() < 0.6
    ]
    return rows or [("s0", "o00", "v0")]


def random_globals(
    rng: np.random.Generator, n_sources: int, n_groups: int = 4, *, tail: bool = False
) -> Globals:
    """Memberships over every group (and the tail), some of them padding."""
    width = n_groups + tail
    weight = rng.dirichlet(np.full(width, 0.3), size=n_sources)
    weight = np.where(weight < 0.05, 0.0, weight)
    weight /= weight.sum(axis=1, keepdims=True)
    group = np.tile(np.arange(width, dtype=np.int32), (n_sources, 1))
    group = np.where(weight > 0, group, -1).astype(np.int32)
    return Globals(group, weight, rng.uniform(0.5, 20, (n_groups, 2)), rng.uniform(0.5, 5, (n_groups, 2)))


def fit_of(
    claims: Claims, groups_found: Globals | None = None, prior: Prior | None = PRIOR, **kwargs: Any
) -> Fit:
    """A fit whose truths follow from the groups (or, without groups, from the shares of claims)."""
    sizes = np.diff(claims.first_candidate)
    if groups_found is None or prior is None:
        votes = np.bincount(claims.claim_candidate, minlength=claims.n_candidates).astype(np.float64)
        truth = votes / np.repeat(np.add.reduceat(votes, claims.first_candidate[:-1]), sizes)
        reliability = np.full((claims.n_sources, 3), np.nan)
        reliability[:, 0] = np.linspace(0.2, 0.9, claims.n_sources)
        prior = None
    else:
        log_truth = -np.log(np.repeat(sizes, sizes))
        (shard,) = claims.shards(1, log_truth)
        truth = structured(shard, without_tail(groups_found), prior)[0].truth
        mean = np.append(
            groups_found.group_reliability[:, 1] / groups_found.group_reliability.sum(axis=1), 0.5
        )
        of_source = np.sum(groups_found.membership * mean[groups_found.group], axis=1)
        reliability = np.column_stack([of_source, of_source * 0.9, np.minimum(of_source * 1.1, 1.0)])
    decision, ties = decide(truth, claims.first_candidate, 0)
    facts: dict[str, Any] = {
        "model": "made",
        "settings": {"concentration": 5.0, "true_count": [0.1, 10.0]},
        "learned": {"starts_agree": np.int64(3)},
        "seed": 0,
        "ties": ties,
        "sweeps": 2,
        "converged": True,
        "seconds": 0.25,
        "starts": (
            {"bound": -1 / 3, "sweeps": 2, "agreement": 1.0},
            {"bound": -0.5, "sweeps": 3, "agreement": 0.75},
        ),
        "trace": ({"bound": -10.5, "claims": -9.0}, {"bound": -1 / 3, "claims": -8.0}),
        "provenance": {"engine": "numpy"},
        "warnings": ("close call",),
    }
    return Fit(
        claims=claims,
        truth=truth,
        decision=decision,
        source_reliability=reliability,
        groups_found=groups_found,
        prior=prior,
        **{**facts, **kwargs},
    )


def without_tail(found: Globals) -> Globals:
    weight = np.where(found.group < found.n_groups, found.membership, 0.0)
    return Globals(found.group, weight, found.group_reliability, found.sticks)


def random_fit(seed: int, *, groups: bool = True, tail: bool = False) -> Fit:
    rng = np.random.default_rng(seed)
    claims = claims_of(random_triples(rng))
    return fit_of(claims, random_globals(rng, claims.n_sources, tail=tail) if groups else None)


def capitals_fit() -> Fit:
    """Five copiers against two good sources on three countries: the copiers are one voice."""
    truth = {"Australia": "Canberra", "Brazil": "Brasília", "Canada": "Ottawa"}
    wrong = {"Australia": "Sydney", "Brazil": "Rio", "Canada": "Ottawa"}
    triples = [(f"copier{i}", country, city) for i in range(5) for country, city in wrong.items()]
    triples += [(name, country, city) for name in ("atlas", "gazette") for country, city in truth.items()]
    found = Globals(  # sources sort as atlas, copier0 to copier4, gazette
        group=np.array([[1], [2], [2], [2], [2], [2], [0]], dtype=np.int32),
        membership=np.ones((7, 1)),
        group_reliability=np.array([[2.0, 30.0], [3.0, 28.0], [20.0, 12.0]]),
        sticks=np.array([[2.0, 10.0], [2.0, 9.0], [6.0, 5.0]]),
    )
    return fit_of(claims_of(triples), found)


@cache
def partition_fit(domain: str = "common", known: bool = False) -> Fit:
    """Six planted groups, found by the default inference; with `known`, some truths given, one that nobody claims."""
    data = planted("six-groups", n_objects=60, seed=0)
    given = None
    if known:
        given = dict(zip(data.truth["object"].to_pylist()[:9], data.truth["value"].to_pylist(), strict=False))
        given[next(iter(given))] = "nobody says this"
    return MSS(n_starts=2).fit(read_claims(data.claims, domain=domain), known=given)
