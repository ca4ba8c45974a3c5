"""The models: frozen settings, each with a `fit` that gives a frozen Fit.

The package can be called: `consilience.models()` names every model. A function of that name beside this
package would be replaced by the package as soon as any model is imported, so the package itself answers.
"""

from __future__ import annotations

import sys
from types import ModuleType


class _Models(ModuleType):
    def __call__(self) -> list[str]:
        """The names of every model, for `--model`, `compare` and the registry."""
        from consilience.models.registry import MODELS

        return list(MODELS)


sys.modules[__name__].__class__ = _Models
