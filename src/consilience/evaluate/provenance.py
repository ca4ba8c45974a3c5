"""Which code made a record, on what: so that a figure can be traced, and a record that names the wrong commit is found.

The digest of the code is made of the names and contents of its files, as Git hashes them: it is the same for a working
tree and for the commit that holds it.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
import time
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import consilience

PACKAGE = Path(consilience.__file__).parent
ROOT = PACKAGE.parents[1]
CODE = ("src/consilience", "benchmarks")
"""Where the code is that makes records, in a checkout."""
KINDS = (".py", ".toml", ".cu")
LIBRARIES = ("numpy", "scipy", "numba", "pyarrow")


@cache
def provenance() -> dict[str, Any]:
    """The code, the commit that holds it (None: no commit does), versions, machine and day: as of the first call, when
    the code that runs is still the code on the disk."""
    code = digest(working_files(ROOT))
    return {
        "commit": _head(ROOT, code),
        "code": code,
        "consilience": consilience.__version__,
        "python": platform.python_version(),
        **{name: version(name) for name in LIBRARIES},
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def doubt(record: Mapping[str, Any], root: Path = ROOT) -> str | None:
    """Why the record's figures may not be those of the commit that it names; None where they are."""
    given = record.get("provenance")
    commit, code = (given.get("commit"), given.get("code")) if isinstance(given, Mapping) else (None, None)
    if not code:
        return "it does not say which code made it"
    if not commit:
        return f"it was made by code that no commit holds ({code})"
    if not re.fullmatch("[0-9a-f]{40}", str(commit)):
        return f"{commit} is no commit's whole name"
    try:
        held = digest(committed_files(root, commit))
    except subprocess.CalledProcessError:
        return f"it names the commit {commit}, which is not in this repository"
    return None if held == code else f"it was made by other code ({code}) than that of {commit} ({held})"


def digest(files: Iterable[tuple[str, str]]) -> str:
    """Of names and Git's hashes of what is in them, in any order."""
    text = "\n".join(f"{blob} {name}" for name, blob in sorted(files))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def working_files(root: Path) -> Iterable[tuple[str, str]]:
    """The code as it lies on the disk."""
    for folder in CODE:
        place = root / folder
        if folder == CODE[0] and not place.is_dir():  # installed, with no checkout around it
            place = PACKAGE
        for path in place.rglob("*"):
            if path.suffix in KINDS and path.is_file():
                content = path.read_bytes()
                blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
                yield f"{folder}/{path.relative_to(place).as_posix()}", blob


def committed_files(root: Path, commit: str) -> Iterable[tuple[str, str]]:
    """The code as a commit holds it."""
    for line in _git(root, "ls-tree", "-r", "-z", commit, "--", *CODE).split("\0"):
        entry, _, name = line.partition("\t")
        if name.endswith(KINDS):
            yield name, entry.split()[2]


def _head(root: Path, code: str) -> str | None:
    """The commit that is checked out, if it holds this code."""
    try:
        commit = _git(root, "rev-parse", "HEAD").strip()
        return commit if digest(committed_files(root, commit)) == code else None
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout
