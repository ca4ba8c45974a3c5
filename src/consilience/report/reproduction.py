"""The reproduction of the paper as Markdown and as one HTML page with charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from consilience.evaluate.reproduce import PAPER_MSS
from consilience.report import page
from consilience.report.charts import bars, curve
from consilience.report.page import Section

TITLE = "The paper, reproduced"
Found = Mapping[str, Any]


def markdown(
    found: Found, preface: Sequence[str] = (), images: Mapping[str, Sequence[str]] = page.NONE
) -> str:
    """All tables, ours beside the paper's."""
    return page.markdown(TITLE, [*preface, *about(found)], sections(found), images)


def html(found: Found) -> str:
    """The same with charts, in one file that needs no network."""
    return page.html(TITLE, about(found), sections(found), charts(found))


def sections(found: Found) -> list[Section]:
    """Whatever parts were run."""
    return [section(found) for part, section in SECTIONS.items() if part in found]


def about(found: Found) -> list[str]:
    """What was run."""
    data = found["data"]
    size = "Quick run: small tags, few κ, one setting of the paper's grid. " if found["quick"] else ""
    return [
        f"{size}Books: {data['stores']:,} stores, {data['books']:,} books, {data['listings']:,} claims, {data['gold']} "
        f"with gold, in the plain cleaning. Tags are simulated in the paper's shape, on {data['images']:,} images. "
        f"Seed {found['seed']}. Made by the code of commit {found['provenance']['commit'] or 'none'}."
    ]


def charts(found: Found) -> dict[str, list[str]]:
    """Charts by the title of the section that they stand in."""
    drawn = {}
    if "table1" in found:
        rows = [
            {"model": row["model"], "accuracy": row[of]["accuracy"], "of": of}
            for row in found["table1"] for of in ("ours", "paper")
        ]  # fmt: skip
        drawn[_table1(found).title] = [bars(rows, "model", "accuracy", "of", "Accuracy on books")]
    if "figure4" in found:
        points = [
            {"κ": f"{row['kappa']:g}", "accuracy": row["accuracy"], "of": "ours"}
            for row in found["figure4"]["ours"]
        ]
        drawn[_figure4(found).title] = [curve(points, "κ", "accuracy", "of", "Accuracy against κ")]
    return drawn


def _table1(found: Found) -> Section:
    return Section(
        "Table 1: how right",
        *_beside(found["table1"], {"accuracy": "accuracy", "precision": "precision", "recall": "recall"}, 3),
        [
            f"Accuracy on {found['data']['gold']} gold books; precision and recall are means over simulated tags.",
            "SSTF is given a fifth of the gold, here and on tags, and scored on the rest.",
            "Accu is as published, and with our order of votes, which was chosen with a look at this gold.",
        ],
    )


def _table2(found: Found) -> Section:
    part = found["table2"]
    rows = [
        [top["store"], _number(top["accuracy"], 3), bottom["store"], _number(bottom["accuracy"], 3)]
        for top, bottom in zip(part["top"], part["bottom"], strict=True)
    ]
    for name, of in (("mean", "ours"), ("mean, paper", "paper")):
        rows.append([name, _number(part[of]["top"], 3), "", _number(part[of]["bottom"], 3)])
    note = (
        f"Stores with at least {part['least_gold']} gold books, by the reliability that MSS gives them. Over all "
        f"{part['n_stores_with_gold']} stores with a gold book the rank correlation of reliability and accuracy is "
        f"{_number(part['rank_correlation'], 2) or 'not defined'}."
    )
    header = ["top", "accuracy", "bottom", "accuracy"]
    return Section("Table 2: the most and the least reliable stores", header, rows, [note])


def _table3(found: Found) -> Section:
    columns = {
        "book_rounds": "rounds", "book_seconds": "seconds",
        "tagging_rounds": "rounds a tag", "tagging_seconds": "seconds a tag",
    }  # fmt: skip
    seconds = {row["model"]: row["ours"]["book_seconds"] for row in found["table3"]}
    times = seconds[PAPER_MSS] / seconds["TruthFinder"]
    note = (
        f"On the books MSS as the paper ran it takes {times:.1f} times as long as TruthFinder. A search such as our "
        "default's climbs many times; its rounds are those of the start that won and its moves."
    )
    return Section(
        "Table 3: rounds and seconds", *_beside(found["table3"], columns, {"rounds": 0, "seconds": 3}), [note]
    )


def _figure4(found: Found) -> Section:
    part = found["figure4"]
    rows = [[f"{row['kappa']:g}", _number(row["accuracy"], 3), str(row["n_groups"])] for row in part["ours"]]
    note = (
        f"The paper's curve has its peak at κ = {part['paper']['peak']:g}; it prints no other figure of it."
    )
    return Section("Figure 4: accuracy against κ", ["κ", "accuracy", "groups"], rows, [note])


SECTIONS = {"table1": _table1, "table2": _table2, "table3": _table3, "figure4": _figure4}


def _beside(
    rows: Sequence[Found], columns: Mapping[str, str], digits: int | Mapping[str, int]
) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a table in which every figure of ours stands beside the paper's."""

    def places(name: str) -> int:
        return digits if isinstance(digits, int) else digits[name.split()[0]]

    header = ["model", *(f"{name}{of}" for name in columns.values() for of in ("", ", paper"))]
    return header, [
        [
            row["model"],
            *(
                _number(row[of][column], places(name))
                for column, name in columns.items()
                for of in ("ours", "paper")
            ),
        ]
        for row in rows
    ]


def _number(x: float | None, digits: int) -> str:
    return "" if x is None else f"{x:,.{digits}f}"
