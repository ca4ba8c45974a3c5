"""The same fit on a Ray cluster of this machine: its bits, what kills cost, and what a sweep costs. Appends records.

    .venv/bin/python benchmarks/cluster/run.py bits workers nodes drivers     # some ten minutes
    .venv/bin/python benchmarks/cluster/run.py cost memory                    # 20 and 100 million claims: half an hour
    .venv/bin/python benchmarks/cluster/render.py                             # writes docs/results/cluster.md

All is on loopback: several nodes are several sets of Ray's processes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

os.environ |= {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}  # loopback, no calls home
import ray
from ray.cluster_utils import Cluster

import consilience as cs
from consilience.evaluate.provenance import provenance
from consilience.kernels import numba_
from consilience.kernels.state import Grouping
from consilience.models.mss.beliefs import start_beliefs
from consilience.models.mss.spread import prepared
from consilience.models.mss.table import with_domains
from consilience.runners.cluster import Ray
from consilience.runners.inline import Inline
from consilience.testing.processes import ray_workers

sys.path.insert(0, str(Path(__file__).parents[1]))
from planted import MILLION, N_GROUPS, N_LABELS, Planted

HERE = Path(__file__).parent
TRIES = 10
SMALL, SAMPLED = 20_000, 600_000
"""Claims of tables that are fitted while something is killed, all of whose sweeps are on the cluster; and of one that
is searched in samples."""
MODEL = cs.MSS(n_starts=1)
N_FILES = 50


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="+", choices=sorted(PARTS))
    parser.add_argument("--claims", type=int, nargs="+", help="millions of claims of cost and memory")
    given = parser.parse_args()
    made = provenance()  # of the code that runs, before it can change
    (HERE / "records").mkdir(exist_ok=True)
    for part in given.parts:
        for record in PARTS[part](given.claims):
            record = {"part": part, **record, "ray": ray.__version__, "provenance": made}
            with (HERE / "records" / f"{part}.jsonl").open("a", encoding="utf-8") as records:
                records.write(json.dumps(record) + "\n")
            print({key: value for key, value in record.items() if key != "provenance"}, flush=True)


@contextmanager
def nodes_of(n_nodes: int) -> Iterator[Cluster]:
    """A cluster with a head that does no work and so many nodes with a processor each; this process is its driver."""
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        for _ in range(n_nodes):
            cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        cluster.wait_for_nodes()
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


@contextmanager
def planted(n_claims: int, n_files: int, n_sources: int = 200) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        Planted(n_sources).write(Path(folder), n_files, n_claims)
        yield Path(folder)


def bits_of(fit: Any) -> str:
    """A hash of everything that a fit tells."""
    digest = hashlib.sha256(repr((fit.bound, fit.trace, fit.starts, dict(fit.learned))).encode())
    for name in ("truths", "sources", "groups"):
        for column in getattr(fit, name).combine_chunks().columns:
            digest.update(repr(column.to_pylist()).encode())
    return digest.hexdigest()[:16]


def bits(_: list[int] | None) -> Iterator[dict[str, Any]]:
    """On several nodes and in several shards, beside this process."""
    for n_claims in (SMALL, SAMPLED):
        with planted(n_claims, 5) as folder:
            expected = bits_of(MODEL.fit(cs.read_claims(folder)))
            for n_nodes in (1, 2, 3):
                with nodes_of(n_nodes):
                    for shards in (1, 7):
                        fit = MODEL.fit(Ray(shards=shards).read(folder))
                        yield {
                            "n_claims": n_claims, "nodes": n_nodes, "shards": shards, "seconds": fit.seconds,
                            "same": bits_of(fit) == expected,
                        }  # fmt: skip


def workers(_: list[int] | None) -> Iterator[dict[str, Any]]:
    """A worker killed with -9 at a random moment of every fit."""

    def kill(cluster: Cluster, rng: np.random.Generator) -> bool:
        if there := ray_workers(busy=True):
            os.kill(int(rng.choice(there)), signal.SIGKILL)
        return bool(there)

    yield from _kills(kill)


def nodes(_: list[int] | None) -> Iterator[dict[str, Any]]:
    """A node of two killed with -9, all its processes at once, at a random moment of every fit; another one joins."""

    def kill(cluster: Cluster, rng: np.random.Generator) -> bool:
        node = sorted(cluster.worker_nodes, key=id)[rng.integers(len(cluster.worker_nodes))]
        cluster.remove_node(node, allow_graceful=False)
        cluster.add_node(num_cpus=1)
        return True

    yield from _kills(kill)


def _kills(kill: Callable[[Cluster, np.random.Generator], bool]) -> Iterator[dict[str, Any]]:
    """Fits on another thread: only the first may start nodes."""
    rng = np.random.default_rng(0)
    with planted(SMALL, 5) as folder, nodes_of(2) as cluster, ThreadPoolExecutor(1) as thread:
        expected = bits_of(MODEL.fit(cs.read_claims(folder)))
        spread = Ray(shards=6).read(folder)
        undisturbed = min(MODEL.fit(spread).seconds for _ in range(3))  # the first has workers to wait for
        done = 0
        while done < TRIES:
            spread, told = Ray(shards=6).read(folder), []
            fitted = thread.submit(MODEL.fit, spread, progress=lambda *sweep, told=told: told.append(sweep))
            time.sleep(rng.uniform(0.05, 0.6) * undisturbed)
            killed = False
            while not killed and not fitted.done():
                time.sleep(0.002)
                at = len(told)
                killed = kill(cluster, rng)
            fit = fitted.result()
            if killed:  # before it ended
                done += 1
                yield {
                    "n_claims": SMALL, "undisturbed": undisturbed, "seconds": fit.seconds,
                    "killed_in_sweep": at + 1, "of_sweeps": len(told), "same": bits_of(fit) == expected,
                }  # fmt: skip


def drivers(_: list[int] | None) -> Iterator[dict[str, Any]]:
    """The driver killed with -9 at a random moment; it goes on from its checkpoint."""
    rng = np.random.default_rng(0)
    with planted(SMALL, 5) as folder, nodes_of(2) as cluster:
        expected = MODEL.fit(cs.read_claims(folder))
        out = folder.parent / f"{folder.name}-out"
        command = [
            sys.executable, "-m", "consilience", "fit", f"{folder}/*.parquet", "--runner", "ray",
            "--address", cluster.address, "--set", "n_starts=1", "--out", str(out), "--quiet",
        ]  # fmt: skip
        often = {**os.environ, "CONSILIENCE_CHECKPOINT_EVERY": "0.2"}
        kept, done = Path(f"{out}.checkpoint"), 0
        while done < TRIES:
            driver = subprocess.Popen(command, env=often)
            while not kept.exists() and driver.poll() is None:
                time.sleep(0.01)
            time.sleep(rng.exponential(1.0))
            driver.kill()
            driver.wait()
            if not kept.exists():
                continue  # it had ended
            done += 1
            size = kept.stat().st_size
            subprocess.run([*command, "--resume"], check=True, env=often)
            manifest = json.loads((out / "manifest.json").read_text())
            yield {
                "n_claims": SMALL, "checkpoint_bytes": size,
                "same": pq.read_table(out / "truths.parquet").equals(expected.truths)
                and manifest["fit"]["bound"] == expected.bound,
            }  # fmt: skip


def cost(millions: list[int] | None) -> Iterator[dict[str, Any]]:
    """A sweep with thirty groups on a cluster of two workers, beside two threads of one process, and an empty one."""
    for size in millions or [20, 100]:
        with planted(size * MILLION, N_FILES, 1_000) as folder:
            inline = json.loads(
                subprocess.run(
                    [sys.executable, __file__, "--inline", str(folder)],
                    capture_output=True,
                    text=True,
                    check=True,
                ).stdout
            )
            ray.shutdown()
            runner = Ray()
            started = time.perf_counter()
            spread = runner.read(folder)
            reading = time.perf_counter() - started
            _, table = prepared(spread, None)
            given = _given(spread.n_sources, table.n_labels)
            runs = _timed(runner.map_sum, numba_.partition, table.shards, *given)
            empty = _timed(runner.map_sum, _nothing, table.shards, *given)
            yield {
                "n_claims": spread.n_claims, "shards": len(table.shards), "reading": reading, "seconds": runs,
                "inline": inline["seconds"], "empty": empty,
            }  # fmt: skip
            ray.shutdown()


def _inline(folder: str) -> None:
    claims = cs.read_claims(folder)
    whole, n_labels = with_domains(claims, np.zeros(claims.n_candidates), None)
    shards, given = list(whole.cut(2)), _given(claims.n_sources, n_labels)
    print(json.dumps({"seconds": _timed(Inline(2, 2).map_sum, numba_.partition, shards, *given)}))


def _given(n_sources: int, n_labels: int) -> tuple[Grouping, Any]:
    beliefs = start_beliefs(n_sources, n_labels, N_LABELS, 0.95, None)
    group = np.random.default_rng(0).integers(N_GROUPS, size=n_sources)
    reliability, habit = beliefs.reliability, beliefs.habit_prior
    return Grouping(group, np.tile(reliability, (N_GROUPS, 1, 1)), np.tile(habit, (N_GROUPS, 1, 1))), beliefs


def _nothing(shard: Any, given: Any, prior: Any) -> tuple[None, int]:
    return None, 0


def _timed(work: Callable[..., Any], *given: Any) -> list[float]:
    work(*given)
    seconds = []
    for _ in range(5):
        started = time.perf_counter()
        work(*given)
        seconds.append(time.perf_counter() - started)
    return seconds


def memory(millions: list[int] | None) -> Iterator[dict[str, Any]]:
    """A whole fit from fifty files to files: what the driver's process takes at the most."""
    script = (
        "import sys, time, json\n"
        "import consilience as cs\n"
        "from consilience.memory import height\n"
        "from consilience.runners.cluster import Ray\n"
        "t = time.perf_counter(); spread = Ray().read(sys.argv[1]); r = time.perf_counter()\n"
        "fit = cs.MSS().fit(spread); f = time.perf_counter(); fit.save(sys.argv[2])\n"
        "print(json.dumps({'n_claims': spread.n_claims, 'n_objects': spread.n_objects, 'reading': r - t,"
        "'seconds': f - r, 'saving': time.perf_counter() - f, 'sweeps': fit.sweeps, 'n_groups': fit.n_groups,"
        "'peak_memory': height()}))"
    )
    for size in millions or [20, 100]:
        with planted(size * MILLION, N_FILES, 1_000) as folder:
            command = [sys.executable, "-c", script, str(folder), f"{folder}-out"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            yield json.loads(done.stdout)
            subprocess.run(["rm", "-r", f"{folder}-out"], check=True)


PARTS = {part.__name__: part for part in (bits, workers, nodes, drivers, cost, memory)}

if __name__ == "__main__":
    if sys.argv[1] == "--inline":
        _inline(sys.argv[2])
    else:
        main()
