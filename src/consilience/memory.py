"""Memory asked for before it is needed.

Where address space is limited (`ulimit -v`), libraries that run out of it end the process without a word, or say that
something else is wrong. So what they are known to take is asked for, and given back, before they are loaded.
"""

from __future__ import annotations

import mmap
import os

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
