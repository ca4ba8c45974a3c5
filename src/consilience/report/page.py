"""A page of tables, as Markdown or as one HTML file with charts and no network. Every number was decided before."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from consilience.report.environment import look

STYLE = """
th, td { text-align: right; } th:first-child, td:first-child { text-align: left; }
figure { background: white; padding: .5rem; border-radius: .6rem; }
"""
"""Beside the common look: tables of numbers, and charts in Vega-Lite's own colours, which are for white paper."""
MEANING = re.compile(r"[\\`<|\[]")
NONE: Mapping[str, Sequence[str]] = {}


@dataclass(frozen=True)
class Section:
    """A table under a title, with notes below it."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()


def markdown(
    title: str, about: Sequence[str], sections: Sequence[Section], images: Mapping[str, Sequence[str]] = NONE
) -> str:
    """The tables, one below the other; images are addresses, by the title of the section that they stand in."""
    lines = [f"# {title}", "", *about]
    for section in sections:
        table = [section.header, ["---"] * len(section.header), *section.rows]
        lines += ["", f"## {section.title}", ""]
        lines += [f"![{section.title}]({address})\n" for address in images.get(section.title, ())]
        lines += ["| " + " | ".join(map(_plain, row)) + " |" for row in table]
        lines += [f"\n{_plain(note)}" for note in section.notes]
    return "\n".join(lines) + "\n"


def html(
    title: str, about: Sequence[str], sections: Sequence[Section], charts: Mapping[str, Sequence[str]]
) -> str:
    """The same with charts: SVG by the title of the section that they stand in."""
    body = [f"<h1>{escape(title)}</h1>", *(f"<p>{escape(line)}</p>" for line in about)]
    for section in sections:
        head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in section.header)
        rows = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in section.rows)
        body.append(f"<h2>{escape(section.title)}</h2>")
        body += [
            f'<figure role="img" aria-label="{escape(section.title)}">{svg}</figure>'
            for svg in charts.get(section.title, ())
        ]
        body.append(
            f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
        )
        body += [f"<p>{escape(note)}</p>" for note in section.notes]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{escape(title)}</title><style>{look()}{STYLE}</style></head><body><div class="page">\n'
        + "\n".join(body)
        + "\n</div></body></html>\n"
    )


def _plain(text: str) -> str:
    """Text of others in Markdown: on one line, with nothing in it that means something there but bold."""
    return MEANING.sub(r"\\\g<0>", " ".join(text.split()))


def _cell(text: str) -> str:
    """Bold as in Markdown."""
    is_bold = len(text) > 4 and text.startswith("**") and text.endswith("**")
    return f"<td><b>{escape(text[2:-2])}</b></td>" if is_bold else f"<td>{escape(text)}</td>"
