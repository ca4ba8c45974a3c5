"""Sentences of the explorer: plurals with sense, and no more said than was tried."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from consilience.models.vote import Vote
from consilience.results.explain import Candidate, Explanation, Member, Voice
from consilience.server.explorer import Explorer
from consilience.server.shapes import About
from consilience.server.words import overview, without


def explained(otherwise: list[str | None]) -> Explanation:
    """Voices of two groups and of sources on their own, and what would be decided without each."""
    voices = tuple(
        Voice(i + 1, (Member(f"s{i}", "a", 0.9),), 0.9, (1.0, 0.0), each, n_sources=3 if i < 2 else 1)
        for i, each in enumerate(otherwise)
    )
    return Explanation("o", "a", (Candidate("a", 0.9, 3), Candidate("b", 0.1, 1)), voices)


@pytest.mark.parametrize(
    ("otherwise", "said"),
    [
        ([None], ""),
        (["a", "a"], "Without any one of the voices the answer would be the same, a."),
        (
            ["a"] * 40 + [None] * 3,
            "Without any one of the 40 strongest voices the answer would be the same, a; the 3 weaker ones were not "
            "tried.",
        ),
        (
            ["b"] + ["a"] * 39 + [None],
            "Without group 1 it would be b (tried for the 40 strongest of 41 voices).",
        ),
        (
            ["b"] * 6,
            "Without group 1, group 2, s2, s3 or s4 it would be b, and 1 more voice would change it.",
        ),
    ],
)
def test_what_would_be_without_a_voice(otherwise: list[str | None], said: str) -> None:
    assert without(explained(otherwise)) == said


def test_the_overview_counts_with_sense(tmp_path: Path) -> None:
    about = Explorer(Vote().fit([("s", "o", "v")]).save(tmp_path / "r")).about()

    def said(**facts: int) -> str:
        changed: About = replace(about, **facts)  # type: ignore[arg-type]
        return overview(changed).partition(". ")[2]

    assert overview(about) == (
        "1 source makes 1 claim about 1 object. The model vote decides it as the majority of claims does."
    )
    assert said(n_objects=2) == "The model vote decides both as the majority of claims does."
    assert said(n_objects=5) == "The model vote decides all 5 as the majority of claims does."
    assert said(n_objects=5, n_differs=2, n_known=1) == (
        "The model vote decides 2 of 4 otherwise than the majority of claims."
    )
    assert said(n_known=1) == "1 truth was given, and none was left to find."
