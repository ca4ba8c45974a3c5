"""Other people's implementations beside ours: Crowd-Kit, in an environment of its own (`make peers` sets one up)."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from consilience.claims.encoding import Claims
from consilience.errors import EngineUnavailableError, UnsuitableTableError
from consilience.evaluate.crowd_kit import MODELS

__all__ = ["MODELS", "CrowdKit", "write_csv"]

SCRIPT = Path(__file__).with_name("crowd_kit.py")
LONGEST = 180.0
"""Seconds after which a peer is given up."""
MOST_LABELS = 100
"""All but voting keep every label of the table for every object, some every pair of labels for every source: with the
thousands of an open domain they take hours or all memory."""


@dataclass(frozen=True)
class CrowdKit:
    """Crowd-Kit as another Python has it."""

    python: Path
    version: str

    @classmethod
    def of(cls, python: str | Path) -> CrowdKit:
        """The Crowd-Kit of that Python, or an error that says how to get one."""
        ask = "from importlib.metadata import version; print(version('crowd-kit'))"
        try:
            told = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            raise EngineUnavailableError(
                f"{python} is no Python with Crowd-Kit. In a checkout, `make peers` sets up .venv-peers/bin/python; "
                "elsewhere: python -m venv peers && peers/bin/pip install crowd-kit."
            ) from None
        return cls(Path(python), told.stdout.strip())

    def suits(self, name: str, claims: Claims) -> None:
        """An error where a model would take for ever."""
        if name != "vote" and claims.n_values > MOST_LABELS:
            raise UnsuitableTableError(
                f"crowd-kit/{name}",
                f"labels that all objects share, at most {MOST_LABELS}",
                f"{claims.n_values:,} different values",
                "it would keep every one of them for every object",
            )

    def run(
        self, path: Path, wanted: Mapping[str, Mapping[str, Any]], longest: float = LONGEST
    ) -> dict[str, dict[str, Any]]:
        """What each of the models, with these settings, makes of the claims in a CSV file of `write_csv`."""
        with tempfile.TemporaryDirectory() as folder:
            result = Path(folder) / "result.json"
            command: list[str | Path] = [
                self.python,
                "-W",
                "ignore",
                SCRIPT,
                path,
                result,
                json.dumps(wanted),
            ]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=longest, check=False)
            except subprocess.TimeoutExpired:
                raise RuntimeError(f"given up after {longest:.0f} seconds") from None
            if done.returncode:
                raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1])
            found: dict[str, dict[str, Any]] = json.loads(result.read_text("utf-8"))
            return found


def write_csv(claims: Claims, path: Path) -> None:
    """The claims, with the places of source, object and value in their vocabularies: text of any type survives that."""
    rows = {
        "source": claims.claim_source,
        "object": claims.claim_object(),
        "value": claims.candidate_value[claims.claim_candidate],
    }
    pyarrow.csv.write_csv(pa.table(rows), path)
