"""How long the explorer's pages take: python benchmarks/explorer/pages.py [OBJECTS] [CLAIMS_PER_OBJECT]

Makes a table with `bloc`, fits it roughly, saves it, serves it from a process of its own, and asks for pages at random.
Prints one JSON object: seconds to open, megabytes held, and milliseconds by page (median, 95th percentile, most).
"""

from __future__ import annotations

import json
import random
import re
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from consilience.claims.reading import read_claims
from consilience.datasets.synthetic import bloc
from consilience.evaluate.provenance import provenance
from consilience.models.mss.model import MSS

ASKED = 200
"""Requests of each kind of page."""


def main() -> None:
    given = [*sys.argv[1:], *("1000000", "10")[len(sys.argv) - 1 :]]
    print(json.dumps(benchmark(*map(int, given))))


def benchmark(n_objects: int, per_object: int) -> dict[str, Any]:
    """Everything that is printed."""
    with TemporaryDirectory() as place:
        folder = Path(place) / "result"
        claims = read_claims(bloc(n_sources=1000, n_objects=n_objects, claims_per_object=per_object).claims)
        some = claims.objects.to_pylist()[:: max(n_objects // 20_000, 1)]
        MSS(n_starts=1, max_sweeps=20).fit(claims).save(folder)
        del claims
        command = [sys.executable, "-m", "consilience", "serve", str(folder), "--port", "0"]
        began = time.perf_counter()
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
            assert server.stderr is not None
            url = next(
                found[0]
                for line in server.stderr
                if (found := re.search(r"http://\S+(?=/)", line)) is not None
            )
            opened = time.perf_counter() - began
            try:
                return {
                    "objects": n_objects,
                    "claims": n_objects * per_object,
                    "saved_mb": round(sum(path.stat().st_size for path in folder.iterdir()) / 1e6),
                    "seconds_to_open": round(opened, 1),
                    "ms": measured(url, some),
                    "seconds_to_rank": round(seconds_to_rank(url), 1),
                    "resident_mb": resident(server.pid),
                    "provenance": provenance(),
                }
            finally:
                server.terminate()


def measured(url: str, objects: list[str]) -> dict[str, dict[str, float]]:
    """Milliseconds of pages asked for one after the other, each of another object or source."""
    rng = random.Random(0)
    pages = {
        "object": lambda: f"/object?id={rng.choice(objects)}",
        "api_object": lambda: f"/api/object?id={rng.choice(objects)}",
        "objects_text": lambda: f"/objects?text={rng.randrange(10**6):06d}",
        "objects_uncertain": lambda: "/objects?order=uncertainty&differs=yes",
        "source": lambda: f"/source?number={rng.randrange(1000)}",
        "group": lambda: "/group?number=1",
    }
    found = {}
    for name, address in pages.items():
        times = []
        for _ in range(ASKED if "object" in name.split("_")[-1] else 20):
            start = time.perf_counter()
            urllib.request.urlopen(url + address()).read()
            times.append(1000 * (time.perf_counter() - start))
        found[name] = {
            "median": round(statistics.median(times), 1),
            "p95": round(statistics.quantiles(times, n=20)[-1], 1),
            "most": round(max(times), 1),
        }
    return found


def seconds_to_rank(url: str) -> float:
    """How long it takes until the queue is by worth."""
    asked = time.perf_counter()
    while not json.load(urllib.request.urlopen(f"{url}/api/queue?size=1"))["ready"]:
        time.sleep(0.2)
    return time.perf_counter() - asked


def resident(process: int) -> int:
    """Megabytes of memory that a process holds, mapped files included; 0 where the system does not tell."""
    try:
        status = Path(f"/proc/{process}/status").read_text("utf-8")
    except OSError:
        return 0
    return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) // 1024


if __name__ == "__main__":
    main()
