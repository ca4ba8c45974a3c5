"""The kernel for GPUs, through PyTorch. The only file that imports it.

On a CUDA device the partition inference runs as CUDA C (`partition.cu`), compiled for the table by the compiler that
PyTorch brings along; without one, as PyTorch's own operations, which any of its devices has. The other two inferences
are NumPy's: they are there to compare with, on tables that need no GPU.

A shard goes to the device once and stays there as long as it is used. Truths stay there too until they are asked for.
Every thread has a stream of its own, so that several starts, or shards, are worked on at a time.
A shard that the device has no room for stays in pinned memory: sweeps bring it run by run, relocations read it where it
is. Sums are of integers and an object's numbers are its own, so all of this gives the same bits.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, cached_property, reduce
from itertools import pairwise
from operator import add
from pathlib import Path
from threading import Lock, local
from typing import Any, ClassVar, NamedTuple, cast
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray

from consilience.claims.encoding import Claims, Float, Int, Shard, offsets
from consilience.kernels import numpy_partition
from consilience.kernels.numba_partition import completed, said_by_singles
from consilience.kernels.numpy_ import mean_field, structured
from consilience.kernels.numpy_partition import rising_tables, unknown_where_absent
from consilience.kernels.segments import Labels, Segments
from consilience.kernels.state import (
    COARSE,
    FINE,
    KINDS,
    UNIT,
    Beliefs,
    Grouping,
    GroupingStats,
    Locals,
)
from consilience.kernels.weights import Counts, Voices, counts_of, voices_of

__all__ = ["completed", "fewest", "mean_field", "name", "partition", "relocate", "segments", "structured"]

name = "torch"
fewest = 5_000_000
"""A device has threads of its own: shards are for what the host does before and after."""

OLDEST = 8, 0
"""Compute capability that the compiled kernels ask for; on older devices PyTorch's own operations do the work."""
DEEPEST = 64
"""Claims or candidates of an object beyond which PyTorch's own operations take over: a thread keeps them all."""
LARGEST = 200.0
"""ln E beyond which they do as well: products of E as it is would leave the range of numbers."""
THREADS, OF_RELOCATION = 256, 512
"""Threads of a block."""
RESIDENT = 3
"""Blocks that a processor should have room for: some work while others wait for memory."""
SIZES = (4, 8, 12, 16, 32, DEEPEST)
"""Claims and candidates of an object that kernels are compiled for."""
TURNS, BUSY = 1, 1_000
"""Objects that a thread of a sweep takes at the most: fewer where fewer blocks than keep a device busy were left."""
SHARED = 47_000
"""Bytes of shared memory for what groups are like and their sums; where they need more, both are in the device's."""
SHARE = 0.5
"""Of the device's free memory, for a table; the rest is for truths, and to work in."""
RUNS = 8
"""Runs that a table just too large is streamed in: what comes first and goes last has no work to hide behind."""
WORKING = 256
"""Bytes a cell that PyTorch's own operations work in."""
OF_RIVAL = 64
"""Bytes a claim and label that rivals' sums work in."""
SOURCE = Path(__file__).with_name("partition.cu")


class Held(NamedTuple):
    """A shard as `partition.cu` takes it, on the device or in pinned memory; arrays that would say the same of all
    objects are empty."""

    claim_source: torch.Tensor
    value: torch.Tensor
    first_claim: torch.Tensor
    first_candidate: torch.Tensor
    log_truth: torch.Tensor
    label: torch.Tensor
    log_unclaimed: torch.Tensor

    @property
    def is_resident(self) -> bool:
        """Whether it is on the device."""
        return bool(self.claim_source.is_cuda)

    @property
    def nbytes(self) -> int:
        """Bytes that it takes."""
        return sum(part.nbytes for part in self)


class ClaimsOfSources(NamedTuple):
    """The same claims, source by source, for relocations, and the most that one source has."""

    first_of_source: torch.Tensor
    object_of: torch.Tensor
    most: int


