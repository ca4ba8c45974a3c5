"""Claims made to order, with the truth and the groups known: planted cases, and all generators by name.

Everything random comes from one Generator made of `seed`. Nothing is dense in sources × objects, so a million
objects with ten claims each take seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from consilience.claims.encoding import Int
from consilience.datasets.capitals import capitals
from consilience.datasets.generative import from_model
from consilience.datasets.simulated import (
    Simulated,
    erring,
    name_everything,
    numbered,
    observed,
    require_positive,
)
from consilience.datasets.tagging import N_IMAGES, tagging
from consilience.errors import SettingsError, UnknownNameError

__all__ = ["CASES", "Case", "Simulated", "bloc", "capitals", "from_model", "planted", "tagging"]

N_VALUES = 4
"""Size of every domain in the planted cases."""
COPYING = 0.9
"""Probability that a copier repeats its leader's answer instead of answering on its own."""
DENSITY = 0.3
"""Share of (source, object) pairs with a claim in the planted cases."""


@dataclass(frozen=True)
class Part:
    """Sources that play one part: they err on their own or, given a `leader`, mostly repeat one leader.

    The leader is no source itself: it is the sheet that copiers copy from, right with probability `leader`.
    `accuracy` is that of answers a source gives on its own; a pair (low, high) draws one for each source.
    """

    kind: str
    n_sources: int
    accuracy: float | tuple[float, float]
    leader: float | None = None


PLANTED: dict[str, tuple[str, tuple[Part, ...]]] = {
    "copied-leader": (
        "30 sources copy a leader right 40 % of the time; 12 independent ones are right 80 % of the time",
        (Part("copier", 30, 0.4, leader=0.4), Part("independent", 12, 0.8)),
    ),
    "six-groups": (
        "25 sources copy a leader right half of the time; 5 groups of 5 copy leaders right 80 % of the time",
        (Part("copier", 25, 0.5, leader=0.5), *[Part("copier", 5, 0.8, leader=0.8)] * 5),
    ),
    "malicious-bloc": (
        "25 sources copy a leader right 10 % of the time; 5 groups of 3 copy leaders right 85 % of the time",
        (Part("malicious", 25, 0.1, leader=0.1), *[Part("copier", 3, 0.85, leader=0.85)] * 5),
    ),
    "good-leader": (
        "30 sources copy a leader right 80 % of the time; 12 independent ones are as good",
        (Part("copier", 30, 0.8, leader=0.8), Part("independent", 12, 0.8)),
    ),
    "independent": (
        "60 independent sources, right 70 % of the time: nobody copies",
        (Part("independent", 60, 0.7),),
    ),
    "guessers": (
        "30 sources guess at random; 20 independent ones are right 85 % of the time",
        (Part("guesser", 30, 1 / N_VALUES), Part("independent", 20, 0.85)),
    ),
}


def planted(name: str, n_objects: int = 1000, seed: int = 0) -> Simulated:
    """One of six small cases, by name, that tell methods for dependent sources from counting heads.

    Each object has four values, one of them true; each source claims something about each object with
    probability 0.3. An independent source is right with its accuracy and otherwise errs uniformly on the
    three false values. So does a leader, once for each object; a copier gives its leader's answer with
    probability 0.9 and otherwise answers on its own, as accurately as its leader but with errors of its own.
    Copiers of one leader are one group; every other source, guessers included, is a group by itself. Sources
    are named in random order.
    """
    if name not in PLANTED:
        raise UnknownNameError("planted case", name, PLANTED)
    require_positive(n_objects=n_objects)
    parts = PLANTED[name][1]
    rng = np.random.default_rng(seed)
    source, object_ = observed(sum(part.n_sources for part in parts), n_objects, DENSITY, rng)
    return _perform(parts, source, object_, n_objects, rng)


