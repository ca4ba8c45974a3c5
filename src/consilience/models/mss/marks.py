"""What structured and mean-field inference leave in a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from consilience.claims.encoding import Shard
from consilience.kernels.state import Globals, Locals
from consilience.models.base import Place
from consilience.results.checkpoint import Mark

WARM = ("truth", "object_reliability")
"""What mean-field carries from sweep to sweep: of candidates, and of objects."""


def mark_of(place: Place[Globals], warm: Sequence[Locals | None]) -> Mark:
    """An ascent's place, with what its shards carry: all in one, since their number may differ when it goes on."""
    carried = [locals_ for locals_ in warm if locals_ is not None]
    return {
        **{f"globals_{name}": value for name, value in vars(place.globals).items()},
        **{f"warm_{name}": [getattr(locals_, name) for locals_ in carried] for name in WARM if carried},
        "tidies": place.tidies,
        "trace": place.trace,
    }


def restored(mark: Mark, shards: Sequence[Shard]) -> tuple[Place[Globals], Sequence[Locals | None]]:
    """The place that left a mark, and what these shards carry."""
    given = Globals(**{field.name: mark[f"globals_{field.name}"] for field in fields(Globals)})
    place = Place(given, mark["tidies"], tuple(mark["trace"]))
    if f"warm_{WARM[0]}" not in mark:
        return place, [None] * len(shards)
    sizes = [shard.n_candidates for shard in shards], [shard.n_objects for shard in shards]
    parts = [
        np.split(mark[f"warm_{name}"], np.cumsum(size)[:-1]) for name, size in zip(WARM, sizes, strict=True)
    ]
    return place, [Locals(*carried) for carried in zip(*parts, strict=True)]
