"""What the partition inference believes beforehand, and how it learns that from the data: empirical Bayes.

Every sure update raises the bound together with the weak priors of `log_prior`. Longer ones mostly do, by more; where
one does not, the sweep takes sure ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, digamma, gammaln, logsumexp, zeta

from consilience.claims.encoding import Float
from consilience.kernels.numpy_partition import update_groups
from consilience.kernels.state import (
    Beliefs,
    Grouping,
    GroupingStats,
    expected_log,
    from_fixed,
    from_two_words,
)

RELIABILITY = np.array([[0.5, 4.0], [2.0, 1.0]])
"""b at the start, by kind of object: on easy ones sources are mostly reliable, on hard ones mostly not. Only these
tell the kinds apart; what they mean, the data decide."""
LEAST_RELIABLE = np.array([0.5, 0.2])
"""The mean of b at the least, by kind: or reliable and unreliable could change places on easy objects, and on hard
ones, if nobody knew anything, any label would do for the truth. (Where all are hard it may be anything.)"""
PSEUDO_GROUPS = 3.0
"""How many groups the start's b is worth when b is learned."""
TRUE_COUNT = 20.0
"""η at the start and at the least; θ follows from how faithfully members are taken to repeat their group's opinion.
With a smaller η a group departs from its opinion as one, which is what being unreliable is: u could not be told."""
COUNT_PRIOR = ((1.1, 0.02), (1.1, 0.1))
"""Gamma priors (shape, rate) of η and θ: keep them finite."""
STANDING_OUT = 1.2
"""On a common label set η is at least this many times θ."""
LEAST_FAITHFUL = 0.9
"""How often members repeat their group's opinion at the least where values are open, in a median domain. A group that
always knows, and of which members repeat two opinions in three, is what independent sources are that are right two
times in three; where some objects are harder than others, the bound would choose such a group."""
HABIT, HABIT_RATE, HABIT_RANGE = 2.0, 0.02, (0.3, 400.0)
"""Strength of habits at the start, the rate of its exponential prior, and its range."""
SMALLEST_HABIT = 1 / 16
"""Strength a label has at the least at the start: with less, nobody would dare to be wrong among very many labels."""
LURED, LEAST_LURED = 0.3, 1e-6
"""How probable it is at first, and at the least, that an unreliable group falls for the lure of an object, if there are
lures. With less there are none: it would go on falling, and objects would cost what they cost with lures."""
MOST_LURED = 0.5
"""And at the most. With more, most of those who do not know would say the same: as good as a second truth, and which is
which not to be told."""
LONG, SURE = np.array([5.0, 2.0]), np.ones(2)
"""Steps that η and θ take at a time: one at a time they creep, and with more θ swings about."""
NEAR = 0.01
"""Where b and h change by less than this share they are as good as learned."""
SLOWEST = 0.9
"""The largest share of a step that the next is taken to be: with it, as many as ten are taken at once."""
DIGITS = 10
"""Decimal digits that are kept of what is learned: see `_rounded`."""
ALONE = 5.0
"""κ is expected at this many times the number of sources: about one source in five is taken to have a mate before its
claims are seen, so that it stands alone unless they say otherwise."""


def start_beliefs(
    n_sources: int, n_labels: int, domain_size: float, fidelity: float, concentration: float | None
) -> Beliefs:
    """Beliefs that know nothing of the data: in a domain of this size members repeat an opinion with this fidelity.

    Without a common label set all objects are of the first kind: who errs on his own among open values agrees with
    nobody, hard as an object may be, so that shared mistakes need no kind to explain them.
    """
    n_kinds = len(RELIABILITY)
    occurs = np.arange(n_kinds) < (n_kinds if n_labels > 1 else 1)
    share = np.repeat(occurs[:, None] / occurs.sum() / n_labels, n_labels, axis=1)
    return Beliefs(
        true_count=TRUE_COUNT,
        false_count=TRUE_COUNT / _true_per_false(fidelity, domain_size),
        reliability=RELIABILITY.copy(),
        habit=np.full(n_kinds, _habit_at_start(n_labels)),
        share=share,
        concentration=float(ALONE * n_sources if concentration is None else concentration),
    )


