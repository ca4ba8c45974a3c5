"""A table whose every name and value tries to be more than text."""

from __future__ import annotations

SCRIPT = "<script>alert(1)</script>"
BREAKOUT = "\"><img src=x onerror=alert(2)>'"
LONG = "x" * 100_000
CONTROL = "a\x00b\x1b[2Jc\x07\u2028d\u2029"
RIGHT_TO_LEFT = "\u202eevil\u202c \u200fשלום"
TEMPLATE = "{{ 7 * 7 }}{% raw %}</style></svg>]]>"
EXPRESSION = "'+alert(3)+'\\u003cb\\u003e"
NAMES = (SCRIPT, BREAKOUT, LONG, CONTROL, RIGHT_TO_LEFT, TEMPLATE, EXPRESSION)


def triples() -> list[tuple[str, str, str]]:
    """Copiers who agree on something wrong, and others who contradict them, under hostile names throughout."""
    rows = []
    for i, about in enumerate(NAMES):
        rows += [(f"{name}copier", f"{about}{i}", f"wrong {NAMES[i - 1]}") for name in NAMES]
        rows += [(f"{name}good", f"{about}{i}", f"{about} right") for name in NAMES[:4]]
        rows += [(f"{name}other", f"{about}{i}", f"{i % 2} {name}") for name in NAMES[4:]]
    return [(source, f"{about}{i}", value) for i in range(3) for source, about, value in rows]
