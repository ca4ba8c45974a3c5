"""Writes the reference pages from the code itself: python docs/generate.py (or `make docs`)."""

from __future__ import annotations

import ast
import inspect
import textwrap
from dataclasses import fields
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from consilience.claims.reading import read_claims, read_truths
from consilience.cli.main import VERBS, app
from consilience.models.base import Model
from consilience.models.registry import MODELS
from consilience.results.dependence import EffectiveSources
from consilience.results.explain import Candidate, Explanation, Member, Voice
from consilience.results.fit import Fit
from consilience.results.score import Score

REFERENCE = Path(__file__).resolve().parent / "reference"
NOTE = "<!-- Written by docs/generate.py from the code: change the code, then run `make docs`. -->\n"


def generated() -> dict[Path, str]:
    """Every generated page and its text."""
    return {
        REFERENCE / "cli.md": cli_page(),
        REFERENCE / "settings.md": settings_page(),
        REFERENCE / "results.md": results_page(),
    }


def cli_page() -> str:
    """What `--help` says, for the program and each of its commands."""
    parts = [
        NOTE,
        "# The command line\n",
        "Exit codes: 0 done; 2 the input is wrong (the message says what was found, what was expected and what to do); "
        "1 anything else; 130 interrupted. Results for programs go to stdout, tables and progress to stderr.\n",
        _help(),
    ]
    for verb in VERBS:
        parts += [f"## {verb.__name__}\n", _help(verb.__name__)]
    return "\n".join(parts)


def settings_page() -> str:
    """Every model and what can be set: the one place that states defaults."""
    parts = [
        NOTE,
        "# Models and their settings\n",
        "A model is a frozen dataclass of settings. `fit` takes what is not a setting: what to learn from and how to "
        "compute it.\n",
        "## fit\n",
        _fenced(f"fit{_signature(Model.fit)}"),
        _prose(MODELS["mss"].fit),
    ]
    for name, model in MODELS.items():
        parts += [f"## {name}: {model.__name__}\n", _prose(model)]
        if hasattr(model, "cites"):
            parts.append(f"After: {model.cites}.\n")
        documented = docstrings(model)
        rows = [
            f"| `{field.name}` | `{field.default!r}` | {documented.get(field.name, '').replace('|', '&#124;')} |"
            for field in fields(model)
        ]
        if rows:
            parts.append("\n".join(["| setting | default | meaning |", "|---|---|---|", *rows]) + "\n")
        else:
            parts.append("It has no settings.\n")
    return "\n".join(parts)


def results_page() -> str:
    """What goes in and what comes out: the readers, Fit and everything a Fit gives."""
    parts = [NOTE, "# Tables in, results out\n"]
    for reader in (read_claims, read_truths):
        parts += [
            f"## {reader.__name__}\n",
            _fenced(f"{reader.__name__}{_signature(reader)}"),
            _prose(reader),
        ]
    parts += ["## Fit\n", _prose(Fit), "### Fields\n"]
    for name, text in docstrings(Fit).items():
        parts.append(f"- `{name}`: {text}")
    parts += ["", "### Tables, numbers and methods\n"]
    for name, member in vars(Fit).items():
        if name.startswith("_") or not (isinstance(member, property) or inspect.isfunction(member)):
            continue
        is_method = inspect.isfunction(member)
        parts += [f"#### {name}{_signature(member) if is_method else ''}\n", _prose(member)]
    for kind in (EffectiveSources, Explanation, Candidate, Voice, Member, Score):
        parts += [f"## {kind.__name__}\n", _prose(kind)]
    return "\n".join(parts)


def docstrings(kind: type[Any]) -> dict[str, str]:
    """The fields of a dataclass that have a docstring below them, on one line each."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, below in zip(body.body, body.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(below, ast.Expr)
        ):
            found[field.target.id] = " ".join(str(ast.literal_eval(below.value)).split())
    return found


def _help(*command: str) -> str:
    done = CliRunner().invoke(app, [*command, "--help"], prog_name="consilience", env={"COLUMNS": "100"})
    assert done.exit_code == 0, done.output
    return _fenced(done.output)


def _prose(documented: Any) -> str:
    """A docstring: sentences as they are, lists of names and their meaning (with ` : `) as a block."""
    paragraphs = (inspect.getdoc(documented) or "").split("\n\n")
    return "\n\n".join(_fenced(p).rstrip() if _is_list(p) else p for p in paragraphs) + "\n"


def _is_list(paragraph: str) -> bool:
    return " : " in paragraph.split("\n")[0]


def _signature(function: Any) -> str:
    """Parameters, without `self` and without annotations, which the prose explains."""
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name != "self"
    ]
    return str(inspect.Signature(parameters))


def _fenced(text: str) -> str:
    return f"```\n{text.rstrip()}\n```\n"


def main() -> None:
    """Write the pages."""
    for path, text in generated().items():
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
