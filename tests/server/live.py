"""The explorer as users run it: a process of its own that listens on this machine."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def serving(folder: Path, *more: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address, without a slash at its end, and the process, which ends with the block."""
    command = [sys.executable, "-m", "consilience", "serve", str(folder), "--port", "0", *more]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stderr is not None
            said = ""
            for line in server.stderr:
                said += line
                if found := re.search(r"(http://[^/\s]+)/", line):
                    break
            else:
                raise AssertionError(f"it did not start:\n{said}")
            yield found[1], server
        finally:
            server.kill()
