"""A result on disk: a folder of Parquet tables, a file of arrays, and a manifest with their hashes.

The tables are for people and their tools; the arrays and the manifest bring the Fit back, bit by bit. No
pickle.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, fields
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import consilience
from consilience.claims.encoding import Claims
from consilience.errors import InputError, ResultFormatError
from consilience.kernels.state import Beliefs, Globals, Partition, Prior
from consilience.results.atomic import replacing, try_replacing
from consilience.results.cautions import Caution
from consilience.results.fit import Fit
from consilience.results.groups import groups_table
from consilience.results.integrity import check_shapes, check_types
from consilience.results.manifest import (
    FILES,
    FORMAT,
    MANIFEST,
    REPORT,
    SCHEMA,
    SPREAD_FORMAT,
    check_files,
    digest,
    read_manifest,
    sealed,
)
from consilience.results.tables import ids, source_order, sources_table, truths_table

T = TypeVar("T")

CLAIMS_AT_A_TIME = 1 << 20
ROWS_AT_A_TIME = 1 << 14
"""Rows of a group in the tables that single rows are read of: to read one decodes its group."""
CLAIM_ARRAYS = ("claim_source", "claim_candidate", "first_claim", "first_candidate", "candidate_value")
FIT_ARRAYS = ("truth", "decision", "source_reliability")
FACTS = ("seed", "ties", "sweeps", "converged", "seconds")


def save(fit: Fit, folder: str | os.PathLike[str]) -> Path:
    """Write the result into `folder`, replacing a result that is there. Returns the folder's path.

    Raises InputError if the folder holds anything else or cannot be written.
    """
    target = check_target(folder)
    with replacing(target) as fresh:
        _write(fit, fresh)
    return target


def check_target(folder: str | os.PathLike[str]) -> Path:
    """The real path of a folder that a result may be written to; InputError if it may not.

    It must be absent, empty, or hold a result and nothing that consilience did not write, and a folder can be
    made in its place.
    """
    target = Path(os.path.realpath(folder))
    if Path.cwd().is_relative_to(target):
        raise InputError(
            f"Cannot write {str(folder)!r}: it is or holds the folder you are in, and saving would replace "
            "it. Name a new folder, such as 'result'."
        )
    try:
        if obstacle := _obstacle(target):
            raise InputError(f"Cannot write {str(folder)!r}: {obstacle}")
        try_replacing(target)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise InputError(
            f"Cannot write {str(folder)!r}: the system refuses it ({why}). Choose another folder."
        ) from None
    return target


def _obstacle(target: Path) -> str | None:
    """What forbids to replace `target`, in words; None where there is nothing, or nothing but a result.

    Another process may replace the result at the same time, so it is looked at once and, if it went between
    that look and its manifest, again.
    """
    while True:
        try:
            there = set(_inside(target))
        except FileNotFoundError:
            return None
        except NotADirectoryError:
            file = next(path for path in (target, *target.parents) if path.exists())
            return f"{file} is a file, not a folder. Choose another name."
        if os.path.ismount(target):
            return "a volume is mounted there, which cannot be replaced. Name a folder inside it."
        if not there:
            return None
        try:
            ours = {MANIFEST, REPORT, *read_manifest(target, (FORMAT, SPREAD_FORMAT))["files"]}
        except ResultFormatError as error:
            went = MANIFEST in there and isinstance(error.__cause__, FileNotFoundError)
            if went and not (target / MANIFEST).is_symlink():
                continue
            return (
                f"it exists, and what is in it must not be overwritten ({error}) "
                "Choose a new folder; nothing was changed."
            )
        half_written = {name for name in there if name.startswith(f".{REPORT}.")}
        if others := sorted(there - ours - half_written):
            return (
                f"beside a result it also holds {', '.join(others[:3])}{' and more' if len(others) > 3 else ''}, "
                "which consilience did not write. Move that away or choose another folder; nothing was changed."
            )
        return None


def _inside(folder: Path) -> Iterator[str]:
    """What is in a folder, and in the folders in it, by the names that a manifest has."""
    for name in os.listdir(folder):
        within = os.listdir(folder / name) if os.path.isdir(folder / name) else []
        yield from (f"{name}/{each}" for each in within) if within else (name,)


def load(folder: str | os.PathLike[str]) -> Fit:
    """Read a result back, after checking that every file is there and unchanged."""
    source = Path(folder)
    manifest = read_manifest(source)
    check_files(source, manifest)
    try:
        check_types(manifest)
        # NumPy leaves a file open that it opened itself and cannot read.
        with (source / "state.npz").open("rb") as file, np.load(file, allow_pickle=False) as stored:
            fit = read_fit(source, manifest, dict(stored), _column)
        check_shapes(fit)
        return fit
    except MemoryError:
        raise
    except Exception as error:  # whatever the readers of several formats raise at what is not theirs
        raise ResultFormatError(
            f"{source}: the manifest does not describe the files beside it ({error!r}). Run the fit again."
        ) from error


def _write(fit: Fit, folder: Path) -> None:
    claims = fit.claims
    pq.write_table(truths_table(fit), folder / "truths.parquet", row_group_size=ROWS_AT_A_TIME)
    pq.write_table(sources_table(fit), folder / "sources.parquet")
    pq.write_table(groups_table(fit.groups_found, fit.prior), folder / "groups.parquet")
    values = pa.table({"value": ids(claims.values)})
    pq.write_table(values, folder / "values.parquet", row_group_size=ROWS_AT_A_TIME)
    _write_claims(claims, folder / "claims.parquet")
    write_json(folder / "trace.json", {"sweeps": fit.trace, "starts": fit.starts})
    np.savez(folder / "state.npz", allow_pickle=False, **_arrays(fit))
    manifest = {
        "format": FORMAT,
        "schema": SCHEMA,
        "consilience": consilience.__version__,
        "model": fit.model,
        "settings": fit.settings,
        "learned": fit.learned,
        "provenance": fit.provenance,
        "counts": {
            name: getattr(claims, name) for name in ("n_sources", "n_objects", "n_claims", "n_candidates")
        },
        "fit": {
            **{name: getattr(fit, name) for name in FACTS},
            "warnings": [Caution.read(warning).record() for warning in fit.warnings],
        },
        "claims": {name: getattr(claims, name) for name in ("domain", "columns", "frame", "notes")},
        "files": {name: digest(folder / name) for name in FILES},
    }
    plain = json.loads(json.dumps(manifest, allow_nan=False, default=_plain))
    write_json(folder / MANIFEST, sealed(plain))


def read_fit(
    folder: Path,
    manifest: Mapping[str, Any],
    arrays: Mapping[str, Any],
    column: Callable[[Path, str], Any],
) -> Fit:
    """The fit of these arrays; `column` reads, or merely opens, the objects' and values' ids."""
    sources = _column(folder / "sources.parquet", "source")
    kept = manifest["claims"]
    claims = Claims(
        sources=sources.take(pa.array(np.argsort(arrays["source_order"]))),
        objects=column(folder / "truths.parquet", "object"),
        values=column(folder / "values.parquet", "value"),
        **{name: arrays[name] for name in CLAIM_ARRAYS},
        domain=kept["domain"],
        columns=tuple(kept["columns"]),
        frame=kept["frame"],
        notes=tuple(kept["notes"]),
    )
    trace = json.loads((folder / "trace.json").read_text("utf-8"))
    groups_found = prior = None
    if "globals_group" in arrays:
        is_partition = "globals_habit" in arrays
        groups_found = _stored("globals", Partition if is_partition else Globals, arrays)
    if "prior_true_count" in arrays:
        is_learned = "prior_habit" in arrays
        prior = _stored("prior", Beliefs, arrays) if is_learned else _stored("prior", Prior, arrays)
    facts = manifest["fit"]
    return Fit(
        model=manifest["model"],
        settings=manifest["settings"],
        learned=manifest["learned"],
        claims=claims,
        **{name: arrays[name] for name in FIT_ARRAYS},
        known=arrays.get("known"),
        **{name: facts[name] for name in FACTS},
        warnings=tuple(map(Caution.read, facts["warnings"])),
        trace=tuple(trace["sweeps"]),
        starts=tuple(trace["starts"]),
        groups_found=groups_found,
        prior=prior,
        provenance=manifest["provenance"],
    )


def _stored(prefix: str, kind: type[T], arrays: Mapping[str, Any]) -> T:
    """A part of the state as it was; single numbers come back as such. What an earlier version did not have is as it is
    by default."""
    names = {field.name: f"{prefix}_{field.name}" for field in fields(kind)}  # type: ignore[arg-type]
    values = {name: arrays[kept] for name, kept in names.items() if kept in arrays or name != "lured"}
    return kind(**{name: value if value.ndim else float(value) for name, value in values.items()})


def _arrays(fit: Fit) -> dict[str, Any]:
    """Everything numeric; ids are in the tables, of which only sources.parquet has an order of its own."""
    arrays = {name: getattr(fit.claims, name) for name in CLAIM_ARRAYS}
    arrays |= {name: getattr(fit, name) for name in FIT_ARRAYS}
    arrays["source_order"] = source_order(fit)
    if fit.known is not None:
        arrays["known"] = fit.known
    for prefix, part in (("globals", fit.groups_found), ("prior", fit.prior)):
        if part is not None:
            arrays |= {f"{prefix}_{name}": np.asarray(value) for name, value in asdict(part).items()}
    return arrays


def _write_claims(claims: Claims, path: Path) -> None:
    """source, object, value as they were claimed, under these names, in canonical order, run by run of objects.

    Dictionaries are only how it is written, and a run has no more objects in its dictionary than it is about: without
    the Arrow schema everybody reads plain columns. Of objects the file tells which are in a run, so that readers can
    skip it; sources and values are in all runs, and to look for their ends takes as long as writing.
    """
    sources, objects, values = (ids(names) for names in (claims.sources, claims.objects, claims.values))
    wanted = np.arange(0, claims.n_claims, CLAIMS_AT_A_TIME)
    edges = np.unique(np.append(np.searchsorted(claims.first_claim, wanted), claims.n_objects))
    kinds = [pa.dictionary(pa.int32(), names.type) for names in (sources, objects, values)]
    schema = pa.schema(list(zip(("source", "object", "value"), kinds, strict=True)))
    with pq.ParquetWriter(path, schema, store_schema=False, write_statistics=["object"]) as writer:
        for start, stop in pairwise(edges):
            run = slice(claims.first_claim[start], claims.first_claim[stop])
            owner = np.repeat(np.arange(stop - start), np.diff(claims.first_claim[start : stop + 1]))
            value = claims.candidate_value[claims.claim_candidate[run]]
            parts = ((claims.claim_source[run], sources), (owner, objects[start:stop]), (value, values))
            columns = [
                pa.DictionaryArray.from_arrays(pa.array(code.astype(np.int32)), names)
                for code, names in parts
            ]
            writer.write_table(pa.table(columns, schema=schema))


def _column(path: Path, name: str) -> pa.Array:
    return ids(pq.read_table(path, columns=[name]).column(name))


def write_json(path: Path, content: Any) -> None:
    """Write what JSON can hold, and NumPy's numbers and arrays."""
    path.write_text(json.dumps(content, indent=1, allow_nan=False, default=_plain), "utf-8")


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays, and mappings that are not dicts, as JSON has them."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(
        f"{type(value).__name__} cannot be written to JSON: settings and provenance must be plain values"
    )
