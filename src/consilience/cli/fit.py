"""`consilience fit`: claims in, truths out."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from consilience.cli.output import Screen, print_json
from consilience.cli.record import record
from consilience.cli.spread import chosen_runner, fit_spread, is_spread
from consilience.cli.summary import show_claims, show_fit, show_notes
from consilience.cli.tables import (
    ClaimsTable,
    Domain,
    Engine,
    Gold,
    Known,
    Object,
    OnConflict,
    OnMissing,
    Quiet,
    Seed,
    Source,
    Value,
    read_tables,
)
from consilience.errors import InputError
from consilience.memory import require_for_a_fit

if TYPE_CHECKING:
    from consilience.claims.encoding import Claims
    from consilience.claims.reading import Truths
    from consilience.models.base import Model
    from consilience.report.summary import Summary
    from consilience.results.checkpoint import Checkpoint
    from consilience.results.fit import Fit
    from consilience.results.score import Score


def fit(
    claims: ClaimsTable,
    truth: Gold = None,
    known: Known = None,
    model: Annotated[str, typer.Option(help="See `consilience models`.")] = "mss",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of the model; may be given again."),
    ] = None,
    source: Source = None,
    object_: Object = None,
    value: Value = None,
    domain: Domain = "auto",
    on_conflict: OnConflict = "error",
    on_missing: OnMissing = "error",
    out: Annotated[
        str | None, typer.Option(metavar="DIR", help="Save the result in this folder, whole or not at all.")
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on from the checkpoint DIR.checkpoint that a stopped fit left."),
    ] = False,
    seed: Seed = 0,
    engine: Engine = "auto",
    runner: Annotated[
        str, typer.Option(help="Where it is computed, inline or ray; never changes the answer.")
    ] = "inline",
    address: Annotated[
        str | None,
        typer.Option(help="Of the Ray cluster; without it one is started on this machine."),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print one JSON object on stdout; with --truth also the figures of the score."
        ),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Find truths, reliable sources, and groups of dependent ones.

    CLAIMS has a row for each claim, with columns source, object and value.

    \b
    Example:
      consilience fit claims.csv --out result --set n_starts=20
      consilience fit claims.csv --out result --set n_starts=20 --resume
      consilience fit listings.parquet --source seller --object isbn --value authors --truth gold.csv --json
      consilience fit "claims/*.parquet" --runner ray --out result
    """
    require_for_a_fit()
    from consilience.kernels.choose import choose as choose_kernel
    from consilience.kernels.choose import has_device
    from consilience.models import registry

    chosen, screen = registry.model(model, **_settings(settings or [])), Screen(quiet=quiet)
    if choose_kernel(engine).name == "torch" and not has_device():
        screen.warn(
            "There is no CUDA device that PyTorch can use: it computes on the processors, where --engine numba is many "
            "times faster."
        )
    where = chosen_runner(runner, address)
    if resume and out is None:
        raise InputError(
            "--resume goes on with a stopped fit, and --out DIR says which: give the same folder."
        )
    checkpoint = None if out is None else _checkpoint(screen, out, resume)
    earlier = out is not None and Path(out).is_dir() and any(Path(out).iterdir())
    columns: dict[str, Any] = {"source": source, "object_": object_, "value": value}
    rules: dict[str, Any] = {"domain": domain, "on_conflict": on_conflict, "on_missing": on_missing}
    if is_spread(where, claims):
        found = fit_spread(
            screen, chosen, where, claims, truth, known, out=out, checkpoint=checkpoint,
            seed=seed, engine=engine, **columns, **rules,
        )  # fmt: skip
        if as_json:
            print_json(found)
        return
    table, gold, helpful = read_tables(claims, truth, known, **columns, **rules)
    show_claims(screen, table)
    done, score = fit_and_show(
        screen, chosen, table, gold=gold, known=helpful, out=out, checkpoint=checkpoint,
        seed=seed, engine=engine, runner=where,
    )  # fmt: skip
    if out is not None:
        instead = ", in place of an earlier result" if earlier else ""
        screen.say(f"\nSaved in {out}{instead}, the truths in {Path(out) / 'truths.parquet'}")
        screen.say(f"Ask why with: consilience explain {out} OBJECT")
        screen.say(where_to_look(out))
    else:
        screen.say("\nNothing was kept: with --out DIR the truths are, and a report")
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
    checkpoint: Checkpoint | None = None,
    **how: Any,
) -> tuple[Fit, Score | None]:
    """Fit with progress on the screen, save, report, score, show: nothing that is shown can cost the result."""
    with screen.progress() as progress, _telling_of_compilation(screen, how.get("engine", "auto")):
        fit = model.fit(claims, known=known, progress=progress, checkpoint=checkpoint, **how)
    summary, trouble = None, ""
    if out is not None:
        from consilience.results.storage import save

        folder = save(fit, out)
        if checkpoint is not None:
            checkpoint.remove()
        summary, trouble = _report(fit, gold, folder)
    score = None if gold is None else fit.score(gold)
    show_notes(screen, fit.claims.notes[len(claims.notes) :])
    if not screen.quiet:
        from consilience.report.write import summary_of

        show_fit(screen, summary or summary_of(fit, gold))
    for warning in fit.warnings:
        screen.warn(warning)
    if trouble:
        from consilience.results.manifest import REPORT

        screen.warn(f"The result was saved without a {REPORT}. {trouble}")
    return fit, score


