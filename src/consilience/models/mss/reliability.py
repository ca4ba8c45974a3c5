"""How reliable a source is, with an interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from consilience.claims.encoding import Claims, Float, Int, Shard
from consilience.kernels.state import Globals, Prior
from consilience.results.groups import INTERVAL

BORROWED = 2.0
"""Claims that a source is given beside its own, as right as the others' of its group; and these as right as all."""


UNIT = 2.0**-28
"""Certainties are rounded to multiples of this, so that the sum over a run of claims is exact in any order."""


@dataclass(frozen=True, eq=False)
class Right:
    """How much of what sources claim is right; it adds over shards.

    n     : (n_sources,) claims
    right : (n_sources,) Σ q(t_m = y_nm), in units
    doubt : (n_sources,) Σ q (1 - q), in units
    """

    n: Int
    right: Int
    doubt: Int

    def __add__(self, other: Right) -> Right:
        return Right(self.n + other.n, self.right + other.right, self.doubt + other.doubt)


def count_right(claims: Claims | Shard, truth: Float) -> Right:
    """Of these claims; truth : (n_candidates,) q(t_m = z)."""
    n = np.bincount(claims.claim_source, minlength=claims.n_sources)
    right, doubt = np.zeros((2, claims.n_sources), np.int64)
    for _, here in claims.runs():
        certainty, source = truth[claims.claim_candidate[here]], claims.claim_source[here]
        for total, each in ((right, certainty), (doubt, certainty * (1 - certainty))):
            total += np.bincount(source, np.rint(each / UNIT), minlength=claims.n_sources).astype(np.int64)
    return Right(n, right, doubt)


def right_claims(counted: Right, group: Int, interval: tuple[float, float] = INTERVAL) -> Float:
    """(n_sources, 3): the share of a source's claims that is right, and an interval of the share to expect of it.

    Of its claims, Σ q(t_m = y_nm) are right; with two more, as right as those of its group's other members, that makes
    a Beta. How uncertain the truths themselves are, Σ q (1 - q), is added to the variance.

    group : (n_sources,) the group of each source
    """
    n, right, doubt = counted.n, counted.right * UNIT, counted.doubt * UNIT
    overall = right.sum() / n.sum()
    others_right, others = (np.bincount(group, each)[group] - each for each in (right, n))
    of_group = (others_right + BORROWED * overall) / (others + BORROWED)
    mean = (right + BORROWED * of_group) / (n + BORROWED)
    variance = mean * (1 - mean) / (n + BORROWED + 1) + doubt / (n + BORROWED) ** 2
    return _beta_with(mean, variance, interval)


def of_groups(found: Globals, prior: Prior) -> Float:
    """(n_sources, 3): Σ_l q(g_n = l) E[u_l] (the paper's formula) and an interval.

    The posterior of a source's reliability is a mixture of its groups' Betas; the interval is that of the Beta with
    the mixture's mean and variance. A source in the tail is as reliable as the prior says.
    """
    beta = np.vstack(
        [found.group_reliability, prior.reliability]
    )  # the last row serves the tail, at index n_groups
    total = beta.sum(axis=1)
    mean = beta[:, 1] / total
    square = mean**2 + mean * (1 - mean) / (total + 1)
    source_mean = np.sum(found.membership * mean[found.group], axis=1)
    variance = np.sum(found.membership * square[found.group], axis=1) - source_mean**2
    return _beta_with(source_mean, variance, INTERVAL)


def _beta_with(mean: Float, variance: Float, interval: tuple[float, float]) -> Float:
    """(n, 3) the mean, and quantiles of the Beta with this mean and variance."""
    strength = np.maximum(mean * (1 - mean) / np.maximum(variance, 1e-12) - 1, 1e-6)
    a, b = mean * strength, (1 - mean) * strength
    # A Beta of strength 0 has nothing between its ends, and one at an end nothing but it.
    low, high = (betaincinv(np.maximum(a, 1e-12), np.maximum(b, 1e-12), q) for q in interval)
    return np.column_stack([mean, np.minimum(low, mean), np.maximum(high, mean)])
