"""Partition inference: every start's story, the best and its rivals moved on, from samples of the objects to all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from threading import Event

import numpy as np

from consilience.models.base import Progress
from consilience.models.mss.circles import circles, is_minority
from consilience.models.mss.found import Found
from consilience.models.mss.samples import samples
from consilience.models.mss.search import DEAREST, FEW_SWEEPS, Path, Search, Story, as_partition
from consilience.models.mss.starts import MOST_SOURCES
from consilience.results.checkpoint import Checkpoint

DOUBT = 25.0
"""Nats within which stories are close in any case: what the bound leaves out differs from story to story."""
CLOSE = 0.005
"""And otherwise within this share of the bound."""
DIFFERENT = 0.02
"""Two stories are different beyond this share of the objects."""
HOPELESS = 2 * CLOSE
"""A story this share of the bound behind is out of the question. It is swept no further on more objects than it grew
on; and where it is the one without lures, there are lures."""
ROUGH = 10.0
"""How many times the tolerance is enough on a sample, if sources are moved on a larger one after it: which objects were
drawn moves the bound by far more."""
Told = list[tuple[Story, Path]]
"""Stories, each with the path that it went."""

MOVES = 2**31
"""Where the larger moves' randomness begins: apart from that of any start, however many there are."""


@dataclass(frozen=True, eq=False)
class Rival:
    """A story that was close to the highest bound of its time, and the search that told it."""

    search: Search
    story: Story
    highest: float

    def told(self, best: Story) -> dict[str, float]:
        """How far it is behind the answer, or was behind the best (not at all, where it is ahead), and on what share of
        objects it decides alike.

        The answer is looked at with this story's κ: that of doubted groups would count as improbable here. Beside an
        answer with lures it is given some too.
        """
        beliefs = replace(best.beliefs, concentration=self.story.beliefs.concentration)
        answer, story, highest = self.search.carried(replace(best, beliefs=beliefs)), self.story, self.highest
        if best.beliefs.lured.any():
            story, highest = self.search.tempt(story, -np.inf), -np.inf
        return {
            "behind": max(highest, answer.bound, story.bound) - story.bound,
            "agreement": self.search.agreement(story, answer),
        }


