"""A result on disk: a folder of Parquet tables, a file of arrays, and a manifest with their hashes.

The tables are for people and their tools; the arrays and the manifest bring the Fit back, bit by bit. No
pickle.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import consilience
from consilience.claims.encoding import Claims
from consilience.errors import InputError, ResultFormatError
from consilience.kernels.state import Globals, Prior
from consilience.results.atomic import replacing
from consilience.results.fit import Fit
from consilience.results.groups import groups_table
from consilience.results.tables import ids, source_order, sources_table, truths_table

SCHEMA = 1
FORMAT = "consilience result"
MANIFEST = "manifest.json"
FILES = (
    "claims.parquet",
    "groups.parquet",
    "sources.parquet",
    "state.npz",
    "trace.json",
    "truths.parquet",
    "values.parquet",
)
CLAIM_ARRAYS = ("claim_source", "claim_candidate", "first_claim", "first_candidate", "candidate_value")
FIT_ARRAYS = ("truth", "decision", "source_reliability")


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

    It must be absent, empty, or hold a result and nothing that consilience did not write.
    """
    target = Path(os.path.realpath(folder))
    above = next(path for path in (target.parent, *target.parents) if path.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise InputError(
            f"Cannot write {str(folder)!r}: {above} is not a folder you may write to. Choose another."
        )
    if not target.exists():
        return target
    if not target.is_dir():
        raise InputError(f"Cannot write {str(folder)!r}: it is a file, not a folder. Choose another name.")
    there = {path.name for path in target.iterdir()}
    if not there:
        return target
    try:
        ours = {MANIFEST, *_read_manifest(target)["files"]}
    except ResultFormatError as error:
        raise InputError(
            f"Cannot write {str(folder)!r}: it exists, and what is in it must not be overwritten ({error}) "
            "Choose a new folder; nothing was changed."
        ) from None
    if others := sorted(there - ours):
        raise InputError(
            f"Cannot replace the result in {str(folder)!r}: it also holds {', '.join(others[:3])}"
            f"{' and more' if len(others) > 3 else ''}, which consilience did not write. "
            "Move that away or choose another folder; nothing was changed."
        )
    return target


def load(folder: str | os.PathLike[str]) -> Fit:
    """Read a result back, after checking that every file is there and unchanged."""
    source = Path(folder)
    manifest = _read_manifest(source)
    _check_files(source, manifest)
    try:
        return _read(source, manifest)
    except (KeyError, TypeError, ValueError, pa.ArrowException) as error:
        raise ResultFormatError(
            f"{source}: the manifest does not describe the files beside it ({error!r}). Run the fit again."
        ) from error


def _write(fit: Fit, folder: Path) -> None:
    claims = fit.claims
    pq.write_table(truths_table(fit), folder / "truths.parquet")
    pq.write_table(sources_table(fit), folder / "sources.parquet")
    pq.write_table(groups_table(fit.groups_found, fit.prior), folder / "groups.parquet")
    pq.write_table(pa.table({"value": ids(claims.values)}), folder / "values.parquet")
    # Dictionaries are only how it is written: without the Arrow schema everybody reads plain columns.
    pq.write_table(_claims_table(claims), folder / "claims.parquet", store_schema=False)
    _write_json(folder / "trace.json", fit.trace)
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
            name: getattr(fit, name)
            for name in ("seed", "ties", "sweeps", "converged", "seconds", "warnings")
        },
        "claims": {name: getattr(claims, name) for name in ("domain", "columns", "frame", "notes")},
        "files": {name: _digest(folder / name) for name in FILES},
    }
    _write_json(folder / MANIFEST, manifest)


def _read(folder: Path, manifest: Mapping[str, Any]) -> Fit:
    with np.load(folder / "state.npz", allow_pickle=False) as stored:
        arrays = dict(stored)
    sources = _column(folder / "sources.parquet", "source")
    kept = manifest["claims"]
    claims = Claims(
        sources=sources.take(pa.array(np.argsort(arrays["source_order"]))),
        objects=_column(folder / "truths.parquet", "object"),
        values=_column(folder / "values.parquet", "value"),
        **{name: arrays[name] for name in CLAIM_ARRAYS},
        domain=kept["domain"],
        columns=tuple(kept["columns"]),
        frame=kept["frame"],
        notes=tuple(kept["notes"]),
    )
    groups_found = prior = None
    if "globals_group" in arrays:
        groups_found = Globals(*(arrays[f"globals_{field.name}"] for field in fields(Globals)))
    if "prior_true_count" in arrays:
        stored_prior = {field.name: arrays[f"prior_{field.name}"] for field in fields(Prior)}
        prior = Prior(**{**stored_prior, "concentration": float(stored_prior["concentration"])})
    facts = manifest["fit"]
    return Fit(
        model=manifest["model"],
        settings=manifest["settings"],
        learned=manifest["learned"],
        claims=claims,
        **{name: arrays[name] for name in FIT_ARRAYS},
        **{**facts, "warnings": tuple(facts["warnings"])},
        trace=tuple(json.loads((folder / "trace.json").read_text("utf-8"))),
        groups_found=groups_found,
        prior=prior,
        provenance=manifest["provenance"],
    )


def _arrays(fit: Fit) -> dict[str, Any]:
    """Everything numeric; ids are in the tables, of which only sources.parquet has an order of its own."""
    arrays = {name: getattr(fit.claims, name) for name in CLAIM_ARRAYS}
    arrays |= {name: getattr(fit, name) for name in FIT_ARRAYS}
    arrays["source_order"] = source_order(fit)
    for prefix, part in (("globals", fit.groups_found), ("prior", fit.prior)):
        if part is not None:
            arrays |= {f"{prefix}_{name}": np.asarray(value) for name, value in asdict(part).items()}
    return arrays


def _claims_table(claims: Claims) -> pa.Table:
    """source, object, value as they were claimed, under these names, in canonical order."""
    codes = {
        "source": (claims.claim_source, claims.sources),
        "object": (claims.claim_object(), claims.objects),
        "value": (claims.candidate_value[claims.claim_candidate], claims.values),
    }
    return pa.table(
        {
            name: pa.DictionaryArray.from_arrays(pa.array(index.astype(np.int32)), ids(vocabulary))
            for name, (index, vocabulary) in codes.items()
        }
    )


def _read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a result that this version can read."""
    advice = "Give the folder that `consilience fit --out` or `fit.save` wrote."
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
    except OSError:
        found = (
            f"there is no {MANIFEST} in it that can be read" if folder.is_dir() else "there is no such folder"
        )
        raise ResultFormatError(f"{folder} is not a consilience result: {found}. {advice}") from None
    except ValueError as error:
        raise ResultFormatError(f"{folder / MANIFEST} is damaged ({error}). Run the fit again.") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
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
    return manifest


def _check_files(folder: Path, manifest: Mapping[str, Any]) -> None:
    problems = []
    for name in sorted({*FILES, *manifest["files"]}):
        path = folder / Path(name).name
        if not path.is_file():
            problems.append(f"{path.name} is missing")
        elif _digest(path) != manifest["files"].get(name):
            problems.append(f"{path.name} was altered (its SHA-256 differs)")
    if problems:
        raise ResultFormatError(
            f"{folder} is damaged: {'; '.join(problems)}. Restore it from a copy or run the fit again."
        )


def _column(path: Path, name: str) -> pa.Array:
    return ids(pq.read_table(path, columns=[name]).column(name))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_json(path: Path, content: Any) -> None:
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
