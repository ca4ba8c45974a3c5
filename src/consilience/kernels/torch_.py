"""The kernel for GPUs, through PyTorch. The only file that imports it.

On a CUDA device the partition inference runs as CUDA C (`partition.cu`), compiled for the table by the compiler that
PyTorch brings along; without one, as PyTorch's own operations, which any of its devices has. The other two inferences
are NumPy's: they are there to compare with, on tables that need no GPU.

A shard goes to the device once and stays there as long as it is used. Truths stay there too until they are asked for.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray

from consilience.claims.encoding import Float, Int, Shard, offsets
from consilience.kernels import numpy_partition
from consilience.kernels.numpy_ import mean_field, structured
from consilience.kernels.numpy_partition import expected_log, rising_tables
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

__all__ = ["mean_field", "name", "partition", "relocate", "structured"]

name = "torch"

DEEPEST = 64
"""Claims or candidates of an object beyond which PyTorch's own operations take over: a thread keeps them all."""
LARGEST = 200.0
"""ln E beyond which they do as well: products of E as it is would leave the range of numbers."""
THREADS, OF_RELOCATION = 512, 512
"""Threads of a block."""
RESIDENT = 2
"""Blocks that a processor should have room for: some work while others wait for memory."""
SHARED = 47_000
"""Bytes of shared memory for what groups are like and their sums; where they need more, both are in the device's."""
SOURCE = Path(__file__).with_name("partition.cu")


class Resident(NamedTuple):
    """A shard on the device, as `partition.cu` takes it; arrays that would say the same of all objects are empty."""

    claim_source: torch.Tensor
    value: torch.Tensor
    first_claim: torch.Tensor
    first_candidate: torch.Tensor
    log_truth: torch.Tensor
    label: torch.Tensor
    log_unclaimed: torch.Tensor


class OnDevice:
    """Truths on the device; NumPy fetches them when it needs them."""

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
    """Whether it pays to use this kernel."""
    return bool(device().type == "cuda")


def partition(
    shard: Shard, given: Grouping, beliefs: Beliefs, warm: Locals | None = None
) -> tuple[Locals, GroupingStats]:
    """As `numpy_partition.partition`."""
    step = _partition_cuda if _compiles(shard, beliefs) else _partition
    return step(shard, given, beliefs)


def relocate(shard: Shard, given: Grouping, beliefs: Beliefs, order: Int) -> tuple[Grouping, int, float]:
    """As `numpy_partition.relocate`, and by it where there is no CUDA device: it moves one source at a time."""
    step = _relocate_cuda if _compiles(shard, beliefs) else numpy_partition.relocate
    return step(shard, given, beliefs, order)


def _compiles(shard: Shard, beliefs: Beliefs) -> bool:
    """Whether the compiled kernels can take this shard, and there is a device for them."""
    most_claims, widest = int(shard.most_claims.max(initial=0)), len(shard.most_claims) - 1
    if not has_cuda() or max(most_claims, widest) > DEEPEST:
        return False
    as_true, as_false, _, _ = rising_tables(beliefs, most_claims + 1)
    return float(np.max(as_true - as_false)) < LARGEST


_resident: WeakKeyDictionary[Shard, Resident] = WeakKeyDictionary()


def _on_device(shard: Shard) -> Resident:
    """The shard on the device, brought there once."""
    found = _resident.get(shard)
    if found is None:
        place = np.arange(shard.n_candidates) - np.repeat(
            shard.first_candidate[:-1], np.diff(shard.first_candidate)
        )
        value = place[shard.claim_candidate]
        index = np.int32 if len(shard.claim_source) < 2**31 and shard.n_candidates < 2**31 else np.int64
        nothing = np.zeros(0)
        found = Resident(
            *map(
                _tensor,
                (
                    shard.claim_source.astype(np.int32, copy=False),
                    value.astype(np.uint8),
                    shard.first_claim.astype(index),
                    shard.first_candidate.astype(index),
                    nothing if np.all(shard.log_truth == 0) else shard.log_truth,
                    nothing if np.array_equal(shard.label, place) else shard.label.astype(np.int32),
                    nothing if np.all(np.isneginf(shard.log_unclaimed)) else shard.log_unclaimed,
                ),
            )
        )
        _resident[shard] = found
    return found


def _tensor(array: NDArray[Any]) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(device())


@cache
def _compile(function: str, depth: int, width: int, n_labels: int, index: str, in_shared: bool) -> Any:
    """A kernel for objects of at most so many claims and candidates."""
    constants = {
        "DEPTH": depth, "WIDTH": width, "LABELS": n_labels, "INDEX": index, "VALUE": "unsigned char",
        "THREADS": OF_RELOCATION, "SWEEPING": THREADS, "RESIDENT": RESIDENT,
        "IN_SHARED": int(in_shared),
    }  # fmt: skip
    head = "".join(f"#define {key} {value}\n" for key, value in constants.items())
    return torch.cuda._compile_kernel(head + SOURCE.read_text(encoding="utf-8"), function)


