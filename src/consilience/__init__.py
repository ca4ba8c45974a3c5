"""Finds the truth among conflicting claims when the sources are not independent.

    import consilience as cs

    claims = cs.read_claims("claims.csv")
    fit = cs.MSS().fit(claims, seed=0)
    fit.truths, fit.sources, fit.groups

Names are loaded when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from consilience import errors

if TYPE_CHECKING:
    from consilience.claims.encoding import Claims
    from consilience.claims.reading import Truths, read_claims, read_truths
    from consilience.evaluate.compare import compare
    from consilience.models.mss.model import MSS
    from consilience.models.registry import model
    from consilience.models.vote import Vote
    from consilience.results.fit import Fit
    from consilience.results.storage import load

    def models() -> list[str]:
        """The names of every model."""


__version__ = "0.1.0.dev0"

__all__ = [
    "MSS",
    "Claims",
    "Fit",
    "Truths",
    "Vote",
    "compare",
    "errors",
    "load",
    "model",
    "models",
    "read_claims",
    "read_truths",
]

_HOME = {
    "MSS": "consilience.models.mss.model",
    "Claims": "consilience.claims.encoding",
    "Fit": "consilience.results.fit",
    "Truths": "consilience.claims.reading",
    "Vote": "consilience.models.vote",
    "compare": "consilience.evaluate.compare",
    "load": "consilience.results.storage",
    "model": "consilience.models.registry",
    "read_claims": "consilience.claims.reading",
    "read_truths": "consilience.claims.reading",
}


def __getattr__(name: str) -> Any:
    if name == "models":  # the package of that name, which is also the function: see consilience.models
        return importlib.import_module("consilience.models")
    if name not in _HOME:
        raise AttributeError(f"module 'consilience' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
