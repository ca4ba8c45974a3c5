"""Truths: what is known to be true of some objects, lined up with the candidates of claims."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from consilience.claims.encoding import Claims, Int, common_domains, domains, find_candidates
from consilience.claims.id_types import TEXT, comparable, is_text, name_of, written_as
from consilience.claims.vocabulary import Codes, positions
from consilience.claims.words import SHOWN, quantity, show
from consilience.errors import ClaimsError, Problem

LOOKED_AT = 1_000
"""Truths that nobody claims, of which one is looked for that only its writing tells from a claim."""


@dataclass(frozen=True, eq=False)
class Truths:
    """The true value of each of some objects.

    objects : the caller's own ids, sorted, each once (a pyarrow Array)
    values  : the true value of each
    """

    objects: Any
    values: Any
    frame: str = "pyarrow"
    """The kind of frame that came in."""
    notes: tuple[str, ...] = ()
    """What was merged on the way in."""

    def __repr__(self) -> str:
        return f"Truths({quantity(len(self.objects), 'object')})"


def align_truths(truths: Truths, claims: Claims) -> Int:
    """(n_objects,) int64: the candidate that is each object's truth.

    -1 : no truth is given for the object; -2 : one is given, and it is not among the object's candidates
    """
    aligned = np.full(claims.n_objects, -1, dtype=np.int64)
    object_, candidate = _located(truths, claims)
    is_claimed = object_ >= 0
    aligned[object_[is_claimed]] = np.where(candidate >= 0, candidate, -2)[is_claimed]
    return aligned


def written_otherwise(truths: Truths, claims: Claims, left_out: NDArray[np.bool_] | None = None) -> str:
    """A sentence on truths that differ from a claim on their object in capitals or spaces alone, with one of them;
    nothing where there are none among the first.

    left_out : (n_objects,) whose truths do not matter
    """
    if not is_text(truths.values.type) or not is_text(_vocabulary(claims.values).type):
        return ""
    object_, candidate = _located(truths, claims)
    is_outside = (object_ >= 0) & (candidate < 0)
    if left_out is not None:
        is_outside[is_outside] = ~left_out[object_[is_outside]]
    for i in np.flatnonzero(is_outside)[:LOOKED_AT].tolist():
        truth = truths.values[i].as_py()
        said = claims.claim_candidate[slice(*claims.first_claim[object_[i] : object_[i] + 2])]
        for value in np.unique(claims.candidate_value[said]).tolist():
            claimed = str(claims.values[value])
            if _plain(claimed) == _plain(truth):
                return (
                    f"A truth may differ from a claim in capitals or spaces alone, as {show(truth)} does from "
                    f"{show(claimed)} (object {show(truths.objects[i].as_py())}): write both the same way"
                )
    return ""


def _plain(text: str) -> str:
    return "".join(text.casefold().split())


def extend_domains(claims: Claims, truths: Truths) -> Claims:
    """Claims whose domains hold the truths too, so that a truth nobody claims can be known.

    Labels that are common to all objects stay common: a new one joins every object's domain. Domains that the
    user gave are the user's word: a truth outside them is an error. Truths of objects that nobody claims
    anything about are of no use here; they are counted in `notes`.
    """
    object_, candidate = _located(truths, claims)
    notes = claims.notes
    n_strangers = int((object_ < 0).sum())
    if n_strangers:
        notes += (
            f"{quantity(n_strangers, 'truth')} of {len(object_):,} about objects without claims, not used.",
        )
    is_new = (object_ >= 0) & (candidate < 0)
    if not is_new.any():
        return claims if notes == claims.notes else replace(claims, notes=notes)
    if claims.domain == "given":
        found = f"{quantity(int(is_new.sum()), 'truth')} that the domain given does not hold."
        raise _refused(
            truths, is_new, "outside-domain", found, "Add the value to the domain, or correct the truth."
        )
    notes += (f"{quantity(int(is_new.sum()), 'truth')} that nobody claimed added to the domains.",)
    if otherwise := written_otherwise(truths, claims):
        notes += (f"{otherwise}.",)

    added = _new_values(truths, claims, is_new)
    if claims.domain == "common":
        return replace(with_labels(claims, added), notes=notes)
    values = _distinct(claims, added)
    owners = np.concatenate([claims.candidate_object(), object_[is_new]])
    candidate_value = _renumbered(claims, values)
    spanned = domains(
        owners, np.concatenate([candidate_value, positions(added, values)]), claims.n_objects, len(values)
    )
    return replace(_spanned(claims, values, *spanned), notes=notes)


def new_labels(truths: Truths, claims: Claims) -> Any:
    """Labels that truths of these objects would add to a set common to all; none where domains are not common."""
    object_, candidate = _located(truths, claims)
    is_new = (object_ >= 0) & (candidate < 0) & (claims.domain == "common")
    return _new_values(truths, claims, is_new)


def with_labels(claims: Claims, labels: Any) -> Claims:
    """Claims on a common label set that has these labels too."""
    values = _distinct(claims, labels)
    return _spanned(claims, values, *common_domains(claims.n_objects, len(values)))


def _spanned(claims: Claims, values: Any, first_candidate: Int, candidate_value: Int) -> Claims:
    """The same claims, on domains of these values that hold what is claimed."""
    claimed = _renumbered(claims, values)[claims.claim_candidate]
    spanned = first_candidate, candidate_value, len(values)
    return replace(
        claims,
        values=values,
        first_candidate=first_candidate,
        candidate_value=candidate_value,
        claim_candidate=find_candidates(claims.claim_object(), claimed, *spanned),
    )


def _renumbered(claims: Claims, values: Any) -> Int:
    """(n_candidates,) the value of each candidate, among these."""
    return positions(_vocabulary(claims.values), values)[claims.candidate_value]


def _new_values(truths: Truths, claims: Claims, is_new: NDArray[np.bool_]) -> Any:
    """The values of these truths, as the claims would write them."""
    kind = _vocabulary(claims.values).type
    written = written_as(truths.values, kind)
    unwritten = is_new & written.is_null().to_numpy(zero_copy_only=False)
    if unwritten.any():
        found = f"{quantity(int(unwritten.sum()), 'truth')} {'has' if unwritten.sum() == 1 else 'have'} no form as "
        found += f"{name_of(kind)}, the type of the values in the claims."
        advice = f"Give the truths as {name_of(kind)}, or the claims as {name_of(truths.values.type)}."
        raise _refused(truths, unwritten, "unfit-value", found, advice)
    return written.filter(pa.array(is_new))


def _distinct(claims: Claims, more: Any) -> Any:
    """The values of the claims and some more, sorted, each once."""
    values = pc.unique(pa.concat_arrays([_vocabulary(claims.values), more]))
    return values.take(pc.array_sort_indices(values))


def _located(truths: Truths, claims: Claims) -> tuple[Codes, Codes]:
    """(n_truths,) object and candidate, in the claims, of each truth; -1 where there is none."""
    object_ = _positions(truths.objects, claims.objects, "objects")
    value = _positions(truths.values, claims.values, "values")
    spanned = claims.first_candidate, claims.candidate_value
    candidate = find_candidates(object_, value, *spanned, claims.n_values)
    return object_, np.where(object_ < 0, np.int32(-1), candidate)


def _vocabulary(ids: Any) -> Any:
    ids = ids if isinstance(ids, pa.Array) else pa.array(ids)
    return ids.cast(TEXT) if is_text(ids.type) else ids


def _positions(ids: Any, vocabulary: Any, what: str) -> Codes:
    vocabulary = _vocabulary(vocabulary)
    if comparable(ids.type, vocabulary.type):
        return positions(ids, vocabulary)
    here, there = name_of(ids.type), name_of(vocabulary.type)
    found = f"The {what} are {here} here and {there} in the claims: none can be equal."
    advice = f"Give the {what} as {there}, or read claims and truths from the same kind of table."
    raise ClaimsError("The truths", [Problem("type-mismatch", found, advice)])


def _refused(truths: Truths, which: NDArray[np.bool_], kind: str, found: str, advice: str) -> ClaimsError:
    first = np.flatnonzero(which)[:SHOWN].tolist()
    examples = (f"object {show(truths.objects[i].as_py())}: {show(truths.values[i].as_py())}" for i in first)
    return ClaimsError("The truths", [Problem(kind, found, advice, int(which.sum()), tuple(examples))])
