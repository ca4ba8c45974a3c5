"""What kernels that work in linear weights are given: groups by exp E ln, and tables by the number of claims.

An object is taken apart into *pairs* (a group with claims on it) and *cells* (a value claimed by a pair). Whatever a
pair does not claim is alike to it, so every sum over the domain is one over its cells and a rest. With

    E_s = B(a^s + n) B(a) / B(a + n) B(a^s)      what claims gain when s is the opinion (a: all θ); 1 off the cells
    W   = exp(E ln(1 - u)) Σ_s exp(E ln ξ_s) E_s     an unreliable group, its opinion summed out

the pair says exp(E ln u) E_z + W of the truth z, up to a factor that all z share. E comes from tables by the number of
claims; what pairs say is multiplied, and scaled now and then: no special function is needed but one logarithm.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from consilience.claims.encoding import Float, Int, Shard
from consilience.kernels.numpy_partition import rising_tables
from consilience.kernels.state import KINDS, Beliefs, Grouping

Array = TypeVar("Array", bound=NDArray[Any])
Kinds = tuple[int, ...] | Int

LEAST = 1e-150
"""Weights below this are taken for this: neither they nor what is divided by them leave the range of numbers."""
SMALL, LARGE = 1e-100, 1e100
"""Products outside are scaled."""
UNROLLED = 100_000
"""Claims of a shard from which on its code may be compiled for a number of kinds: it takes an eighth less time. Smaller
ones share what is compiled for any number, so that a first fit waits for it once."""


class Objects(NamedTuple):
    """A shard, as compiled code takes it."""

    claim_source: Int
    claim_candidate: Int
    first_claim: Int
    first_candidate: Int
    log_truth: Float
    label: Int
    log_unclaimed: Float
    bits: int  # that the place of a value in its domain takes


class Voices(NamedTuple):
    """What groups are like: exp E ln, which sum to less than one.

    group    : (n_sources,)                  the group of each source
    kinds    : (n_kinds,)                    one entry a kind; a tuple where code is compiled for so many
    right    : (n_groups, n_kinds)           u
    wrong    : (n_groups, n_kinds)           1 - u
    habit    : (n_groups, n_labels, n_kinds) (1 - u) ξ; without labels 1 - u, of which each of K values has its share
    habits   : (n_groups, n_kinds)           Σ (1 - u) ξ
    """

    group: Int
    kinds: Kinds
    right: Float
    wrong: Float
    habit: Float
    habits: Float


class Counts(NamedTuple):
    """η, θ and tables by number of claims n.

    swap        : ln E of a value with n claims
    rest        : 1 / E
    step        : by what one more claim multiplies E
    as_false    : ln Γ(θ+n) / Γ(θ)
    slope_true  : the derivative of ln Γ(η+n) / Γ(η) in η
    slope_false : likewise for θ

    For a domain of K values ln Γ(A+n) / Γ(A), A = η + (K - 1) θ, and its slope in A lie from first_total[K] on.
    """

    eta: float
    theta: float
    swap: Float
    rest: Float
    step: Float
    as_false: Float
    slope_true: Float
    slope_false: Float
    first_total: Int
    log_total: Float
    slope_total: Float


def read_only(array: Array) -> Array:
    """A view for compiled code that cannot be written to: a cluster's arrays cannot, and for both kinds it would be
    compiled twice."""
    view = array.view()
    view.flags.writeable = False
    return view


def objects_of(shard: Shard) -> Objects:
    """The shard's arrays."""
    widest = max(len(shard.most_claims) - 1, 1)
    return Objects(
        read_only(shard.claim_source), read_only(shard.claim_candidate),
        read_only(shard.first_claim), read_only(shard.first_candidate), read_only(shard.log_truth),
        read_only(shard.label), read_only(shard.log_unclaimed), widest.bit_length(),
    )  # fmt: skip


def voices_of(
    given: Grouping, among: slice = slice(None), n_claims: int = 0, unrolled: int = KINDS
) -> Voices:
    """What the groups are like on objects of these kinds. The groups of sources are a copy, which can be written to
    wherever they came from.

    n_claims : of the shard that is worked on: with many, code that is compiled for just so many kinds is faster
    unrolled : for so many kinds at the most
    """
    logs = given.log_reliability[:, among], given.log_habit[:, among]
    reliable, habit = (np.maximum(np.exp(part), LEAST) for part in logs)
    wrong = np.ascontiguousarray(reliable[:, :, 0])
    habit = np.ascontiguousarray(np.maximum(wrong[:, :, None] * habit, LEAST).transpose(0, 2, 1))
    n_kinds = wrong.shape[1]
    kinds: Kinds = np.arange(n_kinds)
    if n_claims >= UNROLLED and n_kinds <= unrolled:
        kinds = tuple(range(n_kinds))
    return Voices(
        given.group.copy(), kinds, np.ascontiguousarray(reliable[:, :, 1]), wrong, habit,
        np.einsum("gkd->gd", habit),
    )  # fmt: skip


def counts_of(shard: Shard, beliefs: Beliefs, largest: int) -> Counts:
    """Tables for as many claims as a group of `largest` sources can have on an object, and one more."""
    most_claims = np.minimum(shard.most_claims, largest)
    as_true, as_false, slope_true, slope_false = rising_tables(beliefs, int(most_claims.max()) + 1)
    # By domain size, one place further; a domain may have the unclaimed value too.
    most = np.zeros(len(most_claims) + 2, np.int64)
    most[1:-1] = most_claims + 1
    most[2:] = np.maximum(most[2:], most_claims + 1)
    first_total = np.cumsum(most)
    sizes = np.repeat(np.arange(len(most) - 1), most[1:])
    n = np.arange(len(sizes)) - first_total[sizes]
    total = beliefs.true_count + (sizes - 1) * beliefs.false_count
    eta, theta, counts = beliefs.true_count, beliefs.false_count, np.arange(len(as_true))
    swap = as_true - as_false
    return Counts(
        eta, theta, swap, np.exp(-swap), (eta + counts) / (theta + counts), as_false, slope_true, slope_false,
        first_total, gammaln(total + n) - gammaln(total), digamma(total + n) - digamma(total),
    )  # fmt: skip
