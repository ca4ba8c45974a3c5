"""`consilience fit`: claims in, truths out."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Annotated, Any

import typer

from consilience.cli.output import Screen, print_json
from consilience.cli.summary import show_claims, show_fit, show_notes
from consilience.errors import ClaimsError, InputError, UnknownNameError, nearest

if TYPE_CHECKING:
    from consilience.claims.encoding import Claims
    from consilience.claims.reading import Truths
    from consilience.models.base import Model
    from consilience.results.fit import Fit
    from consilience.results.score import Score


def fit(
    claims: Annotated[
        str, typer.Argument(metavar="CLAIMS", help="A CSV, Parquet or JSON lines file, or SQL.")
    ],
    truth: Annotated[
        str | None,
        typer.Option(metavar="GOLD", help="True values, to score the answer; the model never sees them."),
    ] = None,
    known: Annotated[
        str | None,
        typer.Option(metavar="KNOWN", help="True values of some objects, which the model may use."),
    ] = None,
    model: Annotated[str, typer.Option(help="See `consilience models`.")] = "mss",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of the model; may be given again."),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column of sources, where its name does not tell."),
    ] = None,
    object_: Annotated[
        str | None, typer.Option("--object", metavar="COLUMN", help="The column of objects, likewise.")
    ] = None,
    value: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column of values, likewise.")
    ] = None,
    domain: Annotated[
        str,
        typer.Option(
            help="Values an object may have: claimed (those claimed for it), common (all), or a,b,c."
        ),
    ] = "auto",
    on_conflict: Annotated[
        str,
        typer.Option(help="A source with two values for an object: error, first, last or 'most frequent'."),
    ] = "error",
    on_missing: Annotated[str, typer.Option(help="Rows with an empty cell: error or drop.")] = "error",
    out: Annotated[
        str | None, typer.Option(metavar="DIR", help="Save the result in this folder, whole or not at all.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Decides everything random.")] = 0,
    engine: Annotated[str, typer.Option(help="How it is computed; never changes the answer.")] = "auto",
    runner: Annotated[str, typer.Option(help="Where it is computed; never changes the answer.")] = "inline",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No tables and no progress.")] = False,
) -> None:
    """Find truths, reliable sources, and groups of dependent ones.

    CLAIMS has a row for each claim, with columns source, object and value.

    \b
    Example:
      consilience fit claims.csv --out result --set n_starts=20
      consilience fit listings.parquet --source seller --object isbn --value authors --truth gold.csv --json
    """
    from consilience.claims.reading import read_claims
    from consilience.kernels.choose import choose as choose_kernel
    from consilience.models.registry import model_named
    from consilience.results.score import gold_candidates
    from consilience.results.storage import check_target
    from consilience.runners.choose import choose as choose_runner

    chosen, screen = model_named(model, **_settings(settings or [])), Screen(quiet=quiet)
    choose_kernel(engine)
    choose_runner(runner)
    if out is not None:
        check_target(out)
    table = read_claims(
        claims,
        source=source,
        object=object_,
        value=value,
        domain=_domain(domain),
        on_conflict=on_conflict,
        on_missing=on_missing,
    )
    gold = None if truth is None else _read_truths(truth, object_, value)
    if gold is not None:
        gold_candidates(gold, table)  # wrong gold must not wait for the end of a long fit
    helpful = None if known is None else _read_truths(known, object_, value)
    if helpful is not None:
        gold_candidates(helpful, table, "known")
    show_claims(screen, table)
    done, score = fit_and_show(
        screen, chosen, table, gold=gold, known=helpful, out=out, seed=seed, engine=engine, runner=runner
    )
    if out is not None:
        screen.say(f"\nSaved in {out}. Ask why with: consilience explain {out} OBJECT")
    if as_json:
        print_json(record(done, score))


def fit_and_show(
    screen: Screen,
    model: Model,
    claims: Claims,
    *,
    gold: Truths | None = None,
    known: Truths | None = None,
    out: str | None = None,
    **how: Any,
) -> tuple[Fit, Score | None]:
    """Fit with progress on the screen, save, score, show: nothing that is shown can cost the result."""
    with screen.progress() as progress:
        fit = model.fit(claims, known=known, progress=progress, **how)
    if out is not None:
        fit.save(out)
    score = None if gold is None else fit.score(gold)
    show_notes(screen, fit.claims.notes[len(claims.notes) :])
    show_fit(screen, fit, score)
    return fit, score


def record(fit: Fit, score: Score | None) -> dict[str, Any]:
    """What `--json` prints."""
    found = {
        "model": fit.model,
        "n_sources": fit.claims.n_sources,
        "n_objects": fit.claims.n_objects,
        "n_claims": fit.claims.n_claims,
        "n_groups": fit.n_groups,
        "bound": fit.bound,
        "sweeps": fit.sweeps,
        "seconds": fit.seconds,
        "converged": fit.converged,
        "seed": fit.seed,
        "warnings": list(fit.warnings),
    }
    if score is not None:
        found |= {"n_gold": score.n_gold, "n_known": score.n_known, "accuracy": score.accuracy}
    return found


def _settings(pairs: list[str]) -> dict[str, Any]:
    """NAME=VALUE pairs; a value is a number, a pair such as 0.1,10, or else text."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not (name and equals):
            raise InputError(f"--set {pair!r} is not a setting. Write NAME=VALUE, such as --set n_starts=20.")
        try:
            settings[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            settings[name] = text
    return settings


def _domain(text: str) -> str | list[str]:
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


def _read_truths(table: str, object_: str | None, value: str | None) -> Truths:
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
    raise errors[0]
