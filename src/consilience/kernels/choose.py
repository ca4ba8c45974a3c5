"""`engine=` to a kernel: the one place that names the concrete kernels, imported only when asked for."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from consilience.claims.encoding import Claims, Float, Int, Shard
from consilience.errors import EngineUnavailableError, UnknownNameError
from consilience.kernels.segments import Segments
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
    "torch": "consilience.kernels.torch_",
}
EXTRA = {"torch": "consilience[gpu]"}
LARGE = 1_000_000
"""Claims from which on a GPU pays for being looked for, and for what goes to it and back."""


G = TypeVar("G", contravariant=True)  # globals
P = TypeVar("P", contravariant=True)  # settings
S = TypeVar("S", bound="Stats | GroupingStats", covariant=True)  # statistics, which add


class Step(Protocol[G, P, S]):
    """The local step of one inference on one shard: pure, no randomness, no input or output of its own."""

    def __call__(self, shard: Shard, given: G, prior: P, warm: Locals | None = None, /) -> tuple[Locals, S]:
        """Everything about the shard's objects given the globals, and the statistics they add."""
        ...


class Kernel(Protocol):
    """An engine: the same local steps, one an inference, the relocation of sources, and the sums that rivals are made
    of, computed its own way."""

    name: str
    fewest: int
    """Claims below which a shard of their own costs more than it saves."""
    partition: Step[Grouping, Beliefs, GroupingStats]
    structured: Step[Globals, Prior, Stats]
    mean_field: Step[Globals, Prior, Stats]

    def completed(self, stats: GroupingStats, given: Grouping, beliefs: Beliefs) -> GroupingStats:
        """The sum of what `partition` says of all shards, with what it leaves to be added to that."""
        ...

    def relocate(
        self, shard: Shard, given: Grouping, beliefs: Beliefs, order: Int, threads: int = 1
    ) -> tuple[Grouping, int, float]:
        """Move sources one at a time: the new grouping, how many moved, how much the bound rose."""
        ...

    def segments(self, claims: Claims, log_truth: Float, is_known: NDArray[np.bool_] | None) -> Segments:
        """The table as rivals take it."""
        ...


def has_device() -> bool:
    """Whether there is a CUDA device for engine "torch"."""
    return bool(importlib.import_module(ENGINES["torch"]).has_cuda())


def choose(engine: str = "auto", n_claims: int = 0) -> Kernel:
    """The kernel of that name; "auto" takes the fastest that can be imported for so many claims."""
    if engine == "auto":
        if n_claims >= LARGE and find_spec("torch") and has_device():
            return choose("torch")
        try:
            return choose("numba")
        except EngineUnavailableError:
            return choose("numpy")
    if engine not in ENGINES:
        raise UnknownNameError("engine", engine, ["auto", *ENGINES])
    try:
        return cast(Kernel, importlib.import_module(ENGINES[engine]))
    except ImportError as error:
        package = EXTRA.get(engine, engine)
        raise EngineUnavailableError(
            f"Engine {engine!r} cannot be used: {error}. "
            f"Install it with `pip install '{package}'`, or use engine='numpy'."
        ) from error
