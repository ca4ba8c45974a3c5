"""A fit as one JSON object."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from consilience.results.fit import Fit
    from consilience.results.score import Score
    from consilience.results.spread import SpreadFit


def record(fit: Fit | SpreadFit, score: Score | None = None) -> dict[str, Any]:
    """What `--json` prints."""
    from consilience.results.cautions import records_of

    found: dict[str, Any] = {
        "model": fit.model,
        "n_sources": fit.claims.n_sources,
        "n_objects": fit.claims.n_objects,
        "n_claims": fit.claims.n_claims,
        "n_groups": fit.n_groups,
        "bound": fit.bound,
        "sweeps": fit.sweeps,
        "seconds": fit.seconds,
        "converged": fit.converged,
        "seed": fit.seed,
        **records_of(fit.warnings),
    }
    if score is not None:
        found |= asdict(score)
    return found
