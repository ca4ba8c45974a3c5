"""Where data sets are on this machine, and getting those that are not.

A download is checked against the catalogue's SHA-256 before it gets its name: what the cache holds is right.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

import pyarrow.csv

from consilience.datasets.catalogue import Dataset, RawFile, find
from consilience.datasets.convert import convert, require_recipe
from consilience.errors import DatasetError

TIMEOUT = 30.0
"""Seconds without an answer after which a download is given up."""


@dataclass(frozen=True)
class Tables:
    """Where the two tables of a data set lie."""

    claims: Path
    truth: Path


def data_dir() -> Path:
    """Where data sets are looked for: `$CONSILIENCE_DATA`, by default ../shared/data."""
    return Path(os.environ.get("CONSILIENCE_DATA") or Path("..", "shared", "data"))


def local(name: str) -> Tables:
    """The converted tables of a data set in `data_dir`."""
    folder = data_dir() / find(name).name
    tables = Tables(folder / "claims.csv.gz", folder / "truth.csv")
    missing = [str(path) for path in (tables.claims, tables.truth) if not path.is_file()]
    if missing:
        raise DatasetError(
            f"{name}: {' and '.join(missing)} not found. Set CONSILIENCE_DATA to the folder that holds "
            f"{name}/, or get the public original with: consilience datasets {name}"
        )
    return tables


def cache_dir() -> Path:
    """Where downloads are kept: `$CONSILIENCE_CACHE`, else the platform's place for caches."""
    if chosen := os.environ.get("CONSILIENCE_CACHE"):
        return Path(chosen)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "consilience"


def fetch(name: str) -> Tables:
    """Claims and truth of a data set as CSV files in the cache, made of its original files."""
    dataset = find(name)
    require_recipe(dataset)
    raw = download(name)
    tables = Tables(raw.parent / "claims.csv", raw.parent / "truth.csv")
    for table, path in zip(convert(dataset, raw), (tables.claims, tables.truth), strict=True):
        with _whole_or_not_at_all(path) as part:
            pyarrow.csv.write_csv(table, part)
    return tables


def download(name: str) -> Path:
    """The folder with a data set's original files: those already there are checked, the others downloaded."""
    dataset = find(name)
    if not dataset.files:
        raise DatasetError(f"{name} ({dataset.title}): no single files to download; look at {dataset.page}")
    folder = cache_dir() / name / "raw"
    folder.mkdir(parents=True, exist_ok=True)
    for file in dataset.files:
        path = folder / file.name
        if path.exists():
            _check(file, path, f"Remove {path} and try again.")
        else:
            _get(dataset, file, path)
    return folder


def _get(dataset: Dataset, file: RawFile, path: Path) -> None:
    """Download one file to `path`, or say how to get it there by hand."""
    by_hand = f"put it at {path} by hand and try again; its SHA-256 is checked."
    if file.url is None:
        raise DatasetError(
            f"{dataset.name}: {file.name} is published inside an archive only. Get {dataset.page}, "
            f"take {file.name} out of its folder '{dataset.within}', {by_hand}"
        )
    with _whole_or_not_at_all(path) as part:
        try:
            with urllib.request.urlopen(file.url, timeout=TIMEOUT) as answer, part.open("wb") as out:
                shutil.copyfileobj(answer, out)
        except urllib.error.HTTPError as error:
            raise DatasetError(
                f"{dataset.name}: the server answered {error.code} {error.reason} for {file.url}. "
                f"Find {file.name} elsewhere ({dataset.page}), {by_hand}"
            ) from error
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise DatasetError(
                f"{dataset.name}: could not download {file.url} ({reason}). Is there a network? Without one, "
                f"get that file on another machine, {by_hand}"
            ) from error
        _check(file, part, f"Nothing was kept. The address may serve another version now: {file.url}")


def _check(file: RawFile, path: Path, advice: str) -> None:
    """Refuse a file that is not what the catalogue knows under its name."""
    with path.open("rb") as content:
        found = hashlib.file_digest(content, "sha256").hexdigest()
    if found != file.sha256:
        raise DatasetError(f"{file.name} has the SHA-256 {found}, expected {file.sha256}. {advice}")


@contextmanager
def _whole_or_not_at_all(path: Path) -> Iterator[Path]:
    """A place to write to that becomes `path` if all goes well and vanishes otherwise."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
