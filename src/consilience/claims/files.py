"""Tables in files: which reader a path needs, and what can be wrong before any cell is read."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from glob import escape, glob, has_magic
from os.path import exists, isdir, isfile, islink
from pathlib import Path
from typing import Any

import pyarrow as pa

from consilience.claims.tables import Table
from consilience.errors import ClaimsError, Problem, nearest

TEXT_ENDINGS = (".csv", ".tsv", ".txt")
JSON_ENDINGS = (".jsonl", ".ndjson")
PARQUET_ENDINGS = (".parquet", ".pq")
SUPPORTED = (
    ".csv, .tsv, .txt, .jsonl, .ndjson (each also .gz), .parquet, a folder or pattern of Parquet files"
)


def open_file(path: str) -> Table:
    """Open a file by its ending; a folder or a pattern stands for the Parquet files it holds."""
    if not path:
        problem = Problem("missing-file", "The path is empty.", f"Give one of: {SUPPORTED}.")
        raise ClaimsError("The table", [problem])
    files = parquet_files(path)
    if files:
        from consilience.claims.parquet import open_parquet

        return open_parquet(path, files)
    place = Path(path).expanduser()
    name = place.name.lower()
    # Each reader brings its own library, slow to load: only the one that is needed is imported.
    if name.removesuffix(".gz").endswith(TEXT_ENDINGS):
        from consilience.claims.delimited import open_delimited

        return open_delimited(path, place)
    if name.removesuffix(".gz").endswith(JSON_ENDINGS):
        from consilience.claims.json_lines import open_json_lines

        return open_json_lines(path, place)
    found = f"Files that end like {place.name!r} cannot be read."
    advice = f"Give one of: {SUPPORTED}. Or read the file yourself and pass the frame."
    raise ClaimsError(path, [Problem("unknown-format", found, advice)])


def parquet_files(path: str) -> list[str]:
    """The Parquet files that a path stands for: itself, or what is in a folder, of a pattern or of an object store's
    address; none where it is a file of another kind."""
    if "://" in path:
        return _sorted_parquet(path, _stored(path))
    place = Path(path).expanduser()
    if isdir(
        place
    ):  # unlike Path's own, these functions take a path that the system refuses for a missing one
        if _is_result(place):
            raise ClaimsError(path, [_saved_result(place)])
        inside = filter(isfile, glob(f"{escape(str(place))}/**/*", recursive=True))
        return _sorted_parquet(path, [file for file in inside if file.lower().endswith(PARQUET_ENDINGS)])
    if has_magic(path) and not exists(place):
        return _sorted_parquet(path, glob(str(place), recursive=True))
    if not exists(place):
        raise ClaimsError(path, [_missing_file(place)])
    return [str(place)] if place.name.lower().endswith(PARQUET_ENDINGS) else []


def _stored(address: str) -> list[str]:
    """Addresses of Parquet files in an object store, or wherever Arrow can look: a file, a folder, or a pattern."""
    from pyarrow import fs

    scheme, _, rest = address.partition("://")
    fixed = rest[: rest.index("*")].rpartition("/")[0] if "*" in rest else rest
    try:
        store, base = fs.FileSystem.from_uri(f"{scheme}://{fixed}")
        kind = store.get_file_info(base).type
        if kind == fs.FileType.NotFound:
            raise ClaimsError(
                address,
                [Problem("missing-file", f"There is nothing at {scheme}://{fixed}.", "Check the address.")],
            )
        if kind == fs.FileType.File:
            return [address]
        there = store.get_file_info(fs.FileSelector(base, recursive=True))
    except (OSError, pa.ArrowException) as why:
        raise unreadable(address, why) from None
    # What the store calls its folder, the address calls by its fixed part.
    inside = [
        f"{scheme}://{fixed}{info.path[len(base) :]}" for info in there if info.type == fs.FileType.File
    ]
    wanted = [file for file in inside if file.lower().endswith(PARQUET_ENDINGS)]
    if "*" not in rest:
        return wanted
    # As in a shell, * stays within a folder and ** does not.
    deep = "**" in rest
    return [
        file
        for file in wanted
        if fnmatchcase(file, address) and (deep or file.count("/") == address.count("/"))
    ]


def _sorted_parquet(path: str, files: list[str]) -> list[str]:
    others = [file for file in files if not file.lower().endswith(PARQUET_ENDINGS)]
    if others:
        found = f"{others[0]!r} is not a Parquet file."
        raise ClaimsError(path, [Problem("unknown-format", found, f"Give one of: {SUPPORTED}.")])
    if not files:
        found = "There is no Parquet file here."
        raise ClaimsError(path, [Problem("missing-file", found, f"Give one of: {SUPPORTED}.")])
    return sorted(files)


def open_stream(place: Path) -> Any:
    """The bytes of a file, decompressed if its name ends in .gz."""
    return pa.input_stream(str(place), compression="gzip" if place.name.lower().endswith(".gz") else None)


def read_bytes(path: str, place: Path, size: int | None = None) -> bytes:
    """The first `size` bytes of a text file, or all. UTF-16, which some programs write, is refused here."""
    try:
        with open_stream(place) as stream:
            data = bytes(stream.read(size))
    except (OSError, pa.ArrowException) as why:
        raise unreadable(path, why) from None
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        advice = "Save the file as UTF-8 (in a spreadsheet: 'CSV UTF-8')."
        raise ClaimsError(path, [Problem("undecodable", "The file is in UTF-16; expected UTF-8.", advice)])
    return data.removeprefix(b"\xef\xbb\xbf")


def unreadable(path: str, why: Exception) -> ClaimsError:
    """The error for a file that is damaged or not what its ending says."""
    if isinstance(why, FileNotFoundError):
        found = "The file was there and is gone: it was moved or deleted while it was read."
        return ClaimsError(path, [Problem("missing-file", found, "Put it back, or give another path.")])
    if isinstance(why, PermissionError):
        found = "The file is there, and may not be read: permission denied."
        advice = "Ask for the right to read it, or give another path."
        return ClaimsError(path, [Problem("unreadable-file", found, advice)])
    reason = " ".join(str(why).split())[:300]
    advice = "It may be damaged, incomplete or not what its ending says: check it, or fetch it again."
    return ClaimsError(path, [Problem("unreadable-file", f"The file cannot be read: {reason}", advice)])


def _is_result(folder: Path) -> bool:
    """Whether `Fit.save` wrote this folder: its manifest says so."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and str(manifest.get("format")).startswith("consilience result")


def _saved_result(folder: Path) -> Problem:
    found = "This folder is a saved result of consilience, not a table."
    advice = f"The claims that it was computed from are in {str(folder / 'claims.parquet')!r}."
    return Problem("saved-result", found, advice)


def _missing_file(place: Path) -> Problem:
    folder = place.parent
    if not folder.is_dir():
        return Problem("missing-file", f"There is no folder {str(folder)!r}.", "Check the path.")
    if islink(place):
        found = (
            f"{place.name!r} in {str(folder)!r} is a link to {str(place.readlink())!r}, which does not exist."
        )
        return Problem("missing-file", found, "Check where it should lead.")
    close = nearest(place.name, [entry.name for entry in folder.iterdir()])
    hint = f"Did you mean {' or '.join(repr(name) for name in close)}?" if close else "Check the path."
    advice = f"{hint} (A query begins with SELECT, WITH or FROM.)"
    return Problem("missing-file", f"There is no file {place.name!r} in {str(folder)!r}.", advice)
