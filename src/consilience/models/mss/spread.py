"""Claims that a cluster holds, made ready for a fit there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from consilience.claims.encoding import Claims, Int, Shard
from consilience.models.base import truth_prior
from consilience.models.mss.table import Table, median_size, n_by_size, with_domains
from consilience.results.decide import hashed
from consilience.runners.spread import Spread

if TYPE_CHECKING:
    from consilience.claims.truths import Truths


def prepared(claims: Spread, known: Truths | None, fewest: int) -> tuple[Sequence[Any], Table]:
    """The parts, their domains with the known truths too, and the table that a search goes through."""
    run, parts = claims.runner.map_sum, claims.parts
    if known is not None:
        # A label that a known truth brings into one part is a label of all.
        _, labels = run(_new_labels, parts, known)
        parts, _ = run(_extended, parts, known, labels)
    first = list(accumulate(claims.objects_by_part[:-1], initial=0))
    shards, counted = run(_shard, parts, claims.n_sources, known, first)
    n_labels, *others = {labels for labels, _ in counted}
    assert not others, "labels are common to all parts, or there are none"
    domain_size = median_size([n for _, n in counted])
    return parts, Table(
        claims.runner, shards, claims.n_sources, claims.n_claims, n_labels, domain_size, fewest
    )


def digests_of(table: Table) -> dict[str, str]:
    """What tells this table from others, however it is cut: sums of hashes."""
    _, (claims, known) = table.runner.map_sum(_digests, table.shards, None)
    return {"claims": f"{int(claims):016x}", "known truths": f"{int(known):016x}"}


def _new_labels(part: Claims, known: Truths, prior: None) -> tuple[None, tuple[Any]]:
    from consilience.claims.truths import new_labels

    return None, (new_labels(known, part),)


def _extended(part: Claims, known: Truths, labels: tuple[Any, ...]) -> tuple[Claims, int]:
    import pyarrow as pa

    from consilience.claims.truths import extend_domains, with_labels

    if any(len(some) for some in labels):
        part = with_labels(part, pa.concat_arrays(labels))
    return replace(extend_domains(part, known), notes=()), 0


def _shard(
    part: Claims, n_sources: int, known: Truths | None, first_object: int
) -> tuple[Shard, tuple[tuple[int, Int]]]:
    shard, n_labels = with_domains(*truth_prior(part, known))
    return replace(shard, n_sources=n_sources, first_object=first_object), ((n_labels, n_by_size(shard)),)


def _digests(shard: Shard, given: None, prior: None) -> tuple[None, NDArray[np.uint64]]:
    """Σ hash(object, source, place in the domain) over claims, and Σ hash(object, place, ln p) over what is known."""

    def numbers(owner: Int, other: Int) -> NDArray[np.uint64]:
        return ((owner + shard.first_object).astype(np.uint64) << np.uint64(32)) | other.astype(np.uint64)

    owner, candidate_owner = shard.claim_object(), shard.candidate_object()
    place = shard.claim_candidate - shard.first_candidate[owner]
    of_claims = hashed(hashed(numbers(owner, shard.claim_source), 0) ^ place.astype(np.uint64), 1)
    is_out = np.isneginf(shard.log_truth)
    out = np.arange(shard.n_candidates) - shard.first_candidate[candidate_owner]
    of_known = hashed(numbers(candidate_owner[is_out], out[is_out]), 2)
    return None, np.array([of_claims.sum(dtype=np.uint64), of_known.sum(dtype=np.uint64)])
