"""The sweep loop on its own, with a made-up model: one number climbs towards ten."""

from __future__ import annotations

import pytest

from consilience.errors import BoundError
from consilience.models.base import ascend


def halve_the_gap(stats, x):
    return x + 0.5 * (10 - x)


def minus_the_gap(stats, x):
    return {"gap": -abs(10 - x)}


def climb(start, *, tidy=None, global_step=halve_the_gap, bound=minus_the_gap):
    return ascend(
        start,
        local_step=lambda x: (f"locals of {x}", x),
        global_step=global_step,
        bound=bound,
        tidy=tidy,
        max_sweeps=100,
        tolerance=1e-6,
    )


def test_it_climbs_until_it_rises_no_more():
    found = climb(0.0)
    assert found.converged
    assert found.globals == pytest.approx(10, abs=1e-4)
    assert found.locals == f"locals of {found.globals}"
    assert found.bound == found.trace[-1]["gap"]


def test_a_tidy_proposal_that_lowers_the_bound_is_taken_back_for_good():
    asked = []

    def tidy(x):
        asked.append(x)
        return x - 3 if len(asked) == 3 else x + 0.1

    found = climb(0.0, tidy=tidy)
    path = [record["bound"] for record in found.trace]
    assert path == sorted(path)
    assert len(asked) == 3


def test_a_bound_that_falls_is_an_error_not_convergence():
    with pytest.raises(BoundError, match="please report"):
        climb(0.0, global_step=lambda stats, x: x - 1)
    with pytest.raises(BoundError):
        climb(0.0, bound=lambda stats, x: {"gap": float("nan")})


def test_too_few_sweeps_are_not_convergence():
    found = ascend(
        0.0,
        local_step=lambda x: (None, x),
        global_step=lambda stats, x: x + 1,
        bound=lambda stats, x: {"x": x},
        max_sweeps=5,
        tolerance=1e-6,
    )
    assert not found.converged
    assert len(found.trace) == 5
