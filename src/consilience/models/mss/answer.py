"""From the last sweep to what a user reads: steps over the shards, like the sweeps themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from consilience.claims.encoding import Float, Int, Shard, joined
from consilience.kernels.state import Globals, Locals, Prior
from consilience.models.mss.found import Found
from consilience.models.mss.reliability import Right, count_right, of_groups, right_claims
from consilience.results.cautions import Connected
from consilience.results.decide import decide
from consilience.results.temper import (
    shared_errors,
    some_objects,
    temperature,
    tempered,
    voices_by_object,
)


@dataclass(frozen=True, eq=False)
class Answer:
    """What is reported.

    truth       : by shard (n_candidates,) probabilities
    decision    : by shard (n_objects,) the candidate decided for
    agreement   : of every start the share of objects that it decides as the answer does
    reliability : (n_sources, 3) with an interval
    connected   : which sources share objects, directly or through others
    """

    truth: Sequence[Any]
    decision: Sequence[Any]
    ties: int
    agreement: Sequence[float]
    reliability: Float
    connected: Connected
    learned: dict[str, float]


def answer(found: Found, seed: int) -> Answer:
    """Truths and reliabilities. The paper's inferences give what the paper gives; of a partition, truths are no surer
    than groups that err together allow."""
    run, shards = found.table.runner.map_sum, found.table.shards
    decisions, ties = [], []
    for locals_ in found.locals:
        decision, tied = run(_decide, shards, seed, None, locals_)
        decisions.append(decision)
        ties.append(tied)
    agreement = []
    for decision in decisions:
        _, (agreed, n_objects) = run(_agree, shards, None, None, decisions[0], decision)
        agreement.append(float(agreed / n_objects))
    _, connected = run(_connect, shards, None)
    best, learned = found.locals[0], {}
    if isinstance(found.prior, Prior):
        truth, _ = run(_as_found, shards, None, None, best)
        reliability = of_groups(found.groups, found.prior)
    else:
        group = group_of(found.groups)
        _, seen = run(_look, shards, found.table.n_claims, None, best)
        some, of_some = joined([piece for piece, _ in seen]), np.concatenate([truth for _, truth in seen])
        shared = learned["shared_errors"] = shared_errors(some, group, of_some)
        learned["design_effect"] = found.design_effect
        truth, right = run(_temper, shards, group, shared, best)
        reliability = right_claims(right, group)
    return Answer(truth, decisions[0], ties[0], agreement, reliability, connected, learned)


def group_of(found: Globals) -> Int:
    """(n_sources,) the group of each source in a partition."""
    return found.group[:, 0].astype(np.int64)


def _decide(shard: Shard, seed: int, prior: None, locals_: Locals) -> tuple[Int, int]:
    return decide(np.asarray(locals_.truth), shard.first_candidate, seed, shard.first_object)


def _agree(shard: Shard, given: None, prior: None, one: Int, other: Int) -> tuple[None, Int]:
    return None, np.array([np.count_nonzero(one == other), shard.n_objects])


def _connect(shard: Shard, given: None, prior: None) -> tuple[None, Connected]:
    return None, Connected.of(shard)


def _as_found(shard: Shard, given: None, prior: None, locals_: Locals) -> tuple[Float, int]:
    return np.asarray(locals_.truth), 0


def _look(
    shard: Shard, n_claims: int, prior: None, locals_: Locals
) -> tuple[None, tuple[tuple[Shard, Float]]]:
    return None, (some_objects(shard, np.asarray(locals_.truth), n_claims),)


def _temper(shard: Shard, group: Int, shared: float, locals_: Locals) -> tuple[Float, Right]:
    calm = temperature(voices_by_object(shard, group), shared)
    truth = tempered(np.asarray(locals_.truth), shard.first_candidate, calm)
    return truth, count_right(shard, truth)
