"""Tables that verbs read, and the options that say how."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from consilience.errors import ClaimsError, InputError, UnknownNameError, nearest

if TYPE_CHECKING:
    from consilience.claims.encoding import Claims
    from consilience.claims.reading import Truths

ClaimsTable = Annotated[
    str,
    typer.Argument(
        metavar="CLAIMS", help="A CSV, Parquet or JSON lines file, a folder of Parquet files, or SQL."
    ),
]
Gold = Annotated[
    str | None,
    typer.Option(metavar="GOLD", help="True values, to score the answer; the model never sees them."),
]
Known = Annotated[
    str | None,
    typer.Option(metavar="KNOWN", help="True values of some objects, which the model may use."),
]
Source = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="The column of sources, where its name does not tell.")
]
Object = Annotated[
    str | None, typer.Option("--object", metavar="COLUMN", help="The column of objects, likewise.")
]
Value = Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of values, likewise.")]
Domain = Annotated[
    str,
    typer.Option(help="Values an object may have: claimed (those claimed for it), common (all), or a,b,c."),
]
OnConflict = Annotated[
    str,
    typer.Option(help="A source with two values for an object: error, first, last or 'most frequent'."),
]
OnMissing = Annotated[str, typer.Option(help="Rows with an empty cell: error or drop.")]
Seed = Annotated[int, typer.Option(min=0, help="Decides everything random.")]
Engine = Annotated[
    str, typer.Option(help="How it is computed: the answer is the same, but for what is close.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No tables and no progress.")]


def read_tables(
    claims: str,
    truth: str | None,
    known: str | None,
    *,
    source: str | None,
    object_: str | None,
    value: str | None,
    domain: str,
    on_conflict: str,
    on_missing: str,
) -> tuple[Claims, Truths | None, Truths | None]:
    """Claims, gold and known truths. Gold that does not fit must not wait for the end of a long fit."""
    from consilience.claims.reading import read_claims
    from consilience.results.score import gold_candidates

    how: dict[str, Any] = {"domain": domain_of(domain), "on_conflict": on_conflict, "on_missing": on_missing}
    table = read_claims(claims, source=source, object=object_, value=value, **how)
    gold, helpful = (None if name is None else read_gold(name, object_, value) for name in (truth, known))
    if gold is not None:
        gold_candidates(gold, table)
    if helpful is not None:
        gold_candidates(helpful, table, "known")
    return table, gold, helpful


def domain_of(text: str) -> str | list[str]:
    """A rule by its name, or the labels of a list."""
    rules = ["auto", "claimed", "common"]
    if text in rules:
        return text
    if "," not in text and nearest(text, rules):
        raise UnknownNameError("domain", text, rules, "A list of labels is written with commas: yes,no.")
    labels = [label.strip() for label in text.split(",")]
    if "" in labels:
        raise InputError(
            f"--domain {text!r} has an empty label. Write labels with commas between them: yes,no."
        )
    return labels


def read_gold(table: str, object_: str | None, value: str | None) -> Truths:
    """Truths under the names that the claims' columns have, or under the usual names."""
    from consilience.claims.reading import read_truths

    errors = []
    for names in ((object_, value), (object_, None), (None, value), (None, None)):
        try:
            return read_truths(table, object=names[0], value=names[1])
        except ClaimsError as error:
            if any(problem.kind != "missing-column" for problem in error.problems):
                raise
            errors.append(error)
    # --object and --value say what the claims call them: they cannot help here too.
    advice = (
        'Rename a column of this file, to what the claims call theirs or to a usual name: "object", "value".'
    )
    nearest_to_right = min(errors, key=lambda error: len(error.problems))
    raise ClaimsError(table, [replace(problem, advice=advice) for problem in nearest_to_right.problems])
