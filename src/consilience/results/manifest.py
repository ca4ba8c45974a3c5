"""The manifest of a saved result: which version wrote it, which files belong to it, and their hashes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import consilience
from consilience.errors import ResultFormatError

SCHEMA = 1
FORMAT = "consilience result"
SPREAD_FORMAT = "consilience result in parts"
"""What a cluster wrote: tables for people and their tools, too large to be loaded whole."""
MANIFEST = "manifest.json"
SEAL = "sha256"
"""The key of the hash of all other keys; a result of before there was one has none."""
REPORT = "report.html"
"""Made of the others, for people: it may be there or not, and be made anew, so it is not in the manifest."""
FILES = (
    "claims.parquet",
    "groups.parquet",
    "sources.parquet",
    "state.npz",
    "trace.json",
    "truths.parquet",
    "values.parquet",
)


def read_manifest(folder: Path, formats: tuple[str, ...] = (FORMAT,)) -> dict[str, Any]:
    """The manifest of a result of one of these formats that this version can read."""
    advice = "Give the folder that `consilience fit --out` or `fit.save` wrote."
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text("utf-8"))
    except OSError as error:
        found = "it is a file, not a folder" if folder.exists() else "there is no such folder"
        if folder.is_dir():
            found = f"there is no {MANIFEST} in it that can be read"
        raise ResultFormatError(f"{folder} is not a consilience result: {found}. {advice}") from error
    except ValueError as error:
        raise ResultFormatError(f"{folder / MANIFEST} is damaged ({error}). Run the fit again.") from None
    manifest = manifest if isinstance(manifest, dict) else {}
    kind = manifest.get("format")
    if kind == SPREAD_FORMAT and kind not in formats:
        raise ResultFormatError(
            f"{folder} is a result in parts, which a cluster wrote. It is not loaded whole: read its truths.parquet, "
            "sources.parquet and groups.parquet with DuckDB, Polars, pandas or Arrow."
        )
    if kind not in formats:
        raise ResultFormatError(f"{folder} is not a consilience result: its {MANIFEST} is not ours. {advice}")
    schema = manifest.get("schema")
    if not isinstance(schema, int) or not isinstance(manifest.get("files"), dict):
        raise ResultFormatError(
            f"{folder / MANIFEST} is damaged: no schema or list of files. Run the fit again."
        )
    if schema > SCHEMA:
        raise ResultFormatError(
            f"{folder} was written by consilience {manifest.get('consilience')} (schema {schema}); "
            f"this is {consilience.__version__}, which reads schema {SCHEMA}. "
            "Upgrade with `pip install -U consilience`."
        )
    seal = manifest.get(SEAL)
    if seal is not None and seal != sealed(manifest)[SEAL]:
        raise ResultFormatError(
            f"{folder / MANIFEST} was altered (it does not match its own SHA-256). Restore it from a copy or run the "
            "fit again."
        )
    return manifest


def sealed(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest with a hash of all else in it, so that what was altered is not taken for what was written."""
    rest = {key: value for key, value in manifest.items() if key != SEAL}
    return {**rest, SEAL: _hash(rest)}


def _hash(content: Mapping[str, Any]) -> str:
    """The SHA-256 of a manifest, however it is laid out."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def check_files(folder: Path, manifest: Mapping[str, Any]) -> None:
    """ResultFormatError unless every file is there and is the one that was written."""
    problems = []
    for name in sorted({*FILES, *manifest["files"]}):
        path = folder / Path(name).name
        if not path.is_file():
            problems.append(f"{path.name} is missing")
        elif digest(path) != manifest["files"].get(name):
            problems.append(f"{path.name} was altered (its SHA-256 differs)")
    if problems:
        raise ResultFormatError(
            f"{folder} is damaged: {'; '.join(problems)}. Restore it from a copy or run the fit again."
        )


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
