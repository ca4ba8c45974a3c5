"""Tables drawn by other stories than the model's own: what it does where its assumptions do not hold.

Sizes, skills and how far sources depend on each other are drawn for every table, so that a kind is not one case.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Foreign(NamedTuple):
    """Claims, the truth of every object, and the domain to read them with."""

    claims: pa.Table
    truth: dict[str, str]
    domain: str


def crowd(rng: np.random.Generator) -> Foreign:
    """Annotators who never copy: of one skill on all labels or of one on each, some objects misleading, some who
    press the same button, a few of them busy."""
    n_sources, n_objects, n_labels = (
        _between(rng, 5, 200),
        _between(rng, 60, 1500),
        int(rng.choice([2, 3, 4, 8])),
    )
    truth = rng.choice(n_labels, size=n_objects, p=rng.dirichlet(np.full(n_labels, 3.0)))
    skill = rng.beta(*rng.choice([(6, 2), (3, 2), (12, 2)]), size=n_sources)
    skills = np.repeat(skill[:, None], n_labels, axis=1)
    if rng.random() < 0.5:
        skills = np.clip(skills + rng.normal(0, 0.15, skills.shape), 0.05, 0.99)
    presses = np.where(
        rng.random(n_sources) < rng.choice([0, 0, 0.1, 0.3]), rng.integers(n_labels, size=n_sources), -1
    )
    misleads = rng.beta(0.6, 1.5, size=n_objects) * (rng.random() < 0.4)
    lure = rng.integers(n_labels, size=n_objects)

    source, object_ = _met(rng, n_sources, n_objects, busy=True)
    value = _answers(rng, truth[object_], skills[source, truth[object_]], n_labels)
    is_misled = rng.random(len(source)) < misleads[object_]
    value = np.where(
        is_misled,
        np.where(rng.random(len(source)) < 0.3, lure[object_], rng.integers(n_labels, size=len(source))),
        value,
    )
    is_pressed = (presses[source] >= 0) & (rng.random(len(source)) < 0.7)
    return _labelled(source, object_, np.where(is_pressed, presses[source], value), truth)


def copiers(rng: np.random.Generator) -> Foreign:
    """Labels, and up to three groups of which members repeat a leader, good or bad, now and then or always."""
    n_sources, n_objects, n_labels = (
        _between(rng, 8, 80),
        _between(rng, 80, 1000),
        int(rng.choice([2, 3, 4, 6])),
    )
    truth = rng.integers(n_labels, size=n_objects)
    skill = rng.uniform(0.45, 0.95, size=n_sources)
    leader, repeats = _led(rng, n_sources, int(rng.integers(4)), 12)
    is_leader = np.isin(np.arange(n_sources), leader[leader != np.arange(n_sources)])
    skill[is_leader] = rng.uniform(0.3, 0.9, size=int(is_leader.sum()))
    own = _answers(rng, np.tile(truth, (n_sources, 1)), skill[:, None], n_labels)
    source, object_ = _met(rng, n_sources, n_objects)
    speaker = np.where(rng.random(len(source)) < repeats[source], leader[source], source)
    return _labelled(source, object_, own[speaker, object_], truth)


def panel(rng: np.random.Generator) -> Foreign:
    """Models of a few families that answer nearly everything. Families know the same and fall for the same wrong
    answers, in part: every model has a mind of its own too. Some questions mislead all."""
    n_sources, n_objects, n_labels = (
        _between(rng, 8, 32),
        _between(rng, 100, 1500),
        int(rng.choice([2, 4, 4, 10])),
    )
    n_families, shares, lured = int(rng.integers(2, 9)), rng.uniform(0.1, 0.8), rng.uniform(0.0, 0.4)
    family = rng.integers(n_families, size=n_sources)
    truth = rng.integers(n_labels, size=n_objects)
    ability = rng.normal(0.8, 0.8, size=n_families)[family] + rng.normal(0, 0.4, size=n_sources)
    knows = 1 / (1 + np.exp(rng.normal(0, 1.3, size=n_objects) - ability[:, None]))
    shape = (n_sources, n_objects)

    def shared(of_family: NDArray[Any], own: NDArray[Any]) -> NDArray[Any]:
        return np.where(rng.random(shape) < shares, of_family[family], own)

    is_known = shared(rng.random((n_families, n_objects)), rng.random(shape)) < knows
    guess = shared(rng.integers(n_labels, size=(n_families, n_objects)), rng.integers(n_labels, size=shape))
    guess = np.where(rng.random(shape) < lured, rng.integers(n_labels, size=n_objects), guess)
    source, object_ = np.nonzero(rng.random(shape) < rng.uniform(0.6, 1.0))
    return _labelled(source, object_, np.where(is_known, truth, guess)[source, object_], truth)


def replies(rng: np.random.Generator) -> Foreign:
    """A panel whose answers are open: as `panel`, but what is said of one question cannot be said of another."""
    labelled = panel(rng)
    of, said = (np.asarray(labelled.claims[name], str) for name in ("object", "value"))
    spelt = pa.array(np.char.add(np.char.add(of, "-"), said))
    claims = labelled.claims.set_column(2, "value", spelt)
    return Foreign(claims, {name: f"{name}-{value}" for name, value in labelled.truth.items()}, "claimed")


def answers(rng: np.random.Generator) -> Foreign:
    """Open answers of strangers, some able and some not, to questions that are easy or hard and mislead some: nobody
    depends on anybody."""
    n_sources, n_objects, n_wrong = (
        _between(rng, 6, 60),
        _between(rng, 100, 1500),
        int(rng.choice([3, 5, 20])),
    )
    ability = rng.normal(rng.uniform(0, 3), 0.8, size=n_sources)
    difficulty = rng.normal(0, rng.uniform(0.5, 2.5), size=n_objects)
    shape = (n_sources, n_objects)
    knows = rng.random(shape) < 1 / (1 + np.exp(difficulty - ability[:, None]))
    is_misled = rng.random(shape) < rng.uniform(0, 0.4)
    guess = np.where(is_misled, rng.integers(n_wrong, size=n_objects), rng.integers(n_wrong, size=shape))
    source, object_ = np.nonzero(rng.random(shape) < rng.uniform(0.2, 1.0))
    return _open(source, object_, np.where(knows, 0, 1 + guess)[source, object_], n_objects)


def listings(rng: np.random.Generator) -> Foreign:
    """Open values, as of bookshops: mistakes of one's own or that lie near, and groups that repeat a leader."""
    n_sources, n_objects = _between(rng, 20, 200), _between(rng, 60, 500)
    skill = rng.uniform(0.3, 0.95, size=n_sources)
    leader, repeats = _led(rng, n_sources, int(rng.integers(5)), 10)
    shape = (n_sources, n_objects)
    near = rng.integers(1, 1 + rng.integers(1, 6, size=n_objects), size=shape)
    alone = 10 + np.arange(n_sources)[:, None]
    wrong = np.where(rng.random(shape) < rng.uniform(0.2, 0.9), near, alone)
    own = np.where(rng.random(shape) < skill[:, None], 0, wrong)
    source, object_ = _met(rng, n_sources, n_objects, busy=True)
    speaker = np.where(rng.random(len(source)) < repeats[source], leader[source], source)
    return _open(source, object_, own[speaker, object_], n_objects)


