"""From probabilities to one decision an object, ties decided by the seed and counted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from consilience.claims.encoding import Float, Int

TIED = 1e-9
"""Probabilities closer than this are equal: less is rounding, not evidence."""


def decide(truth: Float, first_candidate: Int, seed: int, first_object: int = 0) -> tuple[Int, int]:
    """The most probable candidate of each object, and how many objects had a tie.

    A tie goes to the candidate that a hash of (seed, object) points at: no order of claims, shards or threads
    can change it, and no candidate is favoured over the whole table.

    truth           : (n_candidates,)  probabilities
    first_candidate : (n_objects + 1,) every object has at least one candidate
    first_object    : how many objects come before these
    returns decision (n_objects,) int64, n_ties
    """
    sizes, starts = np.diff(first_candidate), first_candidate[:-1]
    if not len(sizes):
        return np.zeros(0, np.int64), 0
    is_tied = truth >= np.repeat(np.maximum.reduceat(truth, starts) - TIED, sizes)
    tied = np.flatnonzero(is_tied)
    if len(tied) == len(sizes):
        return tied, 0
    n_tied = np.add.reduceat(is_tied, starts, dtype=np.int64)
    numbers = np.arange(first_object, first_object + len(sizes), dtype=np.uint64)
    pick = (hashed(numbers, seed) % n_tied.astype(np.uint64)).astype(np.int64)
    first: Int = np.cumsum(n_tied) - n_tied
    return tied[first + pick], int(np.count_nonzero(n_tied > 1))


def hashed(index: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """Two rounds of the splitmix64 finaliser: every bit of seed and index reaches every bit of the result."""
    mixed = scatter_bits(index + np.uint64(seed * 0x9E3779B97F4A7C15 % 2**64))
    return scatter_bits(mixed ^ np.uint64(0xD1B54A32D192ED03))


def scatter_bits(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A hash of 64 bits, the finaliser of SplitMix64: one-to-one, and near inputs land far apart."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
