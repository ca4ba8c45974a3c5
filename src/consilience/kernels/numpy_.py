"""The reference kernel: the local step of both inferences in plain NumPy, one line of mathematics a line of code.

Symbols (docs/theory/inference.md): n_lmk counts the claims of group l on object m for value k, by membership;
a^{r,z} is the Dirichlet parameter when r_lm = r and t_m = z: η^r at z, θ^r elsewhere; A^r = η^r + (K_m - 1) θ^r.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, expit, gammaln, xlogy

from consilience.claims.encoding import Float, Int, Shard
from consilience.kernels.numpy_partition import completed, partition, relocate
from consilience.kernels.segments import Segments as segments
from consilience.kernels.state import Evidence, Globals, Locals, Prior, Stats, to_fixed, to_two_words

name = "numpy"
fewest = 10_000
__all__ = ["completed", "fewest", "mean_field", "name", "partition", "relocate", "segments", "structured"]


def structured(
    shard: Shard, given: Globals, prior: Prior, warm: Locals | None = None
) -> tuple[Locals, Stats]:
    """Local step of the structured inference: q(t_m) Π_l q(r_lm | t_m) q(π_lm | r_lm, t_m), exact given the globals.

    Only pairs (group, object) with claims take part: the others integrate out. `warm` is not needed and not read.
    """
    pairs = _Pairs.of(shard, given)
    log_reliable = expected_log_reliability(given.group_reliability)[pairs.group]  # (P, 2) E ln p(r | u_l)
    evidence = _evidence(pairs, prior)  # (cells, 2) ln B(a^{r,z} + n) / B(a^{r,z})
    weighted = log_reliable[pairs.cell_pair] + evidence
    nats = np.logaddexp(weighted[:, 0], weighted[:, 1])  # S_lm(z)

    truth, log_truth = _posterior_truth(
        shard, shard.log_truth + _sum(nats, pairs.cell_candidate, shard.n_candidates)
    )

    q_r = np.exp(weighted - nats[:, None])  # q(r | z)
    joint = truth[pairs.cell_candidate, None] * q_r  # q(z) q(r | z)
    pair_r = np.add.reduceat(joint, pairs.first_cell[:-1]) if len(pairs.group) else joint  # (P, 2) q(r)

    # E ln π_lmk = Σ_r [ q(r, z=k) ψ(η+n_k) + q(r, z≠k) ψ(θ+n_k) - q(r) ψ(A+n.) ]
    here, elsewhere = joint, pair_r[pairs.cell_pair] - joint
    log_answer = np.sum(
        here * digamma(prior.true_count + pairs.count[:, None])
        + elsewhere * digamma(prior.false_count + pairs.count[:, None])
        - (pair_r * digamma(pairs.prior_total(prior) + pairs.total[:, None]))[pairs.cell_pair],
        axis=1,
    )

    score = np.zeros(given.group.shape, np.int64)
    np.add.at(score, (pairs.entry_source, pairs.entry_slot), to_fixed(log_answer[pairs.entry_cell]))
    reliable = np.zeros((given.n_groups, 2), np.int64)
    np.add.at(reliable, pairs.group, to_fixed(pair_r))

    claims = pairs.count * log_answer
    answers = np.sum(joint * evidence, axis=1) - claims
    reliability = np.sum(joint * log_reliable[pairs.cell_pair] - xlogy(joint, q_r), axis=1)
    cell_object = pairs.object[pairs.cell_pair]
    terms = np.stack(
        [
            _sum(claims, cell_object, shard.n_objects),
            _sum(answers, cell_object, shard.n_objects),
            _sum(reliability, cell_object, shard.n_objects),
            _truth_term(shard, truth, log_truth),
        ],
        axis=1,
    )
    return Locals(truth), Stats(score, reliable, to_two_words(terms).sum(axis=0))


def mean_field(
    shard: Shard, given: Globals, prior: Prior, warm: Locals | None = None
) -> tuple[Locals, Stats]:
    """Local step of the paper's inference: q(π), then q(r), then q(t), for every group on every object.

    Memberships are dense: column l is group l, the last column is the infinite tail, whose answers stay at their
    prior given the truth.
    """
    n_groups = given.n_groups
    object_of = np.repeat(np.arange(shard.n_objects), np.diff(shard.first_candidate))  # (C,)
    starts = shard.first_candidate[:-1]
    domain_size = np.diff(shard.first_candidate).astype(np.float64)  # (M,)
    truth, object_reliability = start_locals(shard, given) if warm is None else _warm(warm)

    weight = given.membership[shard.claim_source]  # (claims, L + 1)
    count = np.zeros((shard.n_candidates, n_groups + 1))
    np.add.at(count, shard.claim_candidate, weight)
    count, tail_count = count[:, :n_groups], count[:, n_groups]

    # Sums go axis by axis: BLAS and einsum round differently for different numbers of objects.
    # 1. answers: α = n + Σ_r q(r) [ η^r ν_k + θ^r (1 - ν_k) ]
    soft = truth[:, None] * prior.true_count + (1 - truth[:, None]) * prior.false_count  # (C, 2)
    q_r = np.stack([1 - object_reliability, object_reliability], axis=2)  # (M, L, 2)
    alpha = count + np.sum(q_r[object_of] * soft[:, None, :], axis=2)
    alpha_total = np.add.reduceat(alpha, starts)
    log_answer = digamma(alpha) - digamma(alpha_total)[object_of]  # E ln π

    # 2. reliability on the object, with the Dirichlet's normaliser (errata 3)
    log_reliable = expected_log_reliability(given.group_reliability)  # (L, 2)
    normaliser = _log_normaliser(domain_size, prior)  # (M, 2)
    drawn = np.add.reduceat(log_answer[:, :, None] * (soft - 1)[:, None, :], starts)  # (M, L, 2)
    logit = log_reliable + normaliser[:, None, :] + drawn
    object_reliability = expit(logit[..., 1] - logit[..., 0])
    q_r = np.stack([1 - object_reliability, object_reliability], axis=2)

    # 3. truth; a claim in the tail speaks through the prior predictive
    sharpness = prior.true_count - prior.false_count  # (2,)
    same, other = _tail_log_answer(domain_size, prior)  # (M,) each
    voices = np.sum(log_answer * np.sum(q_r * sharpness, axis=2)[object_of], axis=1)
    truth, log_truth = _posterior_truth(
        shard, shard.log_truth + voices + tail_count * (same - other)[object_of]
    )
    tail_answer = (truth * same[object_of]) + (1 - truth) * other[object_of]  # (C,) E ln π of the tail

    score = np.zeros(given.group.shape, np.int64)
    every = np.column_stack([log_answer, tail_answer])
    np.add.at(score, shard.claim_source, to_fixed(every[shard.claim_candidate]))

    soft = truth[:, None] * prior.true_count + (1 - truth[:, None]) * prior.false_count
    drawn = np.add.reduceat(log_answer[:, :, None] * (soft - 1)[:, None, :], starts)
    claims = np.add.reduceat(np.sum(count * log_answer, axis=1) + tail_count * tail_answer, starts)
    entropy = np.add.reduceat(gammaln(alpha) - (alpha - 1) * log_answer, starts) - gammaln(alpha_total)
    answers = np.sum(np.sum(q_r * (normaliser[:, None, :] + drawn), axis=2) + entropy, axis=1)
    reliability = np.sum(np.sum(q_r * log_reliable - xlogy(q_r, q_r), axis=2), axis=1)
    terms = np.stack([claims, answers, reliability, _truth_term(shard, truth, log_truth)], axis=1)
    return (
        Locals(truth, object_reliability),
        Stats(score, to_fixed(q_r).sum(axis=0), to_two_words(terms).sum(axis=0)),
    )


def start_locals(shard: Shard, given: Globals) -> tuple[Float, Float]:
    """Where mean-field begins: the share of claims as truth, each group as reliable as its q(u_l) says."""
    votes = _sum(np.ones(len(shard.claim_candidate)), shard.claim_candidate, shard.n_candidates)
    truth, _ = _posterior_truth(shard, shard.log_truth + np.log1p(votes))
    mean = given.group_reliability[:, 1] / given.group_reliability.sum(axis=1)
    return truth, np.tile(mean, (shard.n_objects, 1))


def evidence(shard: Shard, given: Globals, prior: Prior) -> Evidence:
    """The structured local step taken apart, group by group."""
    pairs = _Pairs.of(shard, given)
    weighted = expected_log_reliability(given.group_reliability)[pairs.group][pairs.cell_pair] + _evidence(
        pairs, prior
    )
    nats = np.logaddexp(weighted[:, 0], weighted[:, 1])
    truth, _ = _posterior_truth(shard, shard.log_truth + _sum(nats, pairs.cell_candidate, shard.n_candidates))
    reliable = truth[pairs.cell_candidate] * np.exp(weighted[:, 1] - nats)
    return Evidence(
        pair_object=pairs.object,
        pair_group=pairs.group,
        pair_reliability=_sum(reliable, pairs.cell_pair, len(pairs.group)),
        first_cell=pairs.first_cell,
        cell_candidate=pairs.cell_candidate,
        cell_count=pairs.count,
        cell_nats=nats,
        cell_reliability=np.exp(weighted[:, 1] - nats),
        before=shard.log_truth,
    )


def expected_log_reliability(beta: Float) -> Float:
    """(n_groups, 2): E ln p(r | u_l) for r = 0, 1 under q(u_l) = Beta."""
    log_reliability: Float = digamma(beta) - digamma(beta.sum(axis=1, keepdims=True))
    return log_reliability


@dataclass(frozen=True, eq=False)
class _Pairs:
    """The pairs (group, object) with claims, and their cells; an *entry* is a claim under one group of its source."""

    object: Int  # (P,)
    group: Int  # (P,)
    total: Float  # (P,) n_lm.
    domain_size: Int  # (P,) K_m
    first_cell: Int  # (P + 1,)
    cell_pair: Int  # (cells,)
    cell_candidate: Int  # (cells,)
    count: Float  # (cells,) n_lmk
    entry_source: Int  # (entries,)
    entry_slot: Int  # (entries,) column of the source's support
    entry_cell: Int  # (entries,)

    @classmethod
    def of(cls, shard: Shard, given: Globals) -> _Pairs:
        entry_claim, entry_slot = np.nonzero(given.membership[shard.claim_source] > 0)
        entry_source = shard.claim_source[entry_claim]
        claim_object = np.repeat(np.arange(shard.n_objects), np.diff(shard.first_claim))
        key = claim_object[entry_claim] * given.n_groups + given.group[entry_source, entry_slot]
        pair_key, entry_pair = np.unique(key, return_inverse=True)
        object_, group = pair_key // given.n_groups, pair_key % given.n_groups

        domain_size = np.diff(shard.first_candidate)[object_]
        first_cell = np.concatenate([[0], np.cumsum(domain_size)])
        cell_pair = np.repeat(np.arange(len(pair_key)), domain_size)
        offset = np.arange(first_cell[-1]) - first_cell[cell_pair]
        cell_candidate = shard.first_candidate[object_][cell_pair] + offset

        claimed = shard.claim_candidate[entry_claim] - shard.first_candidate[claim_object[entry_claim]]
        entry_cell = first_cell[entry_pair] + claimed
        count = _sum(given.membership[entry_source, entry_slot], entry_cell, int(first_cell[-1]))
        total = _sum(given.membership[entry_source, entry_slot], entry_pair, len(pair_key))
        return cls(
            object_, group, total, domain_size, first_cell, cell_pair, cell_candidate, count,
            entry_source, entry_slot, entry_cell,
        )  # fmt: skip

    def prior_total(self, prior: Prior) -> Float:
        """(P, 2) A^r = η^r + (K_m - 1) θ^r."""
        return _prior_total(self.domain_size.astype(np.float64), prior)


def _evidence(pairs: _Pairs, prior: Prior) -> Float:
    """(cells, 2): ln B(a^{r,z} + n) / B(a^{r,z}) for each pair and z: all θ first, then one entry swapped for η."""
    count = pairs.count[:, None]
    as_false = gammaln(prior.false_count + count) - gammaln(prior.false_count)
    as_true = gammaln(prior.true_count + count) - gammaln(prior.true_count)
    total = pairs.prior_total(prior)
    of_pair = gammaln(total) - gammaln(total + pairs.total[:, None])
    if len(pairs.group):
        of_pair += np.add.reduceat(as_false, pairs.first_cell[:-1])
    swapped: Float = of_pair[pairs.cell_pair] + as_true - as_false
    return swapped


def _posterior_truth(shard: Shard, logit: Float) -> tuple[Float, Float]:
    """Normalise within each object: q(t_m = z) and its logarithm."""
    starts, object_sizes = shard.first_candidate[:-1], np.diff(shard.first_candidate)
    shifted = logit - np.repeat(np.maximum.reduceat(logit, starts), object_sizes)
    log_total = np.log(np.add.reduceat(np.exp(shifted), starts))
    log_truth = shifted - np.repeat(log_total, object_sizes)
    return np.exp(log_truth), log_truth


def _truth_term(shard: Shard, truth: Float, log_truth: Float) -> Float:
    """(M,) E ln p(t) - E ln q(t); a candidate that is ruled out has q = 0 and adds nothing."""
    possible = truth > 0
    each = np.zeros_like(truth)
    each[possible] = truth[possible] * (shard.log_truth[possible] - log_truth[possible])
    terms: Float = np.add.reduceat(each, shard.first_candidate[:-1])
    return terms


def _prior_total(domain_size: Float, prior: Prior) -> Float:
    return prior.true_count + (domain_size[:, None] - 1) * prior.false_count


def _log_normaliser(domain_size: Float, prior: Prior) -> Float:
    """(M, 2) lnΓ(A^r) - lnΓ(η^r) - (K_m - 1) lnΓ(θ^r)."""
    log_normaliser: Float = (
        gammaln(_prior_total(domain_size, prior))
        - gammaln(prior.true_count)
        - (domain_size[:, None] - 1) * gammaln(prior.false_count)
    )
    return log_normaliser


def _tail_log_answer(domain_size: Float, prior: Prior) -> tuple[Float, Float]:
    """(M,), (M,): E ln π of a group at its prior, at the true value and at a false one."""
    mean = prior.reliability / prior.reliability.sum()
    total = digamma(_prior_total(domain_size, prior))
    same = np.sum((digamma(prior.true_count) - total) * mean, axis=1)
    other = np.sum((digamma(prior.false_count) - total) * mean, axis=1)
    return same, other


def _warm(warm: Locals) -> tuple[Float, Float]:
    assert warm.object_reliability is not None, "mean-field carries object reliabilities from sweep to sweep"
    return warm.truth, warm.object_reliability


def _sum(values: Float, index: Int, n: int) -> NDArray[np.float64]:
    return np.bincount(index, values, minlength=n).astype(np.float64, copy=False)
