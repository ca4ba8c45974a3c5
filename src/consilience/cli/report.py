"""`consilience report`: a saved result as a page to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from consilience.cli.output import Screen, print_json
from consilience.cli.tables import Gold


def report(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A result that `fit --out` wrote.")],
    truth: Gold = None,
    rivals: Annotated[
        str,
        typer.Option(metavar="A,B,C", help="With gold: models to compare with, or all."),
    ] = "all",
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="The page to write; DIR/report.html unless given.")
    ] = None,
    open_it: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the numbers on stdout, and write a page only with --out.")
    ] = False,
) -> None:
    """Write what was found as one HTML page that loads nothing.

    With gold truths it says how right the result is, beside other models on the same claims.

    \b
    Example:
      consilience report result --open
      consilience report result --truth gold.csv --rivals vote,truthfinder,accu
    """
    from consilience.cli.tables import read_gold
    from consilience.evaluate.compare import named
    from consilience.report.charts import require
    from consilience.report.write import check_path, summary_of, write_report
    from consilience.results.manifest import REPORT
    from consilience.results.storage import load

    names = "all" if rivals == "all" else [name.strip() for name in rivals.split(",") if name.strip()]
    named(names)  # a misspelt one is an error before anything is read
    is_wanted = not as_json or out is not None or open_it
    path = None if out is None else check_path(out)
    if is_wanted:
        require()
    fit = load(folder)
    if is_wanted and path is None:
        path = check_path(Path(folder) / REPORT)
    gold = None if truth is None else read_gold(truth, *fit.claims.columns[1:])
    summary = summary_of(fit, gold, names)
    if path is not None:
        write_report(summary, path)
        Screen().say(f"The report is in {path}")
    if as_json:
        print_json(summary.as_dict())
    if open_it and path is not None:
        typer.launch(path.resolve().as_uri())