def best_partition(
    whole: Search, n_starts: int, seed: int, progress: Progress | None, checkpoint: Checkpoint
) -> Found:
    """Of a large table some objects tell where to look for groups, more of them who belongs where, and all of them
    what follows. Where strangers turn out to share mistakes, groups are looked for once more, and must show more."""
    few, many = samples(whole.table, seed)
    rough = whole.tolerance * (1.0 if many is few else ROUGH)
    stop, rivals = Event(), list[Rival]()
    # Where nobody can be moved, other starts would stay where they begin.
    n_starts = n_starts if few.uncrowded else 1
    if few.n_sources > MOST_SOURCES and n_starts > 1:
        # What is put together at random has nothing in common here; who belongs together shows on more objects.
        mistakes, rng = is_minority(many.here), np.random.default_rng([seed, 1])
        whole = replace(whole, circles=circles(many.here, mistakes, many.order, rng))
        n_starts = 2 if whole.circles else 1

    def path_of(stage: str, number: int = 0) -> Path:
        hears = partial(progress, stage) if progress else None
        return Path(hears, stop, checkpoint=checkpoint, place=[stage, number, 0])

    def carry(grown: Told, stage: str, search: Search) -> Told:
        """Every story on more objects, with the sweeps that it had, the best first. Those that may yet win are
        swept a few times, in which their groups learn from all of these objects."""
        carried = []
        for i, (story, path) in enumerate(grown):
            longer = path_of(stage, i)
            longer.swept = path.swept + len(path.records)
            carried.append((replace(search, path=longer).carried(story), longer))
        highest = max(story.bound for story, _ in carried)
        within = highest - decisive(highest)
        return _best_first(
            [
                (replace(search, path=path).converge(story, sweeps=FEW_SWEEPS), path)
                if story.bound >= within
                else (story, path)
                for story, path in carried
            ]
        )

    def starts(concentration: float | None, again: str = "") -> Told:
        """The story that grows from every start."""
        search = replace(whole, table=few, tolerance=rough, concentration=concentration)

        def grow(j: int) -> tuple[Story, Path]:
            path = path_of(f"start {j + 1}/{n_starts}{again}")
            return replace(search, path=path).start(j, np.random.default_rng([seed, j])), path

        return _best_first(few.runner.map(grow, range(n_starts), stop))

    def further(grown: Told, concentration: float | None, again: str = "") -> Told:
        """The best story moved further, with those that are close but different, and of a large table the best
        settled on the larger sample."""
        search = replace(whole, table=few, tolerance=rough, concentration=concentration)
        best = grown[0][0]
        close = [0]
        for i, (story, _) in enumerate(grown[1:], 1):
            if is_close(story.bound, best.bound) and 1 - search.agreement(story, best) > DIFFERENT:
                close.append(i)
                rivals.append(Rival(search, story, best.bound))

        def move(i: int) -> tuple[Story, Path]:
            (story, path), moving = grown[i], path_of(f"larger moves{again}", i)
            story = replace(search, path=moving).move(story, np.random.default_rng([seed, MOVES]))
            path.records.extend(moving.records)
            return story, path

        moved = few.runner.map(move, close, stop)
        grown = _best_first(moved + [each for i, each in enumerate(grown) if i not in close])
        if many is not few:
            search = replace(whole, table=many, concentration=concentration)
            grown = carry(grown, f"more objects{again}", search)
            best, path = grown[0]
            settling, search = np.random.default_rng([seed, MOVES + 1]), replace(search, path=path)
            grown[0] = search.settle(search.gather(best, settling), settling), path
        return grown

    def tempted(grown: Told) -> Told:
        """The best story, and those that are close, with lures where all without them are then out of the question: of
        a large table where that shows on few objects."""
        if many is not few and undoubting.may_be_lured(grown[0][0]):
            search = replace(whole, table=few, path=path_of("lures"))
            on_few = search.converge(search.carried(grown[0][0]), sweeps=FEW_SWEEPS)
            if search.tempt(on_few, on_few.bound + decisive(on_few.bound)) is on_few:
                return grown
        search, highest = replace(whole, table=many), grown[0][0].bound
        close = [i for i, (story, _) in enumerate(grown) if is_close(story.bound, highest)]

        def tempt(i: int) -> tuple[Story, Path]:
            (story, path), moving = grown[i], path_of("lures", i + 1)
            story = replace(search, path=moving).tempt(story, highest + decisive(highest))
            path.records.extend(moving.records)
            return story, path

        moved = many.runner.map(tempt, close, stop)
        return _best_first(moved + [each for i, each in enumerate(grown) if i not in close])

    def grown_on_samples(concentration: float | None, again: str = "") -> Told:
        """Of a large table stories that were moved further: copiers who are not together yet are no strangers."""
        grown = starts(concentration, again)
        return grown if many is few else further(grown, concentration, again)

    grown, again = grown_on_samples(whole.concentration), ""
    undoubting = replace(whole, table=many)
    effect, kappa = undoubting.design_effect(grown[0][0]), grown[0][0].beliefs.concentration
    if effect > 1:
        whole = replace(whole, concentration=float(np.exp(min(effect * np.log(kappa), DEAREST))))
        again = " anew"
        before, grown = grown, grown_on_samples(whole.concentration, again)
        best = undoubting.converge(undoubting.carried(grown[0][0]), sweeps=FEW_SWEEPS)
        highest = max(best.bound, before[0][0].bound)
        rivals.extend(
            Rival(undoubting, story, highest) for story, _ in before if is_close(story.bound, highest)
        )
    if many is few:
        grown = further(grown, whole.concentration, again)
    plain = grown[0][0]
    grown = tempted(grown)
    lured = 1 - undoubting.agreement(plain, grown[0][0]) if grown[0][0].beliefs.lured.any() else 0.0
    if many is not whole.table:
        grown = carry(grown, "all objects", whole)
        best, path = grown[0]
        grown[0] = replace(whole, path=path).converge(best), path
    best, path = grown[0]
    return Found(
        table=whole.table,
        locals=[story.locals for story, _ in grown],
        starts=[{"bound": story.bound, "sweeps": p.swept + len(p.records)} for story, p in grown],
        groups=as_partition(best, kappa if effect > 1 else best.beliefs.concentration),
        prior=best.beliefs,
        trace=path.rising(best.bound),
        converged=best.converged,
        design_effect=effect,
        lured=lured,
        rivals=sorted((rival.told(best) for rival in rivals), key=lambda told: told["behind"]),
    )


def is_close(bound: float, highest: float) -> bool:
    """Whether a story explains the claims nearly as well as the best."""
    return highest - bound < max(DOUBT, CLOSE * abs(highest))


def decisive(bound: float) -> float:
    """How far above a story another must be for it to be out of the question."""
    return max(DOUBT, HOPELESS * abs(bound))


def _best_first(grown: Told) -> Told:
    return sorted(grown, key=lambda each: -each[0].bound)
