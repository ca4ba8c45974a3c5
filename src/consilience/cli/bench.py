"""`consilience bench`: models × data sets × seeds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from consilience.cli.output import Screen, print_json
from consilience.cli.tables import Quiet
from consilience.errors import EngineUnavailableError, InputError

if TYPE_CHECKING:
    from consilience.evaluate.peers import CrowdKit

PEERS = ".venv-peers/bin/python"


def bench(
    data: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="A folder of data sets; by default $CONSILIENCE_DATA."),
    ] = None,
    sets: Annotated[str, typer.Option(metavar="A,B,C", help="Names of data sets, or all.")] = "all",
    models: Annotated[str, typer.Option(metavar="A,B,C", help="Names of models, or all.")] = "all",
    seeds: Annotated[str, typer.Option(metavar="0,1,2", help="Seeds; figures are their means.")] = "0",
    peers: Annotated[
        str | None,
        typer.Option(
            metavar="PYTHON", help=f"A Python with Crowd-Kit, or none. By default {PEERS}, if there."
        ),
    ] = None,
    out: Annotated[
        str, typer.Option(metavar="DIR", help="Folder for records.jsonl, bench.md and bench.html.")
    ] = "out/bench",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the ranking as a JSON list on stdout.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Run models on data sets with gold, Crowd-Kit's beside ours, and rank them.

    A data set is a folder with claims.csv.gz and truth.csv. Every figure is a record with its provenance, kept at once:
    the same command goes on where it was interrupted, and what the same code has already done is not done again.

    \b
    Example:
      consilience bench --data datasets --models vote,dawid-skene,mss --seeds 0,1,2
      consilience bench --sets book,flight --peers none
    """
    from consilience.datasets.fetch import data_dir
    from consilience.evaluate.bench import bench as run
    from consilience.evaluate.bench import find_tables, key, read_records
    from consilience.evaluate.compare import named
    from consilience.report import charts
    from consilience.report.benchmark import html, markdown, not_run, sections, summarise

    chosen = named("all" if models == "all" else _names(models))
    tables = find_tables(Path(data) if data else data_dir(), None if sets == "all" else _names(sets))
    numbers = _seeds(seeds)
    screen = Screen(quiet=quiet)
    peer = _peer(peers, screen)
    charts.require()
    folder, path = Path(out), Path(out) / "records.jsonl"
    records = read_records(path)
    n_before = len(records)
    done = {key(record) for record in records if record["error"] is None}
    with _writing(out):
        folder.mkdir(parents=True, exist_ok=True)
        path.touch()
        if path.read_bytes()[-1:] not in (b"", b"\n"):
            path.write_bytes(path.read_bytes() + b"\n")
    with screen.progress() as progress:

        def starting(text: str) -> None:
            if progress:
                progress(text, 0, float("nan"))

        for record in run(
            tables, chosen, seeds=numbers, peer=peer, done=done, starting=starting, warn=screen.warn
        ):
            records.append(record)
            with _writing(out), path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record, allow_nan=False) + "\n")
    summary = summarise(records)
    with _writing(out):
        (folder / "bench.md").write_text(markdown(summary), "utf-8")
        (folder / "bench.html").write_text(html(summary), "utf-8")
    ranking = sections(summary)[0]
    screen.table(ranking.title, ranking.header, ranking.rows, text=1)
    for note in ranking.notes:
        screen.say(note)
    for line in not_run(summary):
        screen.warn(f"not run: {line}")
    screen.say(
        f"\n{len(records) - n_before:,} new records; the ranking is over all {len(records):,} of {path}. Beside them: "
        "bench.md, bench.html"
    )
    if as_json:
        print_json([asdict(row) for row in summary.rows])


@contextmanager
def _writing(out: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"Cannot write {out!r}: {error.strerror or error}. Choose another folder.") from None


def _names(text: str) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise InputError(f"{text!r} names nothing. Write names with commas between them, or all.")
    return names


def _seeds(text: str) -> list[int]:
    try:
        seeds = list(dict.fromkeys(int(seed) for seed in text.split(",")))
    except ValueError:
        seeds = []
    if not seeds or min(seeds) < 0:
        raise InputError(f"--seeds must be whole numbers from 0 on, such as 0,1,2. Got {text!r}.")
    return seeds


def _peer(python: str | None, screen: Screen) -> CrowdKit | None:
    """Crowd-Kit, unless it is not wanted; what was not asked for may be missing, but not in silence."""
    from consilience.evaluate.peers import CrowdKit

    if python == "none":
        return None
    try:
        return CrowdKit.of(python or PEERS)
    except EngineUnavailableError as error:
        if python:
            raise InputError(str(error)) from None
        screen.warn(f"without Crowd-Kit: {error}")
        return None
