"""What is believed beforehand, and how it is learned."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import betaln

from consilience.claims.reading import read_claims
from consilience.kernels.state import Grouping, expected_log
from consilience.models.mss.beliefs import (
    LEAST_RELIABLE,
    LONG,
    PSEUDO_GROUPS,
    RELIABILITY,
    SURE,
    TRUE_COUNT,
    _further,
    _learn_counts,
    _learn_likeness,
    _rounded,
    learn,
    log_prior,
    of_one_kind,
    start_beliefs,
)
from tests.searching import search_of


@pytest.mark.parametrize("stride", [LONG, SURE])
@pytest.mark.parametrize("steps", [(-0.1, -0.12), (0.3, 0.1), (-0.3, 0.4), (0.0, 0.0), (-5.0, -5.0)])
@pytest.mark.parametrize("standing_out", [1.2, 27.0])
@pytest.mark.parametrize(
    "counts", [(60.0, 50.0), (59.0, 50.0), (20.0, 16.66666667), (20.0, 1e-9), (400.0, 1.0)]
)
def test_counts_stay_numbers_and_opinions_stand_out(counts, steps, stride, standing_out):
    """Slopes that make these the steps, but for the priors."""
    eta, theta = counts
    beliefs = replace(start_beliefs(10, 4, 4.0, 0.95, None), true_count=eta, false_count=theta)
    scale = 1e9
    slopes = np.array([scale * np.exp(steps[0]), scale, scale * np.exp(steps[1]), scale])
    learned = _learn_counts(slopes, beliefs, stride, standing_out)
    assert np.isfinite([learned.true_count, learned.false_count]).all()
    assert learned.true_count >= min(eta, TRUE_COUNT)
    stands_out = learned.true_count / learned.false_count
    assert stands_out >= min(standing_out, eta / theta) * (1 - 1e-8)


def test_long_strides_go_further():
    """Many sources with ten claims each: their habits and the prior of these creep towards each other."""
    rng = np.random.default_rng(0)
    right = rng.random(4_000) < np.repeat(rng.uniform(0.4, 0.95, 400), 10)
    said = np.where(right, 0, rng.integers(4, size=4_000))
    rows = zip(np.repeat(np.arange(400), 10), rng.permutation(4_000) // 10, said, strict=True)
    claims = {(f"s{n}", f"o{m}"): f"v{(m + z) % 4}" for n, m, z in rows}
    search = search_of(read_claims([(*who, value) for who, value in claims.items()]))
    start = search._fresh(np.arange(search.table.n_sources), 0.99)
    gained = []
    for is_sure in (True, False):
        story = start
        for _ in range(8):
            grouping, beliefs = learn(
                story.stats, story.grouping, story.beliefs,
                domain_size=4.0, is_sure=is_sure, counts=False, concentration=True,
            )  # fmt: skip
            story = search._evaluate(grouping, beliefs)
        gained.append(story.bound - start.bound)
    assert gained[0] > 0
    assert gained[1] > 2 * gained[0]


@pytest.mark.parametrize("n_objects", [0, 7, 40])
def test_shares_of_one_kind_and_of_two_compare(n_objects):
    """With two labels there are two shares of one kind, four of two. What their prior and volume add to the probability
    of objects that are spread evenly over them is the integral over all shares."""
    both = start_beliefs(10, 2, 2.0, 0.95, None)
    shares = np.random.default_rng(0).dirichlet(np.full(4, 2.0), size=400_000)
    integral_two = np.log(np.mean(np.prod(shares, axis=1) ** (n_objects / 4)))
    grid = np.linspace(0, 1, 20_001)[1:-1]
    integral_one = np.log(np.mean(6 * (grid * (1 - grid)) ** (1 + n_objects / 2)))
    two = log_prior(both, 10, n_objects, concentration=True) - n_objects * np.log(4)
    one = log_prior(
        replace(both, share=np.array([[0.0, 0.0], [0.5, 0.5]])), 10, n_objects, concentration=True
    )
    one -= n_objects * np.log(2)
    assert two - one == pytest.approx(integral_two - integral_one, abs=0.05)


def test_on_hard_objects_somebody_knows_something_unless_all_are_hard():
    """Thirty groups that are hardly ever reliable on either kind."""
    rng = np.random.default_rng(0)
    beliefs = start_beliefs(30, 2, 2.0, 0.95, None)
    seen = rng.uniform(0, 1, (30, 2, 2)) * [40, 1]
    given = Grouping(np.arange(30), beliefs.reliability + seen, np.ones((30, 2, 2)))
    everybody = np.ones(30, np.bool_)
    learned = _learn_likeness(given, everybody, beliefs).reliability
    assert learned[:, 1] / learned.sum(axis=1) == pytest.approx(LEAST_RELIABLE)

    # Of all that are allowed it fits best.
    mean_log = given.log_reliability.sum(axis=0) + PSEUDO_GROUPS * expected_log(RELIABILITY)

    def fit(b):
        return np.sum(b * mean_log, axis=-1) - (30 + PSEUDO_GROUPS) * betaln(b[..., 0], b[..., 1])

    means, strengths = np.meshgrid(np.linspace(0, 1, 101)[1:-1], np.geomspace(0.01, 100, 401))
    grid = np.stack([(1 - means) * strengths, means * strengths], axis=-1)[:, :, None, :]
    fits = np.where(means[:, :, None] >= LEAST_RELIABLE, fit(grid), -np.inf)
    assert np.all(fits.max(axis=(0, 1)) <= fit(learned) + 1e-9)

    alike = _learn_likeness(given, everybody, of_one_kind(beliefs)).reliability
    assert alike[1, 1] / alike[1].sum() < 0.15


def test_what_lies_on_the_bar_is_taken_further():
    """Three beliefs, each learned from the one before, that creep along the lowest means: so do they beyond."""
    start = start_beliefs(30, 2, 2.0, 0.95, None)
    shares = np.stack([1 - LEAST_RELIABLE, LEAST_RELIABLE], axis=1)
    for first in np.random.default_rng(0).uniform(1, 9, 50):
        strengths = first, first * 1.1, first * 1.19
        steps = [replace(start, reliability=_rounded(shares * strength)) for strength in strengths]
        further = _further(*steps).reliability
        assert np.all(further.sum(axis=1) > 1.5 * first)
        assert further[:, 1] / further.sum(axis=1) == pytest.approx(LEAST_RELIABLE)
