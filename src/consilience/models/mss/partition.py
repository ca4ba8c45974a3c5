"""Partition inference: every start's story, the best moved on, from samples of the objects to all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from threading import Event

import numpy as np

from consilience.models.base import Progress
from consilience.models.mss.found import Found
from consilience.models.mss.samples import samples
from consilience.models.mss.search import Path, Search, Story, as_partition
from consilience.models.mss.starts import MOST_SOURCES, circle_partitions
from consilience.results.checkpoint import Checkpoint

DOUBT = 25.0
"""Nats within which stories are close in any case: what the bound leaves out differs from story to story."""
CLOSE = 0.005
"""And otherwise within this share of the bound."""
HOPELESS = 2 * CLOSE
"""A story this share of the bound behind on more objects than it grew on will not win, and is swept no further."""
ROUGH = 10.0
"""How many times the tolerance is enough on a sample, if sources are moved on a larger one after it: which objects were
drawn moves the bound by far more."""
MOVES = 2**31
"""Where the larger moves' randomness begins: apart from that of any start, however many there are."""


def best_partition(
    whole: Search, n_starts: int, seed: int, progress: Progress | None, checkpoint: Checkpoint
) -> Found:
    """Of a large table some objects tell where to look for groups, more of them who belongs where, and all of them
    what follows."""
    few, many = samples(whole.table, seed)
    rough = 1.0 if many is few else ROUGH
    search = replace(whole, table=few, tolerance=rough * whole.tolerance)
    stop = Event()

    def path_of(stage: str, number: int = 0) -> Path:
        hears = partial(progress, stage) if progress else None
        return Path(hears, stop, checkpoint=checkpoint, place=[stage, number, 0])

    def grow(j: int, again: str = "") -> tuple[Story, Path]:
        path = path_of(f"start {j + 1}/{n_starts}{again}")
        return replace(search, path=path).start(j, np.random.default_rng([seed, j])), path

    def carry(stage: str, search: Search) -> list[tuple[Story, Path]]:
        """Every story on more objects, with the sweeps that it had, the best first. Those that may yet win are
        swept a few times, in which their groups learn from all of these objects."""
        carried = []
        for i, (story, path) in enumerate(grown):
            longer = path_of(stage, i)
            longer.swept = path.swept + len(path.records)
            carried.append((replace(search, path=longer).carried(story), longer))
        highest = max(story.bound for story, _ in carried)
        within = highest - max(DOUBT, HOPELESS * abs(highest))
        return _best_first(
            [
                (replace(search, path=path).converge(story, sweeps=4), path)
                if story.bound >= within
                else (story, path)
                for story, path in carried
            ]
        )

    # Where nobody can be moved, other starts would stay where they begin.
    n_starts = n_starts if few.uncrowded else 1
    if few.n_sources > MOST_SOURCES and n_starts > 1:
        # What is put together at random has nothing in common here; who belongs together shows on more objects.
        agreeing = circle_partitions(many.here, many.order, np.random.default_rng([seed, 1]))
        search, n_starts = replace(search, agreeing=agreeing), 2 if agreeing else 1
    grown = _best_first(few.runner.map(grow, range(n_starts), stop))
    told: Sequence[Story] = ()
    if few.uncrowded and (kappa := search.doubted(grown[0][0])):
        told = [story for story, _ in grown]
        search, whole = replace(search, concentration=kappa), replace(whole, concentration=kappa)
        grown = _best_first(few.runner.map(partial(grow, again=" anew"), range(n_starts), stop))
    best, path = grown[0]
    moving = path_of("larger moves")
    best = replace(search, path=moving).move(best, np.random.default_rng([seed, MOVES]))
    path.records.extend(moving.records)
    grown[0] = best, path
    rivals = [
        {"behind": told[0].bound - story.bound, "agreement": search.agreement(story, best)} for story in told
    ]
    if many is not few:
        search = replace(whole, table=many)
        grown = carry("more objects", search)
        best, path = grown[0]
        settling, search = np.random.default_rng([seed, MOVES + 1]), replace(search, path=path)
        grown[0] = search.settle(search.gather(best, settling), settling), path
    if many is not whole.table:
        grown = carry("all objects", whole)
        best, path = grown[0]
        grown[0] = replace(whole, path=path).converge(best), path
    best, path = grown[0]
    return Found(
        table=whole.table,
        locals=[story.locals for story, _ in grown],
        starts=[{"bound": story.bound, "sweeps": p.swept + len(p.records)} for story, p in grown],
        groups=as_partition(best),
        prior=best.beliefs,
        trace=path.rising(best.bound),
        converged=best.converged,
        rivals=rivals,
    )


def _best_first(grown: Sequence[tuple[Story, Path]]) -> list[tuple[Story, Path]]:
    return sorted(grown, key=lambda each: -each[0].bound)
