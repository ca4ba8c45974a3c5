"""Sentences of the explorer that the explanation itself does not have."""

from __future__ import annotations

from typing import Any

from consilience.results.explain import Explanation
from consilience.results.wording import plain

NAMED = 5
"""Groups that a sentence names."""


def without(why: Explanation) -> str:
    """What would be decided without a group: the groups that the decision hinges on, or that there is none."""
    asked = [voice for voice in why.voices if voice.otherwise is not None]
    if not asked:
        return ""
    turning = [voice for voice in asked if voice.otherwise != why.decision]
    if not turning:
        each = "any one of the groups" if len(asked) > 1 else f"group {asked[0].group}"
        return f"Without {each} the answer would be the same, {plain(why.decision)}."
    by_value: dict[Any, list[str]] = {}
    for voice in turning[:NAMED]:
        by_value.setdefault(voice.otherwise, []).append(f"group {voice.group}")
    parts = [f"without {_either(groups)} it would be {plain(value)}" for value, groups in by_value.items()]
    more = f", and {len(turning) - NAMED} more groups would change it" if len(turning) > NAMED else ""
    text = ", ".join(parts) + more
    return text[0].upper() + text[1:] + "."


def _either(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