class OnDevice:
    """Truths on the device, or in pinned memory; NumPy fetches them when it needs them."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __len__(self) -> int:
        return len(self.tensor)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self.tensor.cpu().numpy(), dtype)


def device() -> torch.device:
    """Where it runs: a CUDA device where there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def has_cuda() -> bool:
    """Whether it pays to use this kernel: there is a device that its CUDA C can run on."""
    return bool(device().type == "cuda" and torch.cuda.get_device_capability() >= OLDEST)


def room() -> int:
    """Bytes on the device that a table may take."""
    if device().type != "cuda":
        return sys.maxsize
    reserved = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    return int(SHARE * (torch.cuda.mem_get_info()[0] + reserved))


class Streams(local):
    """The stream of each thread."""

    @cached_property
    def own(self) -> torch.cuda.Stream:
        """Of this one."""
        return torch.cuda.Stream()


_streams = Streams()


def partition(
    shard: Shard, given: Grouping, beliefs: Beliefs, warm: Locals | None = None
) -> tuple[Locals, GroupingStats]:
    """As `numpy_partition.partition`."""
    if _compiles(shard, beliefs):
        with torch.cuda.stream(_streams.own):
            return _partition_cuda(shard, given, beliefs)
    n_cells = int(np.diff(shard.first_claim) @ (np.diff(shard.first_candidate) + 1))
    n_bytes = WORKING * n_cells * beliefs.n_kinds // KINDS
    runs = [_partition(run, given, beliefs) for run in shard.cut(_n_runs(n_bytes))]
    if len(runs) == 1:
        return runs[0]
    return Locals(np.concatenate([each.truth for each, _ in runs])), reduce(add, (stats for _, stats in runs))


def relocate(
    shard: Shard, given: Grouping, beliefs: Beliefs, order: Int, threads: int = 1
) -> tuple[Grouping, int, float]:
    """As `numpy_partition.relocate`, and by it where there is no CUDA device: it moves one source at a time."""
    if _compiles(shard, beliefs):
        with torch.cuda.stream(_streams.own):
            return _relocate_cuda(shard, given, beliefs, order)
    return numpy_partition.relocate(shard, given, beliefs, order)


def _compiles(shard: Shard, beliefs: Beliefs) -> bool:
    """Whether the compiled kernels can take this shard, and there is a device for them."""
    most_claims, widest = int(shard.most_claims.max(initial=0)), len(shard.most_claims) - 1
    if not has_cuda() or max(most_claims, widest) > DEEPEST or beliefs.n_kinds != KINDS:
        return False
    as_true, as_false, _, _ = rising_tables(beliefs, most_claims + 1)
    return float(np.max(as_true - as_false)) < LARGEST


