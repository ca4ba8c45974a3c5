"""Processes of a Ray cluster that this process started, for tests that kill them."""

from __future__ import annotations

import os
from pathlib import Path


def ray_workers(*, busy: bool = False) -> list[int]:
    """Processes below this one in which tasks run, or run now."""
    names = (b"ray::_",) if busy else (b"ray::_", b"ray::IDLE")
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            is_worker = Path(f"/proc/{pid}/cmdline").read_bytes().startswith(names)
            above = pid
            while is_worker and int(above) not in (0, os.getpid()):
                above = Path(f"/proc/{above}/stat").read_text().rpartition(")")[2].split()[1]
        except OSError:  # it has ended meanwhile
            continue
        if is_worker and int(above):
            found.append(int(pid))
    return found
