"""Why this value: who claims what about one object, in which groups, and how much each group weighs."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from consilience.claims.encoding import Claims, Int, Shard
from consilience.errors import UnknownNameError
from consilience.kernels.state import Beliefs, Evidence, Globals, Partition, Prior
from consilience.results import wording
from consilience.results.decide import TIED
from consilience.results.evidence import evidence_of, shard_of, truth_without
from consilience.results.groups import Numbering
from consilience.results.tables import ids, values_of
from consilience.results.temper import temperature

if TYPE_CHECKING:
    from consilience.results.fit import Fit

ASKED = 40
"""Voices, the strongest, of which it is worked out what would be decided without them."""


@dataclass(frozen=True)
class Candidate:
    """A value the object may have, how probable it is and how many sources claim it."""

    value: Any
    probability: float
    n_claims: int


@dataclass(frozen=True)
class Member:
    """A source that claims something about the object; its reliability in general, None if unknown."""

    source: Any
    value: Any
    reliability: float | None


@dataclass(frozen=True)
class Voice:
    """Sources that speak together: the members of a group who claim here, or one source that is in no group.

    group         : the group's number; None for a source in no group, and (with no members) for all groups
                    that have no member here but a share in one, added up: memberships are probabilities
    reliability   : probability that the group is reliable on this object; a lone source's own; None if
                    neither
    contributions : S_lm(z) in nats: what the voice adds to the log probability of each candidate, in the
                    order of `Explanation.candidates`; under partition inference the mean over the kinds
                    of object that this one may be, so weighed that voices add up, divided by the
                    temperature of the object. Only differences matter. Empty for a source in no group.
    otherwise     : the value that would be decided had the group's members claimed nothing here, all else
                    as it is; None where nobody can say: a source in no group, the only voice, a truth that
                    was given, and beyond the strongest voices
    n_sources     : sources of the group, those included that claim nothing here; 1 for a source on its own
    """

    group: int | None
    members: tuple[Member, ...]
    reliability: float | None
    contributions: tuple[float, ...] = ()
    otherwise: Any = None
    n_sources: int = 1

    @property
    def strength(self) -> float:
        """How far its contributions can move the decision, in nats."""
        return max(self.contributions) - min(self.contributions) if self.contributions else 0.0


@dataclass(frozen=True)
class Explanation:
    """The decision on one object taken apart. `str()` of it reads well in a terminal.

    candidates : the decision first, then by falling probability
    voices     : the strongest first, then the most reliable
    known      : whether the truth was given; then nobody's claims decided it
    before     : nats of each candidate before anybody speaks: how common its label is. With the contributions of
                 all voices they add up to the log probabilities. Empty where that decided nothing: a truth that was
                 given, or a model that weighs no voices.
    """

    object: Any
    decision: Any
    candidates: tuple[Candidate, ...]
    voices: tuple[Voice, ...]
    known: bool = False
    before: tuple[float, ...] = ()

    @property
    def sentence(self) -> str:
        """The explanation in plain words."""
        return wording.sentence(self)

    def __str__(self) -> str:
        return wording.page(self)


def explain(fit: Fit, object_id: Any) -> Explanation:
    """Take the decision on one object apart; for an object that does not exist, name the nearest.

    Contributions, with what is said before anybody speaks, add up to the log probabilities: log odds of two candidates
    are the sum of all differences. As far as groups err together all of them count for less, as the probabilities do.
    Only of a fit by the paper's mean-field, which does not take objects apart, they do not add up: they show what the
    groups found have to say.
    """
    numbering = None if fit.groups_found is None else Numbering.of(fit.groups_found)
    return explain_at(fit, find_object(fit.claims, object_id), numbering)


def explain_at(fit: Fit, m: int, numbering: Numbering | None) -> Explanation:
    """The same for the object of this index, with the groups already numbered: work for one object alone."""
    claims = fit.claims
    shard = shard_of(fit, m, m + 1)
    first = int(claims.first_candidate[m])
    truth = np.asarray(fit.truth[first : first + shard.n_candidates])
    decision = int(fit.decision[m] - first)
    order = np.lexsort((-truth, np.arange(len(truth)) != decision))
    values = values_of(claims, first + np.arange(len(truth))).to_pylist()
    votes = np.bincount(shard.claim_candidate, minlength=len(truth))

    sources = ids(claims.sources).take(pa.array(shard.claim_source)).to_pylist()
    reliability = [None if np.isnan(r) else float(r) for r in fit.source_reliability[shard.claim_source, 0]]
    said = [values[z] for z in shard.claim_candidate]
    members = [Member(*member) for member in zip(sources, said, reliability, strict=True)]
    known = fit.known is not None and bool(fit.known[m])
    before: tuple[float, ...] = ()
    if fit.groups_found is None or fit.prior is None or numbering is None:
        voices = _strongest_first([_alone(member) for member in members])
    else:
        groups = fit.groups_found, fit.prior, numbering
        parts = evidence_of(shard, fit.groups_found, fit.prior)
        if isinstance(fit.groups_found, Partition):
            shared = float(fit.learned.get("shared_errors", 0.0))
            parts = _calmed(parts, float(temperature(np.array(len(parts.pair_group)), shared)))
        before = () if known else tuple(parts.before[order].tolist())
        voices = _strongest_first(_voices(shard, fit.groups_found, numbering, parts, members, order))
        if not known:
            voices = _with_otherwise(voices, shard, *groups, values, decision)
    return Explanation(
        object=ids(claims.objects)[m].as_py(),
        decision=values[decision],
        candidates=tuple(Candidate(values[z], float(truth[z]), int(votes[z])) for z in order),
        voices=tuple(voices),
        known=known,
        before=before,
    )


def _calmed(parts: Evidence, heat: float) -> Evidence:
    """The evidence on one object as far as it is believed: all nats divided by the object's temperature."""
    return replace(parts, cell_nats=parts.cell_nats / heat, before=parts.before / heat)


