"""`consilience datasets`: public data sets with gold, and how to get them."""

from __future__ import annotations

from typing import Annotated

import typer

from consilience.cli.output import Screen


def datasets(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The data set to get; none lists them all.")
    ] = None,
) -> None:
    """List public data sets with known truths, or get one.

    It is downloaded from where it is published, checked and converted into claims and truths.

    \b
    Example:
      consilience datasets
      consilience datasets rte
    """
    from consilience.datasets.catalogue import catalogue, find

    if name is None:
        rows = [
            [d.name, d.title, f"{d.sources:,}", f"{d.objects:,}", f"{d.claims:,}", f"{d.gold:,}"]
            for d in catalogue().values()
        ]
        columns = ["name", "what", "sources", "objects", "claims", "gold"]
        Screen(stderr=False).table("Public data sets", columns, rows, text=2, cut=False)
        return
    from consilience.datasets.fetch import fetch

    dataset, screen = find(name), Screen(stderr=False)
    screen.say(dataset.title, style="bold")
    screen.say(dataset.about)
    screen.say(f"{dataset.claims:,} claims by {dataset.sources:,} sources on {dataset.objects:,} objects")
    for line in (f"Published at {dataset.page}", f"Licence: {dataset.licence}", *dataset.citation):
        screen.say(line)
    tables = fetch(name)
    screen.say(f"consilience fit {tables.claims} --truth {tables.truth}")
