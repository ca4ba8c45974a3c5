"""The reference kernel of the partition inference in plain NumPy: its local step, and the relocation of sources.

Symbols (docs/theory/inference.md): a group holds one *opinion* s on an object: the truth where it is reliable (r = 1),
else a value by its habit ξ. Its members' claims are drawn from π ~ Dirichlet(η at s, θ elsewhere). With π summed out,

    D_lm(s)    = ln B(a^s + n_lm) / B(a^s)                                  a^s: η at s, θ elsewhere
    S_lm(d, z) = ln { exp(E ln u_ld + D_lm(z)) + exp(E ln(1 - u_ld)) Σ_s exp(E ln ξ_lds + D_lm(s)) }
    q(d, z)    ∝ p(d, z) exp Σ_l S_lm(d, z)                                 d: the object's kind, z: its truth

and an object adds ln Σ_dz p(d, z) exp Σ_l S_lm(d, z) to the bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from scipy.special import digamma, gammaln, logsumexp

from consilience.claims.encoding import Float, Int, Shard
from consilience.kernels.state import (
    Beliefs,
    Evidence,
    Grouping,
    GroupingStats,
    Locals,
    dirichlets,
    from_fixed,
    from_two_words,
    to_fixed,
    to_two_words,
    total,
)

OF_ITS_OWN = 0.1
"""Nats that a source which stays alone must gain to be told what it is like before the next sweep does."""


def partition(
    shard: Shard, given: Grouping, beliefs: Beliefs, warm: Locals | None = None
) -> tuple[Locals, GroupingStats]:
    """Local step of the partition inference: q(d_m, t_m) Π_l q(r_lm, s_lm, π_lm | d_m, t_m), exact given the globals.

    Where log_unclaimed allows it, the truth may be a value that nobody claims; truths are given among those claimed.
    """
    cells = _Cells.of(shard, given, beliefs)
    joint, unclaimed, evidence = cells.posterior(shard, beliefs)  # (kinds, C), (kinds, M), (M,)
    of_kind = np.add.reduceat(joint, shard.first_candidate[:-1], axis=1) + unclaimed  # (kinds, M) q(d)
    sizes = np.diff(shard.first_candidate)
    truth = _over_kinds(joint)
    claimed = np.add.reduceat(truth, shard.first_candidate[:-1])
    truth /= np.repeat(np.where(claimed > 0, claimed, 1.0), sizes)
    truth = np.where(np.repeat(claimed > 0, sizes), truth, 1 / np.repeat(sizes, sizes))

    # q(d, s, r = 1), q(d, s, r = 0) of each cell, s being the opinion; the last cell of a pair is the unclaimed value.
    right = np.exp(cells.log_right + cells.opinion - cells.nats) * cells.spread(joint, unclaimed)
    right_pair = np.add.reduceat(right, cells.first_cell, axis=1)  # (kinds, P) q(d, r = 1)
    wrong = of_kind[:, cells.object] - right_pair  # q(d, r = 0)
    wrong_cell = wrong[:, cells.cell_pair] * np.exp(
        cells.log_habit + cells.opinion - cells.log_wrong[:, cells.cell_pair]
    )

    reliable = np.zeros(given.reliability.shape, np.int64)
    np.add.at(reliable, cells.group, to_fixed(np.stack([wrong.T, right_pair.T], axis=2)))
    habit = np.zeros(given.habit.shape, np.int64)
    if beliefs.n_labels > 1:
        by_label = np.moveaxis(habit, 1, 2)  # a view: (n_groups, n_labels, kinds)
        np.add.at(by_label, (cells.group[cells.cell_pair], cells.label), to_fixed(wrong_cell.T))
    share = np.zeros(beliefs.share.shape, np.int64)
    np.add.at(share.T, shard.label if beliefs.n_labels > 1 else np.zeros_like(shard.label), to_fixed(joint.T))
    share[:, 0] += to_fixed(unclaimed).sum(axis=1)

    eta, theta = beliefs.true_count, beliefs.false_count
    weight = _over_kinds(right + wrong_cell)  # (cells,) q(s)
    slope_true = digamma(eta + cells.count) - digamma(eta)
    slope_false = digamma(theta + cells.count) - digamma(theta)
    every = np.add.reduceat(slope_false, cells.first_cell)[cells.cell_pair]
    slope = digamma(cells.prior_total + cells.total) - digamma(cells.prior_total)
    counts = [weight * slope_true, slope, weight * (every - slope_false), (cells.domain - 1) * slope]
    return Locals(truth), GroupingStats(
        reliable=reliable,
        habit=habit,
        habit_rest=np.zeros(reliable.shape[:2], np.int64),
        share=share,
        counts=np.array([to_two_words(part).sum(axis=0) for part in counts]),
        terms=to_two_words(evidence[:, None]).sum(axis=0),
    )


def completed(stats: GroupingStats, given: Grouping, beliefs: Beliefs) -> GroupingStats:
    """The statistics of all objects, with what a step leaves to be added to their sum: this one nothing."""
    return stats


def relocate(
    shard: Shard, given: Grouping, beliefs: Beliefs, order: Int, threads: int = 1
) -> tuple[Grouping, int, float]:
    """Move sources, one at a time in this order, to the group where the bound is highest, or to one of their own.

    shard   : all claims as one shard
    threads : how many may help; nothing but time depends on it
    A group is a choice if it claims anything on an object of the source's. Reliabilities of groups stay as they are; a
    source on its own brings its own, if it moves there or that is worth it. A kernel may leave sources where they are
    that shortly before their turn had nothing to gain. Returns the new grouping, how many sources moved, and how much
    the bound rose.
    """
    given, gain = unknown_where_absent(given, beliefs)
    group, reliability, habit = given.group.copy(), given.reliability, given.habit
    moved = 0
    claim_object = np.repeat(np.arange(shard.n_objects), np.diff(shard.first_claim))
    for n in order:
        objects = np.unique(claim_object[shard.claim_source == n])
        near = _objects_of(shard, objects) if len(objects) else None
        old, size = int(group[n]), np.bincount(group, minlength=len(reliability))

        def bound(now: Grouping, near: Shard | None = near) -> float:
            terms = np.zeros((1, 2), np.int64) if near is None else partition(near, now, beliefs)[1].terms
            occupied = now.size > 0
            return (
                float(from_two_words(terms)[0])
                - float(np.sum(group_divergence(now, beliefs)[occupied]))
                + log_partition(now.size, beliefs)
            )

        before = bound(Grouping(group, reliability, habit))
        options = []
        if size[old] == 1:
            options.append(_alone(near, n, old, Grouping(group, reliability, habit), beliefs))
        else:
            free = int(np.flatnonzero(size == 0)[0])
            neutral = Grouping(group, reliability.copy(), habit.copy())
            neutral.reliability[free], neutral.habit[free] = beliefs.reliability, beliefs.habit_prior
            options.append(_alone(near, n, free, neutral, beliefs))
        for g in np.unique(group[near.claim_source]) if near else [old]:
            if g != old or size[old] > 1:
                joined = Grouping(group.copy(), reliability.copy(), habit.copy())
                joined.group[n] = g
                if size[old] == 1:
                    joined.reliability[old], joined.habit[old] = beliefs.reliability, beliefs.habit_prior
                options.append(joined)
        bounds = [bound(option) for option in options]
        best = int(np.argmax(bounds))
        chosen = options[best]
        if bounds[best] > before + (1e-9 if chosen.group[n] != old else OF_ITS_OWN):
            moved += int(chosen.group[n] != old)
            gain += bounds[best] - before
            group, reliability, habit = chosen.group.copy(), chosen.reliability, chosen.habit
    return Grouping(group, reliability, habit), moved, gain


def unknown_where_absent(given: Grouping, beliefs: Beliefs) -> tuple[Grouping, float]:
    """The same groups, at their prior on kinds that do not occur: nothing tells what they are like there. And by how
    much that raises the bound. Sources are moved with such groups only."""
    absent = (beliefs.share.sum(axis=1) == 0)[:, None]
    unknown = Grouping(
        given.group,
        np.where(absent, beliefs.reliability, given.reliability),
        np.where(absent, beliefs.habit_prior, given.habit),
    )
    if not absent.any():
        return unknown, 0.0
    occupied = given.size > 0
    before, after = (group_divergence(each, beliefs)[occupied].sum() for each in (given, unknown))
    return unknown, float(before - after)


def _alone(
    near: Shard | None, n: int, group: int, given: Grouping, beliefs: Beliefs, rounds: int = 3
) -> Grouping:
    """Source n in a group of its own, whose reliability and habit settle in a few rounds; all else stays."""

    def alike(reliability: Float, habit: Float) -> Grouping:
        now = Grouping(given.group.copy(), given.reliability.copy(), given.habit.copy())
        now.group[n], now.reliability[group], now.habit[group] = group, reliability, habit
        return now

    if near is None:
        return alike(beliefs.reliability, beliefs.habit_prior)
    now = alike(given.reliability[group], given.habit[group])
    for _ in range(rounds):
        _, stats = partition(near, now, beliefs)
        settled = update_groups(stats, now, beliefs)
        now = alike(settled.reliability[group], settled.habit[group])
    return now


def update_groups(stats: GroupingStats, given: Grouping, beliefs: Beliefs) -> Grouping:
    """q(u_ld) and q(ξ_ld), the optimum given the objects."""
    rest = from_fixed(stats.habit_rest)[:, :, None] * np.exp(given.log_habit)
    return Grouping(
        given.group,
        beliefs.reliability + from_fixed(stats.reliable),
        np.maximum(beliefs.habit_prior + (from_fixed(stats.habit) + rest), 1e-3 * beliefs.habit_prior),
    )


def group_divergence(given: Grouping, beliefs: Beliefs) -> Float:
    """(n_groups,) KL of q(u_l) and q(ξ_l) from their priors."""
    divergence = _divergence(given.reliability, beliefs.reliability, *given.of_reliability)
    if beliefs.n_labels > 1:
        divergence = divergence + _divergence(given.habit, beliefs.habit_prior, *given.of_habit)
    return divergence


def log_partition(size: Int, beliefs: Beliefs) -> float:
    """ln p(partition | κ): the sticks summed out (the Chinese restaurant process)."""
    occupied = size[size > 0]
    kappa = beliefs.concentration
    # Γ(κ) / Γ(κ + N) as a product: of a very large κ the logarithms of both would cancel.
    seats = np.log(kappa + np.arange(occupied.sum())).sum()
    return float(len(occupied) * np.log(kappa) + gammaln(occupied).sum() - seats)


def rising_tables(beliefs: Beliefs, most: int) -> tuple[Float, Float, Float, Float]:
    """For n = 0 … most: ln Γ(η+n)/Γ(η), ln Γ(θ+n)/Γ(θ), and their slopes in η and θ."""
    n = np.arange(most + 1)
    counts = (beliefs.true_count, beliefs.false_count)
    log_true, log_false = (gammaln(count + n) - gammaln(count) for count in counts)
    slope_true, slope_false = (digamma(count + n) - digamma(count) for count in counts)
    return log_true, log_false, slope_true, slope_false


def evidence(shard: Shard, given: Grouping, beliefs: Beliefs) -> Evidence:
    """The local step taken apart, group by group; the value that nobody claims has no cell of its own.

    What a group adds to candidate z is S_lm(d, z) averaged over the kinds d, each weighed by the logarithmic mean of
    its probabilities before and after anybody spoke, p(d | z) and q(d | z), made to sum to one. So weighed, groups add
    up exactly to ln Σ_d p(d | z) exp Σ_l S_lm(d, z), what they add together, and none is first or last. (It is Sato
    and Vartia's index; with two kinds no other weights common to all groups add up.)
    """
    cells = _Cells.of(shard, given, beliefs)
    joint, unclaimed, _ = cells.posterior(shard, beliefs)
    right = np.exp(cells.log_right + cells.opinion - cells.nats)  # q(r = 1 | d, z)
    pair_right = np.add.reduceat((right * cells.spread(joint, unclaimed)).sum(axis=0), cells.first_cell)

    claimed = np.flatnonzero(cells.cell_candidate >= 0)
    candidate, pair = cells.cell_candidate[claimed], cells.cell_pair[claimed]
    log_share = _log_share(shard, beliefs)
    common = logsumexp(log_share, axis=0)
    before = log_share - common  # ln p(d | z)
    after = log_share + cells.said(shard)
    after = after - logsumexp(after, axis=0)  # ln q(d | z)
    weight = _logarithmic_mean(before, after)
    weight /= weight.sum(axis=0)
    return Evidence(
        pair_object=cells.object,
        pair_group=cells.group,
        pair_reliability=pair_right,
        first_cell=np.append(0, np.cumsum(np.bincount(pair, minlength=len(cells.group)))),
        cell_candidate=candidate,
        cell_count=cells.count[claimed],
        cell_nats=(weight[:, candidate] * cells.nats[:, claimed]).sum(axis=0),
        cell_reliability=(np.exp(after)[:, candidate] * right[:, claimed]).sum(axis=0),
        before=shard.log_truth + common,
    )


def _log_share(shard: Shard, beliefs: Beliefs) -> Float:
    """(kinds, C) ln p(d), and on a common label set ln p(d, z)."""
    labels = shard.label if beliefs.n_labels > 1 else np.zeros_like(shard.label)
    return beliefs.log_share[:, labels]


def _logarithmic_mean(log_a: Float, log_b: Float) -> Float:
    """(a - b) / (ln a - ln b), a where they are the same."""
    apart = np.zeros(log_a.shape)
    np.subtract(log_a, log_b, out=apart, where=log_a > -np.inf)
    apart = np.abs(apart)
    safe = np.where(apart > 0, apart, 1.0)
    mean: Float = np.exp(np.maximum(log_a, log_b)) * np.where(apart > 0, -np.expm1(-safe) / safe, 1.0)
    return mean


def _objects_of(shard: Shard, objects: Int) -> Shard:
    """These objects alone, as a shard."""
    claims = [np.arange(shard.first_claim[m], shard.first_claim[m + 1]) for m in objects]
    candidates = [np.arange(shard.first_candidate[m], shard.first_candidate[m + 1]) for m in objects]
    first_claim = np.concatenate([[0], np.cumsum([len(part) for part in claims])])
    first_candidate = np.concatenate([[0], np.cumsum([len(part) for part in candidates])])
    shift = first_candidate[:-1] - shard.first_candidate[objects]
    which, kept = np.concatenate(claims), np.concatenate(candidates)
    return replace(
        shard,
        claim_source=shard.claim_source[which],
        claim_candidate=shard.claim_candidate[which] + np.repeat(shift, np.diff(first_claim)),
        first_claim=first_claim,
        first_candidate=first_candidate,
        log_truth=shard.log_truth[kept],
        label=shard.label[kept],
        log_unclaimed=shard.log_unclaimed[objects],
    )


def _divergence(q: Float, prior: Float, log: Float, log_norm: Float) -> Float:
    """(n_groups,) KL of Dirichlets along the last axis, of all kinds together; of q E ln and ln B are given."""
    divergence: Float = np.sum(dirichlets(prior)[1] - log_norm + total((q - prior) * log), axis=1)
    return divergence


@dataclass(frozen=True, eq=False)
class _Cells:
    """Pairs (group, object) with claims; each has a cell for every candidate and one for the unclaimed value.

    The unclaimed value's cell is there also where it is impossible; its habit is then -inf.
    """

    object: Int  # (P,)
    group: Int  # (P,)
    total: Float  # (P,)
    domain: Float  # (P,) K_m, the unclaimed value included where it is possible
    prior_total: Float  # (P,)
    first_cell: Int  # (P,)
    cell_pair: Int  # (cells,)
    cell_candidate: Int  # (cells,) -1 for the unclaimed value
    label: Int  # (cells,)
    count: Float  # (cells,)
    opinion: Float  # (cells,) D_lm(s)
    log_habit: Float  # (kinds, cells) E ln ξ
    log_wrong: Float  # (kinds, P) ln Σ_s exp(E ln ξ + D)
    log_right: Float  # (kinds, cells) E ln u
    nats: Float  # (kinds, cells) S_lm(d, z)

    @classmethod
    def of(cls, shard: Shard, given: Grouping, beliefs: Beliefs) -> _Cells:
        n_groups = len(given.reliability)
        claim_object = np.repeat(np.arange(shard.n_objects), np.diff(shard.first_claim))
        pair_key, claim_pair = np.unique(
            claim_object * n_groups + given.group[shard.claim_source], return_inverse=True
        )
        object_, group = pair_key // n_groups, pair_key % n_groups
        size = np.diff(shard.first_candidate)[object_]
        can_be_unclaimed = shard.log_unclaimed[object_] > -np.inf
        domain = size + can_be_unclaimed.astype(np.float64)
        ends = np.cumsum(size + 1)
        first_cell = ends - size - 1
        cell_pair = np.repeat(np.arange(len(pair_key)), size + 1)
        offset = np.arange(ends[-1]) - first_cell[cell_pair]
        is_claimed = offset < size[cell_pair]
        cell_candidate = np.where(is_claimed, shard.first_candidate[object_][cell_pair] + offset, -1)
        label = np.where(is_claimed, shard.label[cell_candidate], 0)
        claimed = shard.claim_candidate - shard.first_candidate[claim_object]
        count = np.bincount(first_cell[claim_pair] + claimed, minlength=ends[-1]).astype(np.float64)
        total = np.bincount(claim_pair, minlength=len(pair_key)).astype(np.float64)

        eta, theta = beliefs.true_count, beliefs.false_count
        prior_total = eta + (domain - 1) * theta
        as_false = gammaln(theta + count) - gammaln(theta)
        as_true = gammaln(eta + count) - gammaln(eta)
        of_pair = np.add.reduceat(as_false, first_cell) + gammaln(prior_total) - gammaln(prior_total + total)
        opinion = of_pair[cell_pair] + as_true - as_false
        possible = is_claimed | can_be_unclaimed[cell_pair]
        if beliefs.n_labels > 1:
            log_habit = given.log_habit[group[cell_pair], :, label].T
        else:
            log_habit = np.repeat(-np.log(domain[cell_pair])[None], beliefs.n_kinds, axis=0)
        log_habit = np.where(possible, log_habit, -np.inf)
        log_wrong = np.stack([_logsumexp(row, first_cell, cell_pair) for row in log_habit + opinion])
        log_u = given.log_reliability[group]  # (P, kinds, 2)
        log_right = log_u[:, :, 1].T[:, cell_pair]
        nats = np.logaddexp(log_right + opinion, (log_u[:, :, 0].T + log_wrong)[:, cell_pair])
        return cls(
            object_, group, total, domain, prior_total, first_cell, cell_pair, cell_candidate, label,
            count, opinion, log_habit, log_wrong, log_right, nats,
        )  # fmt: skip

    def posterior(self, shard: Shard, beliefs: Beliefs) -> tuple[Float, Float, Float]:
        """q(d, z): (kinds, C), q(d, unclaimed): (kinds, M), and the object's part of the bound: (M,)."""
        is_claimed = self.cell_candidate >= 0
        owner = np.repeat(np.arange(shard.n_objects), np.diff(shard.first_candidate))
        joint = shard.log_truth + _log_share(shard, beliefs) + self.said(shard)
        unclaimed = np.stack(
            [
                shard.log_unclaimed
                + log_share
                + np.bincount(self.object, nats[~is_claimed], minlength=shard.n_objects)
                for log_share, nats in zip(beliefs.log_share[:, 0], self.nats, strict=True)
            ]
        )
        by_kind = np.stack([_logsumexp(row, shard.first_candidate[:-1], owner) for row in joint])
        every = np.concatenate([by_kind, unclaimed])
        highest = every.max(axis=0)
        evidence = highest + np.log(_over_kinds(np.exp(every - highest)))
        return np.exp(joint - evidence[owner]), np.exp(unclaimed - evidence), evidence

    def said(self, shard: Shard) -> Float:
        """(kinds, C) Σ_l S_lm(d, z)."""
        is_claimed = self.cell_candidate >= 0
        candidate = self.cell_candidate[is_claimed]
        return np.stack(
            [np.bincount(candidate, nats[is_claimed], minlength=shard.n_candidates) for nats in self.nats]
        )

    def spread(self, joint: Float, unclaimed: Float) -> Float:
        """(kinds, cells) q(d, z) at each cell."""
        is_claimed = self.cell_candidate >= 0
        return np.where(is_claimed, joint[:, self.cell_candidate], unclaimed[:, self.object[self.cell_pair]])


def _over_kinds(rows: Float) -> Float:
    """The sum of rows, one after the other: NumPy's own may take another order where columns are few, and then shards
    would not give the same bits."""
    summed: Float = reduce(np.add, rows)
    return summed


def _logsumexp(x: Float, first: Int, owner: Int) -> Float:
    """ln Σ exp within each run that begins at `first`."""
    highest = np.maximum.reduceat(x, first)
    highest = np.where(np.isfinite(highest), highest, 0.0)
    with np.errstate(divide="ignore"):
        total: Float = highest + np.log(np.add.reduceat(np.exp(x - highest[owner]), first))
    return total
