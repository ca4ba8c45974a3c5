"""Sentences of the explorer that the explanation itself does not have."""

from __future__ import annotations

from typing import Any

from consilience.claims.words import quantity
from consilience.results.explain import Explanation
from consilience.results.wording import plain, title
from consilience.server.shapes import About

NAMED = 5
"""Voices that a sentence names."""


def overview(about: About) -> str:
    """The result in a sentence or two."""
    table = (
        f"{quantity(about.n_sources, 'source makes', 'sources make')} {quantity(about.n_claims, 'claim')} about "
        f"{quantity(about.n_objects, 'object')}."
    )
    found = about.n_objects - about.n_known
    if not found:
        return (
            f"{table} {quantity(about.n_known, 'truth was', 'truths were')} given, and none was left to find."
        )
    if not about.n_differs:
        which = {1: "it", 2: "both"}.get(found, f"all {found:,}")
        decided = f"{which} as the majority of claims does"
    else:
        which = "it" if found == 1 else f"{about.n_differs:,} of {found:,}"
        decided = f"{which} otherwise than the majority of claims"
    return f"{table} The model {about.model} decides {decided}."


def without(why: Explanation) -> str:
    """What would be decided without a voice: the voices that the decision hinges on, or that there is none; and of
    which that was tried."""
    weighed = [voice for voice in why.voices if voice.group is not None]
    asked = [voice for voice in weighed if voice.otherwise is not None]
    if not asked:
        return ""
    turning = [voice for voice in asked if voice.otherwise != why.decision]
    tried = (
        ""
        if len(asked) == len(weighed)
        else f" (tried for the {len(asked):,} strongest of {len(weighed):,} voices)"
    )
    if not turning:
        each = "any one of the voices" if len(asked) > 1 else title(asked[0])
        if tried:
            each = f"any one of the {len(asked):,} strongest voices"
            tried = (
                f"; the {quantity(len(weighed) - len(asked), 'weaker one was', 'weaker ones were')} not tried"
            )
        return f"Without {each} the answer would be the same, {plain(why.decision)}{tried}."
    by_value: dict[Any, list[str]] = {}
    for voice in turning[:NAMED]:
        by_value.setdefault(voice.otherwise, []).append(title(voice))
    parts = [f"without {_either(names)} it would be {plain(value)}" for value, names in by_value.items()]
    more = (
        f", and {quantity(len(turning) - NAMED, 'more voice')} would change it"
        if len(turning) > NAMED
        else ""
    )
    text = ", ".join(parts) + more + tried
    return text[0].upper() + text[1:] + "."


def _either(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