def _true_per_false(fidelity: float, domain_size: float) -> float:
    """η / θ, if members repeat their group's opinion with this fidelity."""
    return max(domain_size - 1, 1) * fidelity / (1 - fidelity)


def of_one_kind(beliefs: Beliefs) -> Beliefs:
    """The same, but that all objects are of one kind, and nothing is known of what groups are like on it.

    It is the last kind, however hard objects are: on the first b must not fall below one half (`LEAST_RELIABLE`),
    and that of sources that are mostly right by habit does.
    """
    share = np.zeros_like(beliefs.share)
    share[-1] = beliefs.share.sum(axis=0)
    habit = np.full_like(beliefs.habit, _habit_at_start(beliefs.n_labels))
    return replace(beliefs, reliability=RELIABILITY.copy(), habit=habit, share=share)


def with_lures(beliefs: Beliefs) -> Beliefs:
    """The same, but that on every kind that occurs strangers fall for a lure."""
    return replace(beliefs, lured=np.where(beliefs.share.any(axis=1), LURED, 0.0))


def _habit_at_start(n_labels: int) -> float:
    return max(HABIT, n_labels * SMALLEST_HABIT)


def learn(
    stats: GroupingStats,
    given: Grouping,
    beliefs: Beliefs,
    *,
    domain_size: float,
    is_sure: bool,
    counts: bool,
    concentration: bool,
) -> tuple[Grouping, Beliefs]:
    """The global step: what groups are like by what the objects say, and beliefs that fit both better.

    domain_size   : values that an object may take, the median
    is_sure       : whether the bound must not fall; else what creeps is taken further at once, and it rarely does
    counts        : whether η and θ are learned
    concentration : whether κ is learned
    """
    occupied = given.size > 0
    grouping = update_groups(stats, given, beliefs)
    learned = _learn_likeness(grouping, occupied, beliefs)
    if not is_sure and _apart(beliefs, learned) > NEAR:
        # Groups are like their prior, and the prior is like the groups: together they creep.
        again = _learn_likeness(update_groups(stats, given, learned), occupied, learned)
        learned = _further(beliefs, learned, again)
        grouping = update_groups(stats, given, learned)
    share = (from_fixed(stats.share) + 1) * (beliefs.share > 0)
    learned = replace(learned, share=share / share.sum())
    if beliefs.lured.any():
        careless = from_fixed(stats.reliable)[:, :, 0].sum(axis=0)
        lured = from_fixed(stats.lured) / np.where(careless > 0, careless, 1.0)
        learned = replace(
            learned, lured=np.clip(np.round(lured, DIGITS), 0.0, MOST_LURED) * (lured > LEAST_LURED)
        )
    if counts:
        slopes, stride = from_two_words(stats.counts), SURE if is_sure else LONG
        is_open = beliefs.n_labels == 1
        bar = _true_per_false(LEAST_FAITHFUL, domain_size) if is_open else STANDING_OUT
        learned = _learn_counts(slopes, learned, stride, bar)
    if concentration:
        n_groups, n_sources, kappa = int(occupied.sum()), len(given.group), beliefs.concentration
        slope = digamma(kappa + n_sources) - digamma(kappa)
        learned = replace(learned, concentration=float((n_groups + n_sources) / (slope + 1 / ALONE)))
    return grouping, learned


def _learn_likeness(given: Grouping, occupied: NDArray[np.bool_], beliefs: Beliefs) -> Beliefs:
    """b and h, the optimum given what groups are like."""
    n_groups = int(occupied.sum())
    log_u = np.einsum("gdr->dr", given.log_reliability[occupied])  # (kinds, 2)
    reliability = _learn_reliability(log_u, n_groups, beliefs.reliability, _least_reliable(beliefs))
    habit = beliefs.habit
    if beliefs.n_labels > 1:
        log_x = np.einsum("gdk->d", given.log_habit[occupied])  # (kinds,)
        learned = np.array([_learn_habit(total, n_groups, beliefs.n_labels) for total in log_x])
        # Of a kind that does not occur nobody has a habit.
        habit = np.where(beliefs.share.any(axis=1), learned, habit)
    return replace(beliefs, reliability=_rounded(reliability), habit=_rounded(habit))


def _apart(one: Beliefs, other: Beliefs) -> float:
    """The largest change of b or h, as a share."""
    changes = (np.log(getattr(one, name) / getattr(other, name)) for name in ("reliability", "habit"))
    return max(float(np.abs(change).max()) for change in changes)


