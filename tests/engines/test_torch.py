"""What PyTorch computes, on its CPU build and on a CUDA device: the reference's answers, the same bits again, also
where the device has no room for the table, and the rivals' sums.

Where a device is but no pytest: `make gpu`, which runs this file as it is.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from unittest import mock

import numpy as np

from consilience.kernels import numpy_partition
from consilience.kernels.choose import choose
from consilience.kernels.lures import folded, unfolded
from consilience.kernels.numpy_partition import update_groups
from consilience.kernels.state import from_fixed, from_two_words
from consilience.models.base import truth_prior
from consilience.models.crh import CRH
from consilience.models.dawid_skene import DawidSkene, OneCoin
from consilience.models.estimates import ThreeEstimates
from consilience.models.mss.model import MSS
from consilience.models.mss.table import with_domains
from consilience.models.truthfinder import TruthFinder
from consilience.testing.strategies import random_beliefs, random_claims, random_grouping, random_lures

TOLERANCE = {
    "truth": 1e-9,
    "statistics": 1e-7,
}  # the engine tests': statistics are rounded to 2**-30 an object
DOMAINS = ("common", "claimed", "given")
DEEP = 80  # claims an object, more than a thread of the device keeps


@contextmanager
def on(device, room=None):
    """PyTorch's kernel on this device, with so many bytes for a table."""
    kernel = choose("torch")
    with ExitStack() as changes:
        if device == "cpu":
            import torch

            changes.enter_context(mock.patch.object(kernel, "device", return_value=torch.device("cpu")))
        if room is not None:
            changes.enter_context(mock.patch.object(kernel, "room", return_value=room))
        yield kernel


def table(seed, n_sources=None):
    """A shard of its own, so that what is kept of one on the device is not another's."""
    claims, log_truth, _ = truth_prior(random_claims(seed, DOMAINS[seed % 3], n_sources=n_sources), None)
    shard, n_labels = with_domains(claims, log_truth, None)
    beliefs = random_beliefs(seed, n_labels)
    return shard, random_grouping(claims, beliefs, seed), beliefs


def numbers(done):
    """All that a sweep gives."""
    locals_, stats = done
    return [np.asarray(locals_.truth), *vars(stats).values()]


def close(one, other, tolerance):
    one, other = np.asarray(one, float), np.asarray(other, float)
    assert np.all(np.abs(one - other) <= tolerance * np.maximum(1.0, np.abs(one)))


def test_sweeps_are_the_references_and_relocations_move_alike(device):
    for seed in range(40):
        shard, given, beliefs = table(seed, n_sources=DEEP if seed % 20 == 19 else None)
        with on(device) as kernel:
            truth, stats = kernel.partition(shard, given, beliefs)
            found = np.asarray(truth.truth)
        expected, reference = numpy_partition.partition(shard, given, beliefs)
        stats = kernel.completed(stats, given, beliefs)
        close(expected.truth, found, TOLERANCE["truth"])
        close(from_two_words(reference.terms), from_two_words(stats.terms), TOLERANCE["truth"])
        close(from_two_words(reference.counts), from_two_words(stats.counts), TOLERANCE["statistics"])
        close(from_fixed(reference.share), from_fixed(stats.share), TOLERANCE["statistics"])
        one, other = (update_groups(each, given, beliefs) for each in (reference, stats))
        close(one.reliability, other.reliability, TOLERANCE["statistics"])
        close(one.habit, other.habit, TOLERANCE["statistics"])
        one_value = np.all(np.diff(shard.first_candidate) == 1)
        if device == "cuda" and len(shard.claim_source) < 100 and not one_value:
            order = np.random.default_rng(seed).permutation(len(given.group))
            with on(device) as kernel:
                grouping, moved, gain = kernel.relocate(shard, given, beliefs, order)
            reference, n_moved, risen = numpy_partition.relocate(shard, given, beliefs, order)
            assert (moved, abs(gain - risen) < 1e-6) == (n_moved, True), seed
            together, apart = (each.group[:, None] == each.group for each in (reference, grouping))
            assert np.array_equal(together, apart), seed


