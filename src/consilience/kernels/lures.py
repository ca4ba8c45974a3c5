"""Lures: wrong values that strangers fall for, on a common label set.

An object has a lure w, one of the labels that are not true, each as likely. The opinion of an unreliable group is the
lure with probability f_d, and else by its habit:

    p(opinion = s | r = 0, d, w) = f_d 1(s = w) + (1 - f_d) ξ_lds

Given the lure that is a habit like any other. So an object of kind d is of one of K *classes* (d, w), and a local step
need not know: `unfolded` gives it classes for kinds, and `folded` makes of what it says of classes what it says of
kinds. Where f is 0 there are no lures, and both leave everything as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from consilience.claims.encoding import Float
from consilience.kernels.state import Beliefs, Grouping, GroupingStats, from_fixed, to_fixed


@dataclass(frozen=True, eq=False)
class Classes(Grouping):
    """Groups by class of objects, as a local step takes them: reliabilities as on its kind, habits with its lure. What
    is known of groups, their parameters and how far these are from the prior, is kept by kind.

    log_u     : (n_groups, n_classes, 2)
    log_mixed : (n_groups, n_classes, n_labels) ln of what takes the place of exp E ln ξ
    """

    log_u: Float
    log_mixed: Float

    @property
    def log_reliability(self) -> Float:
        """(n_groups, n_classes, 2) E ln(1 - u) and E ln u."""
        return self.log_u

    @property
    def log_habit(self) -> Float:
        """(n_groups, n_classes, n_labels) what takes the place of E ln ξ."""
        return self.log_mixed


def unfolded(given: Grouping, beliefs: Beliefs) -> tuple[Grouping, Beliefs]:
    """Groups and beliefs by class (d, w), with w as the inner number."""
    if not beliefs.lured.any():
        return given, beliefs
    n = beliefs.n_labels
    share = np.repeat(beliefs.share / (n - 1), n, axis=0).reshape(-1, n, n)
    share[:, np.arange(n), np.arange(n)] = 0.0  # what is true is no lure
    classes = Classes(
        given.group,
        np.repeat(given.reliability, n, axis=1),
        np.repeat(given.habit, n, axis=1),
        np.repeat(given.log_reliability, n, axis=1),
        np.log(_mixed(given, beliefs)).reshape(len(given.habit), -1, n),
    )
    by_class = replace(
        beliefs,
        reliability=np.repeat(beliefs.reliability, n, axis=0),
        habit=np.repeat(beliefs.habit, n),
        share=share.reshape(-1, n),
        lured=np.zeros(n * beliefs.n_kinds),
    )
    return classes, by_class


def folded(stats: GroupingStats, given: Grouping, beliefs: Beliefs) -> GroupingStats:
    """What all objects say, by kind, of what they say by class. An opinion that is the lure is so for one of two
    reasons."""
    if not beliefs.lured.any():
        return stats
    n, n_kinds, n_groups = beliefs.n_labels, beliefs.n_kinds, len(given.habit)
    every, f, mixed = np.arange(n), beliefs.lured[:, None], _mixed(given, beliefs)
    rest = from_fixed(stats.habit_rest).reshape(n_groups, n_kinds, n, 1)
    opinion = from_fixed(stats.habit).reshape(n_groups, n_kinds, n, n) + rest * mixed
    lure, of_both = opinion[:, :, every, every], mixed[:, :, every, every]
    of_lure = lure * (f / of_both)
    opinion[:, :, every, every] = lure * ((1 - f) * np.exp(given.log_habit) / of_both)
    return replace(
        stats,
        reliable=stats.reliable.reshape(n_groups, n_kinds, n, 2).sum(axis=2),
        habit=to_fixed(opinion.sum(axis=2)),
        habit_rest=np.zeros((n_groups, n_kinds), np.int64),
        share=stats.share.reshape(n_kinds, n, n).sum(axis=1),
        lured=to_fixed(of_lure.sum(axis=(0, 2))),
    )


def _mixed(given: Grouping, beliefs: Beliefs) -> Float:
    """(n_groups, n_kinds, n_labels, n_labels) by lure, how probable each label is where a group is unreliable. It is
    never 0: habits that are at least as strong as they may be do not get that uneven."""
    n, f = beliefs.n_labels, beliefs.lured[:, None]
    mixed: Float = np.repeat(((1 - f) * np.exp(given.log_habit))[:, :, None], n, axis=2)
    mixed[:, :, np.arange(n), np.arange(n)] += f
    return mixed
