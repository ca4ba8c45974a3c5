"""`consilience models`: what can be fitted."""

from __future__ import annotations

from typing import Annotated

import typer

from consilience.cli.output import Screen, print_json


def models(
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list on stdout.")] = False,
) -> None:
    """List the models, for `fit --model`.

    \b
    Example:
      consilience models --json
    """
    from consilience.models.registry import MODELS

    listed = [{"name": name, "description": _first_line(model.__doc__)} for name, model in MODELS.items()]
    if as_json:
        print_json(listed)
    else:
        Screen(stderr=False).table(
            "Models",
            ["name", "description"],
            [[m["name"], m["description"]] for m in listed],
            text=2,
            cut=False,
        )


def _first_line(docstring: str | None) -> str:
    return (docstring or "").strip().split("\n\n")[0].split("\n")[0]
