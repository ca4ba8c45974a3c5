"""Folders and files that appear whole: filled beside their final place, forced to the disk, then renamed into it.

A process killed at any moment leaves the old folder, the new one or none under the final name, never a part
of one. What it left beside it is removed by the next one that succeeds, so until then a complete folder
exists somewhere.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

TAKEN = (errno.ENOTEMPTY, errno.EEXIST)
"""What the system says when a folder cannot be renamed because another one has the name."""


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A fresh folder to fill with files: if the block ends well it takes the place of `target`, else goes."""
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = _beside(target, "saving")
    fresh.mkdir()
    try:
        yield fresh
        for path in (*fresh.iterdir(), fresh):
            _sync(path)
        _swap(fresh, target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    _remove_stale(target)


def replace_file(target: Path, content: bytes) -> None:
    """Write a file that is there whole or not at all; what was there is replaced."""
    fresh = _beside(target, "saving")
    try:
        fresh.write_bytes(content)
        _sync(fresh)
        fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)
    _sync(target.parent)
    _remove_stale(target)


def remove_file(target: Path) -> None:
    """Remove a file that may be there, and what processes that no longer run left beside it."""
    target.unlink(missing_ok=True)
    _remove_stale(target)


def try_replacing(target: Path) -> None:
    """Meet the OSError that `replacing` would meet: make all folders that it would make, and remove them.

    They are made inside one of our own, so that nobody else can see or use them.
    """
    above = next(path for path in target.parents if path.exists())
    trial = _beside(above / target.name, "saving")
    try:
        (trial / target.relative_to(above)).mkdir(parents=True)
    finally:
        shutil.rmtree(trial, ignore_errors=True)


def _swap(fresh: Path, target: Path) -> None:
    """Rename what is there aside, the fresh folder in; of two processes that do so at once the last wins."""
    while True:
        aside = _beside(target, "replaced")
        with suppress(FileNotFoundError):
            target.rename(aside)
        try:
            fresh.rename(target)
            break
        except BaseException as error:
            try:
                aside.rename(target)
            except FileNotFoundError:  # nothing was there
                pass
            except OSError as other:
                if other.errno in TAKEN:  # somebody else's is there by now: the newer one
                    shutil.rmtree(aside, ignore_errors=True)
                else:
                    error.add_note(f"What was in {target} is in {aside} now.")
            if not (isinstance(error, OSError) and error.errno in TAKEN):
                raise
    _sync(target.parent)
    shutil.rmtree(aside, ignore_errors=True)


def _beside(target: Path, state: str) -> Path:
    """A hidden sibling, which carries the number of the process that owns it."""
    return target.parent / f".{target.name}.{state}-{os.getpid()}-{secrets.token_hex(4)}"


def _remove_stale(target: Path) -> None:
    """Remove what processes that no longer run left beside this folder or file."""
    for state in ("saving", "replaced"):
        start = f".{target.name}.{state}-"
        for path in target.parent.iterdir():
            owner = path.name.removeprefix(start).split("-")[0]
            if path.name.startswith(start) and owner.isdigit() and not _is_running(int(owner)):
                if path.is_file():
                    path.unlink(missing_ok=True)
                else:
                    shutil.rmtree(path, ignore_errors=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):  # somebody else's; no process of ours
        return True
    return True


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk itself."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
