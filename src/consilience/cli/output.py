"""What verbs share: where text goes, tables, progress, JSON, and what becomes of errors.

Results that a program may read go to stdout. Tables and progress that accompany a fit go to stderr.
"""

from __future__ import annotations

import errno
import functools
import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from consilience.errors import ClaimsError, ConsilienceError, InputError, SettingsError

if TYPE_CHECKING:
    from rich.console import Console

EVERY = 10.0
"""Seconds between lines of progress where there is no terminal to redraw."""
WIDTH = 110
"""Columns used where there is no terminal to ask."""
FLAGS = {
    "source": "--source",
    "object": "--object",
    "value": "--value",
    "domain": "--domain",
    "on_conflict": "--on-conflict",
    "on_missing": "--on-missing",
    "n_objects": "--objects",
}
"""Arguments of Python, and what they are called here."""
REFUSED = {
    errno.ENOSPC: ("no space is left on the disk", "Free some space, or write to another disk"),
    errno.EDQUOT: ("your share of the disk is used up", "Free some space, or write to another disk"),
    errno.EFBIG: ("a file would be larger than this process may write", "Raise the limit (see ulimit -f)"),
    errno.EACCES: ("permission denied", "Ask for the right to it, or give another path"),
    errno.EROFS: ("the disk is read-only", "Write to another disk"),
}
"""What may befall any file, by the system's number: what it means, and what to do."""
ARGUMENT = re.compile(rf"\b({'|'.join(FLAGS)})=(?=[\"'])")
"""How advice names an argument: on_missing="drop"."""


