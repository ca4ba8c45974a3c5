"""Numba's compiler and the scalar functions that compiled kernels share. The only file that imports Numba.

Compiled code is cached on disk beside its source, or where NUMBA_CACHE_DIR points. Numba looks at the file of a
function alone to tell whether it has changed, and not at those of what it calls: so there is a folder for every version
of all kernels. Kernels release the interpreter's lock, so a runner may give each thread a shard.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import exp, log, pi
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, njit
from numba.core import event, types
from numba.extending import intrinsic

from consilience.claims.encoding import Float
from consilience.kernels.state import COARSE, FINE, UNIT

HERE = Path(__file__).parent
VERSION = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(HERE.glob("*.py")))).hexdigest()[:12]
config.CACHE_DIR = str(Path(config.CACHE_DIR or HERE / "__pycache__") / f"compiled-{VERSION}")  # type: ignore[attr-defined]

HALF_LOG_TAU = 0.5 * log(2 * pi)
LOG_2 = log(2.0)
SQRT_HALF = int(np.sqrt(0.5).view(np.int64))
"""√½ as the bits of a float."""

ROWS = 128
"""Dirichlets whose gamma functions are found together: so many that loops are long, so few that they lie near."""

compiled = njit(cache=True, nogil=True, error_model="numpy")
bare = njit(cache=True, nogil=True, error_model="numpy", _nrt=False)  # type: ignore[call-overload]
"""For functions that allocate nothing: without counting references to the arrays that they are given, which in an inner
loop would cost more than the work."""
inlined = njit(cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True)  # type: ignore[call-overload]
"""Likewise, where there are so many arguments that passing them would."""
once = njit(nogil=True, error_model="numpy", _nrt=False, inline="always")  # type: ignore[call-overload]
"""Likewise, for what is large and called in one place: it is part of its caller before anything is compiled, and not
compiled for itself as well."""


class Compiling(event.Listener):
    """Hears of what is compiled, not of what is found on disk.

    began   : called when there is something to compile for the first time
    seconds : that compiling has taken so far
    """

    def __init__(self, began: Callable[[], None]) -> None:
        self.began, self.seconds = began, 0.0
        self._within, self._since = 0, 0.0

    def on_start(self, event: Any) -> None:
        """Something is to be compiled: what a function calls within it, and on one thread at a time."""
        if self._within == 0:
            self._since = time.perf_counter()
            if self.seconds == 0.0:
                self.began()
        self._within += 1

    def on_end(self, event: Any) -> None:
        """Only the outermost counts."""
        self._within -= 1
        if self._within == 0:
            self.seconds += time.perf_counter() - self._since


@contextmanager
def listening(began: Callable[[], None]) -> Iterator[Compiling]:
    """What is compiled meanwhile."""
    compiling = Compiling(began)
    with event.install_listener("numba:compile", compiling):
        yield compiling


def _prefetch(typingctx, array, at):  # type: ignore[no-untyped-def]
    """Have array[at] fetched while something else is worked on: a hint, of which nothing but time depends."""

    def generate(context, builder, signature, given):  # type: ignore[no-untyped-def]
        kept = context.make_array(signature.args[0])(context, builder, given[0])
        stride = builder.extract_value(kept.strides, 0)
        byte, whole = ir.IntType(8), ir.IntType(32)
        place = builder.gep(builder.bitcast(kept.data, byte.as_pointer()), [builder.mul(given[1], stride)])
        kind = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), whole, whole, whole])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [byte.as_pointer()], kind)
        builder.call(fetch, [place, whole(0), whole(3), whole(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


prefetch: Any = intrinsic(_prefetch)


@bare
def fixed(x):  # type: ignore[no-untyped-def]
    """Nats to fixed point."""
    return np.int64(np.rint(x / UNIT))


@bare
def add_term(terms, i, x):  # type: ignore[no-untyped-def]
    """Add nats to term i in two words."""
    coarse = np.rint(x / COARSE)
    terms[i, 0] += np.int64(coarse)
    terms[i, 1] += np.int64(np.rint((x - coarse * COARSE) / FINE))


@bare
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


@bare
def logs(x, out):  # type: ignore[no-untyped-def]
    """ln of normal positive numbers: several times faster than `log`, as its loops neither branch nor call.

    x = 2^e m with m from √½ to √2, and ln m = 2 artanh s with s = (m - 1) / (m + 1), as a series in s².
    """
    bits, mantissa = x.view(np.int64), out.view(np.int64)
    for i in range(len(x)):
        mantissa[i] = bits[i] - ((bits[i] - SQRT_HALF) >> 52 << 52)
    for i in range(len(x)):
        s = (out[i] - 1.0) / (out[i] + 1.0)
        w = s * s
        series = w * (1 / 11 + w * (1 / 13 + w * (1 / 15 + w * (1 / 17 + w * (1 / 19)))))
        series = w * (1 / 3 + w * (1 / 5 + w * (1 / 7 + w * (1 / 9 + series))))
        out[i] = 2.0 * s * (1.0 + series) + ((bits[i] - SQRT_HALF) >> 52) * LOG_2


@bare
def gammas(x, psi, log_gamma, room):  # type: ignore[no-untyped-def]
    """ψ and lnΓ of every x > 0; `room` is (3, at least as many), to work in.

    With P = x (x + 1) … (x + 7): ψ(x) = ψ(x + 8) - P' / P and lnΓ(x) = lnΓ(x + 8) - ln P; then the asymptotic series.
    Factors are taken in pairs, (x + i)(x + 7 - i) = x² + 7x + i (7 - i), which all have the same derivative.
    """
    n = len(x)
    shifted, product, log_of = room[0, :n], room[1, :n], room[2, :n]
    for i in range(n):
        y = min(x[i], 1e30)  # beyond it the shift makes no difference, and its product no number
        a = y * (y + 7.0)
        b, c, d = a + 6.0, a + 10.0, a + 12.0
        p = a * b * c * d
        z = x[i] + 8.0
        both = 1.0 / (z * p)
        inverse = both * p
        square = inverse * inverse
        series = square * (1 / 240 - square * (1 / 132 - square * (691 / 32760)))
        series = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - series)))
        slope = (2.0 * y + 7.0) * ((a + b) * c * d + a * b * (c + d))
        psi[i] = -0.5 * inverse - series - slope * (both * z)
        series = square * (1 / 1680 - square * (1 / 1188 - square * (691 / 360360)))
        log_gamma[i] = (
            inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - series))) - z + HALF_LOG_TAU
        )
        shifted[i] = z
        product[i] = p
    logs(shifted, log_of)
    for i in range(n):
        psi[i] += log_of[i]
        log_gamma[i] += (x[i] + 7.5) * log_of[i]
    logs(product, log_of)
    for i in range(n):
        log_gamma[i] -= log_of[i]


def gammas_of_rows(parameters: Float) -> tuple[Float, Float]:
    """Of Dirichlets along the last axis E ln and ln B."""
    width = parameters.shape[-1]
    rows = np.ascontiguousarray(parameters, np.float64).reshape(-1, width).view()
    rows.flags.writeable = False  # as some are: for both kinds it would be compiled twice
    log, log_norm = np.empty(rows.shape), np.empty(len(rows))
    _gammas_of_rows(rows, log, log_norm)
    return log.reshape(parameters.shape), log_norm.reshape(parameters.shape[:-1])


@compiled
def _gammas_of_rows(parameters, log, log_norm):  # type: ignore[no-untyped-def]
    n, width = parameters.shape
    room = np.empty((6, ROWS * (width + 1)))
    for first in range(0, n, ROWS):
        rows = min(ROWS, n - first)
        used = rows * (width + 1)
        x, psi, log_gamma = room[0, :used], room[1, :used], room[2, :used]
        for i in range(rows):
            whole = 0.0
            for k in range(width):
                x[i * (width + 1) + k] = parameters[first + i, k]
                whole += parameters[first + i, k]
            x[i * (width + 1) + width] = whole
        gammas(x, psi, log_gamma, room[3:])
        for i in range(rows):
            last = i * (width + 1) + width
            norm = -log_gamma[last]
            for k in range(width):
                log[first + i, k] = psi[last - width + k] - psi[last]
                norm += log_gamma[last - width + k]
            log_norm[first + i] = norm


@bare
def log_add(a, b):  # type: ignore[no-untyped-def]
    """ln(e^a + e^b)."""
    high, low = (a, b) if a > b else (b, a)
    return high + np.log1p(exp(low - high))
