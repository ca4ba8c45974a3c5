"""Answers of reviewers: an append-only log in SQLite, on the disk before anybody is told that it is stored.

It lies beside the result, not in it: saving a new result replaces the folder whole, and answers must survive that.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from consilience.errors import InputError
from consilience.server.shapes import Answer

SCHEMA = """
CREATE TABLE IF NOT EXISTS log (
    id INTEGER PRIMARY KEY, object TEXT NOT NULL, value TEXT, answered TEXT NOT NULL, undone INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS log_object ON log (object);
CREATE TABLE IF NOT EXISTS applied (object TEXT PRIMARY KEY);
"""
LATEST = """
SELECT object, value, answered FROM log
WHERE id IN (SELECT max(id) FROM log WHERE NOT undone GROUP BY object)
"""


class Reviews:
    """The log. The last entry of an object that was not undone counts; one without a value says "skipped"."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        try:
            self._database = sqlite3.connect(path, timeout=30, check_same_thread=False)
            # Each commit waits for the disk, and so does the removal of the journal: kill -9 and a power cut lose
            # nothing that was acknowledged.
            self._database.execute("PRAGMA synchronous = EXTRA")
            with self._database:
                self._database.executescript(SCHEMA)
        except sqlite3.Error as error:
            raise InputError(
                f"Answers cannot be stored in {path}: {error}. Move the result to a folder that you may write to, "
                "or move that file away."
            ) from error

    @classmethod
    def beside(cls, folder: str | os.PathLike[str]) -> Reviews:
        """The answers that belong to this result."""
        real = Path(os.path.realpath(folder))
        return cls(real.with_name(f"{real.name}.reviews.sqlite"))

    def add(self, object_: str, value: str | None) -> Answer:
        """Store an answer, or None for a skip; when this returns, it is on the disk."""
        answer = Answer(object_, value, datetime.now(UTC).isoformat(timespec="seconds"))
        with self._transaction() as database:
            database.execute(
                "INSERT INTO log (object, value, answered) VALUES (?, ?, ?)",
                (answer.object, answer.value, answer.answered),
            )
        return answer

    def undo(self) -> Answer | None:
        """Take the last entry back, and say which it was; what was answered before it counts again."""
        with self._transaction() as database:
            last = database.execute(
                "SELECT id, object, value, answered FROM log WHERE NOT undone ORDER BY id DESC LIMIT 1"
            ).fetchone()
            if last is None:
                return None
            database.execute("UPDATE log SET undone = 1 WHERE id = ?", last[:1])
        return Answer(*last[1:])

    def latest(self) -> list[Answer]:
        """What counts, skips included, the last first."""
        with self._transaction() as database:
            return [Answer(*row) for row in database.execute(f"{LATEST} ORDER BY id DESC")]

    def answer_to(self, object_: str) -> str | None:
        """The answer that counts for this object."""
        with self._transaction() as database:
            row = database.execute(f"{LATEST} AND object = ?", (object_,)).fetchone()
        return row[1] if row else None

    def answers(self) -> dict[str, str]:
        """The truths chosen, by object."""
        return {answer.object: answer.value for answer in self.latest() if answer.value is not None}

    def apply(self, objects: list[str]) -> None:
        """Remember that a result was fitted with answers on these objects: what it knows of them came from here."""
        with self._transaction() as database:
            database.executemany("INSERT OR IGNORE INTO applied VALUES (?)", [(each,) for each in objects])

    def applied(self) -> set[str]:
        """Objects whose truth, where a result has it as known, came from an answer."""
        with self._transaction() as database:
            return {row[0] for row in database.execute("SELECT object FROM applied")}

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._database:
            yield self._database
