"""The bars of the waterfall add up, and lie where they should."""

from __future__ import annotations

from math import log

import pytest

from consilience.server.shapes import CandidateShape, MemberShape, ObjectShape, VoiceShape
from consilience.server.waterfall import NOTABLE, STEPS, waterfall


def made(nats: list[list[float]], probability: list[float], **more: object) -> ObjectShape:
    voices = [
        VoiceShape(i + 1, 1, 0.5, each, None, [MemberShape(i, f"s{i}", 0, None)])
        for i, each in enumerate(nats)
    ]
    candidates = [CandidateShape(f"v{z}", p, 1) for z, p in enumerate(probability)]
    facts = {"number": 0, "object": "o", "sentence": "", "without": "", "known": False, "answer": None}
    return ObjectShape(
        **{**facts, **more},
        n_claims=len(nats),
        n_voices=len(nats),
        candidates=candidates,
        voices=voices,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("against", [1, 2])
def test_steps_lead_from_even_odds_to_the_log_odds(against: int) -> None:
    nats = [[1.0, -0.5, 0.0], [-0.25, 0.0, 0.5], [0.01, 0.0, 0.0]]
    shape = made(nats, [0.7, 0.2, 0.1])
    chart = waterfall(shape, against)
    assert chart is not None
    assert sum(step.nats for step in chart.steps) == pytest.approx(chart.total.nats, abs=NOTABLE)
    assert chart.total.nats == pytest.approx(log(0.7 / shape.candidates[against].probability))
    scale = chart.total.width / abs(chart.total.nats)
    at = chart.zero
    for step in chart.steps:
        assert step.x == pytest.approx(min(at, at + step.nats * scale), abs=0.1)
        assert 0 <= step.x <= step.x + step.width <= 100.5
        at += step.nats * scale
    assert [step.label for step in chart.steps[:2]] == ["group 1", "group 2"]


def test_many_voices_share_the_last_bar() -> None:
    shape = made([[1.0 + 0.01 * i, 0.0] for i in range(30)], [1 - 1e-15, 1e-15])
    chart = waterfall(shape, 1)
    assert chart is not None
    assert len(chart.steps) == STEPS + 1
    assert chart.steps[-1].label == "18 weaker voices"
    assert chart.total.nats == pytest.approx(sum(1.0 + 0.01 * i for i in range(30)))


def test_nothing_is_drawn_where_nothing_is_weighed() -> None:
    assert waterfall(made([[], []], [0.5, 0.5]), 1) is None
    assert waterfall(made([[1.0]], [1.0]), 1) is None
    assert waterfall(made([[1.0, 0.0]], [1.0, 0.0], known=True), 1) is None
