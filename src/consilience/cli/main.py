"""The program `consilience`: its verbs, and nothing else."""

from __future__ import annotations

import gc
from typing import Annotated

import typer

import consilience
from consilience.cli.bench import bench
from consilience.cli.compare import compare
from consilience.cli.datasets import datasets
from consilience.cli.demo import demo
from consilience.cli.explain import explain
from consilience.cli.fit import fit
from consilience.cli.models import models
from consilience.cli.output import guarded
from consilience.cli.report import report
from consilience.cli.reproduce import reproduce
from consilience.cli.serve import serve
from consilience.cli.simulate import simulate

VERBS = (demo, fit, compare, explain, report, serve, models, simulate, datasets, reproduce, bench)

app = typer.Typer(
    name="consilience",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _verb in VERBS:
    app.command()(guarded(_verb))


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"consilience {consilience.__version__}")
        raise typer.Exit


@app.callback()
def _about(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Find the truth among conflicting claims when the sources are not independent.

    \b
    Example:
      consilience fit claims.csv --out result
    """


NEW_OBJECTS = 10_000
"""Objects after which Python looks for garbage: more often than that, it would look again and again through what
libraries make while they are loaded, all of it to stay."""


def main() -> None:
    """Run the command line."""
    gc.set_threshold(NEW_OBJECTS)
    app()
