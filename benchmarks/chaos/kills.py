"""`consilience fit --out` killed with SIGKILL at random moments, resumed, killed again, until it is done.

After every kill the folder must hold the result that was there before, the new one or none, never a part of one; and
the run that gets through must leave the bits of one that was never killed, and nothing beside them.
"""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.csv

import consilience as cs
from consilience.datasets.synthetic import bloc

PROGRAM = (sys.executable, "-m", "consilience")
EVERY = "0.05"
"""Seconds between checkpoints here, so that many are written and many are hit."""
WHEN = ("any moment", "while a checkpoint is written", "while the result is written")
SEEDS = (0, 1)
N_STARTS = 2
"""Starts of each fit: few, so that there is time for many kills."""
PATIENCE = 120.0
"""Seconds after which a run that should end has failed."""


@dataclass
class Tally:
    """What became of the kills."""

    tried: int = 0
    survived: int = 0
    resumed: int = 0
    """Runs that went on from a checkpoint that a killed one had left."""
    finished: int = 0
    """Runs that got through."""
    same_bits: int = 0
    """Of those, the ones whose files are bit by bit those of an uninterrupted run."""
    failures: list[str] = field(default_factory=list)


def kills(until: float, n: int = 100) -> Iterator[dict[str, Any]]:
    """A record for each kind of moment: n kills in all, or fewer where the time is up; all kinds side by side."""

    def of_kind(i: int) -> dict[str, Any]:
        begun = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            tally = kill_often(
                Path(folder), n // len(WHEN) + (i < n % len(WHEN)), WHEN[i], random.Random(i), until
            )
        return {"when": WHEN[i], **asdict(tally), "seconds": time.perf_counter() - begun}

    with ThreadPoolExecutor(len(WHEN)) as pool:
        yield from pool.map(of_kind, range(len(WHEN)))


def whole_runs(place: Path) -> dict[int, dict[str, str]]:
    """What uninterrupted fits leave, by seed: the digest of every file."""
    pyarrow.csv.write_csv(bloc(n_sources=80, n_objects=300).claims, place / "claims.csv")
    return {
        seed: files_of(cs.MSS(n_starts=N_STARTS).fit(place / "claims.csv", seed=seed).save(place / "whole"))
        for seed in SEEDS
    }


def kill_often(
    place: Path,
    n: int,
    when: str,
    chance: random.Random,
    until: float = math.inf,
    seconds: float = math.inf,
) -> Tally:
    """Kill n times, or as often as there is time for, in chains of runs that each resume from the one before until one
    gets through.

    seconds : that a run takes, where it is known; otherwise the first tells
    """
    expected, tally, seed = whole_runs(place), Tally(), SEEDS[0]
    environment = {**os.environ, "CONSILIENCE_CHECKPOINT_EVERY": EVERY}
    out, kept = place / "out", place / "out.checkpoint"
    shutil.copytree(place / "whole", out)  # of another seed: already the first must replace a result
    while True:
        goes_on, begun = kept.exists(), time.perf_counter()
        process = subprocess.Popen(command(place, seed), env=environment, stderr=subprocess.PIPE, text=True)
        # One that tells how long a run takes, and the last, must get through.
        is_enough = tally.tried >= n or time.monotonic() >= until
        may_be_killed = not is_enough and seconds < math.inf
        is_killed = may_be_killed and kill_when(process, place, when, seconds, chance)
        _, said = process.communicate(timeout=PATIENCE)
        tally.resumed += goes_on
        if is_killed:
            wrong = look(out, list(expected.values()))
            tally.tried += 1
            tally.survived += not wrong
            tally.failures += wrong
            continue
        if process.returncode:
            tally.failures.append(f"a run ended with {process.returncode}: {said}")
            return tally
        seconds = seconds if goes_on else min(seconds, time.perf_counter() - begun)
        tally.finished += 1
        tally.same_bits += files_of(out) == expected[seed]
        tally.failures += [f"left beside a finished result: {name}" for name in leftovers(place)]
        if is_enough:
            return tally
        seed = SEEDS[(SEEDS.index(seed) + 1) % len(SEEDS)]  # the next must replace this one's result


def kill_when(
    process: subprocess.Popen[str], place: Path, when: str, seconds: float, chance: random.Random
) -> bool:
    """Kill the process at a moment of this kind; whether it was before it ended by itself."""
    if when == WHEN[0]:
        try:
            process.wait(chance.uniform(0.2, 1.2 * seconds))
        except subprocess.TimeoutExpired:
            process.kill()
            return True
        return False
    # Its number is in the name, so what others left is not taken for it; a folder without tables is only a trial.
    sign, longest = f".out.checkpoint.saving-{process.pid}-*", 0.002
    if when == WHEN[2]:
        sign, longest = f".out.saving-{process.pid}-*/truths.parquet", 0.01
    earliest = time.monotonic() + (chance.uniform(0.0, seconds) if when == WHEN[1] else 0.0)
    while process.poll() is None:
        if time.monotonic() >= earliest and any(place.glob(sign)):
            time.sleep(chance.uniform(0.0, longest))
            process.kill()
            return process.wait() < 0
        time.sleep(0.0005)
    return False


def look(out: Path, whole: Sequence[dict[str, str]]) -> list[str]:
    """What is wrong with a folder after a kill: nothing where there is none, or a whole result."""
    if not out.exists():
        return []
    try:
        cs.load(out)
    except cs.errors.ConsilienceError as error:
        return [f"a part of a result: {error}"]
    return [] if files_of(out) in whole else ["a result that is neither the old one nor the new one"]


def leftovers(place: Path) -> list[str]:
    """What lies beside a result and should not."""
    return sorted(name for name in os.listdir(place) if name not in ("claims.csv", "out", "whole"))


def files_of(folder: Path) -> dict[str, str]:
    """The digest of every file of a result, as its manifest has them; cs.load checks that they are true."""
    files: dict[str, str] = json.loads((folder / "manifest.json").read_text("utf-8"))["files"]
    return files


def command(place: Path, seed: int) -> list[str]:
    """The command line of a fit that goes on with the one before."""
    given = [str(place / "claims.csv"), "--out", str(place / "out"), "--seed", str(seed), "--quiet"]
    return [*PROGRAM, "fit", *given, "--set", f"n_starts={N_STARTS}", "--resume"]
