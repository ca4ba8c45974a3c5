"""What the groups of a fit say about some of its objects: the same kernels as in the fit, on a part of its claims.

Nothing here reads more of the claims than those objects', so it is as quick on a table of millions, left on the disk.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

import numpy as np

from consilience.claims.encoding import Float, Int, Shard
from consilience.kernels import numpy_, numpy_partition
from consilience.kernels.lures import unfolded
from consilience.kernels.state import Beliefs, Evidence, Globals, Partition, Prior

if TYPE_CHECKING:
    from consilience.results.fit import Fit


def shard_of(fit: Fit, start: int, stop: int) -> Shard:
    """Objects start … stop - 1 alone. Where the truth was given, no other candidate is possible."""
    claims = fit.claims
    first_claim = np.asarray(claims.first_claim[start : stop + 1])
    first_candidate = np.asarray(claims.first_candidate[start : stop + 1])
    here, candidates = slice(*first_claim[[0, -1]]), slice(*first_candidate[[0, -1]])
    size = np.diff(first_candidate)
    # Where domains are what was claimed, the partition inference lets the truth be a value that nobody claims.
    room = size + (claims.domain == "claimed")
    known = np.zeros(len(size), np.bool_) if fit.known is None else np.asarray(fit.known[start:stop])
    return Shard(
        claim_source=np.asarray(claims.claim_source[here]),
        claim_candidate=claims.claim_candidate[here] - first_candidate[0],
        first_claim=first_claim - first_claim[0],
        first_candidate=first_candidate - first_candidate[0],
        log_truth=np.where(
            np.repeat(known, size) & (fit.truth[candidates] == 0), -np.inf, np.repeat(-np.log(room), size)
        ),
        label=claims.candidate_value[candidates].astype(np.int64),
        log_unclaimed=np.where((room > size) & ~known, -np.log(room), -np.inf),
    )


def evidence_of(shard: Shard, found: Globals, prior: Prior | Beliefs) -> Evidence:
    """What each group says about each of these objects."""
    shard, near, groups = _near(shard, found)
    if isinstance(near, Partition) and isinstance(prior, Beliefs):
        told = numpy_partition.evidence(shard, *unfolded(near.grouping(), prior))
    else:
        assert isinstance(prior, Prior)
        told = numpy_.evidence(shard, near, prior)
    return replace(told, pair_group=groups[told.pair_group])


def truth_without(shard: Shard, found: Globals, prior: Prior | Beliefs, silent: Int) -> Float:
    """(P, K) the truth of one object had the claims of one group after the other not been made, all else as it is.

    silent : (P, n_claims) whether a claim is left out; in each row at least one must be left
    """
    spoken = ~silent.astype(np.bool_)
    n, size = len(spoken), shard.n_candidates
    row, claim = np.nonzero(spoken)
    copies = replace(
        shard,
        claim_source=shard.claim_source[claim],
        claim_candidate=shard.claim_candidate[claim] + row * size,
        first_claim=np.append(0, np.cumsum(spoken.sum(axis=1))),
        first_candidate=np.arange(n + 1) * size,
        log_truth=np.tile(shard.log_truth, n),
        label=np.tile(shard.label, n),
        log_unclaimed=np.tile(shard.log_unclaimed, n),
    )
    copies, near, _ = _near(copies, found)
    if isinstance(near, Partition) and isinstance(prior, Beliefs):
        truth = numpy_partition.partition(copies, *unfolded(near.grouping(), prior))[0].truth
    else:
        assert isinstance(prior, Prior)
        truth = numpy_.structured(copies, near, prior)[0].truth
    return truth.reshape(n, size)


def _near(shard: Shard, found: Globals) -> tuple[Shard, Globals, Int]:
    """The sources that claim here and their groups alone, numbered anew, and the groups' old numbers: the work for one
    object does not grow with the table. The tail of unseen groups has no answers of its own to weigh."""
    who, claim_source = np.unique(shard.claim_source, return_inverse=True)
    group = found.group[who]
    is_seen = (group >= 0) & (group < found.n_groups)
    groups = np.unique(group[is_seen])
    of_group = {
        field.name: getattr(found, field.name)[groups]
        for field in fields(found)
        if field.name not in ("group", "membership")
    }
    near = replace(
        found,
        group=np.where(is_seen, np.searchsorted(groups, group), -1),
        membership=np.where(is_seen, found.membership[who], 0.0),
        **of_group,
    )
    return replace(shard, claim_source=claim_source), near, groups
