"""A table before it is read: every kind of file, frame or query comes down to these two classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consilience.errors import Problem


@dataclass(frozen=True, eq=False)
class Cells:
    """The columns asked for.

    columns : a pyarrow ChunkedArray for each; one that cannot be had is left out, with a problem
    rows    : (n_rows,) the number that the user would give each row, counted from 1 below the header;
              None when no row was left out, so that they simply count up
    """

    columns: dict[str, Any]
    problems: tuple[Problem, ...] = ()
    rows: NDArray[np.int64] | None = None


@dataclass(frozen=True, eq=False)
class Table:
    """A table that is open: its columns are known, its cells are not yet loaded."""

    label: str
    """What messages call it."""
    columns: Sequence[str]
    load: Callable[[Sequence[str]], Cells]
    frame: str = "pyarrow"
    """The kind of frame that results come back as."""
    is_raw: bool = False
    """Whether cells are bytes that must be decoded as UTF-8."""
    in_memory: bool = False
    """Whether a program made it: then that there are no rows may be meant; a file without rows is a mistake."""