def guarded(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb, with every error turned into a message and an exit code: 2 for wrong input, else 1."""

    @functools.wraps(verb)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            with _terminable():
                verb(*args, **kwargs)
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except KeyboardInterrupt as stop:
            how, code = ("terminated", 143) if isinstance(stop, Terminated) else ("interrupted", 130)
            notes = getattr(stop, "__notes__", [])
            fail("\n".join([f"{how}; nothing is left half-written", *notes]), code)
        except ConsilienceError as error:
            fail(_message(error), code=2 if isinstance(error, InputError) else 1)
        except Exception as error:
            if os.environ.get("CONSILIENCE_DEBUG"):
                raise
            if isinstance(error, MemoryError | OSError):
                fail(_refusal(error), code=1)
            advice = "Run it again with CONSILIENCE_DEBUG=1 to see where."
            notes = getattr(error, "__notes__", [])
            fail("\n".join([f"{type(error).__name__}: {error}", *notes, advice]), code=1)

    return run


def _refusal(error: MemoryError | OSError) -> str:
    """What the system refuses, memory or a file, in words."""
    notes = getattr(error, "__notes__", [])
    if isinstance(error, MemoryError):
        what = " ".join(f"Out of memory. {error}".split()).rstrip(".") + "."
        advice = "Give the process more memory, or a smaller table."
    else:
        what, advice = REFUSED.get(error.errno or 0, (error.strerror or str(error), "Mend that"))
        what = f"The system refuses: {what}{f' ({error.filename})' if error.filename else ''}."
        advice = f"{advice}, and run the command again."
    return "\n".join([f"{what} Nothing is left half-written. {advice}", *notes])


class Terminated(KeyboardInterrupt):
    """The system asks the program to end, as a user does with Ctrl-C."""


@contextmanager
def _terminable() -> Iterator[None]:
    """A SIGTERM stops what runs here as cleanly as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread hears of signals
        yield
        return

    def terminate(*_: object) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _message(error: ConsilienceError) -> str:
    """The error in words of the command line. Advice and settings are ours to reword, the user's data are not."""
    if isinstance(error, ClaimsError):
        problems = [
            replace(problem, advice=ARGUMENT.sub(lambda name: f"{FLAGS[name[1]]} ", problem.advice))
            for problem in error.problems
        ]
        return str(ClaimsError(error.table, problems))
    if isinstance(error, SettingsError) and error.setting in FLAGS:
        return FLAGS[error.setting] + str(error).removeprefix(f"'{error.setting}'")
    return str(error)


def fail(message: str, code: int) -> None:
    """Say what went wrong on stderr and leave."""
    typer.echo(f"consilience: {message}", err=True)
    raise typer.Exit(code)


def print_json(content: Any) -> None:
    """One JSON document on one line of stdout."""
    typer.echo(json.dumps(content, ensure_ascii=False, allow_nan=False))


class Screen:
    """A terminal, or a log, that takes tables and lines; with `quiet` it takes none but warnings."""

    def __init__(self, *, quiet: bool = False, stderr: bool = True) -> None:
        self.quiet = quiet
        self._stderr = stderr

    @functools.cached_property
    def console(self) -> Console:
        """What writes; where there is nothing to say it is not loaded."""
        from rich.console import Console

        # Values are other people's text: no markup, no emoji codes, no guessing at numbers.
        console = Console(stderr=self._stderr, markup=False, emoji=False, highlight=False)
        if not console.is_terminal and "COLUMNS" not in os.environ:
            console.width = WIDTH
        return console

    def say(self, text: str = "", style: str | None = None) -> None:
        """Lines of text. They are never broken, so that a path can be copied from them."""
        if not self.quiet:
            self.console.print(text, style=style, soft_wrap=True)

    def warn(self, text: str) -> None:
        """A line that `quiet` does not silence."""
        self.console.print(f"warning: {text}", style="yellow", soft_wrap=True)

    def table(
        self,
        title: str,
        columns: Sequence[str],
        rows: Iterable[Sequence[str]],
        *,
        text: int,
        cut: bool = True,
    ) -> None:
        """A table under a title: the first `text` columns are text, the others numbers set to the right.

        Where space is short, numbers stay whole and text is cut or, without `cut`, broken into lines.
        """
        from rich import box
        from rich.table import Table
        from rich.text import Text

        if self.quiet:
            return
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for i, column in enumerate(columns):
            table.add_column(column, justify="left" if i < text else "right", no_wrap=i >= text)
        for row in rows:
            texts = [Text(cell, no_wrap=cut, overflow="ellipsis" if cut else "fold") for cell in row[:text]]
            table.add_row(*texts, *row[text:])
        self.console.print()
        self.console.print(title, style="bold")
        self.console.print(table)

    @contextmanager
    def progress(self) -> Iterator[Callable[[str, int, float], None] | None]:
        """What a model takes as `progress`: a line redrawn on a terminal, now and then a line elsewhere."""
        if self.quiet:
            yield None
        elif self.console.is_terminal:
            with self.console.status("fitting …") as status:
                yield lambda stage, sweep, bound: status.update(_progress_line(stage, sweep, bound))
        else:
            yield self._lines()

    @contextmanager
    def steps(
        self, n: int
    ) -> Iterator[tuple[Callable[[str, int, float], None] | None, Callable[[str], None]]]:
        """For n pieces of work: what each takes as `progress`, and what to call with a line when one is finished.

        A bar on a terminal, a line for each elsewhere.
        """
        if self.quiet:
            yield None, lambda line: None
        elif self.console.is_terminal:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

            columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
            with Progress(*columns, console=self.console, transient=True) as bar:
                task = bar.add_task("starting …", total=n)
                yield (
                    lambda stage, sweep, bound: bar.update(
                        task, description=_progress_line(stage, sweep, bound)
                    ),
                    lambda line: bar.update(task, advance=1, description=line),
                )
        else:
            yield self._lines(), self.say

    def _lines(self) -> Callable[[str, int, float], None]:
        due = time.monotonic() + EVERY

        def line(stage: str, sweep: int, bound: float) -> None:
            nonlocal due
            if time.monotonic() >= due:
                self.say(_progress_line(stage, sweep, bound))
                due = time.monotonic() + EVERY

        return line


def _progress_line(stage: str, sweep: int, bound: float) -> str:
    if not sweep:
        return stage
    return f"{stage}: sweep {sweep:,}" + ("" if bound != bound else f", bound {bound:,.2f}")
