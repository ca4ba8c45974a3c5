"""How fast rivals are on a million claims, beside Crowd-Kit and a bare NumPy floor in the same run. Appends records.

    make peers                                              # sets up the peers' environment
    .venv/bin/python benchmarks/rivals/run.py models peers
    .venv/bin/python benchmarks/rivals/render.py            # writes docs/results/rivals.md

1,000 sources, 100,000 objects with ten claims each, K = 4, every source right with a probability of its own.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import consilience as cs
from consilience.evaluate.compare import run
from consilience.evaluate.peers import CrowdKit, write_csv
from consilience.evaluate.provenance import provenance
from consilience.models.registry import MODELS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PEERS = ROOT / ".venv-peers" / "bin" / "python"
N_SOURCES, N_OBJECTS, DEPTH, N_LABELS = 1_000, 100_000, 10, 4
LEFT_OUT = ("mss",)  # it has a benchmark of its own
SHORTENED: dict[str, dict[str, Any]] = {"ebcc": {"n_starts": 1, "max_rounds": 20}}
"""Ten starts of hundreds of rounds would take half an hour."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="+", choices=sorted(PARTS))
    parser.add_argument("--only", nargs="+", help="models, where not all are wanted")
    given = parser.parse_args()
    provenance()  # of the code that runs, before it can change
    for part in given.parts:
        for record in PARTS[part](given.only):
            record = {"part": part, **record, "provenance": provenance()}
            with (HERE / "records" / f"{part}.jsonl").open("a", encoding="utf-8") as records:
                records.write(json.dumps(record) + "\n")
            print({key: value for key, value in record.items() if key != "provenance"}, flush=True)


def models(only: list[str] | None) -> Iterator[dict[str, Any]]:
    """Every model: seconds a round, and bytes a claim at its height."""
    claims, truth = simulated(N_OBJECTS)
    wanted = only or [name for name in MODELS if name not in LEFT_OUT]
    for outcome in run(claims, [cs.model(name, **SHORTENED.get(name, {})) for name in wanted], truth=truth):
        yield {
            "model": outcome.model, "n_claims": claims.n_claims, "seconds": outcome.seconds,
            "rounds": outcome.sweeps, "seconds_a_round": (outcome.seconds or 0) / (outcome.sweeps or 1),
            "bytes_a_claim": (outcome.peak_memory or 0) / claims.n_claims, "accuracy": outcome.accuracy,
            "error": outcome.error,
        }  # fmt: skip


def peers(only: list[str] | None) -> Iterator[dict[str, Any]]:
    """Dawid–Skene and GLAD, ours and Crowd-Kit's, a round more of each; for Dawid–Skene also bare NumPy."""
    claims, _ = simulated(N_OBJECTS)
    peer = CrowdKit.of(PEERS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "claims.csv"
        write_csv(claims, path)
        for name, few, many in (("dawid-skene", 2, 6), ("glad", 0, 1)):
            if only and name not in only:
                continue

            def theirs(rounds: int, name: str = name) -> float:
                """Nought rounds take no time: of GLAD one round takes minutes, so reading counts with it."""
                if not rounds:
                    return 0.0
                return float(
                    peer.run(path, {name: {"n_iter": rounds, "tol": 1e-300}}, longest=3_600.0)[name][
                        "seconds"
                    ]
                )

            def ours(rounds: int, name: str = name) -> float:
                model = cs.model(name, max_rounds=rounds, tolerance=1e-300)
                return min(model.fit(claims).seconds for _ in range(3))

            record = {
                "model": name, "n_claims": claims.n_claims, "crowd-kit": peer.version,
                "seconds_a_round": (ours(12) - ours(4)) / 8,
                "peer_seconds_a_round": (theirs(many) - theirs(few)) / (many - few),
            }  # fmt: skip
            if name == "dawid-skene":
                record["floor_seconds_a_round"] = floor(claims, 10)
            yield record


def floor(claims: cs.Claims, rounds: int) -> float:
    """Seconds a round of Dawid and Skene's EM written for this table alone, in as few NumPy calls as will do."""
    said = claims.candidate_value[claims.claim_candidate].astype(np.int64)
    cell = claims.claim_source.astype(np.int64) * N_LABELS + said
    object_ = claims.claim_object()
    truth = np.zeros((claims.n_objects, N_LABELS))
    np.add.at(truth, (object_, said), 1 / DEPTH)

    def em() -> None:
        nonlocal truth
        for _ in range(rounds):
            rows = truth[object_]
            counts = np.stack(
                [np.bincount(cell, rows[:, z], minlength=N_SOURCES * N_LABELS) for z in range(N_LABELS)],
                axis=1,
            ).reshape(N_SOURCES, N_LABELS, N_LABELS)
            log_confusion = np.log(counts / counts.sum(axis=1, keepdims=True) + 1e-12).reshape(-1, N_LABELS)
            joint = log_confusion[cell].reshape(-1, DEPTH, N_LABELS).sum(axis=1) + np.log(truth.mean(axis=0))
            joint -= joint.max(axis=1, keepdims=True)
            np.exp(joint, out=joint)
            truth = joint / joint.sum(axis=1, keepdims=True)

    return min(timed(em)[1] for _ in range(3)) / rounds


def simulated(n_objects: int) -> tuple[cs.Claims, dict[str, str]]:
    """Claims by sources with confusions of their own."""
    rng = np.random.default_rng(0)
    truth = rng.integers(N_LABELS, size=n_objects)
    right = rng.uniform(0.4, 0.95, N_SOURCES)
    source = np.argsort(rng.random((n_objects, N_SOURCES // 10)), axis=1)[:, :DEPTH] * 10
    source = (source + rng.integers(10, size=source.shape)).ravel()
    object_ = np.repeat(np.arange(n_objects), DEPTH)
    wrong = (truth[object_] + rng.integers(1, N_LABELS, len(object_))) % N_LABELS
    value = np.where(rng.random(len(object_)) < right[source], truth[object_], wrong)
    names = {"source": "s", "object": "o", "value": "v"}
    table = pa.table(
        {
            key: np.char.add(names[key], column.astype(str))
            for key, column in (("source", source), ("object", object_), ("value", value))
        }
    )
    return cs.read_claims(table, domain="common"), {f"o{m}": f"v{z}" for m, z in enumerate(truth)}


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    done = work()
    return done, time.perf_counter() - started


PARTS = {"models": models, "peers": peers}

if __name__ == "__main__":
    main()