@contextmanager
def _telling_of_compilation(screen: Screen, engine: str) -> Iterator[None]:
    """Say it when a fit has to wait for the compiler, and for how long it did."""
    from consilience.kernels.choose import choose as choose_kernel

    if choose_kernel(engine).name == "numpy":
        yield
        return
    from consilience.kernels.compiled import listening

    with listening(
        lambda: screen.say("Compiling for this processor: up to a minute, once for tables of this kind.")
    ) as compiling:
        yield
    if compiling.seconds:
        screen.say(f"Compiling took {compiling.seconds:.1f} s. What was compiled is kept for later fits.")


def _checkpoint(screen: Screen, out: str, resume: bool) -> Checkpoint:
    """Where the fit is kept while it runs: beside the folder, which is written when it is done."""
    from consilience.results.checkpoint import EVERY, Checkpoint
    from consilience.results.storage import check_target

    target = check_target(out)

    every = EVERY
    if given := os.environ.get("CONSILIENCE_CHECKPOINT_EVERY"):
        try:
            every = float(given)
        except ValueError:
            raise InputError(
                f"CONSILIENCE_CHECKPOINT_EVERY must be a number of seconds. Got {given!r}."
            ) from None
    checkpoint = Checkpoint(target.with_name(f"{target.name}.checkpoint"), resume=resume, every=every)
    if resume and checkpoint.exists:
        screen.say(f"Going on from {checkpoint.path}.")
    elif resume:
        screen.say(f"There is no {checkpoint.path} to go on from: beginning at the start.")
    elif checkpoint.exists:
        screen.warn(
            f"{checkpoint.path} is left from a fit that was stopped. It is not used without --resume, and is replaced "
            f"when this fit has run for {every:g} seconds."
        )
    return checkpoint


def _report(fit: Fit, gold: Truths | None, folder: Path) -> tuple[Summary | None, str]:
    """Add the report to a saved result: its summary, and why there is none. A report that cannot be made must not cost
    the result, which is safe by now: where memory is short the program that draws may end this one."""
    from consilience.errors import EngineUnavailableError
    from consilience.report.html import html
    from consilience.report.write import summary_of
    from consilience.results.atomic import replace_file
    from consilience.results.manifest import REPORT

    summary = None
    try:
        summary = summary_of(fit, gold)
        replace_file(folder / REPORT, html(summary).encode())
        return summary, ""
    except (EngineUnavailableError, MemoryError) as error:
        return summary, str(error) or "There was not enough memory for it."
    except Exception as error:
        return summary, f"{type(error).__name__}: {error}"


def where_to_look(out: str) -> str:
    """The report in a saved result; where there is none, why has been said."""
    from consilience.results.manifest import REPORT

    path = Path(out) / REPORT
    return f"See it: {path}" if path.exists() else "It has no report to see."


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
