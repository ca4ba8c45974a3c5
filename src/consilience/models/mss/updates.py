"""The global step: one function a factor, the same for both inferences. Small, in float64, always NumPy.

Group indices run to n_groups - 1; index n_groups stands for the infinite tail beyond the truncation (mean-field only).
"""

from __future__ import annotations

import numpy as np
from scipy.special import digamma

from consilience.claims.encoding import Float, Int
from consilience.kernels.state import Globals, Prior, Stats, from_fixed

SMALLEST = 1e-300
"""A membership never underflows to zero: zero means "not in the support", and that is for good."""


def global_step(stats: Stats, given: Globals, prior: Prior) -> Globals:
    """Memberships, then sticks, then reliabilities, each the optimum given the rest."""
    weight = update_membership(from_fixed(stats.score), given, prior)
    return Globals(
        group=given.group,
        membership=weight,
        group_reliability=update_reliability(from_fixed(stats.reliable), prior),
        sticks=update_sticks(given.group, weight, given.n_groups, prior),
    )


def update_membership(score: Float, given: Globals, prior: Prior) -> Float:
    """ln q(g_n = l) = E ln λ_l + Σ_m E ln π_lm[y_nm] + const, over the source's support (paper, step 5)."""
    log_weight = expected_log_weights(given.sticks, prior)
    is_member = given.membership > 0
    logit = np.where(is_member, score + log_weight[given.group], -np.inf)
    weight = np.exp(logit - logit.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    return np.where(is_member, np.maximum(weight, SMALLEST), 0.0)


def update_reliability(reliable: Float, prior: Prior) -> Float:
    """β_l = b + Σ_m q(r_lm) (paper, step 2; under structured inference only objects the group claims)."""
    return prior.reliability + reliable


def update_sticks(group: Int, weight: Float, n_groups: int, prior: Prior) -> Float:
    """φ_l = (1 + Σ_n q(g_n = l), κ + Σ_n q(g_n > l)) (paper, step 6); the tail counts as beyond every group."""
    mass = group_mass(group, weight, n_groups)
    beyond = mass[::-1].cumsum()[::-1] - mass
    return np.column_stack([1 + mass[:n_groups], prior.concentration + beyond[:n_groups]])


def group_mass(group: Int, weight: Float, n_groups: int) -> Float:
    """(n_groups + 1,) Σ_n q(g_n = l); the last is the tail's."""
    # Padding is group -1: counted first, and left out.
    return np.bincount(group.ravel() + 1, weight.ravel(), minlength=n_groups + 2)[1:].astype(
        np.float64, copy=False
    )


def expected_log_weights(sticks: Float, prior: Prior) -> Float:
    """(n_groups + 1,) E ln λ_l; the last entry is the whole tail.

    Beyond the truncation q(ρ) = Beta(1, κ), so E ln λ falls by E ln(1 - ρ) = -1/κ a group: a geometric series, which
    as a whole acts like one group of log weight E ln λ_{L+1} - ln(1 - e^{-1/κ}).
    """
    both = digamma(sticks.sum(axis=1))
    log_break, log_on = digamma(sticks[:, 0]) - both, digamma(sticks[:, 1]) - both
    passed = np.concatenate([[0.0], np.cumsum(log_on)])
    kappa = prior.concentration
    log_tail = digamma(1.0) - digamma(1 + kappa) - np.log(-np.expm1(-1 / kappa))
    log_weights: Float = passed + np.concatenate([log_break, [log_tail]])
    return log_weights


def relabel(given: Globals, prior: Prior) -> Globals:
    """Number the groups by decreasing mass, the order that stick-breaking prefers, and forget empty ones.

    Sticks mean something only in their order, so they are broken anew.
    """
    mass = group_mass(given.group, given.membership, given.n_groups)[: given.n_groups]
    order = np.argsort(-mass, kind="stable")
    order = order[mass[order] > 0]
    new = np.full(given.n_groups + 1, -1)
    new[order] = np.arange(len(order))
    group = np.where(given.membership > 0, new[given.group], -1).astype(np.int32)
    return Globals(
        group=group,
        membership=given.membership,
        group_reliability=given.group_reliability[order],
        sticks=update_sticks(group, given.membership, len(order), prior),
    )
