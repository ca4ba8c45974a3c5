"""A fit in a notebook: a few lines of HTML, made without templates, charts or anything that must be installed."""

from __future__ import annotations

from html import escape

from consilience.report.formats import interval, share, shown
from consilience.report.summarise import summarise
from consilience.results.fit import Fit

ROWS = 5
NAME = 40
"""Characters of a name."""


def notebook(fit: Fit) -> str:
    """What was found in a paragraph, the largest groups, and the decisions that overrule the most claims."""
    summary = summarise(fit)
    parts = [f"<p><strong>{escape(summary.title)}.</strong> {escape(summary.found)}</p>"]
    parts += [f"<p><strong>Careful:</strong> {escape(warning)}</p>" for warning in summary.course.warnings]
    if summary.groups is not None and summary.groups.n_shared:
        rows = [
            [f"{g.group}", g.kind, f"{g.n_sources:,}", share(g.reliability), interval(g.low, g.high)]
            for g in summary.groups.largest[:ROWS]
        ]
        parts.append(
            _table("Largest groups", ["group", "kind", "sources", "reliability", "90% interval"], rows)
        )
    if summary.majority.cases:
        rows = [
            [shown(c.object, NAME), shown(c.value, NAME), shown(c.majority, NAME), share(c.probability)]
            for c in summary.majority.cases[:ROWS]
        ]
        header = ["object", "decided", "majority says", "probability"]
        parts.append(_table("Against the majority", header, rows))
    return f"<div>{''.join(parts)}</div>"


def _table(caption: str, header: list[str], rows: list[list[str]]) -> str:
    head = "".join(f"<th scope='col'>{escape(name)}</th>" for name in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
