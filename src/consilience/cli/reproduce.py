"""`consilience reproduce`: the paper's tables and figure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from consilience.cli.output import Screen, print_json
from consilience.cli.tables import Quiet, Seed
from consilience.errors import InputError, UnknownNameError


def reproduce(
    part: Annotated[
        str, typer.Argument(metavar="PART", help="table1, table2, table3, figure4 or all.")
    ] = "all",
    data: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="The folder of book.txt and book_golden.txt, gzipped or not."),
    ] = None,
    out: Annotated[
        str, typer.Option(metavar="DIR", help="Folder for paper.json, paper.md and paper.html.")
    ] = "out/paper",
    quick: Annotated[bool, typer.Option("--quick", help="Small tags, few κ: under two minutes.")] = False,
    seed: Seed = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")] = False,
    quiet: Quiet = False,
) -> None:
    """Reproduce the tables and the figure of the paper, ours beside what it printed.

    Without --data the book data are looked for in $CONSILIENCE_DATA, then among the downloads of `datasets`.

    \b
    Example:
      consilience reproduce all --quick --out out/paper
      consilience reproduce table2 --data downloads/book
    """
    from consilience.evaluate.reproduce import PARTS
    from consilience.evaluate.reproduce import reproduce as run
    from consilience.report import charts
    from consilience.report.reproduction import html, markdown, sections

    if part != "all" and part not in PARTS:
        raise UnknownNameError("part", part, ["all", *PARTS])
    books, gold = _files(data)
    charts.require()
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"Cannot write {out!r}: {error.strerror or error}. Choose another folder.") from None
    screen = Screen(quiet=quiet)
    with screen.progress() as progress:
        found = run(
            PARTS if part == "all" else [part], books, gold, quick=quick, seed=seed,
            say=(lambda text: progress(text, 0, float("nan"))) if progress else (lambda text: None),
        )  # fmt: skip
    pages = {
        "paper.json": json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False),
        "paper.md": markdown(found),
        "paper.html": html(found),
    }
    try:
        for name, text in pages.items():
            (folder / name).write_text(text, "utf-8")
    except OSError as error:
        raise InputError(f"Cannot write {out!r}: {error.strerror or error}. Choose another folder.") from None
    for section in sections(found):
        screen.table(section.title, section.header, section.rows, text=1)
        for note in section.notes:
            screen.say(note)
    screen.say(f"\nWritten: {folder / 'paper.md'}, paper.html, paper.json")
    if as_json:
        print_json(found)


def _files(data: str | None) -> tuple[Path, Path]:
    """The original files, wherever they are, or an error that says where they were looked for."""
    from consilience.datasets.fetch import cache_dir, data_dir

    folders = [Path(data)] if data else [data_dir() / "book" / "raw", cache_dir() / "book" / "raw"]
    for folder in folders:
        books = [path for name in ("book.txt", "book.txt.gz") if (path := folder / name).is_file()]
        gold = [
            path for name in ("book_golden.txt", "book_golden.txt.gz") if (path := folder / name).is_file()
        ]
        if books and gold:
            return books[0], gold[0]
    raise InputError(
        f"No book.txt and book_golden.txt in {' or '.join(str(folder) for folder in folders)}. Give their folder with "
        "--data, set CONSILIENCE_DATA, or download them with: consilience datasets book."
    )