def _further(one: Beliefs, two: Beliefs, three: Beliefs) -> Beliefs:
    """Of three beliefs, each learned from the one before, b and h where they lead: Aitken's extrapolation, by kind."""

    def beyond(*learned: Float) -> Float:
        before, now, after = np.log(learned)
        first, second = now - before, after - now
        square = np.sum(first**2, axis=1, keepdims=True)
        shrinks = np.sum(first * second, axis=1, keepdims=True) / np.where(square > 0, square, 1.0)
        ratio = np.clip(shrinks, 0.0, SLOWEST)
        further: Float = np.exp(after + second * ratio / (1 - ratio))
        return further

    reliability = beyond(one.reliability, two.reliability, three.reliability)
    # What lies on the bar is not below it, however it was rounded.
    is_low = reliability[:, 1] < (1 - 1e-8) * _least_reliable(three) * reliability.sum(axis=1)
    reliability[is_low] = three.reliability[is_low]
    habit = beyond(one.habit[:, None], two.habit[:, None], three.habit[:, None])[:, 0]
    return replace(three, reliability=_rounded(reliability), habit=_rounded(np.clip(habit, *HABIT_RANGE)))


def _rounded(x: Float) -> Float:
    """To so many digits as are the same whatever order things are summed in. Where strides are long, rounding errors
    can grow from sweep to sweep: the names of things would show."""
    scale = 10.0 ** (DIGITS - np.ceil(np.log10(x)))
    rounded: Float = np.rint(x * scale) / scale
    return rounded


def log_prior(beliefs: Beliefs, n_sources: int, n_objects: int, *, concentration: bool) -> float:
    """ln p of all that is learned, κ only where it is; of f, whose every value is as probable, it is left out.

    Of shares, density times volume: there are twice as many with two kinds, and densities of different dimension do not
    compare. The volume, in which shares are about as probable, is what summing them out gives beyond the highest
    density where all are even: the same from sweep to sweep.
    """
    n_kinds, n_labels = beliefs.share.shape
    share = beliefs.share[beliefs.share > 0]
    n = share.size
    prior = float(np.log(share).sum() + gammaln(2 * n))
    prior += float(n * gammaln(2 + n_objects / n) - gammaln(2 * n + n_objects) + (n_objects + n) * np.log(n))
    for count, (shape, rate) in zip((beliefs.true_count, beliefs.false_count), COUNT_PRIOR, strict=True):
        prior += _log_gamma_density(count, shape, rate)
    for d, b in enumerate(beliefs.reliability):
        prior += float(_log_reliability_density(b, d)) - _log_reliability_mass(d)
    if n_labels > 1:
        prior += n_kinds * np.log(HABIT_RATE) - HABIT_RATE * float(beliefs.habit.sum())
    if concentration:
        prior += _log_gamma_density(beliefs.concentration, n_sources + 1, 1 / ALONE)
    return float(prior)


def _log_gamma_density(x: float, shape: float, rate: float) -> float:
    return float(shape * np.log(rate) - gammaln(shape) + (shape - 1) * np.log(x) - rate * x)


def _log_reliability_density(b: Float, d: int) -> Float:
    """Of b (…, 2) in kind d, up to a constant: as probable as a few groups at the start's b make it."""
    density: Float = PSEUDO_GROUPS * (b @ expected_log(RELIABILITY[d]) - betaln(b[..., 0], b[..., 1]))
    return density


@cache
def _log_reliability_mass(d: int) -> float:
    """ln of the integral of that density, on a fine grid of ln b."""
    log_b = np.linspace(-9.0, 9.0, 181)
    grid = np.stack(np.meshgrid(log_b, log_b), axis=-1)
    cell = 2 * np.log(log_b[1] - log_b[0])
    return float(logsumexp(_log_reliability_density(np.exp(grid), d) + grid.sum(axis=-1)) + cell)


