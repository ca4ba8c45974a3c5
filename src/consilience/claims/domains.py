"""Domains: the values an object may take, as the user chose or as the claims suggest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from consilience.claims.checks import Rows
from consilience.claims.encoding import (
    LARGEST_INDEX,
    Int,
    common_domains,
    domains,
    find_candidates,
    find_common_candidates,
)
from consilience.claims.id_types import comparable, name_of
from consilience.claims.vocabulary import Column, positions
from consilience.claims.words import SHOWN, quantity, show
from consilience.errors import Problem, SettingsError

MOST_COMMON_LABELS = 32
"""A label set that all objects share is a short one."""

MOST_NAMED = 20
"""Labels of a domain that a message names."""
LEAST_RECURRENCE = 1.5
"""Labels of such a set recur: each is claimed, on average, for this many objects or more."""


@dataclass(frozen=True, eq=False)
class Domains:
    """The candidates of every object, and where each claim stands among them.

    values          : the vocabulary of values, sorted
    first_candidate : (n_objects + 1,)
    candidate_value : (n_candidates,)
    claim_candidate : (n_claims,) -1 where the value claimed is outside the object's domain
    """

    kind: str
    values: Any
    first_candidate: Int
    candidate_value: Int
    claim_candidate: Int
    notes: tuple[str, ...] = ()


def check_domain(domain: object) -> None:
    """Refuse what cannot be a domain, before any table is read."""
    is_named = isinstance(domain, str) and domain in ("auto", "claimed", "common")
    if not is_named and (isinstance(domain, str | bytes) or not isinstance(domain, Collection)):
        expected = '"auto", "claimed", "common", a list of labels, or a mapping from objects to their labels'
        raise SettingsError("domain", expected, domain)


def form_domains(objects: Column, values: Column, domain: Any) -> Domains | Problem:
    """Form the domains of objects from their claims: two columns, one row a claim, sorted by object."""
    if isinstance(domain, Mapping):
        return _given_by_object(objects, values, domain)
    if not isinstance(domain, str):
        labels = _labels(domain, values.vocabulary.type, "The domain")
        if isinstance(labels, Problem):
            return labels
        labels = labels.take(pc.array_sort_indices(labels))
        return _common("given", labels, objects, positions(values.vocabulary, labels)[values.codes])
    n_objects, n_values = len(objects.vocabulary), len(values.vocabulary)
    # Every object has a value or more: where there are many of them, few labels recur however they are claimed.
    if domain == "common" or (domain == "auto" and _labels_recur(n_objects, n_values)):
        return _common("common", values.vocabulary, objects, values.codes)
    claimed = domains(objects.codes, values.codes, n_objects, n_values)
    if domain == "auto" and _labels_recur(len(claimed[1]), n_values):
        return _common("common", values.vocabulary, objects, values.codes)
    candidate = find_candidates(objects.codes, values.codes, *claimed, n_values)
    return Domains("claimed", values.vocabulary, *claimed, candidate)


def outside_domain(
    found: Domains, sources: Column, objects: Column, values: Column, rows: Rows, order: Int
) -> Problem:
    """Claims of a value that the domain given does not hold; order : (n_claims,) the row each came from."""
    outside = np.flatnonzero(found.claim_candidate < 0)
    first = outside[np.argsort(order[outside])[:SHOWN]]
    examples = tuple(
        f"{rows.name(order[i])}: source {show(sources.id_at(i))}, object {show(objects.id_at(i))}: "
        f"{show(values.id_at(i))}"
        for i in first
    )
    what = f"{quantity(len(outside), 'claim')} of a value that is not in the domain given{_labels_of(found)}."
    advice = 'Add the value to the domain, correct the claim, or let the claims decide: domain="claimed".'
    return Problem("outside-domain", what, advice, len(outside), examples)


def _labels_of(found: Domains) -> str:
    """The labels of a domain that all objects have, for a message."""
    n_labels = len(found.values)
    if np.any(np.diff(found.first_candidate) != n_labels):
        return ""
    named = ", ".join(show(label.as_py()) for label in found.values[:MOST_NAMED])
    return f": {named}" + (f", … ({n_labels:,} in all)" if n_labels > MOST_NAMED else "")


def _labels_recur(n_claimed: int, n_values: int) -> bool:
    """Whether few labels recur over objects; n_claimed counts distinct pairs (object, value claimed)."""
    return n_values <= MOST_COMMON_LABELS and n_claimed >= LEAST_RECURRENCE * n_values


def _common(kind: str, labels: Any, objects: Column, value: Int) -> Domains | Problem:
    """Every label for every object; value : (n_claims,) index into the labels, -1 where none of them."""
    n_objects, n_values = len(objects.vocabulary), len(labels)
    if n_objects * n_values > LARGEST_INDEX:
        found = f"{n_values:,} labels for each of {n_objects:,} objects; the limit is {LARGEST_INDEX:,}."
        return Problem("too-large", found, 'Use domain="claimed", or fewer labels.')
    candidate = find_common_candidates(objects.codes, value, n_values)
    return Domains(kind, labels, *common_domains(n_objects, n_values), candidate)


def _given_by_object(objects: Column, values: Column, domain: Mapping[Any, Any]) -> Domains | Problem:
    for key, labels in domain.items():
        if isinstance(labels, str | bytes) or not isinstance(labels, Collection):
            found = f"The domain of {show(key)} is {show(labels)}; expected a list of labels."
            return Problem("bad-domain", found, "Give each object a list of labels.")
    keys = _labels(domain, objects.vocabulary.type, "The mapping's keys")
    if isinstance(keys, Problem):
        return keys
    labels = list(chain.from_iterable(domain.values()))
    labels = _labels(labels, values.vocabulary.type, "The domain", each_once=False)
    if isinstance(labels, Problem):
        return labels
    without = positions(objects.vocabulary, keys) < 0
    if without.any():
        n = int(without.sum())
        found = f"{quantity(n, 'object')} of {len(without):,} {'has' if n == 1 else 'have'} no domain."
        shown = tuple(show(name) for name in objects.vocabulary.filter(pa.array(without))[:SHOWN].to_pylist())
        return Problem("bad-domain", found, "Give every object a list of labels.", n, shown)

    owner = np.repeat(positions(keys, objects.vocabulary), [len(labels) for labels in domain.values()])
    labels, owner = labels.filter(pa.array(owner >= 0)), owner[owner >= 0]
    vocabulary = pc.unique(labels)
    vocabulary = vocabulary.take(pc.array_sort_indices(vocabulary))
    spanned = domains(owner, positions(labels, vocabulary), len(objects.vocabulary), len(vocabulary))
    value = positions(values.vocabulary, vocabulary)[values.codes]
    candidate = find_candidates(objects.codes, value, *spanned, len(vocabulary))
    n_unused = len(keys) - len(objects.vocabulary)
    note = f"{quantity(n_unused, 'object')} of the domain given without claims, not used."
    return Domains("given", vocabulary, *spanned, candidate, (note,) if n_unused else ())


def _labels(labels: Collection[Any], kind: Any, what: str, *, each_once: bool = True) -> Any:
    """Labels that the user gave, as an array of this type, or the Problem with them."""
    advice = f"Give labels as they stand in the table: {name_of(kind)}, each once."
    try:
        given = pa.array(list(labels))
        if len(given) and not comparable(given.type, kind):
            found = f"{what} holds {name_of(given.type)}; the table holds {name_of(kind)}."
            return Problem("bad-domain", found, advice)
        given = given.cast(kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as why:
        return Problem("bad-domain", f"{what} cannot be read as {name_of(kind)}: {why}.", advice)
    if not len(given) or given.null_count:
        return Problem("bad-domain", f"{what} {'has an empty label' if len(given) else 'is empty'}.", advice)
    if each_once and len(pc.unique(given)) < len(given):
        twice, _ = Counter(given.to_pylist()).most_common(1)[0]
        return Problem("bad-domain", f"{what} holds {show(twice)} more than once.", advice)
    return given
