"""Templates: Jinja2, with everything escaped. The only file that imports it."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from consilience.errors import EngineUnavailableError
from consilience.report.formats import FILTERS


@cache
def environment(*packages: str) -> Any:
    """A Jinja2 environment over the folders `templates` of these packages, then over the report's own.

    All text is escaped, a name that does not exist is an error, and numbers and values are written by `formats.py`.
    """
    try:
        import jinja2
    except ImportError as error:
        raise EngineUnavailableError(
            f"Pages cannot be made: {error}. Install what they need with `pip install 'consilience[report]'`."
        ) from error
    folders = [jinja2.PackageLoader(package) for package in (*packages, "consilience.report")]
    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader(folders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(FILTERS)
    return made


def look() -> str:
    """The stylesheet of all pages."""
    return files("consilience.report").joinpath("templates/look.css").read_text("utf-8")
