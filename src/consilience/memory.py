"""Memory: asked for before it is needed, and measured.

Where address space is limited (`ulimit -v`), libraries that run out of it end the process without a word, or say that
something else is wrong. So what they are known to take is asked for, and given back, before they are loaded.
"""

from __future__ import annotations

import gc
import mmap
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
LIBRARIES, A_CORE = 2.2, 0.15
"""Gigabytes of address space, most of it never used, that a small fit takes, and more for the threads of each core."""


def require(gigabytes: float, who: str) -> None:
    """A MemoryError in words, if this process may not have so much address space more."""
    if not hasattr(mmap, "MAP_ANONYMOUS"):  # a system without such limits
        return
    kind = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    try:
        mmap.mmap(-1, int(gigabytes * 2**30), flags=kind, prot=mmap.PROT_READ).close()
    except OSError:
        raise MemoryError(
            f"{who} takes {gigabytes:.1f} GB of address space, and this process may not have so much (see ulimit -v)."
        ) from None


def require_for_a_fit() -> None:
    """What every fit takes, however small its table."""
    require(LIBRARIES + A_CORE * (os.cpu_count() or 1), "A fit, however small,")


def grown(work: Callable[[], T]) -> tuple[T, int | None]:
    """What the work returns, and the bytes by which this process had grown at its height; None where it cannot be told.

    Linux keeps the height, and forgets it when asked. (Python can watch its own allocations, slowly; where libraries
    have threads of their own, that can end the process.)
    """
    gc.collect()
    try:
        Path("/proc/self/clear_refs").write_text("5")
        before = _status("VmRSS")
    except OSError:
        return work(), None
    found = work()
    return found, max(height() - before, 0)


def height() -> int:
    """Bytes that this process had at the height, on Linux."""
    return _status("VmHWM")


def _status(field: str) -> int:
    """Bytes that the kernel has written down for this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))
