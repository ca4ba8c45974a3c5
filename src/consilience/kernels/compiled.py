"""Numba's compiler and the scalar functions that compiled kernels share. The only file that imports Numba.

Compiled code is cached on disk beside its source, or where NUMBA_CACHE_DIR points. Kernels release the interpreter's
lock, so a runner may give each thread a shard.
"""

from __future__ import annotations

from math import exp, log

import numpy as np
from numba import njit

from consilience.kernels.state import COARSE, FINE, UNIT

compiled = njit(cache=True, nogil=True, error_model="numpy")
inlined = njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
"""For functions with many array arguments in an inner loop: to pass them would cost more than the work."""


@compiled
def fixed(x):  # type: ignore[no-untyped-def]
    """Nats to fixed point."""
    return np.int64(np.rint(x / UNIT))


@compiled
def add_term(terms, i, x):  # type: ignore[no-untyped-def]
    """Add nats to term i in two words."""
    coarse = np.rint(x / COARSE)
    terms[i, 0] += np.int64(coarse)
    terms[i, 1] += np.int64(np.rint((x - coarse * COARSE) / FINE))


@compiled
def digamma(x):  # type: ignore[no-untyped-def]
    """ψ(x) for x > 0: recurrence up to 10, then the asymptotic series."""
    shift = 0.0
    while x < 10.0:
        shift -= 1.0 / x
        x += 1.0
    inverse = 1.0 / (x * x)
    series = inverse * (
        1 / 12
        - inverse
        * (
            1 / 120
            - inverse * (1 / 252 - inverse * (1 / 240 - inverse * (1 / 132 - inverse * (691 / 32760))))
        )
    )
    return shift + log(x) - 0.5 / x - series


@compiled
def log_add(a, b):  # type: ignore[no-untyped-def]
    """ln(e^a + e^b)."""
    high, low = (a, b) if a > b else (b, a)
    return high + np.log1p(exp(low - high))