def bloc(
    n_sources: int = 1000, n_objects: int = 10_000, claims_per_object: int = 10, seed: int = 0
) -> Simulated:
    """Two in five sources repeat one leader who is right 45 % of the time; the others err on their own.

    Each object has four values and `claims_per_object` claims by sources drawn at random, so two given
    copiers rarely meet: the evidence of copying lies between a source and the whole bloc. A copier repeats
    the leader with probability 0.9 and otherwise answers on its own. The accuracy of answers on one's own is
    drawn for each source, uniform on 0.4–0.95.
    """
    require_positive(n_sources=n_sources, n_objects=n_objects, claims_per_object=claims_per_object)
    if claims_per_object > n_sources:
        raise SettingsError("claims_per_object", f"at most n_sources = {n_sources}", claims_per_object)
    rng = np.random.default_rng(seed)
    n_copiers = round(0.4 * n_sources)
    parts = (
        Part("copier", n_copiers, (0.4, 0.95), leader=0.45),
        Part("independent", n_sources - n_copiers, (0.4, 0.95)),
    )
    source = _choose(n_sources, claims_per_object, n_objects, rng).ravel()
    object_ = np.repeat(np.arange(n_objects), claims_per_object)
    return _perform(parts, source, object_, n_objects, rng)


def _tagging(n_objects: int = N_IMAGES, seed: int = 0) -> Simulated:
    """One tag, at any size."""
    return tagging(n_images=n_objects, seed=seed)


@dataclass(frozen=True)
class Case:
    """A generator as the command line offers it: `case(n_objects, seed)`."""

    description: str
    make: Callable[..., Simulated]
    resizable: bool = True
    """Whether the number of objects is free."""

    def __call__(self, n_objects: int | None = None, seed: int = 0) -> Simulated:
        """Make the case, at its own size unless `n_objects` is given."""
        if n_objects is None:
            return self.make(seed=seed)
        if not self.resizable:
            raise SettingsError("n_objects", "left out: this case brings its own objects", n_objects)
        return self.make(n_objects=n_objects, seed=seed)


CASES: dict[str, Case] = {
    "capitals": Case(
        "40 travel sites name the capitals of 60 countries; 21 of them copy a careless blog",
        capitals,
        resizable=False,
    ),
    **{name: Case(description, partial(planted, name)) for name, (description, _) in PLANTED.items()},
    "bloc": Case(
        "1,000 sources, ten claims an object; 400 of them repeat a leader right 45 % of the time", bloc
    ),
    "tagging": Case(
        "13,528 users tag 36,280 images, bird or not; three in four are in circles that copy a leader",
        _tagging,
    ),
    "model": Case("groups, reliabilities, truths and answers drawn from the model's own priors", from_model),
}


def _choose(n: int, k: int, n_rows: int, rng: np.random.Generator) -> Int:
    """(n_rows, k) distinct numbers below n in each row, uniformly: Floyd's algorithm, a column at a time."""
    chosen = np.empty((n_rows, k), dtype=np.int64)
    for column, highest in enumerate(range(n - k, n)):
        pick = rng.integers(highest + 1, size=n_rows)
        taken = (chosen[:, :column] == pick[:, None]).any(axis=1)
        chosen[:, column] = np.where(taken, highest, pick)
    return chosen


def _perform(
    parts: Sequence[Part], source: Int, object_: Int, n_objects: int, rng: np.random.Generator
) -> Simulated:
    """Let the parts speak: who claims something about what is given, what they claim follows."""
    # Names are numbers: in the order of the parts they would give the groups away.
    part = rng.permutation(np.repeat(np.arange(len(parts)), [p.n_sources for p in parts]))
    low, high = np.array([np.broadcast_to(p.accuracy, 2) for p in parts])[part].T
    own = rng.uniform(low, high)
    copying = np.array([0.0 if p.leader is None else COPYING for p in parts])[part]
    leader_accuracy = np.array([p.leader or 0.0 for p in parts])

    truth = rng.integers(N_VALUES, size=n_objects)
    leaders = np.stack([erring(truth, N_VALUES, accuracy, rng) for accuracy in leader_accuracy])
    value = erring(truth[object_], N_VALUES, own[source], rng)
    copies = np.flatnonzero(rng.random(len(source)) < copying[source])
    value[copies] = leaders[part[source[copies]], object_[copies]]

    alone = len(parts) + np.arange(len(part))
    return name_everything(
        numbered("s", len(part)),
        numbered("o", n_objects),
        numbered("v", N_VALUES),
        (source, object_, value),
        truth,
        np.unique(np.where(copying > 0, part, alone), return_inverse=True)[1],
        np.array([p.kind for p in parts])[part],
        copying * leader_accuracy[part] + (1 - copying) * own,
    )
