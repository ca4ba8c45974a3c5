"""Answers of reviewers: an append-only log in SQLite, on the disk before anybody is told that it is stored.

It lies beside the result, not in it: saving a new result replaces the folder whole, and answers must survive that.
Every entry has the fingerprint of the claims that it was given about, and counts for these alone: another table that is
saved under the same name finds none of them, and the first one, saved there again, finds its own.

The file is opened for each use and closed again, and made when the first answer is stored: who only looks leaves
nothing behind, and a folder that cannot be written to can be looked at.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from consilience.errors import ConsilienceError
from consilience.server.shapes import Answer

SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (
    entry INTEGER PRIMARY KEY, claims TEXT NOT NULL, object TEXT NOT NULL, value TEXT, answered TEXT NOT NULL,
    undone INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS answers_object ON answers (claims, object);
CREATE TABLE IF NOT EXISTS replaced (
    claims TEXT NOT NULL, refit TEXT NOT NULL, object TEXT NOT NULL, given TEXT, PRIMARY KEY (claims, refit, object)
);
"""
LATEST = """
SELECT object, value, answered, entry FROM answers
WHERE entry IN (SELECT max(entry) FROM answers WHERE claims = ? AND NOT undone GROUP BY object)
"""
READING, STORING = 1.0, 10.0
"""Seconds to wait for another program that writes: a page is to come, an answer is to be stored."""


class AnswersUnavailableError(ConsilienceError):
    """The file of answers cannot be read or written now; the result can be looked at all the same."""


class Reviews:
    """The log. The last entry of an object that was not undone counts; one without a value says "skipped"."""

    def __init__(self, path: Path, claims: str) -> None:
        self.path = path
        self.claims = claims

    @classmethod
    def beside(cls, folder: str | os.PathLike[str], claims: str) -> Reviews:
        """The answers that belong to this result; claims : their fingerprint."""
        real = Path(os.path.realpath(folder))
        return cls(real.with_name(f"{real.name}.reviews.sqlite"), claims)

    @property
    def read_only(self) -> str:
        """Why no answer can be stored, as far as that can be told without storing one; else empty."""
        places = [self.path.parent, self.path] if self.path.exists() else [self.path.parent]
        if all(os.access(place, os.W_OK) for place in places):
            return ""
        return str(self._unavailable("stored in", "the folder or the file is read-only"))

    def add(self, object_: str, value: str | None) -> Answer:
        """Store an answer, or None for a skip; when this returns, it is on the disk."""
        answered = datetime.now(UTC).isoformat(timespec="seconds")
        with self._storing() as database:
            entry = database.execute(
                "INSERT INTO answers (claims, object, value, answered) VALUES (?, ?, ?, ?)",
                (self.claims, object_, value, answered),
            ).lastrowid
        assert entry is not None
        return Answer(object_, value, answered, entry)

    def undo(self, entry: int) -> Answer | None:
        """Take one entry back, and say which it was; what was answered before it counts again. None if there is no such
        entry, or it was taken back before."""
        with self._storing() as database:
            undone = database.execute(
                "UPDATE answers SET undone = 1 WHERE entry = ? AND claims = ? AND NOT undone "
                "RETURNING object, value, answered, entry",
                (entry, self.claims),
            ).fetchone()
        return Answer(*undone) if undone else None

    def latest(self) -> list[Answer]:
        """What counts, skips included, the last first."""
        return [Answer(*row) for row in self._rows(f"{LATEST} ORDER BY entry DESC", self.claims)]

    def answer_to(self, object_: str) -> Answer | None:
        """What counts for this object."""
        rows = self._rows(f"{LATEST} AND object = ?", self.claims, object_)
        return Answer(*rows[0]) if rows else None

    def answers(self) -> dict[str, str]:
        """The truths chosen, by object."""
        return {answer.object: answer.value for answer in self.latest() if answer.value is not None}

    def n_elsewhere(self) -> int:
        """Answers in the same file that were given about other claims."""
        sql = "SELECT count(*) FROM answers WHERE claims != ? AND NOT undone AND value IS NOT NULL"
        rows = self._rows(sql, self.claims)
        return int(rows[0][0]) if rows else 0

    def replace(self, refit: str, given: Mapping[str, str | None]) -> None:
        """Remember what a refit puts answers in the place of: by object the truth that was given, None for none."""
        rows = [(self.claims, refit, object_, value) for object_, value in given.items()]
        with self._storing() as database:
            database.executemany("INSERT INTO replaced VALUES (?, ?, ?, ?)", rows)

    def replaced(self, refit: str) -> dict[str, str | None]:
        """Objects whose truth the result of this refit has from an answer, and the truth that was given before."""
        return dict(
            self._rows(
                "SELECT object, given FROM replaced WHERE claims = ? AND refit = ?", self.claims, refit
            )
        )

    def _rows(self, sql: str, *given: str) -> list[tuple[Any, ...]]:
        """What the file says; nothing where there is none yet."""
        if not self.path.exists():
            return []
        with self._open("read from", "rw", READING) as database:
            if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'answers'").fetchone():
                return []
            return database.execute(sql, given).fetchall()

    @contextmanager
    def _storing(self) -> Iterator[sqlite3.Connection]:
        with self._open("stored in", "rwc", STORING) as database:
            # Each commit waits for the disk, and so does the removal of the journal: kill -9 and a power cut lose
            # nothing that was acknowledged.
            database.execute("PRAGMA synchronous = EXTRA")
            database.executescript(SCHEMA)
            with database:
                yield database

    @contextmanager
    def _open(self, what: str, mode: str, seconds: float) -> Iterator[sqlite3.Connection]:
        try:
            address = f"{self.path.absolute().as_uri()}?mode={mode}"
            with closing(sqlite3.connect(address, timeout=seconds, uri=True)) as database:
                yield database
        except sqlite3.Error as error:
            raise self._unavailable(what, str(error)) from error

    def _unavailable(self, what: str, why: str) -> AnswersUnavailableError:
        advice = "Close the program that holds it, and try again."
        if "locked" not in why:
            advice = (
                "Copy the result to a folder that you may write to, or move that file away if it is not ours."
            )
        return AnswersUnavailableError(f"Answers cannot be {what} {self.path.name}: {why}. {advice}")
