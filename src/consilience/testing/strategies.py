"""Random tables of claims, of many shapes: made from a seed for loops, and for Hypothesis."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from consilience.claims.encoding import Claims
from consilience.kernels.state import Beliefs, Globals, Grouping, Prior
from consilience.models.mss.updates import update_sticks


def random_claims(seed: int, domain: str = "given", n_sources: int | None = None) -> Claims:
    """A small table of varied shape: 1–12 sources, 1–15 objects, domains of 1–20 values, sparse to dense.

    Domains are ragged and may hold values that nobody claims, unless `domain` says that they are "common" to all
    objects or what was "claimed".
    """
    rng = np.random.default_rng(seed)
    drawn, n_objects = int(rng.integers(1, 13)), int(rng.integers(1, 16))
    n_sources = drawn if n_sources is None else n_sources
    domain_size = rng.integers(1, rng.choice([2, 3, 6, 21]), n_objects)
    if domain == "common":
        domain_size[:] = domain_size.max()
    observed = rng.random((n_objects, n_sources)) < rng.uniform(0.2, 1.0)
    observed[np.arange(n_objects), rng.integers(n_sources, size=n_objects)] = (
        True  # somebody claims each object
    )
    observed[rng.integers(n_objects, size=n_sources), np.arange(n_sources)] = (
        True  # everybody claims something
    )
    object_, source = np.nonzero(observed)
    first_candidate = np.concatenate([[0], np.cumsum(domain_size)])
    popular = rng.random(len(object_)) < rng.uniform(0, 0.9)
    chosen = np.where(popular, 0, rng.integers(domain_size[object_]))
    claim_candidate = first_candidate[object_] + chosen
    candidate_value = np.arange(first_candidate[-1]) - np.repeat(first_candidate[:-1], domain_size)
    if domain == "claimed":
        kept, claim_candidate = np.unique(claim_candidate, return_inverse=True)
        candidate_value, first_candidate = candidate_value[kept], np.searchsorted(kept, first_candidate)
    return Claims(
        sources=[f"s{n}" for n in range(n_sources)],
        objects=[f"o{m}" for m in range(n_objects)],
        values=[f"v{k}" for k in range(int(domain_size.max()))],
        claim_source=source.astype(np.int32),
        claim_candidate=claim_candidate.astype(np.int32),
        first_claim=np.concatenate([[0], np.cumsum(observed.sum(axis=1))]),
        first_candidate=first_candidate,
        candidate_value=candidate_value.astype(np.int32),
        domain=domain,
    )


def random_prior(seed: int) -> Prior:
    """Counts from well below to well above one; unreliable groups careless or malicious."""
    rng = np.random.default_rng([seed, 1])
    low, high = np.sort(rng.gamma(1.0, 2.0, 2) + 0.02)
    careless = rng.gamma(1.0, 1.0) + 0.02
    malicious = careless * rng.uniform(1, 5) if rng.random() < 0.5 else careless
    return Prior(
        true_count=np.array([careless, high + 0.01]),
        false_count=np.array([malicious, low]),
        reliability=rng.gamma(2.0, 1.0, 2) + 0.1,
        concentration=float(rng.gamma(1.5, 3.0) + 0.1),
    )


def random_globals(claims: Claims, prior: Prior, seed: int, *, tail: bool) -> Globals:
    """Memberships anywhere between hard and even; without the tail some sources know only some of the groups."""
    rng = np.random.default_rng([seed, 2])
    n_groups = int(rng.integers(1, 7))
    width = n_groups + tail
    weight = rng.dirichlet(np.full(width, rng.choice([0.1, 1.0])), claims.n_sources)
    group = np.tile(np.arange(width, dtype=np.int32), (claims.n_sources, 1))
    if not tail:
        keep = rng.random(weight.shape) < 0.7
        keep[np.arange(claims.n_sources), weight.argmax(axis=1)] = True
        weight = np.where(keep, np.maximum(weight, 1e-3), 0.0)
        weight /= weight.sum(axis=1, keepdims=True)
        group = np.where(keep, group, -1).astype(np.int32)
    else:
        weight = np.maximum(weight, 1e-9)
        weight /= weight.sum(axis=1, keepdims=True)
    return Globals(
        group=group,
        membership=weight,
        group_reliability=prior.reliability + rng.gamma(1.0, 2.0, (n_groups, 2)),
        sticks=update_sticks(group, weight, n_groups, prior),
    )


def random_beliefs(seed: int, n_labels: int, n_kinds: int = 2) -> Beliefs:
    """Opinions from faint to sharp, habits from wild to even, kinds of any share, or the first alone; with labels also
    the last alone."""
    rng = np.random.default_rng([seed, 3])
    occurs = np.arange(n_kinds) < rng.integers(1, n_kinds + 1)
    if n_labels > 1 and rng.random() < 0.5:
        occurs = occurs[::-1]
    share = rng.dirichlet(np.ones(n_kinds * n_labels)).reshape(n_kinds, n_labels) * occurs[:, None]
    false_count = float(rng.gamma(1.0, 0.5) + 0.02)
    return Beliefs(
        true_count=false_count + float(rng.gamma(2.0, 3.0) + 0.1),
        false_count=false_count,
        reliability=rng.gamma(2.0, 1.0, (n_kinds, 2)) + 0.2,
        habit=rng.gamma(2.0, 2.0, n_kinds) + 0.3,
        share=share / share.sum(),
        concentration=float(rng.gamma(1.0, 2.0 * 5 ** rng.integers(3)) + 0.1),
    )


def random_lures(beliefs: Beliefs, seed: int) -> Beliefs:
    """The same with lures, where there are more than two labels: on one kind that occurs, or on all."""
    if beliefs.n_labels <= 2:
        return beliefs
    rng = np.random.default_rng([seed, 5])
    lured = rng.beta(1.0, 1.5, beliefs.n_kinds) * beliefs.share.any(axis=1)
    return replace(beliefs, lured=lured * (rng.random(beliefs.n_kinds) < 0.8))


def random_grouping(claims: Claims, beliefs: Beliefs, seed: int) -> Grouping:
    """A partition from one group to everybody alone; reliabilities and habits anywhere, empty groups at the prior."""
    rng = np.random.default_rng([seed, 4])
    n_sources = claims.n_sources
    group = rng.permutation(n_sources)[rng.integers(rng.integers(1, n_sources + 1), size=n_sources)]
    is_empty = np.bincount(group, minlength=n_sources) == 0
    shape = (n_sources, beliefs.n_kinds)
    reliability = beliefs.reliability + rng.gamma(1.0, 2.0, (*shape, 2))
    habit = beliefs.habit_prior + rng.gamma(1.0, 2.0, (*shape, beliefs.n_labels))
    reliability[is_empty], habit[is_empty] = beliefs.reliability, beliefs.habit_prior
    return Grouping(group, reliability, habit)
