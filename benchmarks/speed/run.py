"""How fast and how lean: sweeps, fits beside Crowd-Kit, many sources, many claims, reading, start-up. Appends records.

    make peers                                                   # sets up the peers' environment
    .venv/bin/python benchmarks/speed/run.py sweep fits reading start
    .venv/bin/python benchmarks/speed/run.py sources hundred     # half an hour and more
    .venv/bin/python benchmarks/speed/render.py                  # writes docs/results/speed.md

Planted tables: ten claims an object, four labels, 600 of 1,000 sources in thirty groups that repeat a leader nine times
in ten. Every time stands beside a peer's or a floor's of the same run: machines are shared.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

import consilience as cs
from consilience.evaluate.compare import SMALL
from consilience.evaluate.peers import CrowdKit
from consilience.evaluate.provenance import provenance
from consilience.kernels import numba_
from consilience.kernels.state import Grouping
from consilience.models.mss.beliefs import start_beliefs
from consilience.models.mss.table import with_domains
from consilience.runners.inline import Inline

sys.path.insert(0, str(Path(__file__).parents[1]))
from planted import DEPTH, MILLION, N_GROUPS, N_LABELS, Planted

HERE = Path(__file__).parent
PEERS = HERE.parents[1] / ".venv-peers" / "bin" / "python"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="+", choices=sorted(PARTS))
    parser.add_argument(
        "--claims", type=int, nargs="+", help="millions of claims, where not all sizes are wanted"
    )
    given = parser.parse_args()
    provenance()  # of the code that runs, before it can change
    for part in given.parts:
        for record in PARTS[part](given.claims):
            record = {"part": part, **record, "provenance": provenance()}
            with (HERE / "records" / f"{part}.jsonl").open("a", encoding="utf-8") as records:
                records.write(json.dumps(record) + "\n")
            print({key: value for key, value in record.items() if key != "provenance"}, flush=True)


def sweep(millions: list[int] | None) -> Iterator[dict[str, Any]]:
    """One sweep with thirty groups: milliseconds a million claims on one core, beside a copy of the bytes it needs."""
    for size in millions or [1, 10]:
        table, _ = Planted(1_000).claims(size * MILLION // DEPTH)
        claims = cs.read_claims(table, domain="common")
        shard, n_labels = with_domains(claims, np.zeros(claims.n_candidates), None)
        beliefs = start_beliefs(claims.n_sources, n_labels, N_LABELS, 0.95, None)
        group = np.random.default_rng(0).integers(N_GROUPS, size=claims.n_sources)
        grouping = Grouping(
            group,
            np.tile(beliefs.reliability, (N_GROUPS, 1, 1)),
            np.tile(beliefs.habit_prior, (N_GROUPS, 1, 1)),
        )
        touched = [shard.claim_source, shard.claim_candidate, shard.first_claim, shard.first_candidate]
        touched += [shard.log_truth, shard.label, shard.log_unclaimed, np.empty(claims.n_candidates)]
        n_bytes = sum(part.nbytes for part in touched)
        source, target = np.ones(n_bytes // 8), np.zeros(n_bytes // 8)

        def threads(n: int, shard=shard, given=(grouping, beliefs)) -> float:
            shards = list(shard.cut(n))
            runner = Inline(n, n)
            return best(lambda: runner.map_sum(numba_.partition, shards, *given))

        one = best(lambda shard=shard, given=(grouping, beliefs): numba_.partition(shard, *given))
        copy = best(lambda source=source, target=target: np.copyto(target, source))
        yield {
            "n_claims": claims.n_claims, "seconds": one, "ms_a_million": 1e9 * one / claims.n_claims,
            "bytes_a_claim": n_bytes / claims.n_claims, "copy_seconds": copy, "times_copy": one / copy,
            "two_threads": threads(2), "one_thread": threads(1),
        }  # fmt: skip


def fits(millions: list[int] | None) -> Iterator[dict[str, Any]]:
    """Default fits beside Crowd-Kit's DawidSkene with its reading of the same CSV file."""
    peer = CrowdKit.of(PEERS)
    cs.MSS().fit(SMALL)
    for size in millions or [1, 10]:
        table, truth = Planted(1_000).claims(size * MILLION // DEPTH)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "claims.csv"
            pa.csv.write_csv(table, path)
            ours, reading = timed(lambda path=path: cs.read_claims(path))
            fit = cs.MSS().fit(ours)
            theirs = "import sys, time, pandas as pd\nfrom crowdkit.aggregation import DawidSkene\n"
            theirs += "t = time.perf_counter(); d = pd.read_csv(sys.argv[1]); d.columns = ['worker', 'task', 'label']\n"
            theirs += "r = time.perf_counter(); m = DawidSkene(n_iter=100).fit(d)\n"
            theirs += "print(r - t, time.perf_counter() - r, len(m.loss_history_))"
            told = subprocess.run(
                [peer.python, "-W", "ignore", "-c", theirs, path], capture_output=True, text=True, check=True
            ).stdout.split()
        yield {
            "n_claims": ours.n_claims, "seconds": fit.seconds, "reading": reading, "sweeps": fit.sweeps,
            "accuracy": fit.score({f"object{m}": f"v{z}" for m, z in enumerate(truth)}).accuracy,
            "n_groups": fit.n_groups, "crowd-kit": peer.version, "peer_reading": float(told[0]),
            "peer_seconds": float(told[1]), "peer_rounds": int(told[2]),
        }  # fmt: skip


def sources(millions: list[int] | None) -> Iterator[dict[str, Any]]:
    """The same number of claims by more and more sources."""
    for size in millions or [10]:
        for n_sources in (1_000, 10_000, 100_000):
            table, _ = Planted(n_sources).claims(size * MILLION // DEPTH)
            claims = cs.read_claims(table)
            fit = cs.MSS().fit(claims)
            yield {
                "n_claims": claims.n_claims, "n_sources": n_sources, "seconds": fit.seconds,
                "sweeps": fit.sweeps, "n_groups": fit.n_groups,
            }  # fmt: skip


def hundred(millions: list[int] | None) -> Iterator[dict[str, Any]]:
    """From Parquet to a fit, in a process of its own: seconds of each step, and its memory at the height."""
    script = (
        "import sys, time, json, consilience as cs\n"
        "from consilience.memory import height\n"
        "t = time.perf_counter(); claims = cs.read_claims(sys.argv[1]); r = time.perf_counter()\n"
        "fit = cs.MSS().fit(claims)\n"
        "print(json.dumps({'n_claims': claims.n_claims, 'reading': r - t, 'seconds': fit.seconds, 'sweeps': fit.sweeps,"
        "'n_groups': fit.n_groups, 'peak_memory': height()}))"
    )
    for size in millions or [10, 100]:
        with tempfile.TemporaryDirectory() as folder:
            Planted(1_000).write(Path(folder), n_files=size, n_claims=size * MILLION)
            done = subprocess.run(
                [sys.executable, "-c", script, folder], capture_output=True, text=True, check=True
            )
        yield json.loads(done.stdout)


def reading(millions: list[int] | None) -> Iterator[dict[str, Any]]:
    """Processor seconds and memory of reading text ids, and of `fit --out` with simple models, as a whole process."""
    read = "import sys, consilience as cs; cs.read_claims(sys.argv[1])"
    for size in millions or [10]:
        table, _ = Planted(1_000).claims(size * MILLION // DEPTH)
        with tempfile.TemporaryDirectory() as folder:
            paths = {"csv": Path(folder) / "claims.csv", "parquet": Path(folder) / "claims.parquet"}
            pa.csv.write_csv(table, paths["csv"])
            pa.parquet.write_table(table, paths["parquet"])
            for name, path in paths.items():
                yield {
                    "what": f"read {name}",
                    "n_claims": len(table),
                    **cost([sys.executable, "-c", read, path]),
                }
            for model in ("vote", "dawid-skene"):
                command = [sys.executable, "-m", "consilience", "fit", paths["parquet"], "--model", model]
                command += ["--out", Path(folder) / model, "--quiet"]
                yield {"what": f"fit {model}", "n_claims": len(table), **cost(command)}


def start(millions: list[int] | None) -> Iterator[dict[str, Any]]:
    """Whole processes by hyperfine, the least of ten and the median, beside one that imports NumPy."""
    if not shutil.which("hyperfine"):
        raise SystemExit(
            "hyperfine times whole processes here, and is not installed: apt-get install hyperfine."
        )
    with tempfile.TemporaryDirectory() as folder:
        python, program = sys.executable, [sys.executable, "-m", "consilience"]
        subprocess.run([*program, "simulate", "capitals", "--out", f"{folder}/capitals"], check=True)
        commands = {
            "import numpy": [python, "-c", "import numpy"],
            "consilience --version": [*program, "--version"],
            "import consilience": [python, "-c", "import consilience"],
            "consilience demo": [*program, "demo", "--out", f"{folder}/demo"],
            "consilience fit": [*program, "fit", f"{folder}/capitals/claims.csv", "--quiet"],
        }
        told = Path(folder) / "times.json"
        hyperfine = ["hyperfine", "--warmup", "1", "--runs", "10", "--export-json", str(told)]
        for name, command in commands.items():
            subprocess.run([*hyperfine, shlex.join(command)], check=True, stdout=subprocess.DEVNULL)
            times = json.loads(told.read_text())["results"][0]
            yield {"what": name, "seconds": times["min"], "median": times["median"]}


WATCH = """
import json, resource, subprocess, sys, time
started = time.perf_counter()
status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
seconds, usage = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([status, seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024]))
"""


def cost(command: list[Any]) -> dict[str, float]:
    """Wall and processor seconds of a process, and its memory at the height. A small process watches it: one that is
    started from here would be charged with our own memory."""
    watched = subprocess.run(
        [sys.executable, "-c", WATCH, *map(str, command)], capture_output=True, check=True
    )
    status, seconds, cpu_seconds, peak_memory = json.loads(watched.stdout)
    if status:
        raise SystemExit(f"{' '.join(map(str, command))} failed")
    return {"seconds": seconds, "cpu_seconds": cpu_seconds, "peak_memory": peak_memory}


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    done = work()
    return done, time.perf_counter() - started


def best(work: Callable[[], Any], times: int = 5) -> float:
    return min(timed(work)[1] for _ in range(times))


PARTS = {
    "sweep": sweep, "fits": fits, "sources": sources, "hundred": hundred, "reading": reading, "start": start,
}  # fmt: skip

if __name__ == "__main__":
    main()
