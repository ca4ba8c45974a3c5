"""`consilience simulate`: tables of claims of which everything is known."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from consilience.cli.output import Screen
from consilience.errors import InputError, UnknownNameError


def simulate(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A case; none lists them all.")] = None,
    out: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder for claims.csv, truth.csv and groups.csv.")
    ] = None,
    objects: Annotated[
        int | None, typer.Option(metavar="N", help="Number of objects, where the case leaves it free.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Decides everything random.")] = 0,
) -> None:
    """Make claims with a known truth and known groups of sources.

    \b
    Example:
      consilience simulate copied-leader --out made
      consilience fit made/claims.csv --truth made/truth.csv
    """
    from consilience.datasets.synthetic import CASES

    if name is None:
        rows = [[case, CASES[case].description] for case in CASES]
        Screen(stderr=False).table("Cases", ["name", "description"], rows, text=2, cut=False)
        return
    if name not in CASES:
        raise UnknownNameError("case", name, CASES, "`consilience simulate` lists them.")
    if out is None:
        raise InputError(f"Where to? Add a folder: consilience simulate {name} --out DIR.")
    there = [file for file in ("claims.csv", "truth.csv", "groups.csv") if (Path(out) / file).exists()]
    if there:
        raise InputError(
            f"{out!r} already has {' and '.join(there)}. Choose a new folder, or remove them first."
        )
    made = CASES[name](n_objects=objects, seed=seed)
    try:
        _write(Path(out), {"claims": made.claims, "truth": made.truth, "groups": made.groups})
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise InputError(
            f"Cannot write {out!r}: the system refuses it ({why}). Choose another folder."
        ) from None
    n_objects, n_sources = made.truth.num_rows, made.groups.num_rows
    Screen().say(
        f"{made.claims.num_rows:,} claims by {n_sources:,} sources on {n_objects:,} objects: "
        f"{Path(out) / 'claims.csv'}, truth.csv, groups.csv"
    )


def _write(folder: Path, tables: dict[str, Any]) -> None:
    """Write every table under a temporary name first, so that all of them appear or none."""
    import pyarrow.csv

    folder.mkdir(parents=True, exist_ok=True)
    parts = {folder / f".{name}.csv.part": folder / f"{name}.csv" for name in tables}
    try:
        for part, table in zip(parts, tables.values(), strict=True):
            pyarrow.csv.write_csv(table, part)
        for part, final in parts.items():
            os.replace(part, final)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)
