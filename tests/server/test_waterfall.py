"""The bars of the waterfall add up to the log odds, and lie where they should."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from consilience.server.shapes import CandidateShape, MemberShape, ObjectShape, VoiceShape
from consilience.server.waterfall import STEPS, Waterfall, waterfall


def made(
    nats: list[list[float]], before: list[float], listed: int | None = None, **more: object
) -> ObjectShape:
    """An object whose probabilities are what these nats say; of its voices so many are listed."""
    voices = [
        VoiceShape(i + 1, 2 - i % 2, 1, 0.5, each, None, [MemberShape(i, f"s{i}", 0, None)])
        for i, each in enumerate(nats[:listed])
    ]
    weight = np.exp(np.sum([before, *(each for each in nats if each)], axis=0))
    facts = {
        "number": 0, "object": "o", "sentence": "", "without": "", "known": False, "answer": None, "entry": None,
        "n_claims": len(nats), "n_voices": len(nats), "voices": voices, "before": before,
        "candidates": [CandidateShape(f"v{z}", p, 1) for z, p in enumerate((weight / weight.sum()).tolist())],
        "others": np.sum([[0.0] * len(before), *nats[len(voices) :]], axis=0).tolist(),
    }  # fmt: skip
    return ObjectShape(**{**facts, **more})  # type: ignore[arg-type]


def check(chart: Waterfall) -> None:
    """From even odds every bar begins where the one before ends; the last ends where the sum does."""
    assert sum(step.nats for step in chart.steps) == pytest.approx(chart.total.nats, abs=1e-9)
    scale, at = chart.total.width / abs(chart.total.nats), chart.zero
    for step in chart.steps:
        assert step.x == pytest.approx(min(at, at + step.nats * scale), abs=0.1)
        assert 0 <= step.x <= step.x + step.width <= 100.5
        at += step.nats * scale
    assert at == pytest.approx(chart.zero + chart.total.nats * scale, abs=0.1)


@pytest.mark.parametrize("against", [1, 2])
def test_steps_lead_from_even_odds_to_the_log_odds(against: int) -> None:
    nats = [[1.0, -0.5, 0.0], [-0.25, 0.0, 0.5], [0.01, 0.0, 0.0]]
    shape = made(nats, [0.5, 0.0, 0.25])
    chart = waterfall(shape, against)
    assert chart is not None
    check(chart)
    odds = shape.candidates[0].probability / shape.candidates[against].probability
    assert chart.total.nats == pytest.approx(log(odds), abs=1e-9)
    assert [step.label for step in chart.steps] == ["before any claim", "group 1", "s1", "group 3"]
    assert chart.before
    assert not chart.left


def test_many_voices_share_the_last_bar_those_that_are_not_listed_too() -> None:
    shape = made([[1.0 + 0.01 * i, 0.0] for i in range(30)], [0.0, 0.0], listed=25)
    chart = waterfall(shape, 1)
    assert chart is not None
    check(chart)
    assert len(chart.steps) == STEPS + 1
    assert chart.steps[-1].label == "18 weaker voices"
    assert chart.total.nats == pytest.approx(sum(1.0 + 0.01 * i for i in range(30)))


def test_what_the_paper_s_inference_leaves_open_has_a_bar_that_says_so() -> None:
    halves = [CandidateShape("a", 0.5, 1), CandidateShape("b", 0.5, 1)]
    chart = waterfall(made([[2.0, 0.0], [1.0, 0.0]], [0.0, 0.0], candidates=halves), 1)
    assert chart is not None
    assert chart.left
    assert (chart.steps[-1].label, chart.steps[-1].nats) == ("not taken apart by this inference", -3.0)
    assert chart.total.nats == 0.0


def test_nothing_is_drawn_where_nothing_is_weighed() -> None:
    assert waterfall(made([[], []], [0.0, 0.0]), 1) is None
    assert waterfall(made([[1.0]], [0.0]), 1) is None
    assert waterfall(made([[1.0, 0.0]], [0.0, 0.0], known=True), 1) is None
