"""The GPU kernel on its device: parity, a sweep of a billion claims, default fits, the same bits again, real data sets.

    PYTHONPATH=src python benchmarks/gpu/run.py parity sweep fit processors sets   # NumPy, SciPy and PyTorch are enough
    python benchmarks/gpu/encode.py                                       # where PyArrow is: data sets for `sets`

Planted tables: ten claims an object, four labels, 60 % of the sources in thirty groups that repeat a leader nine times
in ten. Appends records; every time stands beside one of the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import torch

from consilience.claims.encoding import Claims
from consilience.evaluate.provenance import provenance
from consilience.kernels import numpy_partition, torch_
from consilience.kernels.numpy_partition import update_groups
from consilience.kernels.state import Beliefs, Grouping, from_fixed, from_two_words
from consilience.models.mss.beliefs import start_beliefs
from consilience.models.mss.model import MSS
from consilience.models.mss.table import Table
from consilience.runners.inline import Inline

HERE = Path(__file__).parent
ENCODED = HERE.parents[1] / "out" / "gpu"
DEPTH, N_LABELS, N_GROUPS, GROUPED, FAITHFUL = 10, 4, 30, 0.6, 0.9
PATIENCE = 26
"""How many times as long the processors are given for what the device does."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="+", choices=sorted(PARTS))
    parser.add_argument("--objects", type=int, help="objects, where not the full size is wanted")
    parser.add_argument("--commit", help="what commit this is, where there is no repository to ask")
    parser.add_argument("--out", type=Path, default=HERE / "records", help="folder for the records")
    given = parser.parse_args()
    about = {
        "torch": torch.__version__, "numpy": np.__version__, "scipy": scipy.__version__,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "none",
        "python": platform.python_version(), "cores": os.cpu_count(),
    }  # fmt: skip
    given.out.mkdir(parents=True, exist_ok=True)
    for part in given.parts:
        for record in PARTS[part](given.objects):
            made_by = {**provenance(), **({"commit": given.commit} if given.commit else {})}
            line = {"part": part, **record, **about, "provenance": made_by}
            with (given.out / f"{part}.jsonl").open("a", encoding="utf-8") as records:
                records.write(json.dumps(line) + "\n")
            print(record, flush=True)


