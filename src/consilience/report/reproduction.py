"""The reproduction of the paper as Markdown and as one HTML page with charts. Every number was decided before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from consilience.evaluate.reproduce import PAPER_MSS
from consilience.report.charts import bars, curve

Table = tuple[str, list[str], list[list[str]], list[str]]
"""Title, header, rows, and notes below."""

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; } th, td { padding: .25rem .75rem; text-align: right; }
th { border-bottom: 1px solid; } th:first-child, td:first-child { text-align: left; }
.wide { overflow-x: auto; } figure { margin: 1rem 0; background: white; } svg { max-width: 100%; height: auto; }
"""


def markdown(found: Mapping[str, Any]) -> str:
    """All tables, ours beside the paper's."""
    lines = ["# The paper, reproduced", "", *_about(found)]
    for title, header, rows, notes in tables(found):
        lines += ["", f"## {title}", "", *_markdown_table(header, rows), *(f"\n{note}" for note in notes)]
    return "\n".join(lines) + "\n"


def html(found: Mapping[str, Any]) -> str:
    """The same with charts, in one file that needs no network."""
    body = ["<h1>The paper, reproduced</h1>", *(f"<p>{escape(line)}</p>" for line in _about(found))]
    drawn = charts(found)
    for title, header, rows, notes in tables(found):
        head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
        cells = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
        )
        body.append(f"<h2>{escape(title)}</h2>")
        body += [
            f'<figure role="img" aria-label="{escape(title)}">{svg}</figure>'
            for at, svg in drawn
            if at == title
        ]
        body.append(
            f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{cells}</tbody></table></div>'
        )
        body += [f"<p>{escape(note)}</p>" for note in notes]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>The paper, reproduced</title><style>{STYLE}</style></head><body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def tables(found: Mapping[str, Any]) -> Iterable[Table]:
    """Whatever parts were run."""
    if "table1" in found:
        columns = ("accuracy", "precision", "recall")
        header = ["model", *(f"{column}{of}" for column in columns for of in ("", ", paper"))]
        rows = [
            [row["model"], *(_number(row[of][column], 3) for column in columns for of in ("ours", "paper"))]
            for row in found["table1"]
        ]
        notes = [
            f"Accuracy on {found['data']['gold']} gold books; precision and recall are means over simulated tags.",
            "SSTF is given a fifth of the gold, here and on tags, and scored on the rest.",
            "Accu is as published, and with our order of votes, which was chosen with a look at this gold.",
        ]
        yield "Table 1: how right", header, rows, notes
    if "table2" in found:
        part = found["table2"]
        rows = [
            [top["store"], _number(top["accuracy"], 3), bottom["store"], _number(bottom["accuracy"], 3)]
            for top, bottom in zip(part["top"], part["bottom"], strict=True)
        ]
        rows.append(["mean", _number(part["ours"]["top"], 3), "", _number(part["ours"]["bottom"], 3)])
        rows.append(
            ["mean, paper", _number(part["paper"]["top"], 3), "", _number(part["paper"]["bottom"], 3)]
        )
        notes = [
            f"Stores with at least {part['least_gold']} gold books, by the reliability that MSS gives them. Over all "
            f"{part['n_stores_with_gold']} stores with a gold book the rank correlation of reliability and accuracy is "
            f"{part['rank_correlation']:.2f}."
        ]
        yield (
            "Table 2: the most and the least reliable stores",
            ["top", "accuracy", "bottom", "accuracy"],
            rows,
            notes,
        )
    if "table3" in found:
        times = ("book_rounds", "book_seconds", "tagging_rounds", "tagging_seconds")
        names = ("rounds", "seconds", "rounds a tag", "seconds a tag")
        header = ["model", *(f"{name}{of}" for name in names for of in ("", ", paper"))]
        digits = (0, 3, 0, 3)
        rows = [
            [
                row["model"],
                *(
                    _number(row[of][c], d)
                    for c, d in zip(times, digits, strict=True)
                    for of in ("ours", "paper")
                ),
            ]
            for row in found["table3"]
        ]
        yield (
            "Table 3: rounds and seconds",
            header,
            rows,
            [
                f"MSS as the paper ran it takes {_times(found['table3'])} TruthFinder's time on the books; a search such as "
                "our default's climbs many times. Its rounds are those of the start that won and its moves.",
            ],
        )
    if "figure4" in found:
        part = found["figure4"]
        rows = [
            [f"{row['kappa']:g}", _number(row["accuracy"], 3), str(row["n_groups"])] for row in part["ours"]
        ]
        notes = [
            f"The paper's curve has its peak at κ = {part['paper']['peak']:g}; it prints no other figure of it."
        ]
        yield "Figure 4: accuracy against κ", ["κ", "accuracy", "groups"], rows, notes


def charts(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The title of the table that a chart belongs to, and the chart."""
    drawn = []
    if "table1" in found:
        rows = [
            {"model": row["model"], "accuracy": row[of]["accuracy"], "of": of}
            for row in found["table1"] for of in ("ours", "paper")
        ]  # fmt: skip
        drawn.append(("Table 1: how right", bars(rows, "model", "accuracy", "of", "Accuracy on books")))
    if "figure4" in found:
        points = [
            {"κ": f"{row['kappa']:g}", "accuracy": row["accuracy"], "of": "ours"}
            for row in found["figure4"]["ours"]
        ]
        drawn.append(
            ("Figure 4: accuracy against κ", curve(points, "κ", "accuracy", "of", "Accuracy against κ"))
        )
    return drawn


def _times(rows: Sequence[Mapping[str, Any]]) -> str:
    seconds = {row["model"]: row["ours"]["book_seconds"] for row in rows}
    return f"{seconds[PAPER_MSS] / seconds['TruthFinder']:.1f} times"


def _about(found: Mapping[str, Any]) -> list[str]:
    data = found["data"]
    size = "Quick run: small tags, few κ, one setting of the paper's grid. " if found["quick"] else ""
    return [
        f"{size}Books: {data['stores']:,} stores, {data['books']:,} books, {data['listings']:,} claims, {data['gold']} "
        f"with gold, in the plain cleaning. Tags are simulated in the paper's shape, on {data['images']:,} images. "
        f"Seed {found['seed']}."
    ]


def _markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]


def _number(x: float | None, digits: int) -> str:
    return "" if x is None else f"{x:,.{digits}f}"
