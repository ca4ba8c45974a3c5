"""Charts as SVG text: Vega-Lite through Altair, drawn by vl-convert. The only file that imports either."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from consilience.errors import EngineUnavailableError

SIZE = {"width": 520, "height": 280}


def require() -> None:
    """An error at once, and not after long work, where charts cannot be drawn."""
    _altair()


def curve(rows: Sequence[Mapping[str, Any]], x: str, y: str, series: str, title: str) -> str:
    """Lines with points over an axis of ordered names, one colour a series."""
    alt = _altair()
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
    return _svg(chart)


def bars(rows: Sequence[Mapping[str, Any]], x: str, y: str, series: str, title: str) -> str:
    """Groups of bars side by side, one colour a series."""
    alt = _altair()
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
    return _svg(chart)


def _svg(chart: Any) -> str:
    import vl_convert

    svg: str = vl_convert.vegalite_to_svg(chart.to_dict())
    return svg


def _altair() -> Any:
    try:
        import altair
        import vl_convert  # noqa: F401
    except ImportError as error:
        raise EngineUnavailableError(
            f"Charts cannot be drawn: {error}. Install them with `pip install 'consilience[report]'`."
        ) from error
    return altair