def planted(n_objects: int, n_sources: int, seed: int = 0) -> tuple[Claims, np.ndarray]:
    """Claims, and the truths. Made on the device where there is one: a billion random numbers take their time."""
    where, rng = torch_.device(), np.random.default_rng(seed)
    draw = torch.Generator(where).manual_seed(seed)

    def whole(below: int, shape: tuple[int, ...]) -> torch.Tensor:
        return torch.randint(below, shape, generator=draw, device=where, dtype=torch.int32)

    def real(shape: tuple[int, ...]) -> torch.Tensor:
        return torch.rand(shape, generator=draw, device=where)

    group = torch.from_numpy(
        np.where(rng.random(n_sources) < GROUPED, rng.integers(N_GROUPS, size=n_sources), -1)
    ).to(where)
    leader = torch.from_numpy(rng.uniform(0.3, 0.9, N_GROUPS)).to(where)
    right = torch.from_numpy(rng.uniform(0.4, 0.95, n_sources)).to(where)
    sources, values, truths = [], [], []
    for first in range(0, n_objects, 2_000_000):
        n = min(2_000_000, n_objects - first)
        truth = whole(N_LABELS, (n,))
        # A source in every tenth of them: nobody claims an object twice.
        source = (torch.arange(DEPTH, device=where) + DEPTH * whole(n_sources // DEPTH, (n, DEPTH))).int()
        led = real((n, N_GROUPS)) < leader
        leaders = torch.where(led, truth[:, None], (truth[:, None] + 1 + whole(3, led.shape)) % N_LABELS)
        own = torch.where(
            real(source.shape) < right[source],
            truth[:, None],
            (truth[:, None] + 1 + whole(3, source.shape)) % N_LABELS,
        )
        of = group[source]
        repeats = (of >= 0) & (real(source.shape) < FAITHFUL)
        value = torch.where(repeats, torch.gather(leaders, 1, of.clamp(min=0)), own)
        source, order = torch.sort(source, dim=1)
        sources.append(source.flatten().cpu().numpy())
        values.append(torch.gather(value, 1, order).flatten().to(torch.int8).cpu().numpy())
        truths.append(truth.cpu().numpy())
    candidate = np.repeat(np.arange(n_objects, dtype=np.int32) * N_LABELS, DEPTH)
    candidate += np.concatenate(values)
    return Claims(
        sources=range(n_sources),
        objects=range(n_objects),
        values=range(N_LABELS),
        claim_source=np.concatenate(sources),
        claim_candidate=candidate,
        first_claim=np.arange(n_objects + 1) * DEPTH,
        first_candidate=np.arange(n_objects + 1) * N_LABELS,
        candidate_value=np.tile(np.arange(N_LABELS, dtype=np.int32), n_objects),
        domain="common",
    ), np.concatenate(truths)


def random_table(seed: int) -> tuple[Table, Grouping, Beliefs]:
    """Any table: common labels or domains of their own, some truths known."""
    rng = np.random.default_rng(seed)
    n_objects, n_sources = int(rng.integers(1, 60)), int(rng.integers(1, 30))
    common = seed % 2 == 0
    sizes = np.full(n_objects, rng.integers(1, 6)) if common else rng.integers(1, 9, n_objects)
    first_candidate = np.concatenate([[0], np.cumsum(sizes)])
    rows = [rng.permutation(n_sources)[: rng.integers(1, n_sources + 1)] for _ in range(n_objects)]
    candidates = [first_candidate[m] + rng.integers(sizes[m], size=len(row)) for m, row in enumerate(rows)]
    claims = Claims(
        sources=range(n_sources),
        objects=range(n_objects),
        values=range(int(sizes.max())),
        claim_source=np.concatenate([np.sort(row) for row in rows]).astype(np.int32),
        claim_candidate=np.concatenate(candidates).astype(np.int32),
        first_claim=np.concatenate([[0], np.cumsum([len(row) for row in rows])]),
        first_candidate=first_candidate,
        candidate_value=np.concatenate([np.arange(size) for size in sizes]).astype(np.int32),
        domain="common" if common else "claimed",
    )
    log_truth = -np.log(np.repeat(sizes, sizes).astype(float))
    known = rng.random(n_objects) < (0.3 if seed % 3 == 0 else 0.0)
    for m in np.flatnonzero(known):
        log_truth[first_candidate[m] : first_candidate[m + 1]] = -np.inf
        log_truth[first_candidate[m] + rng.integers(sizes[m])] = 0.0
    table = Table.of(claims, log_truth, known)
    beliefs = start_beliefs(n_sources, table.n_labels, float(np.median(sizes)), 0.95, None)
    group = rng.integers(max(1, n_sources // 2), size=n_sources)
    return (
        table,
        Grouping(
            np.unique(group, return_inverse=True)[1],
            rng.gamma(2.0, 2.0, (n_sources, *beliefs.reliability.shape)) + 0.1,
            rng.gamma(2.0, 2.0, (n_sources, *beliefs.habit_prior.shape)) + 0.1,
        ),
        beliefs,
    )


def parity(n_objects: int | None) -> Iterator[dict[str, Any]]:
    """Against the reference: the worst relative difference over random tables, and how many relocations differ."""
    worst, relocations, moved_otherwise, worst_gain = 0.0, 0, 0, 0.0
    for seed in range(120):
        table, given, beliefs = random_table(seed)
        (truth, stats), (found, other) = (
            kernel.partition(table.whole, given, beliefs) for kernel in (numpy_partition, torch_)
        )
        groups, others = (update_groups(each, given, beliefs) for each in (stats, other))
        for one, two in (
            (truth.truth, found.truth),
            (groups.reliability, others.reliability),
            (groups.habit, others.habit),
            (from_fixed(stats.share), from_fixed(other.share)),
            (from_two_words(stats.counts), from_two_words(other.counts)),
            (from_two_words(stats.terms), from_two_words(other.terms)),
        ):
            apart = np.abs(np.asarray(one) - np.asarray(two)) / np.maximum(1.0, np.abs(one))
            worst = max(worst, float(apart.max()))
        if table.claims.n_claims < 150:
            order = np.random.default_rng(seed).permutation(len(given.group))
            one, two = (
                kernel.relocate(table.whole, given, beliefs, order) for kernel in (numpy_partition, torch_)
            )
            relocations += 1
            moved_otherwise += not np.array_equal(*(_canonical(each[0].group) for each in (one, two)))
            worst_gain = max(worst_gain, abs(one[2] - two[2]) / max(1.0, abs(one[2])))
    yield {
        "tables": 120, "worst": worst, "relocations": relocations, "moved_otherwise": moved_otherwise,
        "worst_gain": worst_gain,
    }  # fmt: skip


def _canonical(group: np.ndarray) -> np.ndarray:
    """Groups numbered in the order of their first sources."""
    _, first, inverse = np.unique(group, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def sweep(n_objects: int | None) -> Iterator[dict[str, Any]]:
    """One sweep with thirty groups, beside a copy of the bytes that it must touch."""
    n_objects, n_sources = n_objects or 100_000_000, 100_000
    claims, _ = planted(n_objects, n_sources)
    table = Table.of(claims, np.zeros(claims.n_candidates), None)
    beliefs = start_beliefs(n_sources, table.n_labels, N_LABELS, 0.95, None)
    group = np.random.default_rng(0).integers(N_GROUPS, size=n_sources)
    given = Grouping(
        group,
        np.tile(beliefs.reliability, (n_sources, 1, 1)),
        np.tile(beliefs.habit_prior, (n_sources, 1, 1)),
    )
    started = time.perf_counter()
    torch_.partition(table.whole, given, beliefs)
    first = time.perf_counter() - started
    n_bytes = sum(part.nbytes for part in torch_._on_device(table.whole)) + 8 * claims.n_candidates
    one, two = (
        torch.empty(n_bytes // 16, dtype=torch.float64, device=torch_.device()).fill_(1) for _ in range(2)
    )
    yield {
        "n_claims": claims.n_claims, "n_sources": n_sources, "first_call": first,
        "seconds": _best(lambda: torch_.partition(table.whole, given, beliefs)),
        "kernel_seconds": _kernel_seconds(lambda: torch_.partition(table.whole, given, beliefs)),
        "bytes": n_bytes, "copy_seconds": _best(lambda: two.copy_(one)),
    }  # fmt: skip


def _best(work: Any, times: int = 7) -> float:
    seconds = []
    for _ in range(times):
        torch.cuda.synchronize()
        started = time.perf_counter()
        work()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def _kernel_seconds(work: Any) -> dict[str, float]:
    """Where the device's time goes, by kernel."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        work()
        torch.cuda.synchronize()
    rows = sorted(profile.key_averages(), key=lambda row: -row.device_time_total)
    return {row.key[:60]: row.device_time_total / 1e6 for row in rows[:6]}


def fit(n_objects: int | None) -> Iterator[dict[str, Any]]:
    """A default fit, twice: the same bits."""
    n_objects, n_sources = n_objects or 10_000_000, 1_000
    claims, truth = planted(n_objects, n_sources)
    MSS().fit(planted(20_000, n_sources)[0], engine="torch", runner=Inline(1, 1))  # compiles
    fits = [MSS().fit(claims, engine="torch", runner=Inline(1, 1)) for _ in range(2)]
    found = fits[0]
    same = all(
        np.array_equal(*(np.asarray(getattr(each, name)) for each in fits))
        for name in ("truth", "decision", "source_reliability")
    )
    yield {
        "n_claims": claims.n_claims, "n_sources": n_sources, "seconds": min(each.seconds for each in fits),
        "sweeps": found.sweeps, "n_groups": len(found.groups_found.group_reliability), "bound": found.bound,
        "accuracy": float(np.mean(claims.candidate_value[found.decision] == truth)), "same_bits": same,
    }  # fmt: skip


def processors(n_objects: int | None) -> Iterator[dict[str, Any]]:
    """A default fit on the device, and by the same file on the processors, which are given PATIENCE times as long."""
    n_objects = n_objects or 1_000_000
    claims, _ = planted(n_objects, 1_000)
    MSS().fit(planted(20_000, 1_000)[0], engine="torch", runner=Inline(1, 1))
    seconds = MSS().fit(claims, engine="torch", runner=Inline(1, 1)).seconds
    code = f"import run; run.MSS().fit(run.planted({n_objects}, 1_000)[0], engine='torch')"
    started = time.perf_counter()
    try:
        subprocess.run(
            [sys.executable, "-c", code], cwd=HERE, check=True, timeout=PATIENCE * seconds,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(HERE.parents[1] / "src")},
        )  # fmt: skip
        ended = True
    except subprocess.TimeoutExpired:
        ended = False
    yield {
        "n_claims": claims.n_claims, "seconds": seconds, "on_processors": time.perf_counter() - started,
        "on_processors_ended": ended,
    }  # fmt: skip


def sets(n_objects: int | None) -> Iterator[dict[str, Any]]:
    """Real data sets, encoded where they can be read: the same truths as the CPU's kernel, object by object."""
    for path in sorted(ENCODED.glob("*.npz")):
        with np.load(path) as part:
            claims = Claims(
                sources=range(int(part["n_sources"])),
                objects=range(len(part["first_claim"]) - 1),
                values=range(int(part["n_values"])),
                claim_source=part["claim_source"],
                claim_candidate=part["claim_candidate"],
                first_claim=part["first_claim"],
                first_candidate=part["first_candidate"],
                candidate_value=part["candidate_value"],
                domain=str(part["domain"]),
            )
            decision, bound = part["decision"], float(part["bound"])
        found = MSS().fit(claims, engine="torch", runner=Inline(1, 1))
        yield {
            "set": path.stem, "n_objects": claims.n_objects, "seconds": found.seconds, "bound": found.bound,
            "bound_of_cpu": bound, "decided_otherwise": int(np.sum(found.decision != decision)),
        }  # fmt: skip


PARTS = {"parity": parity, "sweep": sweep, "fit": fit, "processors": processors, "sets": sets}

if __name__ == "__main__":
    main()
