"""Explanations in words and lines of plain text: a terminal, a log and a notebook can all show them."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from typing import TYPE_CHECKING, Any

from consilience.claims.words import quantity
from consilience.results.decide import TIED

if TYPE_CHECKING:
    from consilience.results.explain import Explanation, Voice

SHOWN = 12
"""Rows of a list that are written out; the rest is counted."""
WIDTH = 78
"""Columns that sentences are wrapped to."""
WEIGHED = 3
"""Candidates whose weights are shown side by side."""
EMPTY = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters that Unicode calls printable and that nobody sees."""
JOINED = re.compile(r"(?<=[^\x00-\x7f\s\u200c\u200d])[\u200c\u200d](?=[^\x00-\x7f\s\u200c\u200d])")
"""A joiner where writing needs one: in Persian, in Hindi, in an emoji. Between others it only hides."""


def plain(value: Any, width: int = 60) -> str:
    """A value of the data on one line of a terminal: what cannot be seen made visible, long text cut."""
    text = str(value)
    if len(text) > width:
        half = (width - 1) // 2  # values often differ only at the end
        text = text[: width - 1 - half] + "…" + text[len(text) - half :]
    joiners = {joiner.start() for joiner in JOINED.finditer(text)}
    line = "".join(
        c if i in joiners or (c.isprintable() and c not in EMPTY) else c.encode("unicode_escape").decode()
        for i, c in enumerate(text)
    )
    return line if line.strip() else "(blank)"


def sentence(why: Explanation) -> str:
    """The explanation in plain words."""
    first, n_sources = why.candidates[0], sum(c.n_claims for c in why.candidates)
    if why.known:
        of = f"of {quantity(n_sources, 'source')}"
        claim = quantity(first.n_claims, f"{of} claims", f"{of} claim")
        return f"{plain(first.value)} was given as the truth, not found. {claim} it."
    if len(why.candidates) == 1:
        claim = f"{quantity(n_sources, 'source claims', 'sources claim')} it"
        return f"{plain(first.value)} is the only value that is possible here; {claim}."
    second = why.candidates[1]
    one, other, share = plain(first.value), plain(second.value), f"{first.probability:.1%}"
    if abs(first.probability - second.probability) <= TIED:
        parts = [f"{one} and {other} are equally probable ({share} each); the seed decided."]
    else:
        parts = [f"{one} is the most probable value ({share}), before {other} ({second.probability:.1%})."]
    speakers = [voice for voice in why.voices if voice.members and voice.contributions]
    strongest = max(speakers, key=_advantage, default=None)
    if strongest and _advantage(strongest) > 0:
        parts.append(f"What speaks most for {one} against {other} is {_described(strongest)}.")
    return " ".join([*parts, *_against_majority(why)])


def page(why: Explanation) -> str:
    """The whole explanation: the sentence, the candidates, and who speaks for which of them."""
    candidates = [[plain(c.value), f"{c.probability:.1%}", f"{c.n_claims:,}"] for c in why.candidates[:SHOWN]]
    lines = [f"{plain(why.object)}: {plain(why.decision)}", "", *textwrap.wrap(sentence(why), WIDTH), ""]
    lines += _aligned(["value", "probability", "claims"], candidates)
    lines += [*_rest(len(why.candidates), "more value"), ""]

    weighed = len(why.candidates) > 1 and any(voice.contributions for voice in why.voices)
    named = [plain(c.value, 16) for c in why.candidates[:WEIGHED]] if weighed else []
    voices = []
    for voice in why.voices[:SHOWN]:
        low = min(voice.contributions, default=0.0)
        weights = [f"{nats - low:+.1f}" for nats in voice.contributions] or [""] * len(named)
        reliable = "" if voice.reliability is None else f"{voice.reliability:.0%}"
        voices.append([title(voice), reliable, *weights[: len(named)], _says(voice)])
    lines += _aligned(["who", "reliable here" if weighed else "reliability", *named, "says"], voices)
    lines += _rest(len(why.voices), "more voice")
    if weighed:
        lines += [
            "",
            "Under each value: how much that voice speaks for it, against the value it",
            "speaks for least. +0.7 makes a value twice as probable, +2.3 ten times.",
            "A group is one voice.",
        ]
    return "\n".join(lines)


def _advantage(voice: Voice) -> float:
    """What it adds to the decision beyond what it adds to the runner-up, in nats."""
    return voice.contributions[0] - voice.contributions[1]


def _against_majority(why: Explanation) -> list[str]:
    """Why a value that more sources claim did not win."""
    first, most = why.candidates[0], max(why.candidates, key=lambda c: c.n_claims)
    if most.n_claims <= first.n_claims:
        return []
    text = f"More sources claim {plain(most.value)} ({most.n_claims:,} against {first.n_claims:,})"
    largest = max(why.voices, key=lambda v: sum(m.value == most.value for m in v.members))
    together = sum(m.value == most.value for m in largest.members)
    if together < 2:
        return [f"{text}, but they weigh less together."]
    share = "all" if together == most.n_claims else f"{together:,}"
    text += f", but {share} of them are in {title(largest)}, whose claims count as one voice"
    said = [Counter(m.value for m in v.members).most_common(1)[0][0] for v in why.voices if v.members]
    n_most, n_first = said.count(most.value), said.count(first.value)
    weighed = "" if n_most < n_first else f", and weighed all together they speak for {plain(first.value)}"
    return [f"{text}: by voices it is {n_most:,} against {n_first:,}{weighed}."]


def _described(voice: Voice) -> str:
    reliable = "" if voice.reliability is None else f", {voice.reliability:.0%} likely to be reliable here"
    if len(voice.members) == 1:
        group = "on its own" if voice.n_sources == 1 else title(voice)
        return f"{plain(voice.members[0].source)} ({group}{reliable})"
    return f"{title(voice)} ({quantity(len(voice.members), 'source')}{reliable})"


def title(voice: Voice, width: int = 24) -> str:
    """What a voice is called: its group, or the source that is on its own."""
    if voice.n_sources > 1:
        return f"group {voice.group}"
    return plain(voice.members[0].source, width) if voice.members else "other groups"


def _says(voice: Voice) -> str:
    """Its values by number of members, with the names of a few; a source on its own needs no name twice."""
    if voice.n_sources == 1:
        return plain(voice.members[0].value, 30) if voice.members else "(sources that may belong to them)"
    parts = []
    for value, n in Counter(member.value for member in voice.members).most_common(3):
        names = [plain(m.source, 24) for m in voice.members if m.value == value]
        more = f" and {n - 2:,} more" if n > 2 else ""
        parts.append(f"{plain(value, 30)} ({', '.join(names[:2])}{more})")
    return "; ".join(parts)


def _rest(n: int, what: str) -> list[str]:
    return [f"  … and {quantity(n - SHOWN, what)}"] if n > SHOWN else []


def _aligned(header: list[str], rows: list[list[str]]) -> list[str]:
    """Columns side by side: text first, set to the left, numbers to the right; what is said comes last, folded."""
    table = [header, *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(header))]
    lines = []
    for row in table:
        *cells, last = (
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        start = "  " + "".join(f"{cell}  " for cell in cells)
        if header[-1] == "says":
            room = max(WIDTH - len(start), 24)
            first, *more = textwrap.wrap(row[-1], room, break_on_hyphens=False) or [""]
            lines += [(start + first).rstrip(), *(" " * len(start) + line for line in more)]
        else:
            lines.append((start + last).rstrip())
    return lines