def _learn_counts(slopes: Float, beliefs: Beliefs, stride: Float, standing_out: float) -> Beliefs:
    """A step of Minka's fixed point for η and θ, or several in its direction. η is so many times θ at the least, or as
    many as it was, where that is fewer.

    A step is the optimum of a bound of the bound, Σ gain ln count − cost count. Where it would bring η and θ nearer to
    each other than they may be, the optimum among those that are just as near as they may be is as sure.
    """
    counts = np.array([beliefs.true_count, beliefs.false_count])
    shape, rate = np.array(COUNT_PRIOR).T
    gain, cost = counts * slopes[::2] + shape - 1, slopes[1::2] + rate
    step = np.log(gain / cost / counts)
    lowest, least = min(TRUE_COUNT, counts[0]), min(standing_out, counts[0] / counts[1])
    for steps in (stride, SURE):
        eta, theta = counts * np.exp(steps * step)
        eta = max(eta, lowest)
        if eta >= least * theta:
            break
    else:
        eta = max(gain.sum() / (cost[0] + cost[1] / least), lowest)
        theta = eta / least
    true_count, false_count = _rounded(np.array([eta, theta]))
    return replace(beliefs, true_count=float(true_count), false_count=float(false_count))


def _least_reliable(beliefs: Beliefs) -> Float:
    """(n_kinds,) the mean of b at the least. Where all objects are hard it may be anything: sources mostly right by
    habit are hardly ever reliable."""
    least = LEAST_RELIABLE.copy()
    if not beliefs.share.any(axis=1).all():
        least[1:] = 0.0
    return least


def _learn_reliability(log_u: Float, n_groups: int, b: Float, least: Float) -> Float:
    """(n_kinds, 2) b: of each kind the Beta that fits the groups' reliabilities and a few at the start's, of those with
    a mean of `least` or more."""
    mean_log = (log_u + PSEUDO_GROUPS * expected_log(RELIABILITY)) / (n_groups + PSEUDO_GROUPS)
    for _ in range(50):
        # Newton on a concave function; the Hessian is diagonal plus a constant.
        total = b.sum(axis=1, keepdims=True)
        gradient = digamma(total) - digamma(b) + mean_log
        diagonal, constant = -zeta(2.0, b), zeta(2.0, total)
        shift = np.sum(gradient / diagonal, axis=1, keepdims=True)
        shift /= 1 / constant + np.sum(1 / diagonal, axis=1, keepdims=True)
        step = (gradient - shift) / diagonal
        b = np.maximum(b - step, b / 4)
        if np.all(np.abs(step) < 1e-7 * b):  # what is left is of the order of its square
            break
    for d in np.flatnonzero(b[:, 1] < least * b.sum(axis=1)):
        shares = np.array([1 - least[d], least[d]])
        b[d] = shares * _root(partial(_slope_of_strength, shares, mean_log[d] @ shares), 1e-3, 1e3)
    return b


def _slope_of_strength(shares: Float, mean_log: float, strength: float) -> tuple[float, float]:
    """How fast the fit of a Beta with means `shares` falls as its strength grows, and how that changes."""
    b = shares * strength
    return (
        float(shares @ digamma(b) - digamma(strength)) - mean_log,
        float(shares**2 @ zeta(2.0, b) - zeta(2.0, strength)),
    )


def _learn_habit(total_log: float, n_groups: int, n_labels: int) -> float:
    """Strength of a symmetric Dirichlet that fits the groups' habits."""

    def slope(h: float) -> tuple[float, float]:
        fit = n_groups * (digamma(h) - digamma(h / n_labels)) + total_log / n_labels
        return HABIT_RATE - fit, n_groups * (zeta(2.0, h / n_labels) / n_labels - zeta(2.0, h))

    return _root(slope, *HABIT_RANGE)


def _root(rising: Callable[[float], tuple[float, float]], low: float, high: float) -> float:
    """Where a rising function, given with its slope, crosses zero, or the end nearest to it: Newton, halved where it
    would leave the range. (SciPy has such a function too, but takes a fifth of a second to be imported.)

    A root is found to the last digits, a minimum only to half of them: rounding, and with it the names of sources,
    would decide the rest.
    """
    if rising(low)[0] >= 0:
        return low
    if rising(high)[0] <= 0:
        return high
    x, step = np.sqrt(low * high), np.inf
    while abs(step) > 1e-13 * x:
        value, slope = rising(x)
        low, high = (x, high) if value < 0 else (low, x)
        newton = x - value / slope
        new = newton if low < newton < high else np.sqrt(low * high)
        x, step = new, new - x
    return float(x)
