"""Claims that a cluster holds, made ready for a fit there."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consilience.claims.encoding import Claims, Float, Shard
from consilience.models.base import digests, truth_prior
from consilience.models.mss.table import Table, with_domains
from consilience.runners.spread import Spread

Ready = tuple[Claims, Float, NDArray[np.bool_] | None]
"""Claims whose domains hold the known truths too, ln p of the candidates, and of which objects it is known."""


def prepared(claims: Spread, known: Any) -> tuple[Sequence[Any], Table]:
    """The parts with what is known of them, and the table that a search goes through."""
    run, parts = claims.runner.map_sum, claims.parts
    if known is not None:
        from consilience.claims.reading import read_truths

        known = read_truths(known)
        # A label that a known truth brings into one part is a label of all.
        _, labels = run(_new_labels, parts, known)
        parts, _ = run(_with_labels, parts, labels)
    parts, _ = run(_ready, parts, known)
    first = list(accumulate(claims.objects_by_part[:-1], initial=0))
    shards, (n_labels, *_) = run(_shard, parts, claims.n_sources, None, first)
    return parts, Table(claims.runner, shards, claims.n_sources, claims.n_claims, n_labels)


def digests_of(claims: Spread, parts: Sequence[Any]) -> dict[str, str]:
    """What tells this table, in these parts, from others."""
    _, found = claims.runner.map_sum(_digests, parts, None)
    return {
        name: hashlib.sha256("".join(each[name] for each in found).encode()).hexdigest() for name in found[0]
    }


def _new_labels(part: Claims, known: Any, prior: None) -> tuple[None, tuple[Any]]:
    from consilience.claims.truths import new_labels

    return None, (new_labels(known, part),)


def _with_labels(part: Claims, labels: tuple[Any, ...], prior: None) -> tuple[Claims, int]:
    from consilience.claims.truths import with_labels

    for some in labels:
        part = with_labels(part, some) if len(some) else part
    return part, 0


def _ready(part: Claims, known: Any, prior: None) -> tuple[Ready, int]:
    return truth_prior(part, known), 0


def _shard(part: Ready, n_sources: int, prior: None, first_object: int) -> tuple[Shard, tuple[int]]:
    shard, n_labels = with_domains(*part)
    return replace(shard, n_sources=n_sources, first_object=first_object), (n_labels,)


def _digests(part: Ready, given: None, prior: None) -> tuple[None, tuple[dict[str, str]]]:
    claims, log_truth, _ = part
    return None, (digests(claims, log_truth),)
