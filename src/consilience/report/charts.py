"""Charts as SVG text: Vega-Lite through Altair, drawn by vl-convert. The only file that imports either."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any
from xml.etree import ElementTree

from consilience.errors import EngineUnavailableError
from consilience.memory import require as require_memory

SVG = "http://www.w3.org/2000/svg"
SIZE = {"width": 520, "height": 280}
DRAWING = 65.0
"""Gigabytes of address space that vl-convert sets aside, and hardly uses; where it cannot, it ends the process."""


def require() -> None:
    """An error at once, and not after long work, where charts cannot be drawn."""
    altair()
    _require_room()


@cache
def _require_room() -> None:
    """Once: it is set aside by the first chart, and for all."""
    require_memory(DRAWING, "Drawing charts")


def curve(rows: Sequence[Mapping[str, Any]], x: str, y: str, series: str, title: str) -> str:
    """Lines with points over an axis of ordered names, one colour a series."""
    alt = altair()
    order = list(dict.fromkeys(row[x] for row in rows))
    chart = (
        alt.Chart(alt.Data(values=list(rows)), title=title)
        .mark_line(point=True)
        .encode(
            x=alt.X(f"{x}:O", sort=order, title=x),
            y=alt.Y(f"{y}:Q", scale=alt.Scale(zero=False), title=y),
            color=alt.Color(f"{series}:N", title=""),
        )
        .properties(**SIZE)
    )
    return svg(chart)


def bars(rows: Sequence[Mapping[str, Any]], x: str, y: str, series: str, title: str) -> str:
    """Groups of bars side by side, one colour a series."""
    alt = altair()
    order = list(dict.fromkeys(row[x] for row in rows))
    chart = (
        alt.Chart(alt.Data(values=[row for row in rows if row[y] is not None]), title=title)
        .mark_bar()
        .encode(
            x=alt.X(f"{x}:N", sort=order, title="", axis=alt.Axis(labelAngle=-30)),
            xOffset=f"{series}:N",
            y=alt.Y(f"{y}:Q", title=y),
            color=alt.Color(f"{series}:N", title=""),
        )
        .properties(**SIZE)
    )
    return svg(chart)


def intervals(
    rows: Sequence[Mapping[str, Any]], name: str, x: str, title: str, series: str | None = None
) -> str:
    """A dot for each name, one below the other, with a line from `low` to `high` where a row has them."""
    alt = altair()
    order = list(dict.fromkeys(row[name] for row in rows))
    base = alt.Chart(alt.Data(values=list(rows)), title=title).encode(
        y=alt.Y(f"{name}:N", sort=order, title="", axis=alt.Axis(labelLimit=300)),
        **({"color": alt.Color(f"{series}:N", title="")} if series else {}),
    )
    dots = base.mark_point(filled=True, size=50).encode(
        x=alt.X(f"{x}:Q", scale=alt.Scale(zero=False), title=x)
    )
    chart = dots
    if "low" in rows[0]:
        chart = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title=x), x2="high:Q") + dots
    return svg(chart.properties(width=SIZE["width"], height=max(60, 16 * len(order))))


def scatter(rows: Sequence[Mapping[str, Any]], x: str, y: str, series: str, shape: str, title: str) -> str:
    """Points over two logarithmic axes, one colour a series."""
    alt = altair()
    chart = (
        alt.Chart(alt.Data(values=list(rows)), title=title)
        .mark_point(filled=True, size=50)
        .encode(
            x=alt.X(f"{x}:Q", scale=alt.Scale(type="log"), title=x),
            y=alt.Y(f"{y}:Q", scale=alt.Scale(type="log"), title=y),
            color=alt.Color(f"{series}:N", title=""),
            shape=alt.Shape(f"{shape}:N", title=""),
        )
        .properties(**SIZE)
    )
    return svg(chart)


def svg(
    chart: Any,
    theme: Mapping[str, Any] | None = None,
    rows: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
) -> str:
    """A chart as SVG text: with a theme, a `config` of Vega-Lite, and with the rows of data that it names."""
    import vl_convert

    # Each chart is drawn by a test; checking it against Vega-Lite's schema again takes longer than drawing it.
    spec = chart.to_dict(validate=False)
    spec |= {"config": theme} if theme else {}
    spec |= {"datasets": rows} if rows else {}
    # Line and paragraph separators in names would end the strings that the converter's JavaScript reads.
    drawn: str = vl_convert.vegalite_to_svg(json.dumps(spec, ensure_ascii=True))
    return drawn


def titled(drawn: str) -> str:
    """The same drawing with its descriptions as titles, which a browser shows to who points there, scripts or not."""
    ElementTree.register_namespace("", SVG)
    root = ElementTree.fromstring(drawn)
    for element in root.iter():
        label = element.attrib.pop("aria-label", None)
        for name in ("role", "aria-roledescription", "aria-hidden"):
            element.attrib.pop(name, None)
        if label and element.tag in (f"{{{SVG}}}path", f"{{{SVG}}}text"):
            title = ElementTree.Element(f"{{{SVG}}}title")
            title.text = label
            element.insert(0, title)
            # The title of a text stands in front of what the text says.
            title.tail, element.text = element.text, None
    return ElementTree.tostring(root, encoding="unicode")


@contextmanager
def unchecked() -> Iterator[None]:
    """Charts made inside are not checked against Vega-Lite's schema piece by piece, which takes most of their time."""
    from altair.utils.schemapi import debug_mode

    with debug_mode(False):
        yield


def altair() -> Any:
    """Altair, or an error that says how to install it."""
    try:
        import altair as loaded
        import vl_convert  # noqa: F401
    except ImportError as error:
        raise EngineUnavailableError(
            f"Charts cannot be drawn: {error}. Install them with `pip install 'consilience[report]'`."
        ) from error
    return loaded
