"""What an inference found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from consilience.kernels.state import Beliefs, Globals, Prior
from consilience.models.mss.table import Table


@dataclass(frozen=True, eq=False)
class Found:
    """Of every start, the best first, the locals, as the table's runner keeps them, and a record; of the best the
    rest."""

    table: Table
    locals: Sequence[Sequence[Any]]
    starts: Sequence[Mapping[str, float]]
    groups: Globals
    prior: Prior | Beliefs
    trace: tuple[Mapping[str, float], ...]
    converged: bool
    design_effect: float = 1.0
    """T, by which evidence of groups was discounted."""
    lured: float = 0.0
    """The share of the objects that were looked at which lures decide otherwise."""
    rivals: Sequence[Mapping[str, float]] = ()
    """Stories that were told before larger moves, or before groups were doubted, and were close then: how far they were
    behind, and on what share of the objects that were looked at they agree with the answer."""
