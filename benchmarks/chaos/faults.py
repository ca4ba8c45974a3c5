"""`consilience fit --out` under what goes wrong around it: disks, folders, files and memory.

Each fault is met by a real process that would replace an earlier result. It must say what is wrong and what to do, end
with 2 where the user's input is at fault and with 1 where the machine is, leave the earlier result as it was, and
nothing beside it. What must be said is written beside each fault, so that no other message counts. Where memory ends in
the midst of it a library may end the process before anybody can say a word: then a whole result must be there.
"""

from __future__ import annotations

import ctypes
import gzip
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet

import consilience as cs
from consilience.datasets.capitals import capitals

PROGRAM = "from consilience.cli.main import main; main()"
PATIENCE = 120.0
"""Seconds after which a run that should end has failed."""
INSIDE = re.compile(r"Traceback|stack trace|CONSILIENCE_DEBUG|\.so\b|[A-Z][a-z]+Error: ")
"""What a user has no use for."""


VANISH = """
import os
from consilience.claims import parquet

opened = parquet.open_parquet

def open_and_vanish(path, files):
    table = opened(path, files)
    for file in files:
        os.unlink(file)
    return table

parquet.open_parquet = open_and_vanish
"""


ENOUGH_TO_FIT = 3_000
"""Megabytes of address space."""


class CannotBeTried(Exception):
    """The system does not let us bring this fault about."""


@dataclass(frozen=True)
class Case:
    """A fault brought about: what to fit, where to, and what the process may not do."""

    claims: Path
    out: Path
    found: str
    """What must be said of the fault: a regular expression."""
    advice: str
    """What must be said of what to do."""
    limit: Callable[[], None] | None = None
    code: int = 2
    """How it must end: 2 where the input is wrong, 1 where the machine is, 0 where the result is there all the same."""
    may_abort: bool = False
    """Whether a library may end the process without a word."""
    prelude: str = ""
    """What is run in the process before the command."""


@dataclass(frozen=True)
class Outcome:
    """What a run under a fault did, and what was found afterwards."""

    code: int
    said: str
    clear: bool
    """Whether it said what was found and what to do, with the right exit code and nothing of the program's inside."""
    wrong: list[str]
    """What it should not have done."""


def faults(until: float) -> Iterator[dict[str, Any]]:
    """A record for each fault: what was said, and what was wrong, or why it could not be tried."""
    for name in FAULTS:
        begun = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            try:
                if time.monotonic() > until:
                    raise CannotBeTried("the time was up")
                outcome = meet(name, Path(folder))
                found = {**asdict(outcome), "skipped": None}
            except CannotBeTried as why:
                found = {"code": None, "said": None, "clear": None, "wrong": [], "skipped": str(why)}
        yield {"fault": name, **found, "seconds": time.perf_counter() - begun}


