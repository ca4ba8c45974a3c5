"""Claims that a cluster holds, made ready for a fit there."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from consilience.claims.encoding import Claims, Shard
from consilience.models.base import digests, truth_prior
from consilience.models.mss.table import Table, with_domains
from consilience.runners.spread import Spread

if TYPE_CHECKING:
    from consilience.claims.truths import Truths


def prepared(claims: Spread, known: Truths | None) -> tuple[Sequence[Any], Table]:
    """The parts, their domains with the known truths too, and the table that a search goes through."""
    run, parts = claims.runner.map_sum, claims.parts
    if known is not None:
        # A label that a known truth brings into one part is a label of all.
        _, labels = run(_new_labels, parts, known)
        parts, _ = run(_extended, parts, known, labels)
    first = list(accumulate(claims.objects_by_part[:-1], initial=0))
    shards, (n_labels, *_) = run(_shard, parts, claims.n_sources, known, first)
    return parts, Table(claims.runner, shards, claims.n_sources, claims.n_claims, n_labels)


def digests_of(claims: Spread, parts: Sequence[Any], known: Truths | None) -> dict[str, str]:
    """What tells this table, in these parts, from others."""
    _, found = claims.runner.map_sum(_digests, parts, known)
    return {
        name: hashlib.sha256("".join(each[name] for each in found).encode()).hexdigest() for name in found[0]
    }


def _new_labels(part: Claims, known: Truths, prior: None) -> tuple[None, tuple[Any]]:
    from consilience.claims.truths import new_labels

    return None, (new_labels(known, part),)


def _extended(part: Claims, known: Truths, labels: tuple[Any, ...]) -> tuple[Claims, int]:
    from consilience.claims.truths import extend_domains, with_labels

    for some in labels:
        part = with_labels(part, some) if len(some) else part
    return replace(extend_domains(part, known), notes=()), 0


def _shard(part: Claims, n_sources: int, known: Truths | None, first_object: int) -> tuple[Shard, tuple[int]]:
    shard, n_labels = with_domains(*truth_prior(part, known))
    return replace(shard, n_sources=n_sources, first_object=first_object), (n_labels,)


def _digests(part: Claims, known: Truths | None, prior: None) -> tuple[None, tuple[dict[str, str]]]:
    claims, log_truth, _ = truth_prior(part, known)
    return None, (digests(claims, log_truth),)
