"""The search for groups: starts, relocations and larger moves, each judged by the bound.

A *story* is a grouping of the sources with everything that follows from it. Sweeps make a story better without moving
anybody; relocations move one source at a time; a larger move merges two groups, takes one apart or makes all objects of
one kind, and lets the story grow from there. A move that does not raise the bound is taken back.

What takes long is a loop, or a piece of work, that leaves marks: a grouping and beliefs, from which one evaluation
brings the story back. So a search that was stopped goes on where it was, to the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from threading import Event
from typing import Any

import numpy as np
from scipy import sparse

from consilience.claims.encoding import Float, Int
from consilience.errors import BoundError, CheckpointError
from consilience.kernels.choose import Kernel
from consilience.kernels.lures import folded, unfolded
from consilience.kernels.numpy_partition import group_divergence, log_partition, update_groups
from consilience.kernels.state import (
    Beliefs,
    Grouping,
    GroupingStats,
    Locals,
    Partition,
    from_fixed,
    from_two_words,
)
from consilience.models.mss.beliefs import learn, log_prior, of_one_kind, start_beliefs, with_lures
from consilience.models.mss.circles import MOST_SHARING, circles, is_minority, together
from consilience.models.mss.starts import MOST_SOURCES, agreement_cuts
from consilience.models.mss.table import Table
from consilience.results.checkpoint import Checkpoint, Mark
from consilience.results.decide import decide
from consilience.results.fit import FALL
from consilience.results.temper import design_effect

RANDOM_GROUPS = 20
"""Groups of a random start."""
FAITHFUL, LOYAL = 0.99, 0.95
"""How often members are first taken to repeat their group's opinion: nearly always where every source starts alone and
must not join lightly, most times where groups are there to begin with."""
HELD = 12
"""Sweeps, at the most, before sources that start alone are first relocated, and at the end of a settlement whose counts
are held: another one follows."""
FEW_SWEEPS = 4
"""Sweeps after which it is known what a move, or a new story, is worth."""
HOPED = 12
"""Further sweeps of a story, however many, are taken to bring no more than this many times what the last one
brought."""
ROUNDS = 30
"""Passes of relocation, at the most, until a story is settled."""
BIG = 0.1
"""Groups with this share of the claims may carry the whole story: they are taken apart to see."""
MOST_MERGES, MOST_SPLITS = 10, 3
ENOUGH = 0.5
"""A larger move must raise the bound by this many nats."""
MOST_LURING, MOST_OF_CLASSES = 32, 1_000_000
"""Labels, and groups by label and lure, at the most, for lures to be looked for: an object costs as many times more."""
DEAREST = 690.0
"""The largest ln κ of doubted groups: κ must be a number."""


@dataclass(frozen=True, eq=False)
class Story:
    """A grouping, the beliefs beside it, and what the objects say given both."""

    grouping: Grouping
    beliefs: Beliefs
    locals: Sequence[Locals]
    stats: GroupingStats
    terms: Mapping[str, float]
    converged: bool = False

    @cached_property
    def bound(self) -> float:
        """The bound: the sum of its terms."""
        return sum(self.terms.values())

    @property
    def truth(self) -> Float:
        """(n_candidates,) q(t_m = z)."""
        return np.concatenate([locals_.truth for locals_ in self.locals])


@dataclass
class Path:
    """The bound from sweep to sweep of a start: whatever was tried, and for the trace what was kept. And the place in
    the loops that it goes through, under which their marks are kept."""

    progress: Callable[[int, float], None] | None = None
    stop: Event = field(default_factory=Event)
    records: list[Mapping[str, float]] = field(default_factory=list)
    swept: int = 0
    """Sweeps before these: on other objects, so that their bounds do not compare."""
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    place: list[str | int] = field(default_factory=lambda: ["path", 0])
    """The name of the path, or its name and number, and of every loop that it is in the number within the one around
    it. Numbers of loops go up, so those of paths are not among them."""

    def told(self, record: Mapping[str, float]) -> None:
        """Note a sweep; a search that was stopped ends here."""
        if self.stop.is_set():
            raise KeyboardInterrupt
        self.records.append(record)
        if self.progress:
            self.progress(len(self.records), record["bound"])

    @contextmanager
    def loop(self) -> Iterator[str]:
        """One level deeper: the key of the loop."""
        key = "/".join(map(str, self.place))
        self.place.append(0)
        yield key
        self.place.pop()
        self.place[-1] = int(self.place[-1]) + 1

    def rising(self, end: float) -> tuple[Mapping[str, float], ...]:
        """The records that were higher than all before, up to the bound of the story that was kept.

        What was tried and was not enough higher to be kept may have passed it.
        """
        kept: list[Mapping[str, float]] = []
        for record in self.records:
            if record["bound"] <= end and (not kept or record["bound"] >= kept[-1]["bound"]):
                kept.append(record)
        return tuple(kept)


@dataclass(frozen=True, eq=False)
class Search:
    """Everything the search works on. `path` hears of every sweep: the bound and its terms.

    circles : of sources that share mistakes, before anything is known of the truth; where there are too many sources
              for a dendrogram
    """

    table: Table
    kernel: Kernel
    concentration: float | None
    max_sweeps: int
    tolerance: float
    path: Path = field(default_factory=Path)
    circles: tuple[Int, ...] = ()

    def start(self, j: int, rng: np.random.Generator) -> Story:
        """The story that grows from start j: every source alone, then by agreement, then from random partitions."""
        return self._repeat(lambda: self._start(j, rng))

    def move(self, story: Story, rng: np.random.Generator) -> Story:
        """Larger moves than relocations reach: merge groups that share rare values, take big groups apart, and where
        there are labels make all objects of one kind."""
        return self._repeat(lambda: self._move(story, rng))

    def gather(self, story: Story, rng: np.random.Generator) -> Story:
        """Where there are too many sources to compare them all: put those that are alone together where they share
        mistakes, by what is probably not true, as long as it raises the bound."""
        while self.table.n_sources > MOST_SOURCES:
            group, order = story.grouping.group, self.table.order
            alone = order[story.grouping.size[group[order]] == 1]
            found = circles(self.table.here, self._truth(story) < 0.5, alone, rng)
            if not found:
                break
            gathered = self._regrouped(story, together(group, found[0]))
            before, story = story, self._better(story, self._rival(gathered, story.bound))
            if story is before:
                break
        return story

    def tempt(self, story: Story, above: float) -> Story:
        """The story with lures, where they are looked for, if that ends above a bound.

        It is the last move, and nobody is moved after it: where copiers are not together, what they copy is a lure.
        """
        if not self.may_be_lured(story):
            return story

        def tempted() -> Story:
            # With many labels, mistakes that are shared may have been taken for unfaithful members: then only who
            # begins anew finds lures.
            anew = self._at_start(FAITHFUL, story.beliefs.concentration)
            anew = anew if story.beliefs.share.any(axis=1).all() else of_one_kind(anew)
            best = story
            for begun in (
                self._evaluate(story.grouping, with_lures(story.beliefs)),
                self._begun(story.grouping.group, with_lures(anew)),
            ):
                other = self._ascend(begun, True, self.max_sweeps, max(above, best.bound))
                best = other if other.bound > max(above, best.bound) else best
            return best

        return self._repeat(tempted)

    def may_be_lured(self, story: Story) -> bool:
        """Whether lures are looked for: where there are a few labels, and more than two, and not too many groups."""
        n_labels, n_groups = self.table.n_labels, np.count_nonzero(story.grouping.size)
        return 2 < n_labels <= MOST_LURING and bool(n_groups * n_labels**2 <= MOST_OF_CLASSES)

    def carried(self, story: Story) -> Story:
        """A story that grew on fewer objects, on these."""
        return self._evaluate(story.grouping, story.beliefs)

    def design_effect(self, story: Story) -> float:
        """The design effect T: by how much what strangers share overstates the evidence of this story's groups. 1 where
        there are none, or κ was given, or it makes no difference.

        That two sources belong together must outweigh ln κ. Claims that overstate it must outweigh T times as much.
        """
        if self.concentration is not None or story.grouping.size.max() <= 1:
            return 1.0
        effect = design_effect(self.table.here, story.grouping.group, self._truth(story))
        return effect if (effect - 1) * np.log(story.beliefs.concentration) > ENOUGH else 1.0

    def agreement(self, story: Story, other: Story) -> float:
        """The share of objects that two stories decide alike."""
        first = self.table.here.first_candidate
        one, two = (decide(self._truth(each), first, seed=0)[0] for each in (story, other))
        return float(np.mean(one == two))

    def _truth(self, story: Story) -> Float:
        """(n_candidates,) q(t_m = z), wherever it is kept."""
        return np.concatenate([each.truth for each in self.table.runner.fetch(story.locals)])

    def settle(
        self, story: Story, rng: np.random.Generator, *, counts: bool = True, rounds: int = ROUNDS
    ) -> Story:
        """Relocate and sweep in turn until nobody moves or it no longer pays."""
        near = self.table.uncrowded

        def relocate(story: Story) -> tuple[Story, bool]:
            assert near is not None, "where nobody can be moved there are no rounds"
            order = self.table.order[rng.permutation(len(self.table.order))]
            grouping, moved, gain = self.kernel.relocate(
                near, story.grouping, story.beliefs, order, self.table.threads
            )
            other = self.converge(self._evaluate(grouping, story.beliefs), counts=counts, sweeps=FEW_SWEEPS)
            rise = other.bound - story.bound
            story = other if rise > 0 else story
            return story, not moved or min(gain, rise) <= self.tolerance * max(1.0, abs(story.bound))

        settled = self._repeat(lambda: story, relocate, rounds if near else 0, rng)
        return self.converge(settled, counts=counts, sweeps=None if counts else HELD)

    def converge(self, story: Story, *, counts: bool = True, sweeps: int | None = None) -> Story:
        """Sweep until the bound rises by less than the tolerance."""
        return self._ascend(story, counts, sweeps or self.max_sweeps)

    def _rival(self, story: Story, above: float, *, counts: bool = True) -> Story:
        """A story that is to end above a bound, after a few sweeps."""
        return self._ascend(story, counts, FEW_SWEEPS, above)

    def _ascend(self, story: Story, counts: bool, sweeps: int, above: float = -np.inf) -> Story:
        """Sweep so many times at the most: fewer where the bound hardly rises, or is not to be expected above another,
        for what sweeps bring becomes less and less."""

        def sweep(story: Story) -> tuple[Story, bool]:
            after = self._sweep(story, counts=counts)
            rise = after.bound - story.bound
            converged = rise <= self.tolerance * max(1.0, abs(story.bound))
            is_hopeless = after.bound + HOPED * rise < above
            return replace(after, converged=converged), converged or is_hopeless

        return self._repeat(lambda: story, sweep, min(sweeps, self.max_sweeps))

    def _repeat(
        self,
        first: Callable[[], Story],
        step: Callable[[Story], tuple[Story, bool]] = lambda story: (story, True),
        most: int = 0,
        rng: np.random.Generator | None = None,
    ) -> Story:
        """The first story and so many steps from it, or fewer where one says that it was the last.

        It leaves a mark after each, and where there is one goes on from it. `rng` is what all this draws from.
        """
        with self.path.loop() as key:
            before, n, last = len(self.path.records), 0, False
            if mark := self.path.checkpoint.mark(key):
                n, last, story = mark["steps"], mark["last"], self._restored(mark)
                self.path.records.extend(mark["records"])
                if rng:
                    rng.bit_generator.state = mark["rng"]
            else:
                story = first()
                self._note(key, story, before, n, last, rng)
            while n < most and not last:
                self.path.place[-1] = 0
                story, last = step(story)
                n += 1
                self._note(key, story, before, n, last, rng)
        return story

    def _note(
        self, key: str, story: Story, before: int, n: int, last: bool, rng: np.random.Generator | None
    ) -> None:
        """Leave a mark of a loop that began when there were so many records, after n steps."""
        if self.path.checkpoint.is_kept:
            mark = {
                **{f"grouping_{f.name}": getattr(story.grouping, f.name) for f in fields(Grouping)},
                **{f"beliefs_{f.name}": getattr(story.beliefs, f.name) for f in fields(Beliefs)},
                "converged": story.converged,
                "terms": story.terms,
                "records": self.path.records[before:],
                "steps": n,
                "last": last,
                "rng": rng and rng.bit_generator.state,
            }
            self.path.checkpoint.note(key, mark)

    def _restored(self, mark: Mark) -> Story:
        """The story that left a mark."""

        def part(prefix: str) -> dict[str, Any]:
            return {
                name.removeprefix(prefix): value for name, value in mark.items() if name.startswith(prefix)
            }

        story = self._story(Grouping(**part("grouping_")), Beliefs(**part("beliefs_")))
        if dict(story.terms) != mark["terms"]:
            raise CheckpointError(
                f"{self.path.checkpoint.path} gives other numbers here: its bound was {sum(mark['terms'].values())!r}, "
                f"now {story.bound!r}. It may be of another machine or other libraries: go on there, or delete the "
                "file to begin anew."
            )
        return replace(story, converged=mark["converged"])

    def _start(self, j: int, rng: np.random.Generator) -> Story:
        first = self._repeat(lambda: self._first(j, rng), rng=rng)
        if j == 0:
            return self.settle(self.converge(first, sweeps=HELD), rng)
        # Counts are learned late: at first a loose crowd must not pass for a group.
        return self.settle(self.settle(first, rng, counts=False), rng)

    def _first(self, j: int, rng: np.random.Generator) -> Story:
        if j == 0:
            return self._fresh(np.arange(self.table.n_sources), FAITHFUL)
        story = self._by_agreement() if j == 1 else None
        return self._at_random(rng) if story is None else story

    def _move(self, story: Story, rng: np.random.Generator) -> Story:
        for a, b in self._alike(story):
            group, size = story.grouping.group, story.grouping.size
            if size[a] == 0 or size[b] == 0:
                continue  # a merge that was kept has used it up
            merged = self._regrouped(story, np.where(group == a, b, group))
            story = self._better(story, self._rival(merged, story.bound))
        for g in self._big(story):
            apart = story.grouping.group.copy()
            members = np.flatnonzero(apart == g)[1:]
            apart[members] = np.flatnonzero(story.grouping.size == 0)[: len(members)]
            story = self._better(story, self.settle(self._regrouped(story, apart), rng, rounds=3))
        if self.table.n_labels > 1:
            # Who begins with two kinds does not end with one, though where objects are alike that tells sources apart
            # better. After other moves: before groups are found, objects on which copiers err seem alike.
            alike = self._begun(story.grouping.group, of_one_kind(story.beliefs))
            story = self._better(story, self._ascend(alike, True, self.max_sweeps, above=story.bound))
        return self.settle(story, rng)

    def _by_agreement(self) -> Story | None:
        """Groups of sources that agree beyond chance, of all partitions by agreement the one that promises most; None
        where nobody does."""
        best, alone = None, np.arange(self.table.n_sources)
        known = [together(alone, circle) for circle in self.circles]
        for group in known or agreement_cuts(self.table.here):
            story = self._fresh(group, LOYAL, best.bound if best else -np.inf)
            best = story if best is None or story.bound > best.bound else best
        return best

    def _at_random(self, rng: np.random.Generator) -> Story:
        n_sources = self.table.n_sources
        group = np.empty(n_sources, np.int64)
        group[self.table.order] = rng.integers(min(RANDOM_GROUPS, max(n_sources // 2, 1)), size=n_sources)
        return self._fresh(group, LOYAL)

    def _fresh(self, group: Int, fidelity: float, above: float = -np.inf) -> Story:
        """A story of this partition in which nothing is known yet. It matters where it ends above a bound."""
        beliefs = self._at_start(fidelity, self.concentration)
        return self._begun(np.unique(group, return_inverse=True)[1], beliefs, above)

    def _at_start(self, fidelity: float, concentration: float | None) -> Beliefs:
        """What is believed before anything is known."""
        table = self.table
        return start_beliefs(table.n_sources, table.n_labels, table.domain_size, fidelity, concentration)

    def _begun(self, group: Int, beliefs: Beliefs, above: float = -np.inf) -> Story:
        """A story of this partition in which groups are at first like their prior; a few sweeps before beliefs are
        learned, and a few more before counts are."""
        n_sources = self.table.n_sources
        grouping = Grouping(
            group,
            np.tile(beliefs.reliability, (n_sources, 1, 1)),
            np.tile(beliefs.habit_prior, (n_sources, 1, 1)),
        )
        story = self._evaluate(grouping, beliefs)
        for _ in range(4):
            story = self._evaluate(update_groups(story.stats, story.grouping, beliefs), beliefs)
        return self._rival(story, above, counts=False)

    def _regrouped(self, story: Story, group: Int) -> Story:
        """The same beliefs with another partition. A group that is made of whole ones begins with what was seen of all
        of them; one that is made of parts, or of nobody, begins at the prior."""
        grouping, beliefs = story.grouping, story.beliefs
        size, n_groups = grouping.size, len(grouping.size)
        shape, each = (n_groups, n_groups), (grouping.group, group)
        pairs, n_shared = np.unique(np.ravel_multi_index(each, shape), return_counts=True)
        before, now = np.unravel_index(pairs, shape)
        is_part = n_shared < size[before]
        is_whole = np.bincount(now, is_part, minlength=n_groups) == 0
        is_kept = np.bincount(now, is_part | (before != now), minlength=n_groups) == 0
        is_kept &= np.bincount(group, minlength=n_groups) == size

        def likeness(known: Float, prior: Float) -> Float:
            seen = np.zeros_like(known)
            # What is known may be of an earlier prior, and lie below this one.
            np.add.at(seen, now, np.maximum(known[before] - prior, 0.0))
            return np.where(is_kept[:, None, None], known, prior + seen * is_whole[:, None, None])

        regrouped = Grouping(
            group,
            likeness(grouping.reliability, beliefs.reliability),
            likeness(grouping.habit, beliefs.habit_prior),
        )
        return self._evaluate(regrouped, beliefs)

    def _better(self, story: Story, other: Story) -> Story:
        return other if other.bound > story.bound + ENOUGH else story

    def _sweep(self, story: Story, *, counts: bool) -> Story:
        """Global step, local step, bound. Beliefs take a long stride; where that leads down, a sure step."""
        for is_sure in (False, True):
            grouping, beliefs = learn(
                story.stats,
                story.grouping,
                story.beliefs,
                domain_size=self.table.domain_size,
                is_sure=is_sure,
                counts=counts,
                concentration=self.concentration is None,
            )
            after = self._evaluate(grouping, beliefs)
            if after.bound >= story.bound:
                return after
        if not after.bound - story.bound >= -FALL * max(1.0, abs(after.bound)):
            raise BoundError(f"The bound fell from {story.bound} to {after.bound}: please report this.")
        return after

    def _evaluate(self, grouping: Grouping, beliefs: Beliefs) -> Story:
        """What the objects say, and the bound, of which the path is told."""
        story = self._story(grouping, beliefs)
        self.path.told({"bound": story.bound, **story.terms})
        return story

    def _story(self, grouping: Grouping, beliefs: Beliefs) -> Story:
        table = self.table
        size = grouping.size
        occupied = np.flatnonzero(size)
        is_full = len(occupied) == len(size)
        some = grouping if is_full else grouping.of_groups(occupied)
        classes = unfolded(some, beliefs)
        locals_, stats = table.runner.map_sum(self.kernel.partition, table.shards, *classes)
        stats = folded(self.kernel.completed(stats, *classes), some, beliefs)
        stats = stats if is_full else stats.among(occupied, len(size))
        n_objects = round(float(from_fixed(stats.share).sum()))
        terms = {
            "objects": float(from_two_words(stats.terms)[0]),
            "groups": -float(np.sum(group_divergence(some, beliefs))),
            "partition": log_partition(size, beliefs),
            "beliefs": log_prior(
                beliefs, table.n_sources, n_objects, concentration=self.concentration is None
            ),
        }
        return Story(grouping, beliefs, locals_, stats, terms)

    def _alike(self, story: Story) -> Iterator[tuple[int, int]]:
        """Pairs of groups, at least one of several sources, that share the most values which few others claim.

        Found through the values: groups that never share a rare one are never compared.
        """
        claims, size = self.table.here, story.grouping.size
        rare = np.flatnonzero(is_minority(claims)[claims.claim_candidate])
        shape = (len(size), claims.n_candidates)
        by_group = story.grouping.group[claims.claim_source[rare]], claims.claim_candidate[rare]
        group, value = np.unravel_index(np.unique(np.ravel_multi_index(by_group, shape)), shape)
        says = sparse.csr_array((np.ones(len(group)), (group, value)), shape=shape)
        is_crowded = np.bincount(value, minlength=claims.n_candidates) > MOST_SHARING
        shared = sparse.triu(says @ sparse.diags_array(1.0 - is_crowded) @ says.T, k=1).tocoo()
        worth = shared.data * ((size[shared.row] > 1) | (size[shared.col] > 1))
        first = self._first_sources(story)
        earlier, later = np.sort([first[shared.row], first[shared.col]], axis=0)
        for i in np.lexsort((later, earlier, -worth))[:MOST_MERGES]:
            if worth[i] > 0:
                yield int(shared.row[i]), int(shared.col[i])

    def _big(self, story: Story) -> Iterator[int]:
        """The groups of several sources that make the most claims."""
        size = story.grouping.size
        n_claims = np.bincount(story.grouping.group[self.table.here.claim_source], minlength=len(size)) * (
            size > 1
        )
        for g in np.lexsort((self._first_sources(story), -n_claims))[:MOST_SPLITS]:
            if n_claims[g] >= BIG * self.table.n_claims:
                yield int(g)

    def _first_sources(self, story: Story) -> Int:
        """(n_groups,) the place of each group's first source in `order`: a number that owes nothing to names."""
        first = np.full(len(story.grouping.size), len(self.table.order))
        np.minimum.at(first, story.grouping.group[self.table.order], np.arange(len(self.table.order)))
        return first


def as_partition(story: Story, concentration: float) -> Partition:
    """The groups that have sources, the largest first, as a finished fit keeps them; κ as it was before groups were
    doubted."""
    grouping = story.grouping
    size = grouping.size
    order = np.argsort(-size, kind="stable")[: np.count_nonzero(size)]
    number = np.empty(len(size), np.int32)
    number[order] = np.arange(len(order))
    group, membership = number[grouping.group][:, None], np.ones((len(grouping.group), 1))
    beyond = np.cumsum(size[order][::-1])[::-1] - size[order]
    # In general: what was seen on objects of every kind, and the prior of a kind by its share.
    beliefs = story.beliefs
    seen = (grouping.reliability - beliefs.reliability).sum(axis=1)
    in_general = np.maximum(beliefs.share.sum(axis=1) @ beliefs.reliability + seen, 1e-9)
    return Partition(
        group=group,
        membership=membership,
        group_reliability=in_general[order],
        sticks=np.column_stack([1.0 + size[order], concentration + beyond]),
        kind_reliability=grouping.reliability[order],
        habit=grouping.habit[order],
    )
