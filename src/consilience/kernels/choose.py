"""`engine=` to a kernel: the one place that names the concrete kernels, imported only when asked for."""

from __future__ import annotations

import importlib
from typing import Protocol, cast

from consilience.claims.encoding import Shard
from consilience.errors import EngineUnavailableError, UnknownNameError
from consilience.kernels.state import Globals, Locals, Prior, Stats

ENGINES = {
    "numpy": "consilience.kernels.numpy_",
    "numba": "consilience.kernels.numba_",
}


class Step(Protocol):
    """The local step of one inference on one shard: pure, no randomness, no input or output of its own."""

    def __call__(
        self, shard: Shard, given: Globals, prior: Prior, warm: Locals | None = None
    ) -> tuple[Locals, Stats]:
        """Everything about the shard's objects given the globals, and the statistics they add."""
        ...


class Kernel(Protocol):
    """An engine: the same two local steps, computed its own way."""

    name: str
    structured: Step
    mean_field: Step


def choose(engine: str = "auto") -> Kernel:
    """The kernel of that name; "auto" takes the fastest that can be imported."""
    if engine == "auto":
        try:
            return choose("numba")
        except EngineUnavailableError:
            return choose("numpy")
    if engine not in ENGINES:
        raise UnknownNameError("engine", engine, ["auto", *ENGINES])
    try:
        return cast(Kernel, importlib.import_module(ENGINES[engine]))
    except ImportError as error:
        raise EngineUnavailableError(
            f"Engine {engine!r} cannot be used: {error}. Install it with `pip install {engine}`, or use engine='numpy'."
        ) from error