def test_sweeps_with_lures_are_the_references(device):
    n_lured = 0
    for seed in range(60):
        shard, given, beliefs = table(seed)
        beliefs = random_lures(beliefs, seed)
        if not beliefs.lured.any():
            continue
        n_lured += 1
        classes = unfolded(given, beliefs)
        with on(device) as kernel:
            truth, stats = kernel.partition(shard, *classes)
            found, stats = np.asarray(truth.truth), folded(kernel.completed(stats, *classes), given, beliefs)
        expected, reference = numpy_partition.partition(shard, *classes)
        reference = folded(reference, given, beliefs)
        close(expected.truth, found, TOLERANCE["truth"])
        close(from_two_words(reference.terms), from_two_words(stats.terms), TOLERANCE["truth"])
        for name in ("reliable", "habit", "share", "lured"):
            one, other = (from_fixed(getattr(each, name)) for each in (reference, stats))
            close(one, other, TOLERANCE["statistics"])
    assert n_lured > 5


def test_a_table_without_room_on_the_device_gives_the_same_bits(device):
    n_cut = 0
    for seed in range(30):
        n_sources = DEEP if seed % 10 == 9 else None
        shard, given, beliefs = table(seed, n_sources)
        order = np.random.default_rng(seed).permutation(len(given.group))
        with on(device) as kernel:
            expected = numbers(kernel.partition(shard, given, beliefs))
            moved = kernel.relocate(shard, given, beliefs, order) if device == "cuda" else None
        shard, given, beliefs = table(seed, n_sources)
        with on(device, room=60) as kernel:
            found = numbers(kernel.partition(shard, given, beliefs))
            n_cut += len(shard.claim_source) * 4 > 60
            for one, other in zip(expected, found, strict=True):
                assert np.array_equal(one, other), seed
            if moved:
                again = kernel.relocate(shard, given, beliefs, order)
                assert np.array_equal(moved[0].group, again[0].group)
                assert moved[1:] == again[1:]
    assert n_cut > 20


def test_the_shards_of_a_table_share_the_room_for_it(device):
    """They come one after another: had each half of what the others leave, nothing would be left to work in."""
    memory, taken = 100_000, []

    def brought(array, *, pinned=False):
        taken.append(0 if pinned else array.nbytes)
        return SimpleNamespace(is_cuda=not pinned, nbytes=array.nbytes)

    def left():
        return int(kernel.SHARE * (memory - sum(taken)))

    claims, log_truth, _ = truth_prior(random_claims(0, "common", n_sources=DEEP), None)
    shards = [with_domains(claims, log_truth, None)[0] for _ in range(memory // claims.n_claims)]
    with on(device) as kernel, ExitStack() as changes:
        changes.enter_context(mock.patch.object(kernel, "_held", type(kernel._held)()))
        changes.enter_context(mock.patch.object(kernel, "_tensor", brought))
        changes.enter_context(mock.patch.object(kernel.torch.cuda, "current_stream"))
        changes.enter_context(mock.patch.object(kernel, "room", left))
        for shard in shards:
            kernel._hold(shard)
    assert 0.8 * kernel.SHARE < sum(taken) / memory <= kernel.SHARE


def test_a_fit_gives_the_same_bits_again(device):
    claims = random_claims(4, "common", n_sources=5)
    with on(device):
        one, other = (MSS().fit(claims, engine="torch") for _ in range(2))
    expected = MSS().fit(claims, engine="numpy")
    assert one.bound == other.bound
    assert np.array_equal(one.truth, other.truth)
    assert np.array_equal(one.decision, expected.decision)
    close(expected.bound, one.bound, MSS().tolerance)  # rounding may end an ascent a sweep earlier


def test_rivals_answer_as_on_numpy_and_the_same_bits_again(device):
    for model in (TruthFinder(), ThreeEstimates(), DawidSkene(), OneCoin(), CRH()):
        for seed in range(6):
            claims = random_claims(seed, DOMAINS[seed % 3])
            expected = model.fit(claims, engine="numpy")
            with on(device):
                one, other = (model.fit(claims, engine="torch") for _ in range(2))
            with on(device, room=0):
                without_room = model.fit(claims, engine="torch")
            assert one.provenance["engine"] == "torch"
            assert without_room.provenance["engine"] == "numpy"
            close(expected.truth, one.truth, TOLERANCE["truth"])
            close(expected.source_reliability[:, 0], one.source_reliability[:, 0], TOLERANCE["truth"])
            assert np.array_equal(one.truth, other.truth)


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test(sys.argv[1])
            print(f"{name.replace('_', ' ')}: ok", flush=True)  # noqa: T201
