"""Values and counts as messages have them. This file needs nothing: what leads to an engine may use it."""

from __future__ import annotations

from typing import Any

SHOWN = 3
"""How many examples a problem shows."""


def show(value: Any) -> str:
    """A value as messages show it: quoted, and cut when it is long."""
    if isinstance(value, str | bytes) and len(value) > 60:
        return f"{value[:60]!r}… ({len(value):,} long)"
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:60]}…"


def quantity(n: float, one: str, many: str | None = None) -> str:
    """A count with its noun, and its verb where there is one: "1 row", "2,000 rows", "1 row has", "2.5 rows have"."""
    count = f"{n:.3g}" if isinstance(n, float) else f"{n:,}"
    return f"{count} {one if count == '1' else many or one + 's'}"
