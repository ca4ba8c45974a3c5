"""Writes the reference pages from the code, and the pages of results from the committed records: python
docs/generate.py (or `make docs`)."""

from __future__ import annotations

import ast
import inspect
import runpy
import textwrap
from dataclasses import fields
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from consilience.claims.reading import read_claims, read_truths
from consilience.cli.main import VERBS, app
from consilience.evaluate.bench import read_records
from consilience.models.base import Model
from consilience.models.registry import MODELS
from consilience.report import benchmark, reproduction
from consilience.results.cautions import KINDS
from consilience.results.dependence import EffectiveSources
from consilience.results.explain import Candidate, Explanation, Member, Voice
from consilience.results.fit import Fit
from consilience.results.score import Score

DOCS = Path(__file__).resolve().parent
REFERENCE, RESULTS, IMAGES = DOCS / "reference", DOCS / "results", DOCS / "images"
BENCHMARKS = DOCS.parent / "benchmarks"
NOTE = "<!-- Written by docs/generate.py from the code: change the code, then run `make docs`. -->\n"


def generated() -> dict[Path, str]:
    """Every generated page and its text."""
    return {
        REFERENCE / "cli.md": cli_page(),
        REFERENCE / "settings.md": settings_page(),
        REFERENCE / "results.md": results_page(),
        **benchmark_pages(),
        **paper_pages(),
        RESULTS / "search.md": rendered("search"),
        RESULTS / "rivals.md": rendered("rivals"),
        RESULTS / "speed.md": rendered("speed"),
        RESULTS / "gpu.md": rendered("gpu"),
        DOCS / "reliability.md": rendered("chaos"),
    }


def benchmark_pages() -> dict[Path, str]:
    """Every model on every data set, and its charts."""
    summary = benchmark.summarise(read_records(BENCHMARKS / "accuracy" / "records" / "records.jsonl"))
    images, charts = _images("bench", benchmark.charts(summary))
    preface = [
        "Made of the records in `benchmarks/accuracy/records` by `make docs`; the records by "
        "[`consilience bench`](how-to/bench.md). More results: [the paper, reproduced](results/paper.md); "
        "[how good the default is](results/search.md); [how fast the rivals are](results/rivals.md). Left out: "
        "`n_emotion`, whose values are numbers, and `weather`, whose gold is one provider's word. Crowd-Kit's models "
        "are not yet run on the largest tables, and were run apart from ours on some: Provenance has every run. "
        "`book/simple` is another cleaning of `book`. `accu`'s order of votes was chosen with a look at the gold of "
        "three of these sets "
        "([decision 0009](decisions/0009-rivals-on-segments.md)).",
        "",
    ]
    return {DOCS / "results.md": benchmark.markdown(summary, preface, images), **charts}


def paper_pages() -> dict[Path, str]:
    """The paper's tables and its figure, and their charts."""
    *_, found = read_records(BENCHMARKS / "paper" / "records" / "records.jsonl")
    images, charts = _images("paper", reproduction.charts(found), "../images")
    preface = [
        "Made of the last record in `benchmarks/paper/records` by `make docs`; the record by "
        "[`consilience reproduce`](../how-to/reproduce.md).",
        "",
    ]
    return {RESULTS / "paper.md": reproduction.markdown(found, preface, images), **charts}


def rendered(name: str) -> str:
    """The page that a benchmark's own script makes of its records."""
    return "\n".join(runpy.run_path(str(BENCHMARKS / name / "render.py"))["page"]()) + "\n"


def _images(
    name: str, charts: dict[str, list[str]], folder: str = "images"
) -> tuple[dict[str, list[str]], dict[Path, str]]:
    """Charts as files: their addresses by section, and their contents."""
    addresses: dict[str, list[str]] = {}
    files = {}
    for title, drawn in charts.items():
        for svg in drawn:
            file = f"{name}-{len(files) + 1}.svg"
            addresses.setdefault(title, []).append(f"{folder}/{file}")
            files[IMAGES / file] = svg + "\n"
    return addresses, files


def cli_page() -> str:
    """What `--help` says, for the program and each of its commands."""
    parts = [
        NOTE,
        "# The command line\n",
        "Exit codes: 0 done; 2 the input is wrong (the message says what was found, what was expected and what to do); "
        "1 anything else; 130 interrupted; 143 terminated. Results for programs go to stdout, tables and progress to "
        "stderr.\n",
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
    parts += ["## Warnings\n", warnings_text()]
    for kind in (EffectiveSources, Explanation, Candidate, Voice, Member, Score):
        parts += [f"## {kind.__name__}\n", _prose(kind)]
    return "\n".join(parts)


def warnings_text() -> str:
    """What programs are told of warnings, and every kind of them."""
    rows = "\n".join(f"| `{kind}` | {meaning} |" for kind, meaning in KINDS.items())
    return (
        "A warning is a text. In Python it has a `kind` and `data`, the figures behind it. `fit --json` and `compare "
        "--json` print the texts as `warnings`, and as `cautions` in the same order an object for each: `kind`, "
        "`message` (the text) and `data`. Texts may be reworded from version to version; kinds are for programs.\n\n"
        f"| kind | what it means |\n|---|---|\n{rows}\n"
    )


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