def _kernel(
    function: str, shard: Shard, on_device: Resident, n_labels: int, *, in_shared: bool = False
) -> Any:
    depth, width = int(shard.most_claims.max(initial=1)), max(len(shard.most_claims) - 1, 1)
    index = "int" if on_device.first_claim.dtype == torch.int32 else "long long"
    # Few sizes, so that few kernels are compiled.
    depth, width = (next(size for size in (4, 8, 16, 32, DEEPEST) if size >= n) for n in (depth, width))
    return _compile(function, depth, width, n_labels, index, in_shared)


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


def _partition_cuda(shard: Shard, given: Grouping, beliefs: Beliefs) -> tuple[Locals, GroupingStats]:
    # Groups without sources have no claims: only the others travel.
    occupied, group = np.unique(given.group, return_inverse=True)
    of_occupied = Grouping(group, given.reliability[occupied], given.habit[occupied])
    n, n_labels = len(occupied), beliefs.n_labels
    width = KINDS * (3 + n_labels)
    on_device = _on_device(shard)
    truth = torch.empty(shard.n_candidates, dtype=torch.float64, device=device())
    sums = torch.zeros(n * width + KINDS * n_labels, dtype=torch.int64, device=device())
    terms = torch.zeros((5, 2), dtype=torch.int64, device=device())
    voice = _voice(voices_of(of_occupied))
    shared = 8 * len(sums) + voice.nbytes
    in_shared = shared <= SHARED
    blocks = -(-shard.n_objects // THREADS)
    _kernel("partition", shard, on_device, n_labels, in_shared=in_shared)(
        (blocks, 1, 1), (THREADS, 1, 1),
        [
            *on_device, _tensor(group.astype(np.int32)), _tensor(voice),
            *_tables(counts_of(shard, beliefs, int(given.size.max()))), _tensor(beliefs.share.T),
            _tensor(np.array([beliefs.true_count, beliefs.false_count])),
            shard.n_objects, n, truth, sums, terms,
        ],
        shared if in_shared else 0,
    )  # fmt: skip
    found, term = sums.cpu().numpy(), terms.cpu().numpy()
    rows = found[: n * width].reshape(n, width)
    stats = GroupingStats(
        reliable=np.zeros(given.reliability.shape, np.int64),
        habit=np.zeros(given.habit.shape, np.int64),
        habit_rest=np.zeros(given.reliability.shape[:2], np.int64),
        share=np.ascontiguousarray(found[n * width :].reshape(n_labels, KINDS).T),
        counts=term[:4],
        terms=term[4:],
    )
    stats.reliable[occupied] = rows[:, : 2 * KINDS].reshape(n, KINDS, 2)
    stats.habit_rest[occupied] = rows[:, 2 * KINDS : 3 * KINDS]
    stats.habit[occupied] = rows[:, 3 * KINDS :].reshape(n, KINDS, n_labels)
    return Locals(cast(Float, OnDevice(truth))), stats


def _relocate_cuda(
    shard: Shard, given: Grouping, beliefs: Beliefs, order: Int
) -> tuple[Grouping, int, float]:
    n_groups, n_labels = len(given.reliability), beliefs.n_labels
    on_device = _on_device(shard)
    first_of_source = offsets(shard.claim_source, len(given.group))
    most = int(np.diff(first_of_source).max(initial=1))
    object_of = np.repeat(np.arange(shard.n_objects), np.diff(shard.first_claim))
    object_of = object_of[np.argsort(shard.claim_source, kind="stable")]
    index = np.int32 if on_device.first_claim.dtype == torch.int32 else np.int64
    group, size = _tensor(given.group.astype(np.int32)), _tensor(given.size.astype(np.int32))
    reliability, habit = _tensor(given.reliability), _tensor(given.habit)
    # Two rooms: what is kept of the source's claims, and of the groups near it.
    claims = [torch.empty(most * KINDS, dtype=torch.float64, device=device()) for _ in range(2)]
    claims += [torch.empty(most, dtype=torch.int32, device=device()) for _ in range(2)]
    seen, near, chosen = torch.zeros((3, n_groups), dtype=torch.int32, device=device())
    nats = torch.zeros(n_groups, dtype=torch.int64, device=device())
    worth, result = (torch.zeros(n, dtype=torch.float64, device=device()) for n in (n_groups, 2))
    _kernel("relocate", shard, on_device, n_labels)(
        (1, 1, 1), (OF_RELOCATION, 1, 1),
        [
            *on_device, group, _tensor(_voice(voices_of(given))), *_tables(counts_of(shard, beliefs, len(given.group))),
            _tensor(beliefs.share.T),
            _tensor(np.array([beliefs.true_count, beliefs.false_count, np.log(beliefs.concentration)])),
            _tensor(order.astype(np.int32)), len(order), _tensor(first_of_source.astype(index)),
            _tensor(object_of.astype(index)), size, reliability, habit, _tensor(beliefs.reliability),
            _tensor(beliefs.habit_prior), *claims, seen, nats, near, chosen, worth, result,
        ],
    )  # fmt: skip
    moved, gain = result.cpu().tolist()
    found = Grouping(group.cpu().numpy().astype(np.int64), reliability.cpu().numpy(), habit.cpu().numpy())
    return found, int(moved), gain


def _partition(shard: Shard, given: Grouping, beliefs: Beliefs) -> tuple[Locals, GroupingStats]:
    """In PyTorch's own operations: pairs, and of each a cell for every candidate and one for the unclaimed value."""
    where, n_labels = device(), beliefs.n_labels
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
    log_habit = _tensor(expected_log(given.habit))[group[pair], :, of_label].T
    if n_labels == 1:
        log_habit = -torch.log(domain[pair]).expand(KINDS, n_cells)
    log_habit = torch.where(is_claimed | can_be[pair], log_habit, -torch.inf)
    log_wrong = _logsumexp(log_habit + opinion, pair, n_pairs)
    log_u = _tensor(expected_log(given.reliability))[group]
    log_right = log_u[:, :, 1].T[:, pair]
    nats = torch.logaddexp(log_right + opinion, (log_u[:, :, 0].T + log_wrong)[:, pair])

    # The last column is the unclaimed value's, object by object.
    log_share = torch.log(_tensor(beliefs.share))
    to = torch.where(is_claimed, candidate, shard.n_candidates + of_object[pair])
    prior = torch.cat([log_truth + log_share[:, label], log_unclaimed + log_share[:, :1]], dim=1)
    joint = prior + _sum(nats, to, prior.shape[1])
    owners = torch.cat([owner, torch.arange(n_objects, device=where)])
    by_kind = _logsumexp(joint, owners, n_objects)
    evidence = torch.logsumexp(by_kind, dim=0)
    joint = torch.exp(joint - evidence[owners])
    claimed = joint[:, : shard.n_candidates].sum(dim=0)
    of_claimed = _sum(claimed, owner, n_objects)[owner]
    truth = torch.where(of_claimed > 0, claimed / of_claimed, 1 / sizes[owner].double())

    right = torch.exp(log_right + opinion - nats) * joint[:, to]
    right_pair = _sum(right, pair, n_pairs)
    wrong = _sum(joint, owners, n_objects)[:, of_object] - right_pair
    wrong_cell = wrong[:, pair] * torch.exp(log_habit + opinion - log_wrong[:, pair])
    reliable = torch.zeros(given.reliability.shape, dtype=torch.int64, device=where)
    reliable.index_add_(0, group, _fixed(torch.stack([wrong.T, right_pair.T], dim=2)))
    habit = torch.zeros((n_groups * n_labels, KINDS), dtype=torch.int64, device=where)
    if n_labels > 1:
        habit.index_add_(0, group[pair] * n_labels + of_label, _fixed(wrong_cell.T))
    share = torch.zeros((n_labels, KINDS), dtype=torch.int64, device=where)
    share.index_add_(0, torch.cat([label, torch.zeros_like(sizes)]), _fixed(joint.T))

    held = (right + wrong_cell).sum(dim=0)
    every = _sum(slope_false, pair, n_pairs)[pair]
    slope = torch.digamma(prior_total + total) - torch.digamma(prior_total)
    counts = (held * slope_true, slope, held * (every - slope_false), (domain - 1) * slope)
    return Locals(cast(Float, OnDevice(truth))), GroupingStats(
        reliable=reliable.cpu().numpy(),
        habit=habit.view(n_groups, n_labels, KINDS).transpose(1, 2).contiguous().cpu().numpy(),
        habit_rest=np.zeros(given.reliability.shape[:2], np.int64),
        share=share.T.contiguous().cpu().numpy(),
        counts=np.stack([_two_words(part) for part in counts]),
        terms=_two_words(evidence)[None],
    )


def _sum(x: torch.Tensor, to: torch.Tensor, n: int) -> torch.Tensor:
    """Sums along the last axis by where they go. In a fixed order: addition of floats depends on it."""
    order = torch.argsort(to, stable=True)
    lengths = torch.bincount(to, minlength=n)
    return torch.segment_reduce(x[..., order].movedim(-1, 0), "sum", lengths=lengths).movedim(0, -1)


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
