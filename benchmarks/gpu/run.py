"""The GPU kernel on its device: parity, a sweep of a billion claims and where its time goes, a table that does not fit,
default fits, the same bits again, the processors beside it, rivals, real data sets.

    PYTHONPATH=src python benchmarks/gpu/run.py parity sweep profile stream fit processors rivals sets
    python benchmarks/gpu/encode.py                                       # where PyArrow is: data sets for `sets`

Planted tables: ten claims an object, four labels, 60 % of the sources in thirty groups that repeat a leader nine times
in ten. Appends records; every time stands beside one of the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import scipy
import torch

from consilience.claims.encoding import Claims, Shard
from consilience.evaluate.provenance import provenance
from consilience.kernels import numpy_partition, torch_
from consilience.kernels.numpy_partition import update_groups
from consilience.kernels.state import Beliefs, Grouping, from_fixed, from_two_words
from consilience.models.crh import CRH
from consilience.models.dawid_skene import DawidSkene, OneCoin
from consilience.models.mss.beliefs import start_beliefs
from consilience.models.mss.model import MSS
from consilience.models.mss.table import with_domains
from consilience.models.truthfinder import TruthFinder

HERE = Path(__file__).parent
ENCODED = HERE.parents[1] / "out" / "gpu"
DEPTH, N_LABELS, N_GROUPS, GROUPED, FAITHFUL = 10, 4, 30, 0.6, 0.9
SMALL = 200, 30
"""Objects and sources of a table that the processors can search whole."""
PATIENCE, LEAST_PATIENCE = 30, 120.0
"""How many times as long as the device the processors may take, and the least in seconds."""
ROUNDS = 5
"""Rounds that rivals are given."""
STAGES = {
    "loads, sorting": "            const int n_lone = set_aside(apart, key, keys);\n",
    "posterior, single claims": "            hear_singles(key, objects, given, apart);\n",
    "posterior, other pairs": "            double evidence = normalise(apart);\n",
    "truths, shares": "(apart.q[k][0] + apart.q[k][1]) / claimed : 1.0 / apart.size;\n",
    "statistics, single claims": "add_probability(parts, n_sums, sums, at + KINDS + 1, 1);\n            }\n",
    "statistics, other pairs": "            add_term(words + 8, evidence);\n        }\n",
    "sums of a warp": "n_groups * row + lane - TERMS, mine);\n",
}
"""Where each stage of a sweep ends in `partition.cu`."""
BLOCKS = [(512, 2), (256, 4), (256, 3), (256, 2)]
"""Threads of a block and blocks of a processor to try."""


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


def random_table(seed: int) -> tuple[Shard, Grouping, Beliefs]:
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
    table, n_labels = with_domains(claims, log_truth, known)
    beliefs = start_beliefs(n_sources, n_labels, float(np.median(sizes)), 0.95, None)
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
            kernel.partition(table, given, beliefs) for kernel in (numpy_partition, torch_)
        )
        other = torch_.completed(other, given, beliefs)
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
        if table.n_claims < 150:
            order = np.random.default_rng(seed).permutation(len(given.group))
            one, two = (kernel.relocate(table, given, beliefs, order) for kernel in (numpy_partition, torch_))
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
    table, given, beliefs = _swept(n_objects or 100_000_000, 100_000)
    started = time.perf_counter()
    torch_.partition(table, given, beliefs)
    first = time.perf_counter() - started
    n_bytes = sum(_bytes(table).values())
    yield {
        "n_claims": table.n_claims, "n_sources": table.n_sources, "first_call": first,
        "seconds": _best(lambda: torch_.partition(table, given, beliefs)),
        "kernel_seconds": _kernel_seconds(lambda: torch_.partition(table, given, beliefs)),
        "bytes": n_bytes, "copy_seconds": _copy_seconds(n_bytes),
    }  # fmt: skip


def _swept(n_objects: int, n_sources: int) -> tuple[Shard, Grouping, Beliefs]:
    """A planted table, and thirty groups for a sweep."""
    claims, _ = planted(n_objects, n_sources)
    table, n_labels = with_domains(claims, np.zeros(claims.n_candidates), None)
    beliefs = start_beliefs(n_sources, n_labels, N_LABELS, 0.95, None)
    group = np.random.default_rng(0).integers(N_GROUPS, size=n_sources)
    given = Grouping(
        group,
        np.tile(beliefs.reliability, (N_GROUPS, 1, 1)),
        np.tile(beliefs.habit_prior, (N_GROUPS, 1, 1)),
    )
    return table, given, beliefs


def _bytes(table: Shard) -> dict[str, int]:
    """What a sweep must read and write, by array."""
    held = torch_._hold(table)
    read = {name: part.nbytes for name, part in zip(held._fields, held, strict=True) if len(part)}
    return {**read, "truth": 8 * table.n_candidates}


def _copy_seconds(n_bytes: int) -> float:
    """A copy on the device that reads and writes so many bytes together."""
    one, two = (
        torch.empty(n_bytes // 16, dtype=torch.float64, device=torch_.device()).fill_(1) for _ in range(2)
    )
    return _best(lambda: two.copy_(one))


def profile(n_objects: int | None) -> Iterator[dict[str, Any]]:
    """Where a sweep's time goes: the stages of its kernel by the processors' clocks, what they touch, other blocks."""
    table, given, beliefs = _swept(n_objects or 10_000_000, 100_000)

    def work() -> None:
        torch_.partition(table, given, beliefs)

    work()
    n_bytes = _bytes(table)
    blocks = {}
    for threads, resident in BLOCKS:
        for turns in (1, torch_.TURNS):
            with mock.patch.multiple(torch_, THREADS=threads, RESIDENT=resident, TURNS=turns):
                torch_._compile.cache_clear()
                work()
                blocks[f"{threads} × {resident}, {turns}"] = _events(work)
    torch_._compile.cache_clear()
    yield {
        "n_claims": table.n_claims, "bytes": n_bytes, "seconds": _events(work),
        "kernel_seconds": _kernel_seconds(work), "copy_seconds": _copy_seconds(sum(n_bytes.values())),
        "stages": _stages(work), "blocks": blocks,
    }  # fmt: skip


def _stages(work: Callable[[], None]) -> dict[str, float]:
    """Shares of the time that warps of the sweep's kernel are in each stage, waiting included."""
    source = torch_.SOURCE.read_text(encoding="utf-8")
    edits = {
        "double *truth, Word *sums\n": "double *truth, Word *sums, Word *clocks\n",
        "    for (int turn = 0; turn < turns; turn++) {\n": "        long long since = clock64();\n",
    }
    for i, end in enumerate(STAGES.values()):
        edits[end] = (
            "{ long long now = clock64(); if (threadIdx.x % 32 == 0) "
            f"atomicAdd(clocks + {i}, (Word)(now - since)); since = now; }}\n"
        )
    for text, more in edits.items():
        assert source.count(text) == 1, (
            f"partition.cu has changed: {text!r} is there {source.count(text)} times"
        )
        source = source.replace(text, more if "clocks\n" in more else text + more)
    clocks = torch.zeros(len(STAGES), dtype=torch.int64, device=torch_.device())
    compile_ = torch_._compile

    def compiled(*sizes: Any) -> Any:
        kernel = compile_(*sizes)
        return lambda grid, block, args, shared: kernel(grid, block, [*args, clocks], shared)

    with tempfile.TemporaryDirectory() as folder:
        clocked = Path(folder) / "partition.cu"
        clocked.write_text(source, encoding="utf-8")
        compile_.cache_clear()
        with mock.patch.multiple(torch_, SOURCE=clocked, _compile=compiled):
            work()
    compile_.cache_clear()
    found = clocks.cpu().numpy()
    return dict(zip(STAGES, (found / found.sum()).tolist(), strict=True))


