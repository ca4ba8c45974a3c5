"""What pages show and the JSON interface gives: plain data, ids and values as text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


def text_of(identity: Any) -> str:
    """An id or a value as text, the same everywhere: in links, in stored answers and on pages."""
    if isinstance(identity, bytes):
        return identity.decode("utf-8", "backslashreplace")
    return str(identity)


@dataclass(frozen=True)
class About:
    """The result as a whole."""

    name: str
    model: str
    n_sources: int
    n_objects: int
    n_claims: int
    n_groups: int | None
    n_shared: int | None
    """Groups of several sources, which have the first numbers; to readers the others are sources on their own."""
    n_apart: int | None
    """Sources on their own."""
    n_differs: int
    """Objects decided otherwise than by the majority of claims."""
    n_known: int
    """Objects whose truth was given to the model."""
    n_reviewed: int | None
    """Objects that a reviewer answered; null while the answers cannot be read."""
    n_elsewhere: int | None
    """Answers in the same file that were given about other claims: they are kept, and not used here."""
    trouble: str
    """Why answers cannot be read or stored; empty where they can."""
    claims: str
    """The fingerprint of the claims."""
    domain: str
    seed: int
    converged: bool
    finished: str
    settings: dict[str, Any]
    warnings: list[str]


@dataclass(frozen=True)
class ObjectRow:
    """An object in a list."""

    number: int
    object: str
    value: str
    probability: float
    runner_up: str | None
    margin: float
    n_claims: int
    differs: bool
    """Whether more sources claim another value; false where the truth was given."""
    known: bool
    """Whether the truth was given to the model."""
    answer: str | None = None
    """The truth that a reviewer chose."""


@dataclass(frozen=True)
class SourceRow:
    """A source in a list."""

    number: int
    source: str
    reliability: float | None
    low: float | None
    high: float | None
    group: int | None
    n_claims: int


@dataclass(frozen=True)
class GroupRow:
    """A group in a list."""

    group: int
    n_sources: int
    reliability: float
    low: float
    high: float
    kind: str
    weight: float


@dataclass(frozen=True)
class Paged:
    """Which part of a list this is."""

    page: int
    size: int
    total: int

    @property
    def pages(self) -> int:
        """How many pages there are."""
        return max(1, -(-self.total // self.size))


@dataclass(frozen=True)
class Objects(Paged):
    """A page of objects."""

    rows: list[ObjectRow] = field(default_factory=list)


@dataclass(frozen=True)
class Sources(Paged):
    """A page of sources."""

    rows: list[SourceRow] = field(default_factory=list)


@dataclass(frozen=True)
class CandidateShape:
    """A value that the object may have."""

    value: str
    probability: float
    n_claims: int


@dataclass(frozen=True)
class MemberShape:
    """A source that claims something about the object: `candidate` counts the object's candidates from 0."""

    number: int
    source: str
    candidate: int
    reliability: float | None


@dataclass(frozen=True)
class VoiceShape:
    """Sources that speak together.

    n_sources : sources of the group, here and elsewhere; 1 for a source on its own
    n_members : those that claim something about the object
    nats      : by candidate, what they add to its log probability; only differences matter
    otherwise : the candidate decided for without them; null for the only voice, and where it was not worked out
    """

    group: int | None
    n_sources: int
    n_members: int
    reliability: float | None
    nats: list[float]
    otherwise: int | None
    members: list[MemberShape]


@dataclass(frozen=True)
class ObjectShape:
    """An object and why it is decided so; the first candidate is the decision."""

    number: int
    object: str
    sentence: str
    without: str
    """What would be decided without a group, in a sentence."""
    known: bool
    answer: str | None
    """The truth that a reviewer chose."""
    entry: int | None
    """The entry of that answer, or of a skip."""
    n_claims: int
    n_voices: int
    candidates: list[CandidateShape]
    voices: list[VoiceShape]
    before: list[float]
    """Nats of each candidate before any claim: how common its label is. They and the nats of all voices, `others`
    included, add up to the log probabilities of the candidates, but for a constant."""
    others: list[float]
    """Nats of the voices that are not listed, added up."""


@dataclass(frozen=True)
class ClaimRow:
    """A claim of a source."""

    object_number: int
    object: str
    value: str
    decision: str
    agrees: bool


@dataclass(frozen=True)
class Mate:
    """Another source of the same group, and what both claim.

    n_mistakes : objects on which both claim the same value and another one is decided
    """

    number: int
    source: str
    n_common: int
    n_same: int
    n_mistakes: int


@dataclass(frozen=True)
class SharedValue:
    """A value that is probably wrong, claimed by members of one group; the fewer others claim it, the more it tells."""

    object_number: int
    object: str
    value: str
    decision: str
    n_members: int
    n_others: int
    n_others_claiming: int
    """Sources outside the group that claim anything about the object."""


@dataclass(frozen=True)
class SourceShape:
    """A source: its claims, its mates and the evidence of copying. `examined` claims were looked at for that."""

    row: SourceRow
    claims: list[ClaimRow]
    page: int
    size: int
    examined: int
    mates: list[Mate]
    shared: list[SharedValue]


@dataclass(frozen=True)
class GroupShape:
    """A group: its members and values that they share though they are probably wrong."""

    row: GroupRow
    members: Sources
    examined: int
    shared: list[SharedValue]


@dataclass(frozen=True)
class Answer:
    """A stored answer of a reviewer; `value` is null where the object was skipped. `entry` is what an undo names."""

    object: str
    value: str | None
    answered: str
    entry: int


@dataclass(frozen=True)
class Answers(Paged):
    """A page of answers, the last first."""

    rows: list[Answer] = field(default_factory=list)


@dataclass(frozen=True)
class Task:
    """An object in the queue: `worth` is the number of decisions that its truth is expected to move."""

    number: int
    object: str
    value: str
    probability: float
    worth: float


@dataclass(frozen=True)
class Queue:
    """The objects most worth checking. While `ready` is false their worth is not known and they come by uncertainty."""

    ready: bool
    n_reviewed: int
    tasks: list[Task]


@dataclass(frozen=True)
class RefitState:
    """How the refit goes. `state`: idle, running, done, failed or cancelled."""

    state: str = "idle"
    message: str = ""
    stage: str = ""
    sweep: int = 0
    bound: float | None = None
    seconds: float = 0.0
    n_answers: int = 0
    warning: str = ""
    """Why the new result has no report, where the old one had one."""
