"""`engine=` to a kernel: the one place that names the concrete kernels, imported only when asked for."""

from __future__ import annotations

import importlib
from typing import Protocol, TypeVar, cast

from consilience.claims.encoding import Int, Shard
from consilience.errors import EngineUnavailableError, UnknownNameError
from consilience.kernels.state import (
    Beliefs,
    Globals,
    Grouping,
    GroupingStats,
    Locals,
    Prior,
    Stats,
)

ENGINES = {
    "numpy": "consilience.kernels.numpy_",
    "numba": "consilience.kernels.numba_",
}


G = TypeVar("G", contravariant=True)  # globals
P = TypeVar("P", contravariant=True)  # settings
S = TypeVar("S", bound="Stats | GroupingStats", covariant=True)  # statistics, which add


class Step(Protocol[G, P, S]):
    """The local step of one inference on one shard: pure, no randomness, no input or output of its own."""

    def __call__(self, shard: Shard, given: G, prior: P, warm: Locals | None = None, /) -> tuple[Locals, S]:
        """Everything about the shard's objects given the globals, and the statistics they add."""
        ...


class Kernel(Protocol):
    """An engine: the same local steps, one an inference, and the relocation of sources, computed its own way."""

    name: str
    partition: Step[Grouping, Beliefs, GroupingStats]
    structured: Step[Globals, Prior, Stats]
    mean_field: Step[Globals, Prior, Stats]

    def relocate(
        self, shard: Shard, given: Grouping, beliefs: Beliefs, order: Int
    ) -> tuple[Grouping, int, float]:
        """Move sources one at a time: the new grouping, how many moved, how much the bound rose."""
        ...


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
