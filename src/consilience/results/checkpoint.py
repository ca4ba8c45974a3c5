"""A long fit, kept while it runs: what it has found so far, in one file that is replaced whole.

A fit notes *marks* under keys: arrays and plain values from which it can go on. Noting costs next to nothing; the file
is written now and then, and when the fit is stopped. It carries the identity of the fit, and no other fit takes it. No
pickle.
"""

from __future__ import annotations

import io
import json
import math
import os
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from consilience.errors import CheckpointError, InputError
from consilience.results.atomic import remove_file, replace_file

FORMAT, SCHEMA = "consilience checkpoint", 6
EVERY = 10.0
"""Seconds: before these a fit is not worth a checkpoint, and it writes none more often."""
SHARE = 0.05
"""Of the time of a fit, writing takes no more: where a checkpoint is large it is written less often."""
HEAD = "head"

Mark = Mapping[str, Any]
"""Arrays, lists of arrays (which come back as one) and what JSON can hold, by name."""


class Checkpoint:
    """The marks of one fit, and the file that they are kept in; without a path they are not kept."""

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, resume: bool = True, every: float = EVERY
    ) -> None:
        self.path = None if path is None else Path(os.path.abspath(path))
        self.resume, self.every = resume, every
        self.trouble: str | None = None
        """Why it could not be written the last time, in words."""
        self._marks: dict[str, Mark] = {}
        self._lock = Lock()
        self._due = math.inf
        self._is_ours = False
        self._identity: Callable[[], Mapping[str, Any]] = dict

    @property
    def is_kept(self) -> bool:
        """Whether marks are kept at all."""
        return self.path is not None

    @property
    def exists(self) -> bool:
        """Whether there is one to go on from."""
        return self.path is not None and self.path.exists()

    @contextmanager
    def during(self, identity: Callable[[], Mapping[str, Any]]) -> Iterator[None]:
        """While a fit of this identity runs: it finds the marks of the one before, and leaves its own when it ends or
        is stopped. CheckpointError where the file is of another fit."""
        self._identity, begun = cache(identity), time.monotonic()
        self._marks, self._is_ours = {}, False
        if self.exists and self.resume:
            self._marks, self._is_ours = self._read(), True
        self._due = begun + self.every
        try:
            yield
        except InputError:  # found wanting by the fit itself, perhaps because of this very file
            raise
        except BaseException as stopped:
            self._leave(begun)
            if self.trouble:
                stopped.add_note(self.trouble)
            elif self._is_ours:
                stopped.add_note(
                    f"What was found so far is in {self.path}: go on from it with --resume, or, in Python, with "
                    "checkpoint=."
                )
            elif self.path is not None:
                stopped.add_note(f"Nothing was kept: a checkpoint is left from {self.every:g} seconds on.")
            raise
        self._leave(begun)

    def mark(self, key: str) -> Mark | None:
        """What was noted under this key."""
        return self._marks.get(key)

    def note(self, key: str, mark: Mark) -> None:
        """Note a mark in the place of what was noted under this key and within it (key/…)."""
        if self.path is None:
            return
        with self._lock:
            self._forget(f"{key}/")
            self._marks[key] = mark
            if time.monotonic() >= self._due:
                self._write()

    def forget(self, start: str) -> None:
        """Forget all marks whose keys start like this."""
        with self._lock:
            self._forget(start)

    def remove(self) -> None:
        """The fit is done: remove the file, if it is of this fit, and what a process that was killed left of it."""
        if self.path is not None and self._is_ours:
            with suppress(OSError):  # it is of no more use, and of no harm to a later fit
                remove_file(self.path)

    def _forget(self, start: str) -> None:
        for key in [key for key in self._marks if key.startswith(start)]:
            del self._marks[key]

    def _leave(self, begun: float) -> None:
        with self._lock:
            if self._marks and time.monotonic() - begun >= self.every:
                self._write()

    def _write(self) -> None:
        """Write all marks. A fit does not fail because its checkpoint cannot be written."""
        assert self.path is not None
        begun = time.monotonic()
        arrays, plain = {}, {}
        try:
            for key, mark in self._marks.items():
                plain[key] = {name: value for name, value in mark.items() if not _is_array(value)}
                for name, value in mark.items():
                    if _is_array(value):
                        arrays[f"{key}:{name}"] = np.concatenate(value) if isinstance(value, list) else value
            head = {"format": FORMAT, "schema": SCHEMA, "identity": self._identity(), "marks": plain}
            buffer = io.BytesIO()
            text = json.dumps(head).encode()
            np.savez(buffer, allow_pickle=False, **{HEAD: np.frombuffer(text, np.uint8)}, **arrays)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self.path, buffer.getvalue())
            self._is_ours, self.trouble = True, None
        except (OSError, MemoryError) as error:
            why = (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()
            self.trouble = f"The checkpoint {self.path} could not be written ({why})."
        took = time.monotonic() - begun
        self._due = time.monotonic() + max(self.every, took / SHARE)

    def _read(self) -> dict[str, Mark]:
        """The marks in the file, or a CheckpointError."""
        assert self.path is not None
        begin_anew = "or delete the file to begin anew"
        try:
            # Opened here, since NumPy leaves a file open that it cannot read.
            with self.path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                arrays = dict(stored)
            head = json.loads(arrays.pop(HEAD).tobytes())
            if head["format"] != FORMAT:
                raise ValueError(f"its format is {head['format']!r}")
            schema, identity, marks = head["schema"], head["identity"], head["marks"]
            if schema == SCHEMA:
                for place, array in arrays.items():
                    key, _, name = place.rpartition(":")
                    marks[key][name] = array
        except (
            OSError,
            EOFError,
            KeyError,
            TypeError,
            ValueError,
            AttributeError,
            zipfile.BadZipFile,
        ) as error:
            raise CheckpointError(
                f"{self.path} cannot be read as a checkpoint ({error}). Restore it from a copy, {begin_anew}."
            ) from error
        if schema != SCHEMA:
            raise CheckpointError(
                f"{self.path} has the checkpoint schema {schema}; this version of consilience reads {SCHEMA}. "
                f"Go on with the version that wrote it, {begin_anew}."
            )
        if differences := _differences(identity, json.loads(json.dumps(self._identity()))):
            raise CheckpointError(
                f"{self.path} is of another fit: {'; '.join(differences)}. "
                f"Run that fit again to go on with it, {begin_anew}."
            )
        return dict(marks)


def _is_array(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and isinstance(value[0], np.ndarray)
    return isinstance(value, np.ndarray)


def _differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What sets two fits apart, in words; digests are not worth showing."""
    names = [name for name in {**was, **now} if was.get(name) != now.get(name)]
    return [
        f"other {name}"
        if name.endswith(("claims", "truths"))
        else f"{name} {was.get(name)!r}, now {now.get(name)!r}"
        for name in names
    ]
