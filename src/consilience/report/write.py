"""The report of a fit on disk."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from consilience.errors import InputError
from consilience.report.gold import run_rivals
from consilience.report.html import html
from consilience.report.summarise import summarise
from consilience.report.summary import Summary
from consilience.results.atomic import replace_file
from consilience.results.fit import Fit

ENDINGS = (".html", ".htm")


def summary_of(fit: Fit, truth: Any = None, rivals: str | Sequence[str] = ("vote",)) -> Summary:
    """The summary of a fit; with gold beside rivals, which are run for it."""
    return summarise(fit, truth, () if truth is None else run_rivals(fit, rivals))


def write_report(summary: Summary, path: str | os.PathLike[str]) -> Path:
    """Write the report into a file, whole or not at all; InputError if it cannot be."""
    target = check_path(path)
    page = html(summary)
    try:
        replace_file(target, page.encode())
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise InputError(
            f"Cannot write the report to {str(path)!r}: the system refuses it ({why}). Choose another place."
        ) from None
    return target


def check_path(path: str | os.PathLike[str]) -> Path:
    """A path that a report may be written to: a file in a folder that exists, and no other kind of file."""
    target = Path(path)
    if target.suffix.lower() not in ENDINGS:
        raise InputError(
            f"The report is a page, and {str(path)!r} does not end in .html. Name a file such as report.html."
        )
    if not target.parent.is_dir():
        raise InputError(f"Cannot write {str(path)!r}: there is no folder {target.parent}. Make it first.")
    return target
