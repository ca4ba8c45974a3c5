"""`runner=` to a runner."""

from __future__ import annotations

from consilience.errors import UnknownNameError
from consilience.runners.base import Runner
from consilience.runners.inline import Inline


def choose(runner: str | Runner = "inline") -> Runner:
    """The runner of that name; a runner object is taken as it is."""
    if not isinstance(runner, str):
        return runner
    if runner != "inline":
        raise UnknownNameError("runner", runner, ["inline"])
    return Inline()
