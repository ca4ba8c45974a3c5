"""What every generator gives, and the steps they share: who claims, with what errors, under which names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from consilience.claims.encoding import Float, Int
from consilience.errors import SettingsError


@dataclass(frozen=True, eq=False)
class Simulated:
    """A table of claims of which everything is known.

    claims : source, object, value (all text)
    truth  : object, value (text); every object, also one that nobody happens to claim anything about
    groups : source, group (integer), kind (text: the part the source plays), accuracy (the probability that
             a claim of it is right); every source
    """

    claims: pa.Table
    truth: pa.Table
    groups: pa.Table


def require_positive(**settings: float) -> None:
    """Refuse settings that are not above 0."""
    for setting, value in settings.items():
        if value <= 0:
            raise SettingsError(setting, "above 0", value)


def observed(n_sources: int, n_objects: int, density: float, rng: np.random.Generator) -> tuple[Int, Int]:
    """Source and object of each claim, by object; every pair is among them with probability `density`.

    Gaps between successes are geometric: this costs as much as there are claims, not as there are pairs.
    """
    n_pairs = n_sources * n_objects
    batch = int(n_pairs * density + 4 * np.sqrt(n_pairs * density)) + 16
    runs, last = [], -1
    while last < n_pairs:
        runs.append(last + np.cumsum(rng.geometric(density, size=batch)))
        last = int(runs[-1][-1])
    pairs = np.concatenate(runs)
    object_, source = np.divmod(pairs[pairs < n_pairs], n_sources)
    return source, object_


def erring(truth: Int, n_values: int, accuracy: float | Float, rng: np.random.Generator) -> Int:
    """Answers that hit the truth with probability `accuracy` and are otherwise uniform on the false values.

    truth : (n,) index of the true value in each domain of `n_values`
    """
    right = rng.random(len(truth)) < accuracy
    return np.where(right, truth, (truth + rng.integers(1, n_values, size=len(truth))) % n_values)


def numbered(prefix: str, n: int) -> pa.Array:
    """`n` names that sort as they count: s01, s02, …"""
    width = len(str(n))
    return pa.array([f"{prefix}{i:0{width}d}" for i in range(1, n + 1)], pa.string())


def name_everything(
    sources: pa.Array,
    objects: pa.Array,
    values: pa.Array,
    claims: tuple[Int, Int, Int],
    truth: Int,
    group: Int,
    kind: NDArray[Any],
    accuracy: Float,
) -> Simulated:
    """Turn indices into the tables of a `Simulated`.

    claims                : source, object and value of each claim, (n_claims,) each
    truth                 : (n_objects,) index into `values`
    group, kind, accuracy : (n_sources,) each
    """
    source, object_, value = (pa.array(indices) for indices in claims)
    return Simulated(
        claims=pa.table(
            {"source": sources.take(source), "object": objects.take(object_), "value": values.take(value)}
        ),
        truth=pa.table({"object": objects, "value": values.take(pa.array(truth))}),
        groups=pa.table(
            {"source": sources, "group": group, "kind": pa.array(kind, pa.string()), "accuracy": accuracy}
        ),
    )
