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
    rivals: Sequence[Mapping[str, float]] = ()
    """Stories that were told before what all share was doubted: how far they were behind then, and how far they agree
    with the answer."""
