"""`consilience explain`: why one truth was decided so."""

from __future__ import annotations

from typing import Annotated

import typer


def explain(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A result that `fit --out` wrote.")],
    object_id: Annotated[str, typer.Argument(metavar="OBJECT", help="The object to explain.")],
) -> None:
    """Say why an object's truth was decided so.

    Whose claims, in which groups, and how much each group weighed.

    \b
    Example:
      consilience explain result Australia
    """
    from consilience.results.storage import load

    typer.echo(str(load(folder).explain(object_id)))