def versions(rng: np.random.Generator) -> Foreign:
    """Open values, as of flights or stocks: sources that nearly all speak of every object, some of which mean another
    thing by an attribute, or are late; and groups that repeat a leader."""
    n_sources, n_objects, n_attributes = _between(rng, 12, 55), _between(rng, 200, 1500), 6
    shape = (n_sources, n_objects)
    attribute = rng.integers(n_attributes, size=n_objects)
    means_other = rng.random((n_sources, n_attributes)) < rng.uniform(0, 0.35)
    is_late = rng.random(n_sources) < rng.uniform(0, 0.4)
    own = np.where(
        rng.random(shape) < rng.uniform(0.6, 0.99, size=(n_sources, 1)), 0, rng.integers(10, 18, size=shape)
    )
    own = np.where(is_late[:, None] & (rng.random(n_objects) < rng.uniform(0.05, 0.3)), 1, own)
    own = np.where(means_other[:, attribute] & (rng.random(n_objects) < 2 / 3), 2, own)
    leader, repeats = _led(rng, n_sources, int(rng.integers(4)), 7)
    source, object_ = np.nonzero(rng.random(shape) < rng.uniform(0.3, 1.0, size=(n_sources, 1)))
    speaker = np.where(rng.random(len(source)) < repeats[source], leader[source], source)
    return _open(source, object_, own[speaker, object_], n_objects)


