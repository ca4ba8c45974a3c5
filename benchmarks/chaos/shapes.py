"""Tables of extreme shapes, each fitted in a process of its own: seconds and peak memory.

    .venv/bin/python benchmarks/chaos/run.py shapes        # all of them, some ten minutes; appends records
    .venv/bin/python benchmarks/chaos/shapes.py "1M objects with one claim" mss 1000000

A fit that does not end in time is a record too. Smaller ones of each shape are in tests/fuzz.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

import consilience as cs
from consilience.memory import height

SHAPES = {
    "one object with 1M claims": 1_000_000,
    "one source with 10M claims": 10_000_000,
    "1M objects with one claim": 1_000_000,
    "100,000 values of one object": 100_000,
}
LIMIT = 900
"""Seconds that a fit may take."""


def table(shape: str, n: int) -> pa.Table:
    """A table of this shape with n claims."""
    rng, each = np.random.default_rng(0), np.arange(n)
    few, one = rng.integers(4, size=n), np.zeros(n, np.int64)
    source, object_, value = {
        "one object with 1M claims": (each, one, few),
        "one source with 10M claims": (one, each, few),
        "1M objects with one claim": (rng.integers(1000, size=n), each, few),
        "100,000 values of one object": (each, one, each),
    }[shape]
    return pa.table({"source": source, "object": object_, "value": value})


def measure(shape: str, model: str, n: int) -> dict[str, Any]:
    """Read and fit here; called in a process of its own, whose peak memory it is."""
    claims = cs.read_claims(table(shape, n))
    started = time.perf_counter()
    fit = cs.model(model).fit(claims)
    seconds = time.perf_counter() - started
    sums = np.add.reduceat(fit.truth, claims.first_candidate[:-1])
    assert np.allclose(sums, 1, atol=1e-6)
    return {
        "seconds": seconds,
        "peak_mb": height() / 2**20,
        "warnings": [warning.kind for warning in fit.warnings],
    }


def shapes(until: float) -> Iterator[dict[str, Any]]:
    """A record for each shape, by voting and by the default, of those that begin before this moment."""
    for shape, n in SHAPES.items():
        for model in ("vote", "mss"):
            if time.monotonic() > until:
                return
            record = {"part": "shapes", "data": shape, "model": model, "n_claims": n, "failure": None}
            try:
                run = subprocess.run(
                    [sys.executable, __file__, shape, model, str(n)],
                    capture_output=True, text=True, timeout=LIMIT, check=False,
                )  # fmt: skip
                failed = run.returncode != 0
                record |= {"failure": run.stderr[-300:]} if failed else json.loads(run.stdout)
            except subprocess.TimeoutExpired:
                record["failure"] = f"not finished after {LIMIT} seconds"
            yield record


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
