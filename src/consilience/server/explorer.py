"""All that the explorer knows: the result that is open, the answers, and the refit."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from consilience.errors import InputError, UnknownNameError
from consilience.results.fingerprint import fingerprint
from consilience.results.manifest import MANIFEST
from consilience.server.catalogue import ObjectQuery
from consilience.server.refit import can_be_new, refit_of
from consilience.server.refitting import Refitting
from consilience.server.result import Result
from consilience.server.reviews import AnswersUnavailableError, Reviews
from consilience.server.shapes import About, Answer, Answers, Objects, ObjectShape, Queue, RefitState, Task


class Explorer:
    """A result, open; a refit puts another one in its place. Requests under way keep the one that they began with."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(os.path.realpath(folder))
        self.result = Result(self.folder)
        self._manifest = self._read_manifest()
        self.reviews = self._reviews()
        self.refitting = Refitting(self.folder, self._reopen)

    def about(self) -> About:
        """The result as a whole."""
        result = self.result
        fit, claims = result.fit, result.fit.claims
        n_reviewed = n_elsewhere = None
        try:
            n_reviewed, n_elsewhere = len(self.reviews.answers()), self.reviews.n_elsewhere()
            trouble = self.reviews.read_only
        except AnswersUnavailableError as error:
            trouble = str(error)
        return About(
            name=self.folder.name,
            model=fit.model,
            n_sources=claims.n_sources,
            n_objects=claims.n_objects,
            n_claims=claims.n_claims,
            n_groups=None if result.numbering is None else len(result.numbering.order),
            n_shared=None if result.numbering is None else result.numbering.n_shared,
            n_apart=None if result.numbering is None else result.numbering.n_apart,
            n_differs=result.n_differs,
            n_known=result.n_known,
            n_reviewed=n_reviewed,
            n_elsewhere=n_elsewhere,
            trouble=trouble,
            claims=self.reviews.claims,
            domain=claims.domain,
            seed=fit.seed,
            converged=fit.converged,
            finished=str(fit.provenance.get("finished", "")),
            settings=dict(fit.settings),
            warnings=list(fit.warnings),
        )

    def objects(self, query: ObjectQuery, page: int, size: int) -> Objects:
        """A page of objects, with the answers given; without them while they cannot be read, unless asked for."""
        answers: dict[str, str] = {}
        with suppress(*() if query.reviewed is not None else (AnswersUnavailableError,)):
            answers = self.reviews.answers()
        return self.result.catalogue.objects(query, page, size, answers)

    def object(self, identity: str | None, number: int | None) -> ObjectShape:
        """An object, taken apart; without an answer while answers cannot be read."""
        result, answer = self.result, None
        m = result.object_number(identity, number)
        with suppress(AnswersUnavailableError):
            answer = self.reviews.answer_to(result.object_text(m))
        return result.object(m, answer)

    def queue(self, size: int) -> Queue:
        """The objects most worth checking that were neither answered nor skipped."""
        result = self.result
        seen = {answer.object for answer in self.reviews.latest()}
        ranked, value = result.ranked()
        tasks: list[Task] = []
        for start in range(0, len(ranked), 200):
            rows = result.catalogue.object_rows(ranked[start : start + 200].tolist())
            for m, worth in zip(
                ranked[start : start + 200].tolist(), value[start : start + 200], strict=True
            ):
                row = rows[m]
                if row.object not in seen:
                    tasks.append(Task(m, row.object, row.value, row.probability, float(worth)))
                if len(tasks) == size:
                    break
            else:
                continue
            break
        return Queue(result.ready, len(self.reviews.answers()), tasks)

    def answer(self, identity: str | None, number: int | None, value: str | None) -> Answer:
        """Store the truth of an object, or that it is skipped; InputError where it cannot have that value."""
        result = self.result
        shape = result.object(result.object_number(identity, number), None)
        if value is not None and not (can_be_new(result.fit) and value.strip()):
            possible = [candidate.value for candidate in shape.candidates]
            if value not in possible:
                some = ", ".join(repr(each[:60]) for each in possible[:10])
                raise InputError(
                    f"The truth of {shape.object[:60]!r} cannot be {value[:60]!r}. Choose among {some}."
                )
        return self.reviews.add(shape.object, value)

    def undo(self, entry: int) -> Answer:
        """Take one answer back; UnknownNameError where there is none to take."""
        answer = self.reviews.undo(entry)
        if answer is None:
            raise UnknownNameError("answer", f"entry {entry}", (), "It may have been taken back already.")
        return answer

    def answers(self, page: int, size: int) -> Answers:
        """A page of answers, the last first."""
        rows = self.reviews.latest()
        return Answers(page, size, len(rows), rows[(page - 1) * size : page * size])

    def refit(self) -> RefitState | None:
        """Start a refit with the answers; None if one is running. InputError where there is nothing new to learn."""
        answers = self.reviews.answers()
        if not answers and not self.reviews.replaced(refit_of(self.result.fit)):
            raise InputError("There is no answer to refit with: review some objects first.")
        return self.refitting.state() if self.refitting.start(len(answers)) else None

    def close(self) -> None:
        """Stop what runs, and give back what is held."""
        self.refitting.cancel()
        self.result.catalogue.close()

    def _reopen(self) -> bool:
        """Open the result anew if it is another one; the old one goes when the last request that uses it ends."""
        if self._read_manifest() == self._manifest:
            return False
        self.result = Result(self.folder)
        self._manifest = self._read_manifest()
        self.reviews = self._reviews()
        return True

    def _reviews(self) -> Reviews:
        return Reviews.beside(self.folder, fingerprint(self.result.fit.claims))

    def _read_manifest(self) -> bytes:
        return (self.folder / MANIFEST).read_bytes()
