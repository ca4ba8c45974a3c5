"""The waterfall of an object: from even odds, step by step, what each group adds to one value against another.

The bars add up: the last one ends at the log odds of the two values. There is no order that the heights would depend on
(`kernels/numpy_partition.py::evidence` has why); the largest come first because they are read first.

Bars are shapes of SVG with attributes of their own: the content security policy allows no styles in a page, and a
page is made in a few milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

from consilience.claims.words import quantity
from consilience.server.shapes import ObjectShape, VoiceShape

STEPS = 12
"""Voices that have a bar of their own; the others share one."""
NOTABLE = 0.05
"""Nats below which nothing gets a bar of its own."""
SMALLEST = 1e-290
"""A probability that still has all its digits."""
EXACT = 1e-6
"""Nats that rounding may leave between the sum of the bars and the log odds."""


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
    """All bars, the sum, and where the zero line is; nats above zero speak for the decision.

    before : whether the first bar is what was so before any claim
    left   : whether the last one is what the voices leave open
    """

    steps: list[Step]
    total: Step
    zero: float
    before: bool
    left: bool


def waterfall(shape: ObjectShape, against: int) -> Waterfall | None:
    """What speaks for the decision against another candidate; None where no voice is weighed or there is no other."""
    weighed = [(v, voice) for v, voice in enumerate(shape.voices) if voice.nats]

    def odds(nats: list[float]) -> float:
        return nats[0] - nats[against] if nats else 0.0

    if not weighed or not 0 < against < len(shape.candidates) or shape.known:
        return None
    adds = [(_label(voice), v, odds(voice.nats)) for v, voice in weighed]
    adds.sort(key=lambda each: -abs(each[2]))
    n = min(STEPS, max(1, sum(abs(nats) > NOTABLE for *_, nats in adds)))
    first, rest = adds[:n], adds[n:]
    parts: list[tuple[str, int | None, float]] = [*first]
    before, left = abs(odds(shape.before)) > EXACT, False
    if before:
        parts.insert(0, ("before any claim", None, odds(shape.before)))
    n_rest = len(rest) + shape.n_voices - len(shape.voices)
    if n_rest:
        label = rest[0][0] if n_rest == len(rest) == 1 else quantity(n_rest, "weaker voice")
        parts.append((label, None, sum(nats for *_, nats in rest) + odds(shape.others)))
    total = sum(nats for *_, nats in parts)
    one, other = (shape.candidates[z].probability for z in (0, against))
    if min(one, other) > SMALLEST and abs(log(one / other) - total) > EXACT:
        # The paper's mean-field does not take objects apart: what the groups have to say is not all of its odds.
        parts.append(("not taken apart by this inference", None, log(one / other) - total))
        total, left = log(one / other), True

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
    return Waterfall(steps, bar("all together", None, 0.0, total), round(-low * scale, 2), before, left)


def _label(voice: VoiceShape) -> str:
    if voice.n_sources > 1:
        return f"group {voice.group}"
    return voice.members[0].source if voice.members else "other groups"
