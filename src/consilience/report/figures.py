"""The charts of a summary. They have no background and take the colour of the text, so they suit light and dark pages.

Every one has a table beside it or below it that says the same; names in them are short and harmless text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import pi, sqrt
from typing import Any

from consilience.claims.words import quantity
from consilience.report.charts import altair, svg, titled
from consilience.report.formats import interval, share, shown
from consilience.report.summary import Bin, Calibration, Course, Group, Groups, HeatMap, Rival, Sources

NARROW, WIDE = 260, 380
"""Of the area that is drawn on, with names at its side and without. With all labels a chart is about 440 wide: nearly
the width of a phone, and not much less than a column elsewhere."""
LABEL = 24
"""Characters of a name."""
LISTED = 24
"""Room to the left of a list of names: their width is that of another font where a page is read."""
NAMED = 24
"""Sources along a side of the heat map up to which all are named."""
DRAWN, NAMES = 6, 4
"""Groups of several sources in the graph, and members of each that are named."""
HUB, LEAF, HEAD, LINE, GAP, WIDEST = 56.0, 104.0, 20.0, 17.0, 12.0, 36
"""Of the graph: where groups and members stand; heights of a head, of a name, between groups; letters of a name."""
BLUE, ORANGE, RED = "#2f8fa8", "#d9822b", "#cf4a4f"
ON_COLOUR = "#14171a"
KINDS = {"reliable": BLUE, "careless": ORANGE, "malicious": RED}
Rows = Sequence[Mapping[str, Any]]
THEME: dict[str, Any] = {
    "background": "transparent",
    "font": "Helvetica, Arial, Liberation Sans, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": "currentColor", "titleColor": "currentColor", "domainColor": "currentColor",
        "tickColor": "currentColor", "gridColor": "currentColor", "gridOpacity": 0.14, "domainOpacity": 0.4,
        "tickOpacity": 0.4, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal",
        "titlePadding": 8, "labelFlush": False,
    },
    "legend": {
        "labelColor": "currentColor", "titleColor": "currentColor", "labelFontSize": 12, "orient": "top",
        "title": None, "offset": 4, "symbolStrokeWidth": 0, "columnPadding": 30,
    },
    "text": {"color": "currentColor", "fontSize": 12},
    "rule": {"color": "currentColor"},
}  # fmt: skip


def reliability(sources: Sources) -> str:
    """A dot for each source at its reliability, with its interval, by falling reliability."""
    alt, rows = altair(), []
    for i, source in enumerate((*sources.best, *sources.worst)):
        if i == len(sources.best):
            rows.append({"at": i, "name": "⋮"})
        if source.reliability is not None:
            at = i + (i >= len(sources.best))
            rows.append(
                {"at": at, "name": _label(source.source, LABEL), "reliability": source.reliability,
                 "low": source.low, "high": source.high}
            )  # fmt: skip
    base = _chart("rows").encode(y=_place())
    x = alt.X("reliability:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%", title="reliability"))
    spans = base.mark_rule(strokeWidth=2.5, opacity=0.35).encode(x="low:Q", x2="high:Q")
    dots = base.mark_point(filled=True, size=42, color=BLUE, opacity=1).encode(x=x)
    layers = [spans, dots] if any(row.get("low") is not None for row in rows) else [dots]
    return _drawn(_listed(*layers), height=19 * len(rows), left=LISTED, rows=rows)


def worth(bins: Sequence[Bin]) -> str:
    """Objects by how many sources they have, and by how many independent ones these are worth."""
    alt = altair()
    named = [(f"{b.low}–{b.high}" if b.high > b.low else f"{b.low}", b) for b in bins]
    kinds = ("sources that claim", "independent sources")
    rows = [
        {"sources": name, "objects": n, "of": kind}
        for name, b in named for kind, n in zip(kinds, (b.n_claimed, b.n_worth), strict=True)
    ]  # fmt: skip
    x = alt.X(
        "sources:N",
        sort=[name for name, _ in named],
        axis=alt.Axis(labelAngle=0, title="sources of an object"),
    )
    chart = _chart("rows").mark_bar().encode(
        x=x,
        xOffset=alt.XOffset("of:N", sort=list(kinds)),
        y=alt.Y("objects:Q", axis=alt.Axis(title="objects", format="~s", tickCount=4)),
        color=alt.Color("of:N", scale=alt.Scale(domain=list(kinds), range=["#8b95a1", BLUE])),
    )  # fmt: skip
    return _drawn(chart, height=150, width=WIDE, rows=rows)


def heat_map(heat: HeatMap) -> str:
    """Pairs of sources: group below the diagonal, shared mistakes above it, a line around every group."""
    alt, n = altair(), len(heat.sources)
    named = n <= NAMED
    side = NARROW if named else WIDE
    cells = [{**_square(column, row), "share": share} for row, column, share in heat.cells]
    blocks = [
        {**_square(first, first, size), "group": f"{group}", "middle": first + size / 2}
        for group in dict.fromkeys(heat.groups)
        if (size := heat.groups.count(group)) > 1
        for first in [heat.groups.index(group)]
    ]
    rows = [
        {"middle": i + 0.5, "name": _label(source, LABEL - 6)}
        for i, source in enumerate(heat.sources)
        if named
    ]
    right, down = alt.Scale(domain=[0, n], nice=False), alt.Scale(domain=[n, 0], nice=False)
    edges = {
        "x": alt.X("left:Q", scale=right, axis=None), "x2": "right:Q",
        "y": alt.Y("top:Q", scale=down, axis=None), "y2": "bottom:Q",
    }  # fmt: skip
    middle = alt.Y("middle:Q", scale=down)
    faint = alt.Opacity("share:Q", scale=alt.Scale(domain=[0, 1], range=[0.04, 1]), legend=None)
    layers = [
        _chart("cells").mark_rect(color=BLUE).encode(**edges, opacity=faint),
        _chart("all").mark_rect(fill=None, stroke="currentColor", strokeOpacity=0.4).encode(**edges),
        _chart("blocks").mark_rect(fill=None, stroke="currentColor", strokeWidth=1.2).encode(**edges),
        _chart("blocks")
        .mark_text(align="left", baseline="middle", dx=4, fontWeight="bold")
        .encode(x=alt.X("right:Q", scale=right), y=middle, text="group:N"),
        _chart("rows")
        .mark_text(align="right", baseline="middle", fontSize=10, dx=-5)
        .encode(x=alt.value(0), y=middle, text="name:N"),
    ]
    return _drawn(
        alt.layer(*layers),
        width=side,
        height=side,
        left=LISTED if named else 4,
        cells=cells,
        all=[_square(0, 0, n)],
        blocks=blocks,
        rows=rows,
    )


def _label(name: Any, width: int) -> str:
    """A name with its control characters made visible, and no longer for that."""
    return shown(shown(name, width), width)


def _square(left: int, top: int, size: int = 1) -> dict[str, Any]:
    return {"left": left, "top": top, "right": left + size, "bottom": top + size}


def graph(groups: Groups) -> str:
    """Groups as nodes with their members beside them, one below the other, and lines between groups that err alike."""
    alt, placed = altair(), _placed(groups)
    hubs, leaves, links = [], [], []
    for group, top, middle, names in placed:
        size = quantity(group.n_sources, "source") if group.n_sources > 1 else "on its own"
        facts = f"{group.kind}, {size}, {share(group.reliability, 0)} reliable"
        tip = f"group {group.group}: {facts} ({interval(group.low, group.high)})"
        radius = min(8.0 + 2.2 * sqrt(group.n_sources), 22.0)
        hubs.append(
            {"x": HUB, "y": middle, "size": pi * radius * radius, "kind": group.kind, "name": f"{group.group}",
             "top": top + 8, "facts": facts, "tip": tip}
        )  # fmt: skip
        for i, name in enumerate(names):
            leaves.append(
                {"x": HUB, "y": middle, "to_x": LEAF, "to_y": top + HEAD + LINE * (i + 0.5),
                 "name": _label(name, WIDEST), "kind": group.kind, "tip": shown(name, 200)}
            )  # fmt: skip
    at = {group.group: middle for group, _, middle, _ in placed}
    joining = [link for link in groups.links if {link.group_a, link.group_b} <= set(at)]
    joining.sort(key=lambda link: abs(at[link.group_a] - at[link.group_b]))
    for i, link in enumerate(joining):
        ends = at[link.group_a], at[link.group_b]
        bow = (HUB - 4.0) * (
            0.3 + 0.7 * (i + 1) / len(joining)
        )  # the farther the wider, and none like another
        tip = (
            f"groups {link.group_a} and {link.group_b}: the same mistake on {share(link.share, 0)} of objects"
        )
        for step, (x, y) in enumerate(((0.0, ends[0]), (bow, sum(ends) / 2), (0.0, ends[1]))):
            links.append({"x": HUB - x, "y": y, "link": i, "step": step, "share": link.share, "tip": tip})
    height = max(top + HEAD + LINE * len(names) for _, top, _, names in placed) + 4
    across, down = alt.Scale(domain=[0, WIDE], nice=False), alt.Scale(domain=[height, 0], nice=False)
    x, y = alt.X("x:Q", scale=across, axis=None), alt.Y("y:Q", scale=down, axis=None)
    to_x, to_y = alt.X("to_x:Q", scale=across, axis=None), alt.Y("to_y:Q", scale=down, axis=None)
    colour = alt.Color("kind:N", scale=alt.Scale(domain=list(KINDS), range=list(KINDS.values())), legend=None)
    text = _chart("leaves").mark_text(align="left", baseline="middle", dx=8)
    layers = [
        _chart("links")
        .mark_line(color="currentColor", interpolate="natural", opacity=0.5)
        .encode(
            x=x, y=y, detail="link:N", order="step:Q", description="tip:N",
            strokeWidth=alt.StrokeWidth("share:Q", scale=alt.Scale(domain=[0, 1], range=[1.5, 6]), legend=None),
        ),
        _chart("leaves").mark_rule(opacity=0.35).encode(x=x, y=y, x2="to_x:Q", y2="to_y:Q"),
        _chart("leaves")
        .mark_point(filled=True, size=26, opacity=1)
        .encode(x=to_x, y=to_y, color=colour, description="tip:N"),
        text.encode(x=to_x, y=to_y, text="name:N", description="tip:N"),
        _chart("hubs")
        .mark_point(filled=True, opacity=1, shape="circle")
        .encode(x=x, y=y, color=colour, size=alt.Size("size:Q", scale=None, legend=None), description="tip:N"),
        _chart("hubs")
        .mark_text(fontWeight="bold", color=ON_COLOUR)
        .encode(x=x, y=y, text="name:N", description="tip:N"),
        _chart("hubs")
        .mark_text(align="left", baseline="middle", fontWeight="bold")
        .encode(x=alt.value(LEAF - 4), y=alt.Y("top:Q", scale=down, axis=None), text="facts:N", description="tip:N"),
    ]  # fmt: skip
    # Titles are made of what is said for screen readers, which nothing else here needs: the table has the same.
    drawn = _drawn(
        alt.layer(*layers), width=WIDE, height=height, aria=True, hubs=hubs, leaves=leaves, links=links
    )
    return titled(drawn)


def _placed(groups: Groups) -> list[tuple[Group, float, float, list[str]]]:
    """The groups that are drawn, the largest and those that err as they do: each with the top and the middle of its
    place and the names beside it."""
    shared = [group for group in groups.largest if group.n_sources > 1][:DRAWN]
    drawn = {group.group for group in shared}
    linked = {
        each
        for link in groups.links
        for each, other in ((link.group_a, link.group_b), (link.group_b, link.group_a))
        if other in drawn
    }
    joined = [group for group in groups.largest if group.group in linked - drawn][:DRAWN]
    placed, top = [], 0.0
    for group in (*shared, *joined):
        few = group.n_sources <= NAMES + 1  # a line for one more could as well name it
        names = [str(member) for member in group.members[: group.n_sources if few else NAMES]]
        if not few:
            names.append(f"and {group.n_sources - len(names):,} more")
        height = HEAD + LINE * len(names)
        placed.append((group, top, top + HEAD + LINE * len(names) / 2, names))
        top += height + GAP
    return placed


def bound(course: Course) -> str:
    """The bound by sweep."""
    alt = altair()
    rows = [{"sweep": sweep, "bound": value} for sweep, value in course.trace]
    chart = _chart("rows").mark_line(color=BLUE, strokeWidth=2, point=alt.OverlayMarkDef(size=14, color=BLUE))
    return _drawn(
        chart.encode(
            x=alt.X("sweep:Q", axis=alt.Axis(title="sweep that raised it", tickMinStep=1, grid=False)),
            y=alt.Y("bound:Q", scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5)),
        ),
        height=160,
        width=WIDE,
        rows=rows,
    )


def rivals(ran: Sequence[Rival], model: str) -> str:
    """Accuracies with intervals; this model in colour."""
    alt = altair()
    rows = [
        {"at": i, "name": rival.model, "accuracy": rival.accuracy, "low": rival.low, "high": rival.high,
         "of": rival.model == model}
        for i, rival in enumerate(each for each in ran if each.accuracy is not None)
    ]  # fmt: skip
    base = _chart("rows").encode(y=_place())
    colour = alt.Color("of:N", scale=alt.Scale(domain=[True, False], range=[ORANGE, BLUE]), legend=None)
    x = alt.X(
        "accuracy:Q", scale=alt.Scale(zero=False), axis=alt.Axis(format="%", title="accuracy", tickCount=5)
    )
    spans = base.mark_rule(strokeWidth=2.5, opacity=0.35).encode(x=alt.X("low:Q"), x2="high:Q")
    dots = base.mark_point(filled=True, size=46, opacity=1).encode(x=x, color=colour)
    return _drawn(_listed(spans, dots), height=19 * len(rows), left=LISTED, rows=rows)


def calibration(bins: Sequence[Calibration]) -> str:
    """The share that is right against the probability; honest probabilities lie on the line."""
    alt = altair()
    rows = [{"probability": b.probability, "right": b.right, "n": b.n} for b in bins]
    low = min(0.5, *(min(row["probability"], row["right"]) for row in rows))
    scale = alt.Scale(domain=[low, 1.0], nice=False)
    x = alt.X("probability:Q", scale=scale, axis=alt.Axis(format="%", title="probability given"))
    y = alt.Y("right:Q", scale=scale, axis=alt.Axis(format="%", title="share that is right"))
    ends = [{"probability": low, "right": low}, {"probability": 1.0, "right": 1.0}]
    line = _chart("ends").mark_line(color="currentColor", opacity=0.5, strokeDash=[4, 4]).encode(x=x, y=y)
    size = alt.Size("n:Q", legend=None, scale=alt.Scale(range=[30, 160], zero=True))
    dots = _chart("rows").mark_point(filled=True, color=BLUE, opacity=0.85).encode(x=x, y=y, size=size)
    return _drawn(alt.layer(line, dots), width=WIDE, height=0.7 * WIDE, rows=rows, ends=ends)


def _chart(data: str) -> Any:
    """A chart of rows that `_drawn` is given under this name: Altair would look at every one of them, several times."""
    alt = altair()
    return alt.Chart(alt.NamedData(name=data))


def _drawn(
    chart: Any,
    *,
    height: float,
    width: float = NARROW,
    left: float = 4,
    aria: bool = False,
    **rows: Rows,
) -> str:
    padding = {"left": left, "top": 4, "right": 14, "bottom": 4}
    return svg(chart.properties(width=width, height=height, padding=padding), THEME | {"aria": aria}, rows)


def _listed(*layers: Any) -> Any:
    """Layers over the rows' places `at`, one below the other, with their names at the left.

    Names are data that is drawn, never the scale or an expression: two may look the same, and some are hostile.
    """
    alt = altair()
    names = _chart("rows").mark_text(align="right", baseline="middle", dx=-6)
    return alt.layer(names.encode(x=alt.value(0), y=_place(), text="name:N"), *layers)


def _place() -> Any:
    alt = altair()
    return alt.Y("at:O", axis=None)
