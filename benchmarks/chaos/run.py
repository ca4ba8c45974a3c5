"""What becomes of a fit that is killed, starved, fed rubbish or asked how sure it is. Appends records.

    make chaos                                                  # all parts but shapes, then the page
    .venv/bin/python benchmarks/chaos/run.py kills faults
    .venv/bin/python benchmarks/chaos/run.py shapes             # some ten minutes
    .venv/bin/python benchmarks/chaos/render.py                 # writes docs/reliability.md

A part is a function that yields records, in a module beside this one.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from consilience.evaluate.provenance import provenance

HERE = Path(__file__).parent
SECONDS = {"faults": 75, "numeric": 40, "fuzz": 140, "calibration": 330, "kills": 255}
"""What each part may take, and what those before it have left. When its time is up it stops, and its records say how
much it did. The sum is a minute short of a quarter of an hour: that is for what is under way then."""
ALONE = ("shapes",)
"""Parts that run only where they are named: they take as long as they take."""
MODULES = {"numeric": "fuzz"}
"""Where a part is, if not in a module of its name."""

Part = Callable[[float], Iterator[dict[str, Any]]]
"""Yields records until this moment of the monotonic clock, or until it has done all."""


def part(name: str) -> Part:
    """The part of this name: a function in a module beside this one."""
    found: Part = getattr(importlib.import_module(MODULES.get(name, name)), name)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = (*SECONDS, *ALONE)
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        help=f"any of {', '.join(names)}; by default all but {', '.join(ALONE)}",
    )
    given = parser.parse_args()
    if unknown := set(given.parts) - set(names):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    made, begun = provenance(), time.monotonic()  # of the code that runs, before it can change
    (HERE / "records").mkdir(exist_ok=True)
    until = begun
    for name in given.parts or SECONDS:
        until += SECONDS.get(name, math.inf)
        run = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        for record in part(name)(until):
            with (HERE / "records" / f"{name}.jsonl").open("a", encoding="utf-8") as records:
                records.write(json.dumps({"part": name, "run": run, **record, "provenance": made}) + "\n")
            print({"part": name, **record}, flush=True)
        print(f"{name}: {(time.monotonic() - begun) / 60:.1f} minutes since the beginning", flush=True)


if __name__ == "__main__":
    main()