def _strongest_first(voices: list[Voice]) -> list[Voice]:
    return sorted(voices, key=lambda voice: (-voice.strength, -(voice.reliability or 0.0)))


def find_object(claims: Claims, object_id: Any) -> int:
    """The index of an object by the caller's id; text is understood as the ids' own type, or as Python
    writes it.
    """
    objects = ids(claims.objects)
    # Arrow takes every whole number for a signed one, unless told.
    kind = pa.uint64() if isinstance(object_id, int) and object_id >= 2**63 else None
    try:
        found = pc.index_in(pa.array([object_id], kind).cast(objects.type), objects, skip_nulls=True)[0]
    except (pa.ArrowException, OverflowError):
        found = pa.scalar(None)
    if found.is_valid:
        return int(found.as_py())
    written = [str(name) for name in objects.to_pylist()]
    if isinstance(object_id, str) and object_id in written:
        return written.index(object_id)
    raise _unknown(str(object_id), written)


def _voices(
    shard: Shard,
    found: Globals,
    numbering: Numbering,
    parts: Evidence,
    members: list[Member],
    order: Int,
) -> list[Voice]:
    """One voice for each group with a member here, one for all others, one for each source in no group."""
    best = numbering.best[shard.claim_source]
    voices, rest = [], np.zeros(len(order))
    for p, group in enumerate(parts.pair_group):
        nats = parts.cell_nats[parts.first_cell[p] : parts.first_cell[p + 1]][order]
        speakers = tuple(members[i] for i in np.flatnonzero(best == group))
        if speakers:
            number, reliability = int(numbering.number[group]), float(parts.pair_reliability[p])
            n_sources = int(numbering.size[number - 1])
            voices.append(Voice(number, speakers, reliability, tuple(nats.tolist()), n_sources=n_sources))
        else:
            rest += nats
    if rest.any():
        voices.append(Voice(None, (), None, tuple(rest.tolist())))
    return voices + [_alone(members[i]) for i in np.flatnonzero(best == found.n_groups)]


def _with_otherwise(
    voices: list[Voice],
    shard: Shard,
    found: Globals,
    prior: Prior | Beliefs,
    numbering: Numbering,
    values: list[Any],
    decision: int,
) -> list[Voice]:
    """The same voices; the strongest know what would be decided without them."""
    number = numbering.number[numbering.best[shard.claim_source]]
    asked = [v for v, voice in enumerate(voices[:ASKED]) if voice.group is not None]
    asked = [v for v in asked if np.any(number != voices[v].group)]  # without the only voice nothing is left
    if not asked:
        return voices
    silent = np.array([number == voices[v].group for v in asked])
    truth = truth_without(shard, found, prior, silent)
    tied = truth[:, decision] >= truth.max(axis=1) - TIED
    chosen = np.where(tied, decision, np.argmax(truth, axis=1))
    voices = list(voices)
    for v, z in zip(asked, chosen, strict=True):
        voices[v] = replace(voices[v], otherwise=values[z])
    return voices


def _alone(member: Member) -> Voice:
    return Voice(None, (member,), member.reliability)


def _unknown(name: str, known: list[str]) -> UnknownNameError:
    """The error that names what was probably meant: the same but for case and leading zeros, else what holds
    the text, else what is spelt alike.
    """
    same = [k for k in known if _folded(k) == _folded(name)]
    holding = [k for k in known if name and name.lower() in k.lower()]
    holding.sort(key=lambda k: (not k.lower().startswith(name.lower()), len(k)))
    near = (same or holding)[:2]
    if not near:
        return UnknownNameError("object", name, _neighbours(name, known))
    error = UnknownNameError("object", name, (), f"Did you mean {' or '.join(map(repr, near))}?")
    error.nearest = near
    return error


def _folded(name: str) -> str:
    return re.sub(r"(?<!\d)0+(?=\d)", "", name.lower())


def _neighbours(name: str, known: list[str], n: int = 1000) -> list[str]:
    """Of very many names, those near in the alphabet: comparing the spelling of all of them takes minutes."""
    if len(known) <= 2 * n:
        return known
    known = sorted(known)
    at = bisect_left(known, name)
    return known[max(at - n, 0) : at + n]
