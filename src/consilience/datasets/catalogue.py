"""Public data sets with gold: what they are, where they are published, how to read them.

The facts stand in `catalogue.toml`; the data stay where they are published (`fetch.py` gets them).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from consilience.errors import UnknownNameError


@dataclass(frozen=True)
class RawFile:
    """A file as it was published."""

    name: str
    sha256: str
    url: str | None
    """Where it can be downloaded by itself; None where it lies inside an archive."""


@dataclass(frozen=True)
class Columns:
    """Where a file keeps the object, the value and (for claims) the source of each row: columns from 0."""

    file: str
    object: int
    value: int
    source: int | None = None
    delimiter: str = ","
    skip: int = 0
    """Lines before the first row."""
    pattern: str | None = None
    """For a file that is no table: the regular expression whose groups are the columns of a row."""
    numbered: bool = False
    """Sources and objects are bare numbers: write them w1 and i1, so that they cannot be mixed up."""
    names: Mapping[str, str] = field(default_factory=dict)
    """What the codes of values stand for."""
    until: str | None = None
    """Keep of a value only what stands before this mark."""


@dataclass(frozen=True)
class Dataset:
    """One public data set. Counts are those of the converted table; `gold` objects have a known truth."""

    name: str
    title: str
    about: str
    sources: int
    objects: int
    claims: int
    gold: int
    page: str
    """Where a person can look at the original."""
    within: str
    """The folder of the archive at `page` that holds the files; empty where `page` is that folder."""
    licence: str
    citation: tuple[str, ...]
    files: tuple[RawFile, ...] = ()
    read_claims: Columns | None = None
    read_truth: Columns | None = None
    reader: str | None = None
    """The recipe of `convert.py` that reads the files, where taking columns is not enough."""

    @property
    def convertible(self) -> bool:
        """Whether `fetch` can make claims and truth of the original files."""
        return self.reader is not None or (self.read_claims is not None and self.read_truth is not None)


@cache
def catalogue() -> Mapping[str, Dataset]:
    """Every data set, by name."""
    text = files("consilience.datasets").joinpath("catalogue.toml").read_text(encoding="utf-8")
    return MappingProxyType({name: _dataset(name, entry) for name, entry in tomllib.loads(text).items()})


def find(name: str) -> Dataset:
    """The data set of that name."""
    known = catalogue()
    if name not in known:
        raise UnknownNameError("data set", name, known, advice="`consilience datasets` lists them all.")
    return known[name]


def _dataset(name: str, entry: dict[str, Any]) -> Dataset:
    """A data set from its entry in the file: addresses are formed from repository, commit and path."""
    repository, commit, folder = (entry.pop(key) for key in ("repository", "commit", "folder"))
    archive = entry.pop("archive", None)
    view = "blob" if archive else "tree"
    raw = f"https://raw.githubusercontent.com/{repository}/{commit}/{quote(folder)}"
    return Dataset(
        name=name,
        page=f"https://github.com/{repository}/{view}/{commit}/{quote(archive or folder)}",
        within=folder if archive else "",
        citation=tuple(entry.pop("citation")),
        files=tuple(
            RawFile(
                name=file["name"],
                sha256=file["sha256"],
                url=None if archive else f"{raw}/{quote(file.get('path', file['name']))}",
            )
            for file in entry.pop("files", ())
        ),
        read_claims=_columns(entry.pop("read_claims", None)),
        read_truth=_columns(entry.pop("read_truth", None)),
        **entry,
    )


def _columns(entry: dict[str, Any] | None) -> Columns | None:
    return None if entry is None else Columns(**entry)
