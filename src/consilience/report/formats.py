"""How numbers and other people's text are written, on every page and in the terminal."""

from __future__ import annotations

from typing import Any

from consilience.claims.words import quantity
from consilience.results.wording import plain

WIDTH = 120
"""Characters of a value that a page shows; the middle of longer ones is left out."""


def shown(value: Any, width: int = WIDTH) -> str:
    """A value of the data as one line of text: what cannot be seen made visible, long text cut; "" for none."""
    return "" if value is None else plain(value, width)


def share(x: float | None, digits: int = 1) -> str:
    """A part of one in per cent; "" for none."""
    return "" if x is None else f"{x:.{digits}%}"


def interval(low: float | None, high: float | None) -> str:
    """From one share to another, as far as whole per cents tell them apart; "" for none."""
    if low is None or high is None:
        return ""
    first, last = f"{low:.0%}", f"{high:.0%}"
    return f"{first} to {last}" if first != last else f"about {first}"


def number(x: float | None, digits: int = 0) -> str:
    """A number with commas; "" for none."""
    return "" if x is None else f"{x:,.{digits}f}"


def setting(value: Any) -> str:
    """A setting or what was learned for it: numbers to four digits; "open" for what the data decides."""
    if value is None:
        return "open"
    if isinstance(value, float):
        return f"{value:.4g}"
    return ", ".join(map(setting, value)) if isinstance(value, list | tuple) else shown(value)


FILTERS = {
    "shown": shown,
    "share": share,
    "interval": interval,
    "number": number,
    "quantity": quantity,
    "setting": setting,
}
"""By their names in templates."""
