"""The summary of a fit: all numbers that the report, the terminal and JSON show.

It stays small however large the fit is: of everything it holds the first few, and how many there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any


@dataclass(frozen=True)
class Overruled:
    """A decision that fewer sources claim than another value, and why in words (None where none are spent on it)."""

    object: Any
    value: Any
    probability: float
    n_claims: int
    majority: Any
    n_majority: int
    why: str | None


@dataclass(frozen=True)
class Majority:
    """The answer against majority vote.

    n_found     : objects whose truth the model found
    n_given     : objects whose truth it was given
    n_different : of n_found, decisions that fewer sources claim than another value
    cases       : the most consequential ones: the claims overruled, times the probability that it is right to
    """

    n_found: int
    n_given: int
    n_different: int
    cases: tuple[Overruled, ...]


@dataclass(frozen=True)
class Source:
    """A source; None for what the model does not say of it, and for the group of a source on its own."""

    source: Any
    reliability: float | None
    low: float | None
    high: float | None
    group: int | None
    n_claims: int


@dataclass(frozen=True)
class Sources:
    """Sources by reliability: all of them in `best`, or of very many the first and the last.

    lowest, highest : reliability over all sources that have one, None if none has
    n_unrated       : sources that have none; they come last
    """

    n: int
    best: tuple[Source, ...]
    worst: tuple[Source, ...]
    lowest: float | None
    highest: float | None
    n_unrated: int

    @property
    def n_between(self) -> int:
        """Those that are in neither."""
        return self.n - len(self.best) - len(self.worst)


@dataclass(frozen=True)
class Bin:
    """Objects that from `low` to `high` sources claim something about, and objects that are worth so many."""

    low: int
    high: int
    n_claimed: int
    n_worth: int


@dataclass(frozen=True)
class Worth:
    """How many independent sources the table is worth.

    overall                     : over all sources
    median_claims, median_worth : over objects, of their claims and of how many independent ones these are worth
    bins                        : all objects by both; none for a model that counts every source in full
    shared                      : how much sources share mistakes, as a multiple of what independent ones would
    p_value                     : of the test against independence; None, with `shared`, where nothing was tested
    """

    n_sources: int
    overall: float
    median_claims: float
    median_worth: float
    bins: tuple[Bin, ...]
    shared: float | None
    p_value: float | None


@dataclass(frozen=True)
class Group:
    """A group, and those of its members with the most claims."""

    group: int
    n_sources: int
    reliability: float
    low: float
    high: float
    kind: str
    members: tuple[Any, ...]


@dataclass(frozen=True)
class HeatMap:
    """Pairs of sources of the largest groups, group beside group.

    sources : their ids
    groups  : their groups, 0 for none
    cells   : (row, column, share): below the diagonal the probability that the two share a group; above it, of the
              objects that both claim and not both get right, the share on which they make the same mistake
    """

    sources: tuple[Any, ...]
    groups: tuple[int, ...]
    cells: tuple[tuple[int, int, float], ...]


@dataclass(frozen=True)
class Link:
    """Two groups that make the same mistake more often than chance explains: a dependence that no group holds.

    share : of the objects that both claim and not both get right, those on which they make the same mistake
    """

    group_a: int
    group_b: int
    share: float


@dataclass(frozen=True)
class Groups:
    """Groups of dependent sources, the largest first.

    n_shared : groups of several sources
    n_apart  : sources that are in a group of their own, or in none
    links    : between `largest`, the strongest first
    """

    n_shared: int
    n_apart: int
    largest: tuple[Group, ...]
    heat: HeatMap | None
    links: tuple[Link, ...]


@dataclass(frozen=True)
class Uncertain:
    """A decision and the value that is nearest to it."""

    object: Any
    value: Any
    runner_up: Any
    probability: float
    margin: float
    n_claims: int


@dataclass(frozen=True)
class Certainty:
    """How sure the decisions are that the model found.

    n_doubtful  : decisions with a probability below DOUBT
    n_contested : decisions where another value is possible
    n_ties      : decided by the seed
    least       : of n_contested those with the smallest margin
    """

    n_doubtful: int
    n_contested: int
    n_ties: int
    seed: int
    least: tuple[Uncertain, ...]


@dataclass(frozen=True)
class Course:
    """How the fit went; the bound by sweep, thinned out where it is long."""

    model: str
    seconds: float
    sweeps: int
    converged: bool
    bound: float | None
    trace: tuple[tuple[int, float], ...]
    starts: tuple[Mapping[str, float], ...]
    settings: Mapping[str, Any]
    learned: Mapping[str, Any]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Rival:
    """A model on the same table: its accuracy with a 95 % interval, or why it could not run."""

    model: str
    accuracy: float | None
    low: float | None
    high: float | None
    seconds: float | None
    error: str | None = None


@dataclass(frozen=True)
class Calibration:
    """Decisions of about one probability: their mean, the share that is right, how many."""

    probability: float
    right: float
    n: int


@dataclass(frozen=True)
class Gold:
    """The answer against gold truths, as in `Score`; every figure None where all gold was given as known."""

    n_gold: int
    n_known: int
    n_unclaimed: int
    n_outside: int
    n_right: int
    accuracy: float | None
    log_loss: float | None
    calibration_error: float | None
    calibration: tuple[Calibration, ...]
    rivals: tuple[Rival, ...]
    """This model and others, the most accurate first."""
    otherwise: str
    """That truths may only be written otherwise than claims, where they may."""


@dataclass(frozen=True)
class Summary:
    """What a fit found; `groups` is None for a model without groups, `gold` without gold."""

    title: str
    found: str
    """The whole in one paragraph."""
    n_claims: int
    n_objects: int
    n_disputed: int
    """Objects about which sources disagree."""
    majority: Majority
    sources: Sources
    worth: Worth
    groups: Groups | None
    certainty: Certainty
    course: Course
    gold: Gold | None
    provenance: Mapping[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON: ids that JSON does not know are text."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(each) for each in value]
    if value is None or isinstance(value, str | bool | int):
        return value
    return value if isinstance(value, float) and isfinite(value) else str(value)