def stream(n_objects: int | None) -> Iterator[dict[str, Any]]:
    """A sweep over a table that the device is told to have no room for, beside the same that stays there, and beside a
    copy of the same bytes from pinned memory."""
    n_objects = n_objects or 20_000_000
    table, given, beliefs = _swept(n_objects, 100_000)
    found = torch_.partition(table, given, beliefs)
    seconds = _best(lambda: torch_.partition(table, given, beliefs))
    n_bytes = _bytes(table)
    (away,) = table.cut(1)
    with mock.patch.object(torch_, "room", return_value=sum(n_bytes.values()) // 4):
        other = torch_.partition(away, given, beliefs)
        streamed = _best(lambda: torch_.partition(away, given, beliefs), times=3)
    same = np.array_equal(found[0].truth, other[0].truth) and all(
        np.array_equal(getattr(found[1], name), getattr(other[1], name)) for name in vars(found[1])
    )
    there = sum(n_bytes.values()) - n_bytes["truth"]
    pinned = torch.empty(there, dtype=torch.uint8, pin_memory=True)
    on_device = torch.empty(there, dtype=torch.uint8, device=torch_.device())
    yield {
        "n_claims": table.n_claims, "seconds": seconds, "streamed_seconds": streamed, "same_bits": same,
        "bytes": n_bytes, "copy_seconds": _best(lambda: on_device.copy_(pinned, non_blocking=True), times=3),
    }  # fmt: skip


def _events(work: Callable[[], None], times: int = 5) -> float:
    """By the device's own events."""
    seconds = []
    for _ in range(times):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        torch.cuda.synchronize()
        seconds.append(start.elapsed_time(end) / 1e3)
    return min(seconds)


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
    MSS().fit(planted(20_000, n_sources)[0], engine="torch")  # compiles
    fits = [MSS().fit(claims, engine="torch") for _ in range(2)]
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
    """A default fit on the device, beside the same file on all processors: PyTorch's own operations.

    Of a large table the processors are stopped when they have taken PATIENCE times as long as the device.
    """
    MSS().fit(planted(20_000, 1_000)[0], engine="torch")  # compiles
    tables = [planted(*SMALL)[0], planted(n_objects or 10_000_000, 1_000)[0]]
    for claims in tables:
        seconds = MSS().fit(claims, engine="torch").seconds
        yield {"n_claims": claims.n_claims, "seconds": seconds, **_on_processors(claims, PATIENCE * seconds)}


def _on_processors(claims: Claims, limit: float) -> dict[str, Any]:
    """What a process that sees no device reaches, and in how many seconds; stopped after so many."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("claim_source", "claim_candidate", "first_claim", "first_candidate", "candidate_value"):
            np.save(Path(folder) / name, getattr(claims, name))
        with mock.patch.dict(os.environ, CUDA_VISIBLE_DEVICES=""):
            process = get_context("spawn").Process(target=_fit_there, args=(folder, claims.n_sources))
            process.start()
        limit = max(limit, LEAST_PATIENCE)
        ready = Path(folder) / "ready"
        while process.is_alive() and not ready.exists():
            time.sleep(0.1)
        process.join(limit)
        if process.is_alive():
            process.kill()
            process.join()
        reached = (Path(folder) / "reached").read_text(encoding="utf-8").splitlines()
        done = Path(folder) / "seconds"
        assert reached or done.exists(), "it told nothing"
        return {
            "limit": limit,
            "on_processors": float(done.read_text(encoding="utf-8")) if done.exists() else None,
            "reached": reached[-1],
        }


def _fit_there(folder: str, n_sources: int) -> None:
    arrays = {path.stem: np.load(path) for path in Path(folder).glob("*.npy")}
    n_objects = len(arrays["first_claim"]) - 1
    claims = Claims(
        sources=range(n_sources), objects=range(n_objects), values=range(N_LABELS), domain="common", **arrays
    )
    assert not torch_.has_cuda(), "it was to see no device"
    with (Path(folder) / "reached").open("w", encoding="utf-8", buffering=1) as reached:
        (Path(folder) / "ready").touch()
        found = MSS().fit(claims, engine="torch", progress=lambda *told: print(*told, file=reached))
    (Path(folder) / "seconds").write_text(str(found.seconds), encoding="utf-8")


def rivals(n_objects: int | None) -> Iterator[dict[str, Any]]:
    """A few rounds of rivals whose sums are on the device, beside NumPy's."""
    claims, _ = planted(n_objects or 1_000_000, 1_000)
    models = (
        DawidSkene(max_rounds=ROUNDS),
        OneCoin(max_rounds=ROUNDS),
        TruthFinder(max_rounds=ROUNDS),
        CRH(max_rounds=ROUNDS),
    )
    for model in models:
        model.fit(planted(20_000, 1_000)[0], engine="torch")
        one = model.fit(claims, engine="numpy")
        other, again = (model.fit(claims, engine="torch") for _ in range(2))
        yield {
            "model": model.name, "n_claims": claims.n_claims, "rounds": one.sweeps, "seconds": other.seconds,
            "on_numpy": one.seconds, "worst": float(np.abs(one.truth - other.truth).max()),
            "decided_otherwise": int(np.sum(one.decision != other.decision)),
            "same_bits": bool(np.array_equal(other.truth, again.truth)),
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
        found = MSS().fit(claims, engine="torch")
        yield {
            "set": path.stem, "n_objects": claims.n_objects, "seconds": found.seconds, "bound": found.bound,
            "bound_of_cpu": bound, "decided_otherwise": int(np.sum(found.decision != decision)),
        }  # fmt: skip


PARTS = {
    part.__name__: part for part in (parity, sweep, profile, stream, fit, processors, rivals, sets)
}  # fmt: skip

if __name__ == "__main__":
    main()
