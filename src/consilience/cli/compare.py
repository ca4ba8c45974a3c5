"""`consilience compare`: every model on one table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from consilience.claims.words import quantity
from consilience.cli.output import Screen, print_json
from consilience.cli.summary import show_claims
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
from consilience.memory import require_for_a_fit

if TYPE_CHECKING:
    from consilience.claims.encoding import Claims
    from consilience.claims.truths import Truths
    from consilience.evaluate.compare import Outcome


def compare(
    claims: ClaimsTable,
    truth: Gold = None,
    models: Annotated[
        str, typer.Option(metavar="A,B,C", help="Names with commas between them, or all.")
    ] = "all",
    known: Known = None,
    source: Source = None,
    object_: Object = None,
    value: Value = None,
    domain: Domain = "auto",
    on_conflict: OnConflict = "error",
    on_missing: OnMissing = "error",
    seed: Seed = 0,
    engine: Engine = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list on stdout.")] = False,
    quiet: Quiet = False,
) -> None:
    """Run models side by side on one table, each with its default settings.

    A model that fails is named with its reason; the others go on.

    \b
    Example:
      consilience compare claims.csv --truth gold.csv
      consilience compare claims.csv --truth gold.csv --models vote,truthfinder,accu,mss --json
    """
    require_for_a_fit()
    from consilience.evaluate.compare import named, run
    from consilience.kernels.choose import choose as choose_kernel

    names = [name.strip() for name in models.split(",") if name.strip()]
    chosen, screen = named("all" if models == "all" else names), Screen(quiet=quiet)
    choose_kernel(engine)
    table, gold, helpful = read_tables(
        claims, truth, known, source=source, object_=object_, value=value,
        domain=domain, on_conflict=on_conflict, on_missing=on_missing,
    )  # fmt: skip
    show_claims(screen, table)
    if gold is None:
        screen.say("No gold: --truth FILE tells which model is right how often")
    else:
        _show_gold(screen, table, gold, helpful)
    done: list[Outcome] = []
    interrupted = False
    with screen.steps(len(chosen)) as (progress, finished):
        try:
            for outcome in run(
                table, chosen, truth=gold, known=helpful, seed=seed, engine=engine, progress=progress
            ):
                done.append(outcome)
                finished(_in_short(outcome))
        except KeyboardInterrupt:
            interrupted = True
    _show(screen, done)
    if as_json:
        print_json([_record(outcome, table, seed) for outcome in done])
    if interrupted:
        raise KeyboardInterrupt
    if all(outcome.error is not None for outcome in done):
        raise typer.Exit(1)


def _show_gold(screen: Screen, claims: Claims, gold: Truths, known: Truths | None) -> None:
    """What of the gold counts, before the models run."""
    from consilience.report import words
    from consilience.results.score import scorable

    of, otherwise = scorable(gold, claims, known)
    screen.say(f"{quantity(of.n_gold, 'gold truth')} to be compared with" if of.n_gold else words.UNSCORED)
    for line in words.counted(of, otherwise):
        screen.say(f"  {line}")


def _in_short(outcome: Outcome) -> str:
    if outcome.error is not None:
        return f"{outcome.model}: failed"
    right = "" if outcome.accuracy is None else f"{outcome.accuracy:.1%} right, "
    return f"{outcome.model}: {right}{outcome.seconds:.2g} s"


def _show(screen: Screen, outcomes: list[Outcome]) -> None:
    """The most accurate first; what failed below the table."""
    worked = [outcome for outcome in outcomes if outcome.error is None]
    worked.sort(key=lambda outcome: -(outcome.accuracy or 0.0))
    if worked:
        gold = f" on {quantity(worked[0].n_gold, 'object')} with a gold truth" if worked[0].n_gold else ""
        screen.table(
            f"{quantity(len(worked), 'model')}{gold}",
            ["model", "accuracy", "log loss", "calibration", "seconds", "sweeps", "memory"],
            [
                [
                    each.model,
                    "" if each.accuracy is None else f"{each.accuracy:.1%}",
                    "" if each.log_loss is None else f"{each.log_loss:.3f}",
                    "" if each.calibration_error is None else f"{each.calibration_error:.3f}",
                    f"{each.seconds:.2f}",
                    f"{each.sweeps:,}{'' if each.converged else '+'}",
                    "" if each.peak_memory is None else f"{each.peak_memory / 1e6:,.1f} MB",
                ]
                for each in worked
            ],
            text=1,
        )
        if not all(each.converged for each in worked):
            screen.say("+: not converged")
    for outcome in outcomes:
        if outcome.error is not None:
            screen.warn(f"{outcome.model} failed: {outcome.error}")
        for warning in outcome.warnings if outcome.converged else ():
            screen.warn(f"{outcome.model}: {warning}")


def _record(outcome: Outcome, claims: Claims, seed: int) -> dict[str, Any]:
    from dataclasses import asdict

    from consilience.results.cautions import records_of

    sizes = {"n_sources": claims.n_sources, "n_objects": claims.n_objects, "n_claims": claims.n_claims}
    return {**asdict(outcome), **sizes, "seed": seed, **records_of(outcome.warnings)}
