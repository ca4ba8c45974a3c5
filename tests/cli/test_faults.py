"""Real processes that are killed, or meet a fault: a few of what `make chaos` tries."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.chaos import script

faults, kills = script("faults"), script("kills")
TRIED = (
    "full disk",
    "limit on the size of files",
    "read-only folder",
    "vanishing input",
    "unreadable input",
    "1,000 MB of memory",
    "no room to draw",
)


@pytest.mark.parametrize("fault", TRIED)
def test_a_fault_is_put_into_words_and_costs_nothing(fault: str, tmp_path: Path) -> None:
    try:
        outcome = faults.meet(fault, tmp_path)
    except faults.CannotBeTried as why:
        pytest.skip(str(why))
    assert outcome.wrong == [], outcome.said
    assert outcome.clear, outcome.said


@pytest.mark.parametrize("when", kills.WHEN[1:])
def test_a_killed_fit_leaves_no_part_of_a_result_and_resumes_to_the_same_bits(
    when: str, tmp_path: Path
) -> None:
    tally = kills.kill_often(tmp_path, 1, when, random.Random(7), seconds=1.0)
    assert tally.failures == []
    assert (tally.tried, tally.survived) == (1, 1)
    assert tally.same_bits == tally.finished >= 1


def test_a_part_of_a_result_would_be_noticed(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "manifest.json").write_text("{}")
    assert "a part of a result" in kills.look(tmp_path / "out", [])[0]