def meet(name: str, home: Path) -> Outcome:
    """Bring a fault about in an empty folder, where an earlier result lies, and run a fit that would replace it."""
    pyarrow.csv.write_csv(capitals(seed=0).claims, home / "claims.csv")
    cs.Vote().fit(home / "claims.csv").save(home / "out")
    with FAULTS[name](home) as case:
        before = contents(case.out)
        given = [str(case.claims), "--out", str(case.out), "--quiet"]
        done = subprocess.run(
            [sys.executable, "-c", f"{case.prelude}\n{PROGRAM}", "fit", *given],
            preexec_fn=case.limit,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        said = done.stderr.replace(str(home), "…").strip()
        unclear = [] if done.returncode == case.code else [f"it ended with {done.returncode}"]
        if INSIDE.search(said):
            unclear.append("it showed the program's inside")
        if not said.startswith("consilience: " if case.code else "warning: "):
            unclear.append("it is not our own message")
        if not re.search(case.found, said):
            unclear.append("it did not say what was found")
        if not re.search(case.advice, said):
            unclear.append("it did not say what to do")
        wrong = [] if case.may_abort else list(unclear)
        if case.code and not case.may_abort and contents(case.out) != before:
            wrong.append("the earlier result was changed")
        left = sorted(name for name in os.listdir(case.out.parent) if name.startswith(".out."))
        if left and not case.may_abort:
            wrong.append(f"it left {', '.join(left)}")
        try:
            cs.load(case.out)
        except cs.errors.ConsilienceError as error:
            wrong.append(str(error))
    said = said.removeprefix("consilience: ").removeprefix("warning: ")
    return Outcome(done.returncode, said if not unclear else first_line(said), not unclear, wrong)


def first_line(text: str) -> str:
    """The first line that says anything."""
    return next((line for line in text.splitlines() if re.search(r"\w", line)), "")


def contents(folder: Path) -> dict[str, bytes]:
    """Every file and what is in it."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@contextmanager
def full_disk(home: Path) -> Iterator[Case]:
    """A volume with room for one small result, not for the next."""
    volume = home / "volume"
    volume.mkdir()
    page = 4096
    taken = sum(-(-path.stat().st_size // page) * page for path in (home / "out").iterdir())
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={taken + 5 * page}", "tmpfs", str(volume)], capture_output=True
    )
    if done.returncode:
        raise CannotBeTried("no small volume can be mounted here: that takes root")
    try:
        shutil.copytree(home / "out", volume / "out")
        yield Case(home / "claims.csv", volume / "out", "no space is left", "Free some space", code=1)
    finally:
        subprocess.run(["umount", "--lazy", str(volume)], check=True)  # it may be busy for a moment


@contextmanager
def largest_file(home: Path) -> Iterator[Case]:
    """No file may be larger than 8 kB."""
    limit = partial(limited, resource.RLIMIT_FSIZE, 8_000)
    yield Case(
        home / "claims.csv", home / "out", "larger than this process may", "Raise the limit", limit, code=1
    )


@contextmanager
def read_only_folder(home: Path) -> Iterator[Case]:
    """The folder around the result may not be written to."""
    inside = home / "inside"
    inside.mkdir()
    (home / "out").rename(inside / "out")
    inside.chmod(0o555)
    try:
        yield Case(home / "claims.csv", inside / "out", "permission denied", "another folder", unprivileged)
    finally:
        inside.chmod(0o755)


@contextmanager
def unreadable_input(home: Path) -> Iterator[Case]:
    """The claims may not be read."""
    (home / "claims.csv").chmod(0)
    yield Case(home / "claims.csv", home / "out", "permission denied", "right to read it", unprivileged)


@contextmanager
def missing_input(home: Path) -> Iterator[Case]:
    """The claims are a link to nothing."""
    (home / "claims.csv").rename(home / "old.csv")
    (home / "claims.csv").symlink_to("gone.csv")
    yield Case(
        home / "claims.csv", home / "out", "'gone.csv', which does not exist", "Check where it should lead"
    )


@contextmanager
def vanishing_input(home: Path) -> Iterator[Case]:
    """The claims go between the look at their columns and the reading of their rows."""
    path = home / "claims.parquet"
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(home / "claims.csv"), path)
    yield Case(path, home / "out", "was there and is gone", "Put it back, or give another", prelude=VANISH)


@contextmanager
def truncated_parquet(home: Path) -> Iterator[Case]:
    """The second half of a Parquet file is missing."""
    path = home / "claims.parquet"
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(home / "claims.csv"), path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    yield Case(path, home / "out", "cannot be read: .*corrupted", "fetch it again")


@contextmanager
def damaged_parquet(home: Path) -> Iterator[Case]:
    """Bytes in the middle of a Parquet file are others."""
    path = home / "claims.parquet"
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(home / "claims.csv"), path)
    content = bytearray(path.read_bytes())
    content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)
    path.write_bytes(bytes(content))
    yield Case(path, home / "out", "cannot be read: .*Invalid data", "fetch it again")


@contextmanager
def truncated_gzip(home: Path) -> Iterator[Case]:
    """The second half of a compressed file is missing."""
    path = home / "claims.csv.gz"
    packed = gzip.compress((home / "claims.csv").read_bytes())
    path.write_bytes(packed[: len(packed) // 2])
    yield Case(path, home / "out", "Truncated compressed", "fetch it again")


def little_memory(megabytes: int) -> Callable[[Path], AbstractContextManager[Case]]:
    """So many megabytes of address space, less than the libraries take."""

    @contextmanager
    def fault(home: Path) -> Iterator[Case]:
        limit = partial(limited, resource.RLIMIT_AS, megabytes << 20)
        yield Case(home / "claims.csv", home / "out", "takes .* GB of address", "more memory", limit, code=1)

    return fault


@contextmanager
def no_room_to_draw(home: Path) -> Iterator[Case]:
    """Enough for the fit, and far too little for what draws charts."""
    limit = partial(limited, resource.RLIMIT_AS, ENOUGH_TO_FIT << 20)
    yield Case(home / "claims.csv", home / "out", "without a report.html", "ulimit -v", limit, code=0)


@contextmanager
def large_table(home: Path) -> Iterator[Case]:
    """Enough for a small fit, and not for this one: memory ends in the midst of it."""
    path, each = home / "claims.parquet", np.arange(20_000_000)
    pyarrow.parquet.write_table(pyarrow.table({"source": each % 7, "object": each, "value": each % 5}), path)
    limit = partial(limited, resource.RLIMIT_AS, ENOUGH_TO_FIT << 20)
    yield Case(path, home / "out", "Out of memory", "smaller table", limit, code=1, may_abort=True)


def limited(what: int, most: int) -> None:
    """Take this limit, for good."""
    resource.setrlimit(what, (most, most))


def unprivileged() -> None:
    """Give up what lets root read and write everything: CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH leave the set that the
    next program can have."""
    drop, system = 24, ctypes.CDLL(None)
    if hasattr(system, "prctl"):
        for capability in (1, 2):
            system.prctl(drop, capability, 0, 0, 0)


FAULTS: dict[str, Callable[[Path], AbstractContextManager[Case]]] = {
    "full disk": full_disk,
    "limit on the size of files": largest_file,
    "read-only folder": read_only_folder,
    "unreadable input": unreadable_input,
    "missing input": missing_input,
    "vanishing input": vanishing_input,
    "truncated Parquet": truncated_parquet,
    "damaged Parquet": damaged_parquet,
    "truncated gzip": truncated_gzip,
    "600 MB of memory": little_memory(600),
    "1,000 MB of memory": little_memory(1_000),
    "2,000 MB of memory": little_memory(2_000),
    "no room to draw": no_room_to_draw,
    "a table too large for the memory": large_table,
}
