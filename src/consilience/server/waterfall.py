"""The waterfall of an object: from even odds, step by step, what each group adds to one value against another.

Bars are shapes of SVG with attributes of their own: the content security policy allows no styles in a page, and a
page is made in a few milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

from consilience.server.shapes import ObjectShape, VoiceShape

STEPS = 12
"""Voices that have a bar of their own; the others share one."""
NOTABLE = 0.05
"""Nats below which nothing gets a bar of its own."""
SURE = 1e-12
"""Probabilities below this are shown as this."""


@dataclass(frozen=True)
class Step:
    """A bar from `start` to `start + nats`; x and width are its place on a scale of 0 to 100.

    voice : the place of its voice among the object's, None for what has none
    """

    label: str
    voice: int | None
    nats: float
    x: float
    width: float


@dataclass(frozen=True)
class Waterfall:
    """All bars, the sum, and where the zero line is; nats above zero speak for the decision."""

    steps: list[Step]
    total: Step
    zero: float


def waterfall(shape: ObjectShape, against: int) -> Waterfall | None:
    """What speaks for the decision against another candidate; None where no voice is weighed or there is no other."""
    weighed = [(v, voice) for v, voice in enumerate(shape.voices) if voice.nats]
    if not weighed or not 0 < against < len(shape.candidates) or shape.known:
        return None
    adds = [(_label(voice), v, voice.nats[0] - voice.nats[against]) for v, voice in weighed]
    adds.sort(key=lambda each: -abs(each[2]))
    n = min(STEPS, max(1, sum(abs(nats) > NOTABLE for *_, nats in adds)))
    first, rest = adds[:n], adds[n:]
    parts: list[tuple[str, int | None, float]] = [*first]
    if rest:
        label = rest[0][0] if len(rest) == 1 else f"{len(rest)} weaker voices"
        parts.append((label, None, sum(nats for *_, nats in rest)))
    odds = [max(shape.candidates[z].probability, SURE) for z in (0, against)]
    total = log(odds[0] / odds[1])
    left = total - sum(nats for *_, nats in parts)
    if abs(left) > NOTABLE and min(odds) > SURE:
        # Under partition inference a voice's nats are a mean over the kinds of object that this one may be, and means
        # do not add up: what is left is that, with what is common beforehand and whoever is not listed.
        parts.append(("how they combine, and what is common", None, left))
    elif min(odds) <= SURE:
        total = sum(nats for *_, nats in parts)

    ends = [0.0]
    for *_, nats in parts:
        ends.append(ends[-1] + nats)
    low, high = min(*ends, total, 0.0), max(*ends, total, 0.0)
    scale = 100.0 / max(high - low, 1e-9)

    def bar(label: str, voice: int | None, start: float, nats: float) -> Step:
        left_end = min(start, start + nats)
        return Step(
            label, voice, nats, round((left_end - low) * scale, 2), round(max(abs(nats) * scale, 0.4), 2)
        )

    steps = [bar(label, v, start, nats) for (label, v, nats), start in zip(parts, ends[:-1], strict=True)]
    return Waterfall(steps, bar("all together", None, 0.0, total), round(-low * scale, 2))


def _label(voice: VoiceShape) -> str:
    if voice.group is not None:
        return f"group {voice.group}"
    return voice.members[0].source if voice.members else "other groups"