def _n_runs(n_bytes: int) -> int:
    """Into how many runs of objects so much must be cut to fit."""
    return max(1, -(-n_bytes // max(1, room())))


_held: WeakKeyDictionary[Shard, Held] = WeakKeyDictionary()
_holding = Lock()
_of_sources: WeakKeyDictionary[Shard, ClaimsOfSources] = WeakKeyDictionary()


def _hold(shard: Shard) -> Held:
    """The shard on the device, brought there once; in pinned memory where it takes too much room."""
    found = _held.get(shard)
    if found is None:
        place = np.arange(shard.n_candidates) - np.repeat(
            shard.first_candidate[:-1], np.diff(shard.first_candidate)
        )
        value = place[shard.claim_candidate]
        index = np.int32 if len(shard.claim_source) < 2**31 and shard.n_candidates < 2**31 else np.int64
        nothing = np.zeros(0)
        parts = (
            shard.claim_source.astype(np.int32, copy=False),
            value.astype(np.uint8),
            shard.first_claim.astype(index),
            shard.first_candidate.astype(index),
            nothing if np.all(shard.log_truth == 0) else shard.log_truth,
            nothing if np.array_equal(shard.label, place) else shard.label.astype(np.int32),
            nothing if np.all(np.isneginf(shard.log_unclaimed)) else shard.log_unclaimed,
        )
        with _holding:
            # What is on the device already has had its share: else each shard would take one of what others left.
            there = sum(each.nbytes for each in _held.values() if each.is_resident)
            fits = sum(part.nbytes for part in parts) <= room() - (1 - SHARE) * there
            found = Held(*(_tensor(part, pinned=not fits) for part in parts))
            torch.cuda.current_stream().synchronize()  # other streams may be the next to use it
            _held[shard] = found
    return found


def _by_source(shard: Shard, held: Held, n_sources: int) -> ClaimsOfSources:
    """Its claims source by source, where the shard itself is."""
    found = _of_sources.get(shard)
    if found is None:
        first = offsets(shard.claim_source, n_sources)
        object_of = np.repeat(np.arange(shard.n_objects), np.diff(shard.first_claim))
        object_of = object_of[np.argsort(shard.claim_source, kind="stable")]
        index = np.int32 if held.first_claim.dtype == torch.int32 else np.int64
        found = ClaimsOfSources(
            _tensor(first.astype(index)),
            _tensor(object_of.astype(index), pinned=not held.is_resident),
            int(np.diff(first).max(initial=1)),
        )
        torch.cuda.current_stream().synchronize()
        _of_sources[shard] = found
    return found


def _tensor(array: NDArray[Any], *, pinned: bool = False) -> torch.Tensor:
    """On the device; or in memory of the host that the device can read, but for what is empty."""
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    return tensor.pin_memory() if pinned and len(tensor) else tensor.to(device())


@cache
def _compile(
    function: str, depth: int, width: int, n_labels: int, index: str, labelled: bool, in_shared: bool
) -> Any:
    """A kernel for objects of at most so many claims and candidates."""
    constants = {
        "DEPTH": depth, "WIDTH": width, "LABELS": n_labels, "INDEX": index, "VALUE": "unsigned char",
        "THREADS": OF_RELOCATION, "SWEEPING": THREADS, "RESIDENT": RESIDENT,
        "LABELLED": int(labelled), "IN_SHARED": int(in_shared), "SWEEPS": int(function == "partition"),
    }  # fmt: skip
    head = "".join(f"#define {key} {value}\n" for key, value in constants.items())
    return torch.cuda._compile_kernel(head + SOURCE.read_text(encoding="utf-8"), function)


def _kernel(function: str, shard: Shard, held: Held, n_labels: int, *, in_shared: bool = False) -> Any:
    depth, width = int(shard.most_claims.max(initial=1)), max(len(shard.most_claims) - 1, 1)
    index = "int" if held.first_claim.dtype == torch.int32 else "long long"
    # Few sizes, so that few kernels are compiled.
    depth, width = (next(size for size in SIZES if size >= n) for n in (depth, width))
    return _compile(function, depth, width, n_labels, index, len(held.label) > 0, in_shared)


def _voice(voices: Voices) -> Float:
    """(n_groups, (3 + n_labels) KINDS + 1) what groups are like, in one array."""
    parts = (voices.right[:, None], voices.wrong[:, None], voices.habits[:, None], voices.habit)
    rows = np.concatenate(parts, axis=1).reshape(len(voices.right), -1)
    return np.pad(rows, ((0, 0), (0, 1)))


def _tables(counts: Counts) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Tables by the number of claims, and of totals by the size of the domain."""
    by_count = np.stack([np.exp(counts.swap), counts.as_false, counts.slope_true, counts.slope_false], axis=1)
    totals = np.stack([counts.log_total, counts.slope_total], axis=1)
    return _tensor(by_count), _tensor(counts.first_total.astype(np.int32)), _tensor(totals)


class OfGroups(NamedTuple):
    """What groups are like, on the device, and under which beliefs."""

    beliefs: Beliefs
    group: torch.Tensor
    voice: torch.Tensor
    single: torch.Tensor


_of_groups: WeakKeyDictionary[Grouping, OfGroups] = WeakKeyDictionary()
_sending = Lock()


def _send(given: Grouping, beliefs: Beliefs) -> OfGroups:
    """The groups on the device, sent once for all shards."""
    with _sending:
        found = _of_groups.get(given)
        if found is None or found.beliefs is not beliefs:
            voices = voices_of(given)
            single = said_by_singles(voices, beliefs).reshape(-1, beliefs.n_labels, 2 * KINDS)
            found = _of_groups[given] = OfGroups(
                beliefs,
                _tensor(given.group.astype(np.int32)),
                _tensor(_voice(voices)),
                _tensor(single if beliefs.n_labels > 1 else single[:0]),
            )
            torch.cuda.current_stream().synchronize()
    return found


def _partition_cuda(shard: Shard, given: Grouping, beliefs: Beliefs) -> tuple[Locals, GroupingStats]:
    n, n_labels = len(given.reliability), beliefs.n_labels
    width = KINDS * (3 + n_labels) + (2 * KINDS * n_labels if n_labels > 1 else 0)
    held, of_groups = _hold(shard), _send(given, beliefs)
    sums = torch.zeros(n * width + KINDS * n_labels + 10, dtype=torch.int64, device=device())
    shared = 8 * len(sums) + of_groups.voice.nbytes + of_groups.single.nbytes
    in_shared = shared <= SHARED
    kernel = _kernel("partition", shard, held, n_labels, in_shared=in_shared)
    eta = beliefs.true_count
    globals_ = [
        *of_groups[1:], *_tables(counts_of(shard, beliefs, int(given.size.max()))), _tensor(beliefs.share.T),
        _tensor(np.array([eta, beliefs.false_count, np.log(eta)])),
    ]  # fmt: skip

    def sweep(objects: Held, truth: torch.Tensor) -> None:
        n_objects = len(objects.first_claim) - 1
        turns = min(max(1, n_objects // (THREADS * BUSY)), TURNS)
        kernel(
            (-(-n_objects // (THREADS * turns)), 1, 1), (THREADS, 1, 1),
            [*objects, *globals_, n_objects, n, turns, truth, sums],
            shared if in_shared else 0,
        )  # fmt: skip

    if held.is_resident:
        truth = torch.empty(shard.n_candidates, dtype=torch.float64, device=device())
        sweep(held, truth)
        truth = truth if truth.nbytes <= room() else truth.cpu()
    else:
        truth = _stream(shard, held, sweep)
    found = sums.cpu().numpy()
    rows, share, terms = np.split(found, [n * width, len(found) - 10])
    reliable, rest, habit, single = np.split(
        rows.reshape(n, width), np.cumsum([2 * KINDS, KINDS, KINDS * n_labels]), axis=1
    )
    single = single.reshape(_singles_shape(n, n_labels, KINDS)).copy()
    # The device counts pairs and what is of the first kind; the other kind has the rest.
    single[:, :, -1] = np.rint(single[:, :, -1] / UNIT).astype(np.int64) - single[:, :, -2]
    return Locals(cast(Float, OnDevice(truth))), GroupingStats(
        reliable=reliable.reshape(n, KINDS, 2),
        habit=habit.reshape(n, KINDS, n_labels),
        habit_rest=rest,
        share=np.ascontiguousarray(share.reshape(n_labels, KINDS).T),
        counts=terms[:8].reshape(4, 2),
        terms=terms[8:].reshape(1, 2),
        single=single,
    )


def _stream(shard: Shard, held: Held, sweep: Callable[[Held, torch.Tensor], None]) -> torch.Tensor:
    """Sweep over a table in pinned memory; the truths, which are there when the device has done all it was asked for.

    Runs of objects take turns in two places on the device, each with a stream of its own: while one run is worked on
    the next is on its way, and the truths of the one before are on theirs.
    """
    edges = shard.edges(RUNS * _n_runs(held.nbytes))
    objects, claims, candidates = (
        [slice(int(start), int(stop)) for start, stop in pairwise(ends)]
        for ends in (edges, shard.first_claim[edges], shard.first_candidate[edges])
    )
    truth = torch.empty(shard.n_candidates, dtype=torch.float64, pin_memory=True)
    runs = [
        Held(
            held.claim_source[of_claims],
            held.value[of_claims],
            held.first_claim[of_objects.start : of_objects.stop + 1],
            held.first_candidate[of_objects.start : of_objects.stop + 1],
            held.log_truth[of_candidates],
            held.label[of_candidates],
            held.log_unclaimed[of_objects],
        )
        for of_objects, of_claims, of_candidates in zip(objects, claims, candidates, strict=True)
    ]
    truths = [truth[of_candidates] for of_candidates in candidates]
    places = [
        [
            torch.empty_like(max(parts, key=len), device=device())
            for parts in (*zip(*runs, strict=True), truths)
        ]
        for _ in range(2)
    ]
    now, streams = torch.cuda.current_stream(), [torch.cuda.Stream() for _ in places]
    for stream in streams:
        stream.wait_stream(now)
    for i, (run, of_run) in enumerate(zip(runs, truths, strict=True)):
        *place, found = places[i % 2]
        with torch.cuda.stream(streams[i % 2]):
            here = Held(
                *(to[: len(part)].copy_(part, non_blocking=True) for to, part in zip(place, run, strict=True))
            )
            here.first_claim.sub_(claims[i].start)
            here.first_candidate.sub_(candidates[i].start)
            sweep(here, found)
            of_run.copy_(found[: len(of_run)], non_blocking=True)
    for stream in streams:
        now.wait_stream(stream)
    return truth


def _relocate_cuda(
    shard: Shard, given: Grouping, beliefs: Beliefs, order: Int
) -> tuple[Grouping, int, float]:
    given, risen = unknown_where_absent(given, beliefs)
    n_groups, n_labels = len(given.reliability), beliefs.n_labels
    held = _hold(shard)
    first_of_source, object_of, most = _by_source(shard, held, len(given.group))
    group, size = _tensor(given.group.astype(np.int32)), _tensor(given.size.astype(np.int32))
    reliability, habit = _tensor(given.reliability), _tensor(given.habit)
    # Two rooms: what is kept of the source's claims, and of the groups near it.
    claims = [torch.empty(most * KINDS, dtype=torch.float64, device=device()) for _ in range(2)]
    claims += [torch.empty(most, dtype=torch.int32, device=device()) for _ in range(2)]
    seen, near, chosen = torch.zeros((3, n_groups), dtype=torch.int32, device=device())
    nats = torch.zeros(n_groups, dtype=torch.int64, device=device())
    worth, result = (torch.zeros(n, dtype=torch.float64, device=device()) for n in (n_groups, 2))
    _kernel("relocate", shard, held, n_labels)(
        (1, 1, 1), (OF_RELOCATION, 1, 1),
        [
            *held, group, _tensor(_voice(voices_of(given))), *_tables(counts_of(shard, beliefs, len(given.group))),
            _tensor(beliefs.share.T),
            _tensor(np.array([beliefs.true_count, beliefs.false_count, np.log(beliefs.concentration)])),
            _tensor(order.astype(np.int32)), len(order), first_of_source, object_of, size, reliability, habit,
            _tensor(beliefs.reliability), _tensor(beliefs.habit_prior), *claims, seen, nats, near, chosen, worth,
            result,
        ],
    )  # fmt: skip
    moved, gain = result.cpu().tolist()
    found = Grouping(group.cpu().numpy().astype(np.int64), reliability.cpu().numpy(), habit.cpu().numpy())
    return found, int(moved), gain + risen


def _partition(shard: Shard, given: Grouping, beliefs: Beliefs) -> tuple[Locals, GroupingStats]:
    """In PyTorch's own operations: pairs, and of each a cell for every candidate and one for the unclaimed value."""
    where, n_labels, n_kinds = device(), beliefs.n_labels, beliefs.n_kinds
    n_groups, n_objects = len(given.reliability), shard.n_objects
    first, sizes = _tensor(shard.first_candidate), _tensor(np.diff(shard.first_candidate))
    owner = torch.repeat_interleave(torch.arange(n_objects, device=where), sizes)
    log_truth, log_unclaimed, label = (
        _tensor(part) for part in (shard.log_truth, shard.log_unclaimed, shard.label.astype(np.int64))
    )
    if n_labels == 1:
        label = torch.zeros_like(label)
    claim_object = torch.repeat_interleave(
        torch.arange(n_objects, device=where), _tensor(np.diff(shard.first_claim))
    )
    key = claim_object * n_groups + _tensor(given.group)[_tensor(shard.claim_source).long()]
    pairs, claim_pair = torch.unique(key, return_inverse=True)
    of_object, group = pairs // n_groups, pairs % n_groups
    n_pairs, size = len(pairs), sizes[of_object]
    can_be = log_unclaimed[of_object] > -torch.inf
    domain = (size + can_be).double()
    ends = torch.cumsum(size + 1, 0)
    first_cell = ends - size - 1
    pair = torch.repeat_interleave(torch.arange(n_pairs, device=where), size + 1)
    n_cells = len(pair)
    place = torch.arange(n_cells, device=where) - first_cell[pair]
    is_claimed = place < size[pair]
    candidate = torch.where(is_claimed, first[of_object][pair] + place, 0)
    of_label = torch.where(is_claimed, label[candidate], 0)
    claimed_value = _tensor(shard.claim_candidate).long() - first[claim_object]
    count = torch.bincount(first_cell[claim_pair] + claimed_value, minlength=n_cells)
    total = torch.bincount(claim_pair, minlength=n_pairs).double()

    most = int(count.max()) if n_cells else 0
    as_true, as_false, slope_true, slope_false = (
        _tensor(part)[count] for part in rising_tables(beliefs, most)
    )
    prior_total = beliefs.true_count + (domain - 1) * beliefs.false_count
    of_pair = _sum(as_false, pair, n_pairs) + torch.lgamma(prior_total) - torch.lgamma(prior_total + total)
    opinion = of_pair[pair] + as_true - as_false
    log_habit = _tensor(given.log_habit)[group[pair], :, of_label].T
    if n_labels == 1:
        log_habit = -torch.log(domain[pair]).expand(n_kinds, n_cells)
    log_habit = torch.where(is_claimed | can_be[pair], log_habit, -torch.inf)
    log_wrong = _logsumexp(log_habit + opinion, pair, n_pairs)
    log_u = _tensor(given.log_reliability)[group]
    log_right = log_u[:, :, 1].T[:, pair]
    # Not torch.logaddexp: on a CPU its last bit depends on how many numbers it is given.
    if_right, if_wrong = log_right + opinion, (log_u[:, :, 0].T + log_wrong)[:, pair]
    nats = torch.maximum(if_right, if_wrong) + torch.log1p(torch.exp(-torch.abs(if_right - if_wrong)))

    # The last column is the unclaimed value's, object by object.
    log_share = _tensor(beliefs.log_share)
    to = torch.where(is_claimed, candidate, shard.n_candidates + of_object[pair])
    prior = torch.cat([log_truth + log_share[:, label], log_unclaimed + log_share[:, :1]], dim=1)
    joint = prior + _sum(nats, to, prior.shape[1])
    owners = torch.cat([owner, torch.arange(n_objects, device=where)])
    by_kind = _logsumexp(joint, owners, n_objects)
    highest = by_kind.amax(dim=0)
    evidence = highest + torch.log(_over_kinds(torch.exp(by_kind - highest)))
    joint = torch.exp(joint - evidence[owners])
    claimed = _over_kinds(joint[:, : shard.n_candidates])
    of_claimed = _sum(claimed, owner, n_objects)[owner]
    truth = torch.where(of_claimed > 0, claimed / of_claimed, 1 / sizes[owner].double())

    right = torch.exp(log_right + opinion - nats) * joint[:, to]
    right_pair = _sum(right, pair, n_pairs)
    wrong = _sum(joint, owners, n_objects)[:, of_object] - right_pair
    wrong_cell = wrong[:, pair] * torch.exp(log_habit + opinion - log_wrong[:, pair])
    reliable = torch.zeros(given.reliability.shape, dtype=torch.int64, device=where)
    reliable.index_add_(0, group, _fixed(torch.stack([wrong.T, right_pair.T], dim=2)))
    habit = torch.zeros((n_groups * n_labels, n_kinds), dtype=torch.int64, device=where)
    if n_labels > 1:
        habit.index_add_(0, group[pair] * n_labels + of_label, _fixed(wrong_cell.T))
    share = torch.zeros((n_labels, n_kinds), dtype=torch.int64, device=where)
    share.index_add_(0, torch.cat([label, torch.zeros_like(sizes)]), _fixed(joint.T))

    held = _over_kinds(right + wrong_cell)
    every = _sum(slope_false, pair, n_pairs)[pair]
    slope = torch.digamma(prior_total + total) - torch.digamma(prior_total)
    counts = (held * slope_true, slope, held * (every - slope_false), (domain - 1) * slope)
    return Locals(cast(Float, OnDevice(truth))), GroupingStats(
        reliable=reliable.cpu().numpy(),
        habit=habit.view(n_groups, n_labels, n_kinds).transpose(1, 2).contiguous().cpu().numpy(),
        habit_rest=np.zeros(given.reliability.shape[:2], np.int64),
        share=share.T.contiguous().cpu().numpy(),
        counts=np.stack([_two_words(part) for part in counts]),
        terms=_two_words(evidence)[None],
        single=np.zeros(_singles_shape(n_groups, n_labels, n_kinds), np.int64),
    )


def _over_kinds(rows: torch.Tensor) -> torch.Tensor:
    """The sum of rows, one after the other: as in `numpy_partition`."""
    return reduce(torch.add, rows)


def _singles_shape(n_groups: int, n_labels: int, n_kinds: int) -> tuple[int, int, int]:
    """Of `GroupingStats.single`: none where labels are not common."""
    return n_groups if n_labels > 1 else 0, n_labels, 2 * n_kinds


class SumBy:
    """Sums along the first axis by where they go; with `of`, of what is taken from there.

    In a fixed order, found once: addition of floats depends on it.
    """

    def __init__(self, to: torch.Tensor, n: int, of: torch.Tensor | None = None) -> None:
        order = torch.argsort(to, stable=True)
        self.take = order if of is None else of[order]
        self.lengths = torch.bincount(to, minlength=n)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return torch.segment_reduce(x.index_select(0, self.take), "sum", lengths=self.lengths)


def _sum(x: torch.Tensor, to: torch.Tensor, n: int) -> torch.Tensor:
    """Sums along the last axis by where they go."""
    return SumBy(to, n)(x.movedim(-1, 0)).movedim(0, -1)


def _logsumexp(x: torch.Tensor, of: torch.Tensor, n: int) -> torch.Tensor:
    """ln Σ exp along the last axis by run."""
    highest = torch.full((len(x), n), -torch.inf, dtype=x.dtype, device=x.device)
    highest = highest.scatter_reduce(1, of.expand(len(x), -1), x, "amax")
    highest = torch.where(torch.isfinite(highest), highest, 0.0)
    return highest + torch.log(_sum(torch.exp(x - highest[:, of]), of, n))


def _fixed(x: torch.Tensor) -> torch.Tensor:
    return torch.round(x / UNIT).long()


def _two_words(x: torch.Tensor) -> NDArray[np.int64]:
    coarse = torch.round(x / COARSE)
    words = torch.stack([coarse.long().sum(), torch.round((x - coarse * COARSE) / FINE).long().sum()])
    return cast("NDArray[np.int64]", words.cpu().numpy())


def segments(claims: Claims, log_truth: Float, is_known: NDArray[np.bool_] | None) -> Segments:
    """The table with its sums on the device; NumPy's where it has no room for them."""
    fits = OF_RIVAL * (claims.n_claims + claims.n_candidates) <= room()
    return (DeviceSegments if fits else Segments)(claims, log_truth, is_known)


class DeviceSegments(Segments):
    """Claims on the device: what is summed goes there and the sums come back."""

    engine: ClassVar[str] = name

    def labels(self) -> Labels:
        """Likewise on the device."""
        return DeviceLabels.of(self)

    @cached_property
    def _source(self) -> torch.Tensor:
        return _tensor(self.claims.claim_source)

    @cached_property
    def _candidate(self) -> torch.Tensor:
        return _tensor(self.claims.claim_candidate)

    @cached_property
    def _by_source(self) -> SumBy:
        return SumBy(self._source, self.claims.n_sources)

    @cached_property
    def _by_candidate(self) -> SumBy:
        return SumBy(self._candidate, self.claims.n_candidates)

    @cached_property
    def _over_claims(self) -> SumBy:
        return SumBy(self._source, self.claims.n_sources, self._candidate)

    @cached_property
    def _over_claimants(self) -> SumBy:
        return SumBy(self._candidate, self.claims.n_candidates, self._source)

    @cached_property
    def _sizes(self) -> torch.Tensor:
        return _tensor(self.domain_size)

    @cached_property
    def _may_be(self) -> torch.Tensor:
        return _tensor(self.possible)

    def sum_by_source(self, on_claims: Float) -> Float:
        """(n_sources,)"""
        return _array(self._by_source(_tensor(on_claims)))

    def sum_by_candidate(self, on_claims: Float) -> Float:
        """(n_candidates,)"""
        return _array(self._by_candidate(_tensor(on_claims)))

    def sum_over_claims(self, on_candidates: Float) -> Float:
        """(n_sources,)"""
        return _array(self._over_claims(_tensor(on_candidates)))

    def sum_over_claimants(self, on_sources: Float) -> Float:
        """(n_candidates,)"""
        return _array(self._over_claimants(_tensor(on_sources)))

    def sum_by_object(self, on_candidates: Float) -> Float:
        """(n_objects,)"""
        return _array(self._reduce(_tensor(on_candidates), "sum"))

    def highest_by_object(self, on_candidates: Float) -> Float:
        """(n_objects,)"""
        return _array(self._reduce(_tensor(on_candidates), "max"))

    def shares(self, on_candidates: Float) -> Float:
        """(n_candidates,)"""
        weight = torch.where(self._may_be, _tensor(on_candidates), 0.0)
        total = self._reduce(weight, "sum")
        weight = torch.where(self._spread(total) > 0, weight, self._may_be.to(weight.dtype))
        return _array(weight / self._spread(self._reduce(weight, "sum")))

    def softmax(self, log_weight: Float) -> tuple[Float, Float]:
        """(n_candidates,) and (n_objects,)"""
        x = torch.where(self._may_be, _tensor(log_weight), -torch.inf)
        highest = self._reduce(x, "max")
        weight = torch.exp(x - self._spread(highest))
        total = self._reduce(weight, "sum")
        return _array(weight / self._spread(total)), _array(highest + torch.log(total))

    def _reduce(self, on_candidates: torch.Tensor, how: str) -> torch.Tensor:
        return torch.segment_reduce(on_candidates, how, lengths=self._sizes)

    def _spread(self, on_objects: torch.Tensor) -> torch.Tensor:
        size = self.claims.n_candidates
        return torch.repeat_interleave(on_objects, self._sizes, output_size=size)


class DeviceLabels(Labels):
    """Claims on common labels, likewise."""

    @cached_property
    def _over_habits(self) -> SumBy:
        return SumBy(
            _tensor(self.segments.claim_object), self.segments.claims.n_objects, _tensor(self.claim_habit)
        )

    @cached_property
    def _over_objects(self) -> SumBy:
        return SumBy(_tensor(self.claim_habit), len(self.habit_source), _tensor(self.segments.claim_object))

    @cached_property
    def _may_be(self) -> torch.Tensor:
        return _tensor(self.possible)

    def sum_by_object(self, on_habits: Float) -> Float:
        """(n_objects, …)"""
        return _array(self._over_habits(_tensor(on_habits)))

    def sum_by_habit(self, on_objects: Float) -> Float:
        """(n_habits, …)"""
        return _array(self._over_objects(_tensor(on_objects)))

    def softmax(self, log_weight: Float) -> tuple[Float, Float]:
        """(n_objects, n_labels) and (n_objects,)"""
        x = torch.where(self._may_be, _tensor(log_weight), -torch.inf)
        evidence = torch.logsumexp(x, dim=1)
        return _array(torch.softmax(x, dim=1)), _array(evidence)


def _array(tensor: torch.Tensor) -> Float:
    return cast(Float, tensor.cpu().numpy())
