"""From a fit to its summary: what is picked out, and how many of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from consilience.claims.encoding import Int
from consilience.report import words
from consilience.report.gold import Ran, against_gold
from consilience.report.groups import summarise_groups
from consilience.report.summary import (
    Bin,
    Certainty,
    Course,
    Majority,
    Overruled,
    Source,
    Sources,
    Summary,
    Uncertain,
    Worth,
)
from consilience.results.explain import explain_at
from consilience.results.fit import Fit
from consilience.results.groups import Numbering
from consilience.results.tables import ids, is_found, overruled, runner_up, source_order, values_of

CASES = 10
"""Rows of a table of objects."""
EXPLAINED = 5
"""Of them those that are explained in words."""
ENDS = 12
"""Sources at either end, where all would be too many."""
DOUBT = 0.9
"""A decision below this probability is doubtful."""
BINS = 6
POINTS = 200
"""Of the bound by sweep."""
PERMUTATIONS = 99
MOST_PAIRS = 5_000_000
"""Pairs of equal mistakes, above which the test against independence would take longer than the fit."""


def summarise(fit: Fit, truth: Any = None, rivals: Sequence[Ran] = ()) -> Summary:
    """What the fit found, and with gold how right it is, beside the rivals that were run (see `gold.run_rivals`)."""
    claims = fit.claims
    summary = Summary(
        title=words.title(fit),
        found="",
        n_claims=claims.n_claims,
        n_objects=claims.n_objects,
        n_disputed=_disputed(fit),
        majority=_majority(fit),
        sources=_sources(fit),
        worth=_worth(fit),
        groups=None if fit.groups_found is None else summarise_groups(fit, fit.groups_found),
        certainty=_certainty(fit),
        course=_course(fit),
        gold=None if truth is None else against_gold(fit, truth, rivals),
        provenance=dict(fit.provenance),
    )
    return words.with_paragraph(summary)


def _disputed(fit: Fit) -> int:
    claimed = np.bincount(fit.claims.claim_candidate, minlength=fit.claims.n_candidates) > 0
    values = np.bincount(fit.claims.candidate_object()[claimed], minlength=fit.claims.n_objects)
    return int(np.count_nonzero(values > 1))


def _majority(fit: Fit) -> Majority:
    claims, (objects, most) = fit.claims, overruled(fit)
    votes = np.bincount(claims.claim_candidate, minlength=claims.n_candidates)
    decided = fit.decision[objects]
    order = np.argsort(-fit.truth[decided] * (votes[most] - votes[decided]), kind="stable")[:CASES]
    numbering = None if fit.groups_found is None else Numbering.of(fit.groups_found)
    rows = zip(
        objects[order].tolist(),
        ids(claims.objects).take(pa.array(objects[order])).to_pylist(),
        values_of(claims, decided[order]).to_pylist(),
        fit.truth[decided[order]].tolist(),
        votes[decided[order]].tolist(),
        values_of(claims, most[order]).to_pylist(),
        votes[most[order]].tolist(),
        strict=True,
    )
    cases = tuple(
        Overruled(
            object_,
            value,
            probability,
            n_claims,
            majority,
            n_majority,
            explain_at(fit, m, numbering).sentence if i < EXPLAINED else None,
        )
        for i, (m, object_, value, probability, n_claims, majority, n_majority) in enumerate(rows)
    )
    n_found = int(np.count_nonzero(is_found(fit)))
    return Majority(n_found, claims.n_objects - n_found, len(objects), cases)


def _sources(fit: Fit) -> Sources:
    order = source_order(fit)
    rated = fit.source_reliability[:, 0]
    rated = rated[~np.isnan(rated)]
    few = len(order) <= 2 * ENDS
    best, worst = (order, order[:0]) if few else (order[:ENDS], order[-ENDS:])
    return Sources(
        n=len(order),
        best=_rows_of_sources(fit, best),
        worst=_rows_of_sources(fit, worst),
        lowest=float(rated.min()) if len(rated) else None,
        highest=float(rated.max()) if len(rated) else None,
        n_unrated=len(order) - len(rated),
    )


def _rows_of_sources(fit: Fit, chosen: Int) -> tuple[Source, ...]:
    n_claims = np.bincount(fit.claims.claim_source, minlength=fit.claims.n_sources)[chosen].tolist()
    names = ids(fit.claims.sources).take(pa.array(chosen)).to_pylist()
    mean, low, high = (
        [None if np.isnan(x) else x for x in column.tolist()] for column in fit.source_reliability[chosen].T
    )
    group: list[int | None] = [None] * len(chosen)
    if fit.groups_found is not None:
        numbering = Numbering.of(fit.groups_found)
        shared = numbering.n_shared
        group = [n if 0 < n <= shared else None for n in numbering.of_source[chosen].tolist()]
    return tuple(Source(*row) for row in zip(names, mean, low, high, group, n_claims, strict=True))


def _worth(fit: Fit) -> Worth:
    claims, effective = fit.claims, fit.effective_sources
    n_claims = np.diff(claims.first_claim)
    wrong = np.bincount(claims.claim_candidate, minlength=claims.n_candidates).astype(np.float64)
    wrong[fit.decision] = 0.0
    tested = fit.independence(PERMUTATIONS) if np.sum(wrong**2) <= MOST_PAIRS else None
    told = tested is not None and tested.n_claims > 0 and tested.expected > 0
    bins: tuple[Bin, ...] = ()
    if fit.groups_found is not None and claims.n_objects:
        edges = np.unique(np.ceil(np.linspace(1, n_claims.max() + 1, BINS + 1)).astype(np.int64))
        worth = np.round(effective.per_object)
        counts = [np.histogram(x, [*edges[:-1], edges[-1] - 0.5])[0].tolist() for x in (n_claims, worth)]
        bins = tuple(
            Bin(low, high - 1, *both)
            for low, high, *both in zip(edges[:-1].tolist(), edges[1:].tolist(), *counts, strict=True)
        )
    return Worth(
        n_sources=claims.n_sources,
        overall=effective.overall,
        median_claims=float(np.median(n_claims)) if claims.n_objects else 0.0,
        median_worth=float(np.median(effective.per_object)) if claims.n_objects else 0.0,
        bins=bins,
        shared=tested.shared / tested.expected if tested is not None and told else None,
        p_value=tested.p_value if tested is not None and told else None,
    )


def _certainty(fit: Fit) -> Certainty:
    claims, found = fit.claims, is_found(fit)
    second, alone = runner_up(fit.claims, fit.truth, fit.decision)
    probability = fit.truth[fit.decision]
    # The seed may decide a tie for the candidate that rounding left behind.
    margin = np.maximum(probability - fit.truth[second], 0.0)
    contested = np.flatnonzero(found & ~alone)
    least = contested[np.argsort(margin[contested], kind="stable")[:CASES]]
    rows = zip(
        ids(claims.objects).take(pa.array(least)).to_pylist(),
        values_of(claims, fit.decision[least]).to_pylist(),
        values_of(claims, second[least]).to_pylist(),
        probability[least].tolist(),
        margin[least].tolist(),
        np.diff(claims.first_claim)[least].tolist(),
        strict=True,
    )
    n_doubtful = int(np.count_nonzero(found & (probability < DOUBT)))
    return Certainty(n_doubtful, len(contested), fit.ties, fit.seed, tuple(Uncertain(*row) for row in rows))


def _course(fit: Fit) -> Course:
    picked = np.unique(np.linspace(0, max(len(fit.trace) - 1, 0), POINTS).astype(np.int64))
    return Course(
        model=fit.model,
        seconds=fit.seconds,
        sweeps=fit.sweeps,
        converged=fit.converged,
        bound=fit.bound,
        trace=tuple((int(i) + 1, float(fit.trace[i]["bound"])) for i in picked if fit.trace),
        starts=tuple(_numbers(start) for start in fit.starts[:CASES]),
        settings=_numbers(fit.settings),
        learned=_numbers(fit.learned),
        notes=tuple(fit.claims.notes),
        warnings=tuple(fit.warnings),
    )


def _numbers(of: Mapping[str, Any]) -> dict[str, Any]:
    """Plain numbers and lists, whether the fit is fresh or was loaded."""
    return {name: _plain(value) for name, value in of.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return [_plain(each) for each in value] if isinstance(value, tuple | list) else value
