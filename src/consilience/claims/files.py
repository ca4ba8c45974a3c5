"""Tables in files: which reader a path needs, what can be wrong before any cell is read, and Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from glob import glob, has_magic
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset

from consilience.claims.tables import Cells, Table
from consilience.claims.vocabulary import is_text
from consilience.errors import ClaimsError, Problem, nearest

TEXT_ENDINGS = (".csv", ".tsv", ".txt")
JSON_ENDINGS = (".jsonl", ".ndjson")
PARQUET_ENDINGS = (".parquet", ".pq")
ROWS_AT_A_TIME = 1 << 20
SUPPORTED = (
    ".csv, .tsv, .txt, .jsonl, .ndjson (each also .gz), .parquet, a folder or pattern of Parquet files"
)


def open_file(path: str) -> Table:
    """Open a file by its ending; a folder or a pattern stands for the Parquet files it holds."""
    place = Path(path).expanduser()
    if place.is_dir():
        return open_parquet(path, sorted(glob(str(place / "**" / "*.parquet"), recursive=True)))
    if has_magic(path) and not place.exists():
        return open_parquet(path, sorted(glob(str(place), recursive=True)))
    if not place.exists():
        raise ClaimsError(path, [_missing_file(place)])
    name = place.name.lower()
    if name.endswith(PARQUET_ENDINGS):
        return open_parquet(path, [str(place)])
    # Each reader brings its own library: only the one that is needed is imported.
    if name.removesuffix(".gz").endswith(TEXT_ENDINGS):
        from consilience.claims.delimited import open_delimited

        return open_delimited(path, place)
    if name.removesuffix(".gz").endswith(JSON_ENDINGS):
        from consilience.claims.json_lines import open_json_lines

        return open_json_lines(path, place)
    found = f"Files that end like {place.name!r} cannot be read."
    advice = f"Give one of: {SUPPORTED}. Or read the file yourself and pass the frame."
    raise ClaimsError(path, [Problem("unknown-format", found, advice)])


def open_parquet(path: str, files: Sequence[str]) -> Table:
    """Open Parquet files as one table, in the order given; the first says which columns there are."""
    others = [file for file in files if not file.lower().endswith(PARQUET_ENDINGS)]
    if others:
        found = f"{others[0]!r} is not a Parquet file."
        raise ClaimsError(path, [Problem("unknown-format", found, f"Give one of: {SUPPORTED}.")])
    if not files:
        raise ClaimsError(
            path, [Problem("missing-file", "There is no Parquet file here.", f"Give one of: {SUPPORTED}.")]
        )
    try:
        dataset = pa.dataset.dataset(files, format="parquet")
    except (OSError, pa.ArrowException) as why:
        raise unreadable(path, why) from None

    def load(wanted: Sequence[str]) -> Cells:
        chunks: dict[str, list[Any]] = {name: [] for name in wanted}
        try:
            for batch in dataset.to_batches(columns=list(wanted), batch_size=ROWS_AT_A_TIME):
                for name in wanted:
                    cells = batch.column(name)
                    # A text is kept once for each batch, not for each row, so that large files fit in memory.
                    chunks[name].append(cells.dictionary_encode() if is_text(cells.type) else cells)
        except (OSError, pa.ArrowException) as why:
            raise unreadable(path, why) from None
        columns = {}
        for name in wanted:
            kind = chunks[name][0].type if chunks[name] else dataset.schema.field(name).type
            columns[name] = pa.chunked_array(chunks[name], type=kind)
        return Cells(columns)

    return Table(path, dataset.schema.names, load)


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
    reason = " ".join(str(why).split())[:300]
    advice = "It may be damaged, incomplete or not what its ending says: check it, or fetch it again."
    return ClaimsError(path, [Problem("unreadable-file", f"The file cannot be read: {reason}", advice)])


def _missing_file(place: Path) -> Problem:
    folder = place.parent
    if not folder.is_dir():
        return Problem("missing-file", f"There is no folder {str(folder)!r}.", "Check the path.")
    close = nearest(place.name, [entry.name for entry in folder.iterdir()])
    hint = f"Did you mean {' or '.join(repr(name) for name in close)}?" if close else "Check the path."
    advice = f"{hint} (A query begins with SELECT, WITH or FROM.)"
    return Problem("missing-file", f"There is no file {place.name!r} in {str(folder)!r}.", advice)
