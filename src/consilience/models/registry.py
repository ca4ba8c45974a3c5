"""Every model by name: for the command line, comparisons and benchmarks."""

from __future__ import annotations

from typing import Any

from consilience.errors import UnknownNameError
from consilience.models.base import Model
from consilience.models.mss.model import MSS
from consilience.models.vote import Vote

MODELS: dict[str, type[Any]] = {model.name: model for model in (MSS, Vote)}


def model_named(name: str) -> Model:
    """The model of that name with its default settings."""
    if name not in MODELS:
        raise UnknownNameError("model", name, MODELS)
    model: Model = MODELS[name]()
    return model