KINDS: dict[str, Callable[[np.random.Generator], Foreign]] = {
    each.__name__: each for each in (crowd, copiers, panel, replies, answers, listings, versions)
}


def _between(rng: np.random.Generator, low: int, high: int) -> int:
    return int(np.exp(rng.uniform(np.log(low), np.log(high))))


def _met(
    rng: np.random.Generator, n_sources: int, n_objects: int, *, busy: bool = False
) -> tuple[Ints, Ints]:
    """Who speaks of what: on every object a few; with `busy`, a few sources nearly always."""
    activity = rng.pareto(rng.choice([1.2, 3.0]), size=n_sources) + 0.2 if busy else np.ones(n_sources)
    # The smallest exponential variates are a draw without replacement.
    turn = rng.exponential(size=(n_objects, n_sources)) / activity
    n_claims = np.clip(rng.poisson(np.exp(rng.uniform(np.log(2), np.log(15))), size=n_objects), 2, n_sources)
    object_, source = np.nonzero(turn.argsort(axis=1).argsort(axis=1) < n_claims[:, None])
    return source, object_


def _answers(rng: np.random.Generator, truth: Ints, skill: Any, n_labels: int) -> Ints:
    """The truth, as often as skill has it; else any other label."""
    other = (truth + rng.integers(1, n_labels, size=truth.shape)) % n_labels
    answers: Ints = np.where(rng.random(truth.shape) < skill, truth, other)
    return answers


def _led(
    rng: np.random.Generator, n_sources: int, n_groups: int, most: int
) -> tuple[Ints, NDArray[np.float64]]:
    """Whom each source repeats, itself where nobody, and how often; at least three sources are led by nobody."""
    leader, repeats = np.arange(n_sources), np.zeros(n_sources)
    free = rng.permutation(n_sources)
    for _ in range(n_groups):
        size = int(rng.integers(3, most + 1))
        if len(free) < size + 3:
            break
        members, free = free[:size], free[size:]
        leader[members], repeats[members] = members[0], rng.uniform(0.5, 1.0)
    return leader, repeats


def _labelled(source: Ints, object_: Ints, value: Ints, truth: Ints) -> Foreign:
    return Foreign(_table(source, object_, value), {f"o{m}": str(z) for m, z in enumerate(truth)}, "common")


def _open(source: Ints, object_: Ints, value: Ints, n_objects: int) -> Foreign:
    """Values that are another thing on every object; 0 is the truth."""
    spelt = np.char.add(np.char.add(object_.astype(str), "-"), value.astype(str))
    return Foreign(_table(source, object_, spelt), {f"o{m}": f"{m}-0" for m in range(n_objects)}, "claimed")


def _table(source: Ints, object_: Ints, value: NDArray[Any]) -> pa.Table:
    columns = np.char.add("s", source.astype(str)), np.char.add("o", object_.astype(str)), value.astype(str)
    return pa.table(dict(zip(("source", "object", "value"), columns, strict=True)))
