"""`runner=` to a runner."""

from __future__ import annotations

import importlib

from consilience.errors import EngineUnavailableError, UnknownNameError
from consilience.runners.base import Runner
from consilience.runners.inline import Inline

RUNNERS = ("inline", "ray")


def choose(runner: str | Runner = "inline", address: str | None = None) -> Runner:
    """The runner of that name, a cluster's at this address; a runner object is taken as it is."""
    if not isinstance(runner, str):
        return runner
    if runner not in RUNNERS:
        raise UnknownNameError("runner", runner, RUNNERS)
    if runner == "inline":
        return Inline()
    try:
        cluster = importlib.import_module("consilience.runners.cluster")
    except ImportError as error:
        raise EngineUnavailableError(
            f"Runner {runner!r} cannot be used: {error}. Install it with `pip install 'consilience[cluster]'`, or use "
            "runner='inline'."
        ) from error
    ray: Runner = cluster.Ray(address)
    return ray
