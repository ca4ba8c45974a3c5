"""One saved result, opened to be looked at: its lists, and single objects, sources and groups taken apart."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import numpy as np
import pyarrow as pa

from consilience.claims.encoding import Float, Int
from consilience.errors import UnknownNameError
from consilience.results.explain import Explanation, Voice, explain_at
from consilience.results.groups import Numbering
from consilience.results.mapped import mapped_arrays, open_mapped
from consilience.results.tables import ids, values_of
from consilience.results.worth import worth
from consilience.server import copying
from consilience.server.catalogue import Catalogue, SourceQuery
from consilience.server.shapes import (
    Answer,
    CandidateShape,
    ClaimRow,
    GroupRow,
    GroupShape,
    Mate,
    MemberShape,
    ObjectShape,
    SharedValue,
    SourceShape,
    VoiceShape,
    text_of,
)
from consilience.server.words import without

MOST_VOICES, MOST_MEMBERS = 200, 200
"""Voices of an object, and members of a voice, that are given."""
QUEUED = 100_000
"""Objects that are ranked for review."""


def _added(voices: tuple[Voice, ...], n: int) -> list[float]:
    """(n,) the nats of these voices together."""
    nats = [voice.contributions for voice in voices if voice.contributions]
    return np.sum(nats, axis=0).tolist() if nats else [0.0] * n


class Result:
    """A result on the disk. What all requests share is worked out once, when it is opened."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(os.path.realpath(folder))
        self.fit = open_mapped(self.folder)
        found = self.fit.groups_found
        self.numbering = None if found is None else Numbering.of(found)
        order = mapped_arrays(self.folder / "state.npz")["source_order"]
        self.catalogue = Catalogue(self.folder, self.fit, order.tolist())
        self.n_differs = self.catalogue.n_differs()
        self.n_known = 0 if self.fit.known is None else int(self.fit.known.sum())
        self.ready = False
        """Whether it is known what is most worth checking."""
        self._ranked = self._ranking(1.0 - self.fit.truth[self.fit.decision])
        self._asked = False
        self._lock = Lock()

    def ranked(self) -> tuple[Int, Float]:
        """Objects by falling worth of being checked, and that worth; by uncertainty until `ready`.

        That takes a while on large tables, and is worked out in the background when it is first asked for.
        """
        with self._lock:
            if not self._asked:
                self._asked = True
                Thread(target=self._rank, daemon=True).start()
        return self._ranked

    def object_number(self, identity: str | None, number: int | None) -> int:
        """Which object is meant: by its number or else by its id."""
        return self._found("object", identity, number, self.fit.claims.n_objects)

    def object_text(self, m: int) -> str:
        """The id of object m, as text."""
        return text_of(ids(self.fit.claims.objects)[m].as_py())

    def source_number(self, identity: str | None, number: int | None) -> int:
        """Which source is meant."""
        return self._found("source", identity, number, self.fit.claims.n_sources)

    def explanation(self, m: int) -> Explanation:
        """Why object m is decided so."""
        return explain_at(self.fit, m, self.numbering)

    def object(self, m: int, answer: Answer | None) -> ObjectShape:
        """Object m with its candidates and voices, and the answer that counts."""
        why = self.explanation(m)
        values = [text_of(candidate.value) for candidate in why.candidates]
        place = {value: z for z, value in enumerate(values)}
        here = slice(int(self.fit.claims.first_claim[m]), int(self.fit.claims.first_claim[m + 1]))
        sources = np.asarray(self.fit.claims.claim_source[here])
        names = ids(self.fit.claims.sources).take(pa.array(sources)).to_pylist()
        number = dict(zip(names, sources.tolist(), strict=True))

        def shape(voice: Voice) -> VoiceShape:
            members = [
                MemberShape(
                    number[each.source], text_of(each.source), place[text_of(each.value)], each.reliability
                )
                for each in voice.members[:MOST_MEMBERS]
            ]
            otherwise = None if voice.otherwise is None else place[text_of(voice.otherwise)]
            nats = list(voice.contributions)
            return VoiceShape(
                voice.group, voice.n_sources, len(voice.members), voice.reliability, nats, otherwise, members
            )

        return ObjectShape(
            number=m,
            object=text_of(why.object),
            sentence=why.sentence,
            without=without(why),
            known=why.known,
            answer=None if answer is None else answer.value,
            entry=None if answer is None else answer.entry,
            n_claims=len(sources),
            n_voices=len(why.voices),
            candidates=[
                CandidateShape(value, each.probability, each.n_claims)
                for value, each in zip(values, why.candidates, strict=True)
            ],
            voices=[shape(voice) for voice in why.voices[:MOST_VOICES]],
            before=list(why.before),
            others=_added(why.voices[MOST_VOICES:], len(why.before)),
        )

    def source(self, n: int, page: int, size: int) -> SourceShape:
        """Source n with a page of its claims, its mates and what it shares with them."""
        row = self.catalogue.source_row(n)
        assert row is not None
        claims = self.fit.claims
        places = copying.claims_of(claims, n)[(page - 1) * size : page * size]
        objects, candidates = copying.objects_of(claims, places), claims.claim_candidate[places]
        decided = self.fit.decision[objects]
        texts = zip(
            objects.tolist(), self._objects(objects), self._values(candidates), self._values(decided),
            (candidates == decided).tolist(), strict=True,
        )  # fmt: skip
        mates = np.zeros(0, np.int64)
        if self.numbering is not None and row.group is not None:
            mates = np.flatnonzero(self.numbering.of_source == row.group)
        found = copying.shared(self.fit, mates, n)
        listed = zip(
            found.mates.tolist(), self._sources(found.mates), found.n_common.tolist(), found.n_same.tolist(),
            found.n_mistakes.tolist(), strict=True,
        )  # fmt: skip
        return SourceShape(
            row=row,
            claims=[ClaimRow(*each) for each in texts],
            page=page,
            size=size,
            examined=found.examined,
            mates=[Mate(*each) for each in listed],
            shared=self._shared(found),
        )

    def groups(self) -> list[GroupRow]:
        """The largest groups."""
        return [GroupRow(*row) for row in self.catalogue.groups()]

    def group(self, number: int, page: int, size: int) -> GroupShape:
        """A group with a page of its members and what they share."""
        rows = self.catalogue.groups(number)
        if not rows or self.numbering is None:
            raise UnknownNameError("group", str(number), ())
        found = copying.shared(self.fit, np.flatnonzero(self.numbering.of_source == number))
        members = self.catalogue.sources(SourceQuery(group=number), page, size)
        return GroupShape(GroupRow(*rows[0]), members, found.examined, self._shared(found))

    def _rank(self) -> None:
        self._ranked = self._ranking(worth(self.fit))
        self.ready = True

    def _ranking(self, value: Float) -> tuple[Int, Float]:
        if self.fit.known is not None:
            value = np.where(self.fit.known, -1.0, value)
        most = min(QUEUED, len(value))
        best = np.argpartition(-value, most - 1)[:most] if most else np.zeros(0, np.int64)
        best = best[np.lexsort((best, -value[best]))]
        best = best[value[best] >= 0]
        return best, value[best]

    def _found(self, what: str, identity: str | None, number: int | None, n: int) -> int:
        if number is not None:
            if 0 <= number < n:
                return number
            raise UnknownNameError(what, f"number {number}", (), f"There are {n:,}, counted from 0.")
        look = self.catalogue.object_number if what == "object" else self.catalogue.source_number
        found = look(identity or "")
        if found is None:
            raise UnknownNameError(what, (identity or "")[:200], ())
        return found

    def _shared(self, found: copying.Shared) -> list[SharedValue]:
        decided = self.fit.decision[found.objects]
        columns: tuple[list[Any], ...] = (
            found.objects.tolist(), self._objects(found.objects), self._values(found.candidates),
            self._values(decided), found.n_members.tolist(), found.n_others.tolist(),
            found.n_others_claiming.tolist(),
        )  # fmt: skip
        return [SharedValue(*each) for each in zip(*columns, strict=True)]

    def _objects(self, numbers: Int) -> list[str]:
        return [text_of(each) for each in ids(self.fit.claims.objects).take(pa.array(numbers)).to_pylist()]

    def _sources(self, numbers: Int) -> list[str]:
        return [text_of(each) for each in ids(self.fit.claims.sources).take(pa.array(numbers)).to_pylist()]

    def _values(self, candidates: Int) -> list[str]:
        return [text_of(each) for each in values_of(self.fit.claims, candidates).to_pylist()]
