"""Pages that run: the code of a page, executed in order, against the output that the page shows.

A Python block may be followed by a text block: what it prints. Blocks of one page share a namespace and the working
directory. In a console block every `$ consilience …` is run; the lines below it must occur in its output, in that
order, and a line `…` says that some were left out.

    python docs/pages.py     replaces the printed output in every page by what the code prints now
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from typer.testing import CliRunner

from consilience.cli.main import app

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<body>.*?)^```\n", re.MULTILINE | re.DOTALL)
OUTPUT = re.compile(r"\n```text\n(?P<body>.*?)^```\n", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """Every page of the project that people read."""
    return [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]


def refreshed(page: str) -> str:
    """The page with every printed output as its code prints it now; AssertionError where a command falls short."""
    parts, read = [], 0
    module = sys.modules["a_page"] = ModuleType("a_page")  # so that classes of the page can be pickled
    for block in BLOCK.finditer(page):
        if block["language"] == "console":
            _check_console(block["body"])
        elif block["language"] == "python":
            printed = _printed(block["body"], module)
            shown = OUTPUT.match(page, block.end())
            parts.append(page[read : block.end()])
            read = shown.end() if shown else block.end()
            if printed:
                parts.append(f"\n```text\n{printed}```\n")
    return "".join([*parts, page[read:]])


def _printed(code: str, module: ModuleType) -> str:
    """What the code prints, without spaces at the ends of lines."""
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        exec(compile(code, "<page>", "exec", dont_inherit=True), vars(module))
    return "".join(f"{line.rstrip()}\n" for line in stream.getvalue().splitlines())


def _check_console(body: str) -> None:
    for command, shown in _commands(body):
        program, *arguments = shlex.split(command)
        if program != "consilience":
            continue
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, f"`{command}` ended with {done.exit_code}:\n{done.output}"
        printed = iter([line.rstrip() for line in done.output.splitlines()])
        for line in shown:
            assert line == "…" or line in printed, (
                f"`{command}` does not print this line here:\n{line}\n\n{done.output}"
            )


def _commands(body: str) -> Iterator[tuple[str, list[str]]]:
    """Each command with the lines shown below it."""
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, *shown = part.splitlines()
        yield command, [line.rstrip() for line in shown if line.strip()]


def main() -> None:
    """Rewrite the printed output in all pages."""
    for path in pages():
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            path.write_text(refreshed(path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    os.environ.pop("COLUMNS", None)
    main()
