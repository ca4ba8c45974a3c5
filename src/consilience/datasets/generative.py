"""The model's own story, run forwards: sticks, groups, reliabilities, truths, answers, claims."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from consilience.claims.encoding import Float, Int
from consilience.datasets.simulated import (
    Simulated,
    name_everything,
    numbered,
    observed,
    require_positive,
)
from consilience.errors import SettingsError


def from_model(
    n_sources: int = 50,
    n_objects: int = 1000,
    n_values: int | tuple[int, int] = 4,
    concentration: float = 5.0,
    true_count: Sequence[float] = (0.2, 5.0),
    false_count: Sequence[float] = (0.2, 0.2),
    reliability: Sequence[float] = (1.0, 2.0),
    density: float = 0.3,
    seed: int = 0,
) -> Simulated:
    """Groups, truths and claims drawn from the model's priors.

    n_values                : size of every domain, or (low, high): uniform between the two, for each object
    concentration           : κ of the sticks; two sources share a group with probability 1 / (1 + κ)
    true_count, false_count : η, θ for r = 0, 1
    reliability             : b0, b1: a group is reliable on an object with probability u ~ Beta(b1, b0)
    density                 : probability that a source claims something about an object

    A group's kind is "reliable" where u ≥ ½, else "careless" or, where θ⁰ > η⁰, "malicious".
    """
    require_positive(n_sources=n_sources, n_objects=n_objects, concentration=concentration)
    low, high = (n_values, n_values) if isinstance(n_values, int) else n_values
    if not 1 <= low <= high:
        raise SettingsError("n_values", "a whole number from 1 on, or a pair (low, high) of them", n_values)
    counts_given = {"true_count": true_count, "false_count": false_count, "reliability": reliability}
    for setting, pair in counts_given.items():
        if len(pair) != 2 or min(pair) <= 0:
            raise SettingsError(setting, "two numbers above 0, for r = 0 and r = 1", pair)
    if not 0 < density <= 1:
        raise SettingsError("density", "above 0 and at most 1", density)

    rng = np.random.default_rng(seed)
    group = _sticks(n_sources, concentration, rng)
    n_groups = int(group.max()) + 1
    u = rng.beta(reliability[1], reliability[0], size=n_groups)
    domain = rng.integers(low, high + 1, size=n_objects)
    truth = rng.integers(domain)
    true, false = np.asarray(true_count, float), np.asarray(false_count, float)

    source, object_ = observed(n_sources, n_objects, density, rng)
    # Only where a group claims something must its answer distribution be drawn.
    active, row = np.unique(object_ * n_groups + group[source], return_inverse=True)
    active_object, active_group = np.divmod(active, n_groups)
    r = (rng.random(len(active)) < u[active_group]).astype(int)
    sizes = domain[active_object]
    first = np.cumsum(sizes) - sizes
    counts = np.repeat(false[r], sizes)
    counts[first + truth[active_object]] = true[r]
    value = _draw(_dirichlet(counts, first, rng), first, row, rng)

    share_right = (true / (true + (domain[:, None] - 1) * false)).mean(axis=0)
    unreliable = "malicious" if false[0] > true[0] else "careless"
    return name_everything(
        numbered("s", n_sources),
        numbered("o", n_objects),
        numbered("v", high),
        (source, object_, value),
        truth,
        group,
        np.where(u >= 0.5, "reliable", unreliable)[group],
        ((1 - u) * share_right[0] + u * share_right[1])[group],
    )


def _sticks(n_sources: int, concentration: float, rng: np.random.Generator) -> Int:
    """(n_sources,) groups drawn from a stick that is broken as far as needed, numbered without gaps."""
    # With ρ ~ Beta(1, κ), −ln(1 − ρ) is exponential with rate κ: along −ln(what is left) the breaks are a
    # Poisson process, and a uniform place on the stick is an exponential variate.
    place = rng.standard_exponential(n_sources)
    breaks = np.zeros(1)
    while breaks[-1] <= place.max():
        breaks = np.append(breaks, breaks[-1] + np.cumsum(rng.standard_exponential(64)) / concentration)
    return np.unique(np.searchsorted(breaks, place, side="right"), return_inverse=True)[1]


def _dirichlet(counts: Float, first: Int, rng: np.random.Generator) -> Float:
    """Probabilities of ragged Dirichlet draws; the rows begin at `first`.

    In logarithms, because counts far below 1 make gamma variates that underflow all together:
    a Gamma(a) variate is a Gamma(a + 1) variate times U^(1/a).
    """
    log_gamma = np.log(rng.standard_gamma(counts + 1)) - rng.standard_exponential(len(counts)) / counts
    sizes = np.diff(first, append=len(counts))
    weight: Float = np.exp(log_gamma - np.repeat(np.maximum.reduceat(log_gamma, first), sizes))
    total: Float = np.add.reduceat(weight, first)
    return weight / np.repeat(total, sizes)


def _draw(probability: Float, first: Int, row: Int, rng: np.random.Generator) -> Int:
    """For each entry of `row`, a draw from that ragged row of `probability`, as an index within the row."""
    # Every row sums to one, so the running sum over all rows passes row i between i and i + 1.
    drawn = np.searchsorted(np.cumsum(probability), row + rng.random(len(row)), side="right")
    last = np.append(first[1:], len(probability)) - 1
    return np.clip(drawn, first[row], last[row]) - first[row]
