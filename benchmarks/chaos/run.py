"""What becomes of a fit that is killed, starved, fed rubbish or asked how sure it is. Appends records.

    make chaos                                                  # all parts, then the page
    .venv/bin/python benchmarks/chaos/run.py kills faults
    .venv/bin/python benchmarks/chaos/render.py                 # writes docs/reliability.md

A part is a function that yields records, in a module beside this one.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from consilience.evaluate.provenance import provenance

HERE = Path(__file__).parent
NAMES = ("kills", "faults", "fuzz", "numeric", "calibration")
"""The parts: each is a function of this name, in a module of this name or of another part's."""
LONGEST = 15 * 60.0
"""Seconds for all parts together: one that would begin later is left out, and that is said."""

Part = Callable[[], Iterator[dict[str, Any]]]


def parts() -> dict[str, Part]:
    """The parts that are there."""
    modules = [importlib.import_module(name) for name in NAMES if importlib.util.find_spec(name)]
    return {name: getattr(module, name) for name in NAMES for module in modules if hasattr(module, name)}


PARTS = parts()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"any of {', '.join(PARTS)}; all by default")
    given = parser.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    made, begun = provenance(), time.monotonic()  # of the code that runs, before it can change
    (HERE / "records").mkdir(exist_ok=True)
    for part in given.parts or PARTS:
        if time.monotonic() - begun > LONGEST:
            print(f"{part} is left out: the others took more than {LONGEST / 60:.0f} minutes.", flush=True)
            continue
        run = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        for record in PARTS[part]():
            with (HERE / "records" / f"{part}.jsonl").open("a", encoding="utf-8") as records:
                records.write(json.dumps({"part": part, "run": run, **record, "provenance": made}) + "\n")
            print({"part": part, **record}, flush=True)


if __name__ == "__main__":
    main()
