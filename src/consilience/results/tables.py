"""The tables of a Fit as Arrow: indices decoded once, back to the caller's own ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from consilience.claims.encoding import Claims, Float, Int
from consilience.kernels.state import Globals
from consilience.results.decide import decide
from consilience.results.groups import Numbering

if TYPE_CHECKING:
    from consilience.results.fit import Fit


def truths_table(fit: Fit) -> pa.Table:
    """object, value, probability, runner_up, margin, n_claims: a row for each object, in the order of the
    objects.

    The runner-up is the most probable of the other candidates. Where there is no other, it is null and the
    margin is the whole probability.
    """
    return decided(fit.claims, fit.truth, fit.decision)


def decided(claims: Claims, truth: Float, decision: Int) -> pa.Table:
    """The same, of some claims with the probabilities of their candidates and the decisions."""
    second, alone = runner_up(claims, truth, decision)
    probability = truth[decision]
    margin = probability - np.where(alone, 0.0, truth[second])
    return pa.table(
        {
            "object": ids(claims.objects),
            "value": values_of(claims, decision),
            "probability": probability,
            "runner_up": values_of(claims, second, null=alone),
            # The seed may decide a tie for the candidate that rounding left behind.
            "margin": np.maximum(margin, 0.0),
            "n_claims": np.diff(claims.first_claim).astype(np.int64),
        }
    )


def sources_table(fit: Fit) -> pa.Table:
    """source, reliability, low, high, group, n_claims: the most reliable first, then by id."""
    n_claims = np.bincount(fit.claims.claim_source, minlength=fit.claims.n_sources)
    return rated(fit.claims.sources, fit.source_reliability, fit.groups_found, n_claims)


def rated(sources: Sequence[Any], reliability: Float, groups: Globals | None, n_claims: Int) -> pa.Table:
    """The same, of sources with their reliabilities (n_sources, 3), their groups and how much they claim."""
    order = _most_reliable_first(reliability)
    mean, low, high = (pa.array(column, from_pandas=True) for column in reliability[order].T)
    if groups is None:
        group = pa.nulls(len(order), pa.int64())
    else:
        number = Numbering.of(groups).of_source[order]
        group = pa.array(number, pa.int64(), mask=number == 0)
    return pa.table(
        {
            "source": ids(sources).take(pa.array(order)),
            "reliability": mean,
            "low": low,
            "high": high,
            "group": group,
            "n_claims": n_claims[order].astype(np.int64),
        }
    )


def source_order(fit: Fit) -> Int:
    """(n_sources,) sources by falling reliability, equal ones by id, those without any last."""
    return _most_reliable_first(fit.source_reliability)


def _most_reliable_first(reliability: Float) -> Int:
    return np.argsort(-reliability[:, 0], kind="stable")


def against_majority(fit: Fit) -> pa.Table:
    """object, value, probability, n_claims, majority, n_majority: decisions that fewer sources claim than
    another value.

    The surest first. Objects where the decision is among the most claimed values do not count as different,
    nor do those whose truth was given.
    """
    claims, (differs, most) = fit.claims, overruled(fit)
    votes = np.bincount(claims.claim_candidate, minlength=claims.n_candidates)
    order = np.argsort(-fit.truth[fit.decision[differs]], kind="stable")
    differs, most = differs[order], most[order]
    decided = fit.decision[differs]
    return pa.table(
        {
            "object": ids(claims.objects).take(pa.array(differs)),
            "value": values_of(claims, decided),
            "probability": fit.truth[decided],
            "n_claims": votes[decided].astype(np.int64),
            "majority": values_of(claims, most),
            "n_majority": votes[most].astype(np.int64),
        }
    )


def overruled(fit: Fit) -> tuple[Int, Int]:
    """Objects found whose decision fewer sources claim than another value, and the most claimed candidate of each."""
    claims = fit.claims
    votes = np.bincount(claims.claim_candidate, minlength=claims.n_candidates).astype(np.float64)
    most, _ = decide(votes, claims.first_candidate, fit.seed)
    differs = np.flatnonzero(is_found(fit) & (votes[fit.decision] < votes[most]))
    return differs, most[differs]


def is_found(fit: Fit) -> NDArray[np.bool_]:
    """(n_objects,) whose truth the model found; that of all others was given to it."""
    return np.ones(fit.claims.n_objects, np.bool_) if fit.known is None else ~fit.known


def runner_up(claims: Claims, truth: Float, decision: Int) -> tuple[Int, NDArray[np.bool_]]:
    """(n_objects,) the most probable candidate beside the decision, and whether there is none."""
    others = truth.copy()
    others[decision] = -1.0
    starts, sizes = claims.first_candidate[:-1], np.diff(claims.first_candidate)
    if not len(sizes):
        return np.zeros(0, np.int64), np.zeros(0, np.bool_)
    best = np.maximum.reduceat(others, starts)
    is_best = np.flatnonzero(others == np.repeat(best, sizes))
    _, first = np.unique(claims.candidate_object()[is_best], return_index=True)
    return is_best[first], sizes == 1


def values_of(claims: Claims, candidates: Int, null: NDArray[np.bool_] | None = None) -> pa.Array:
    """The values of these candidates in the caller's own type, null where asked."""
    return ids(claims.values).take(pa.array(claims.candidate_value[candidates], mask=null))


def ids(vocabulary: Sequence[Any]) -> pa.Array:
    """A vocabulary as an Arrow array, whatever sequence it came as; one on the disk stays there."""
    if isinstance(vocabulary, pa.ChunkedArray):
        return vocabulary.combine_chunks()
    return vocabulary if hasattr(vocabulary, "take") else pa.array(vocabulary)
