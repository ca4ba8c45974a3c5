"""The refit as the explorer sees it: one at a time, with progress; it can be cancelled, and its end is noticed."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from consilience.server.shapes import RefitState

GRACE = 5.0
"""Seconds that a cancelled refit has to end by itself."""


class Refitting:
    """Runs refits of one result. `finished` is called, on a thread of its own, at the end of each; it says whether
    there is a new result."""

    def __init__(self, folder: Path, finished: Callable[[], bool]) -> None:
        self._place = folder.parent  # not in the result, which is to be replaced
        # -P: what lies beside the result is data, and no module of ours, whatever it is called.
        self._command = [sys.executable, "-P", "-m", "consilience.server.refit", str(folder)]
        self._finished = finished
        self._lock = threading.Lock()
        self._state = RefitState()
        self._started = 0.0
        self._process: subprocess.Popen[str] | None = None
        self._follower: threading.Thread | None = None
        self._is_cancelled = False

    def state(self) -> RefitState:
        """How it goes."""
        with self._lock:
            if self._state.state == "running":
                return replace(self._state, seconds=round(time.monotonic() - self._started, 1))
            return self._state

    def start(self, n_answers: int) -> bool:
        """Start a refit; False if one is running."""
        with self._lock:
            if self._state.state == "running":
                return False
            self._process = subprocess.Popen(
                self._command,
                cwd=self._place,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
            )
            self._started = time.monotonic()
            self._state = RefitState("running", "Reading the result", n_answers=n_answers)
            self._is_cancelled = False
            self._follower = threading.Thread(target=self._follow, args=(self._process,), daemon=True)
            self._follower.start()
            return True

    def cancel(self) -> bool:
        """Stop the refit; False if none is running. The result stays as it was. Until it has ended it is running: no
        other begins beside it."""
        with self._lock:
            process, follower = self._process, self._follower
            if self._state.state != "running" or process is None or follower is None:
                return False
            self._is_cancelled = True
        process.terminate()
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
        follower.join(GRACE)
        return True

    def _follow(self, process: subprocess.Popen[str]) -> None:
        """Read its progress; any other line is what went wrong, or a warning before it."""
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            try:
                told = json.loads(line)
            except ValueError:
                said = line.strip() or said
                continue
            with self._lock:
                if self._state.state == "running":
                    self._state = replace(self._state, message="Fitting", **told)
        code = process.wait()
        process.stdout.close()
        failure = (said or f"it ended with {code}") if code else ""
        try:
            replaced = self._finished()
        except Exception as error:
            replaced, failure = False, failure or f"the new result cannot be opened: {error}"
        with self._lock:
            if replaced:  # also where it was cancelled a moment too late
                # After the result comes its report, and where memory is short that ends the process.
                warning = self._state.warning or ("it was cancelled" if self._is_cancelled else failure)
                self._state = replace(self._state, warning=warning)
                lost = (
                    f" Its report could not be made ({warning}): `consilience report` makes one."
                    if warning
                    else ""
                )
                self._end("done", f"The result now knows your answers.{lost}")
            elif self._is_cancelled:
                self._end("cancelled", "Cancelled; the result is as it was.")
            else:
                self._end("failed", f"The refit failed: {failure or 'it left no new result'}")

    def _end(self, state: str, message: str) -> None:
        seconds = round(time.monotonic() - self._started, 1)
        self._state = replace(self._state, state=state, message=message, seconds=seconds)
