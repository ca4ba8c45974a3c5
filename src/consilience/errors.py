"""Everything consilience raises, as one tree.

ConsilienceError
├─ InputError(ValueError)        what the user gave is wrong; the command line exits with 2
│  ├─ ClaimsError                the table of claims (or of truths): every problem found, with examples
│  ├─ SettingsError              a setting outside its range
│  ├─ UnsuitableTableError       a model that cannot work on this table, and which can
│  ├─ UnknownNameError           an object, source, model, engine or data set that does not exist, with the nearest
│  ├─ ResultFormatError          a saved result that this version cannot read
│  └─ CheckpointError            a checkpoint of another fit, or one that cannot be read
├─ EngineUnavailableError(ImportError)   an optional part is not installed: the exact command that installs it
├─ DatasetError                  a public data set could not be had
└─ BoundError                    a bound fell or is no number: a fault of ours, please report it

A message says what was found, what was expected and what to do; the exception carries the data it talks about.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


class ConsilienceError(Exception):
    """Root of everything this package raises on purpose."""

    def __reduce__(self) -> tuple[object, ...]:
        # As it is, message and data: Python would call the constructor with the message alone.
        return _as_it_was, (type(self), self.args, self.__dict__)


def _as_it_was(
    kind: type[ConsilienceError], args: tuple[object, ...], data: dict[str, object]
) -> ConsilienceError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(data)
    return error


class InputError(ConsilienceError, ValueError):
    """What the user gave is wrong."""


@dataclass(frozen=True)
class Problem:
    """One kind of fault in a table: what was found, how often, some examples, what to do."""

    kind: str
    found: str
    advice: str
    count: int = 1
    examples: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.found}"]
        lines += [f"    {example}" for example in self.examples]
        if self.examples and self.count > len(self.examples):
            lines.append(f"    … and {self.count - len(self.examples):,} more")
        lines.append(f"    → {self.advice}")
        return "\n".join(lines)


class ClaimsError(InputError):
    """A table cannot be used; `problems` holds every fault that was found, not only the first."""

    def __init__(self, table: str, problems: Sequence[Problem]) -> None:
        self.table = table
        self.problems = tuple(problems)
        head = f"{table}: {len(problems)} problem{'s' if len(problems) > 1 else ''} found"
        super().__init__("\n".join([head, *(f"  • {problem}" for problem in problems)]))


class SettingsError(InputError):
    """A setting is outside its range."""

    def __init__(self, setting: str, expected: str, got: object) -> None:
        self.setting = setting
        self.got = got
        super().__init__(f"'{setting}' must be {expected}. Got {got!r}.")


class UnsuitableTableError(InputError):
    """A table that a model cannot work on."""

    def __init__(self, model: str, needs: str, found: str, advice: str) -> None:
        self.model = model
        super().__init__(f"{model} needs {needs}; this table has {found}: {advice}.")


class UnknownNameError(InputError):
    """A name that does not exist, with the nearest ones that do."""

    def __init__(self, what: str, name: str, known: Iterable[str], advice: str = "") -> None:
        self.name = name
        known = list(known)
        self.nearest = nearest(name, known)
        hint = f" Did you mean {' or '.join(repr(n) for n in self.nearest)}?" if self.nearest else ""
        if not hint and 0 < len(known) <= 20:
            hint = f" Known: {', '.join(known)}."
        super().__init__(f"There is no {what} {name!r}.{hint}{' ' + advice if advice else ''}")


class ResultFormatError(InputError):
    """A saved result that this version cannot read."""


class CheckpointError(InputError):
    """A checkpoint that this fit cannot go on from."""


class EngineUnavailableError(ConsilienceError, ImportError):
    """An optional part is not installed."""


class DatasetError(ConsilienceError):
    """A public data set could not be had."""


class BoundError(ConsilienceError):
    """Coordinate ascent went down, or to no number: the mathematics or the arithmetic is wrong."""


def nearest(name: str, known: Sequence[str], n: int = 2) -> list[str]:
    """Names among `known` that a person who typed `name` may have meant."""
    lowered = {k.lower(): k for k in known}
    return [lowered[match] for match in difflib.get_close_matches(name.lower(), lowered, n=n, cutoff=0.6)]
