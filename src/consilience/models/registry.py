"""Every model by name: for the command line, comparisons and benchmarks."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from consilience.errors import UnknownNameError
from consilience.models.base import Model
from consilience.models.dawid_skene import DawidSkene, OneCoin
from consilience.models.mss.model import MSS
from consilience.models.vote import Vote

MODELS: dict[str, type[Any]] = {
    each.name: each for each in (
        MSS,
        Vote,
        DawidSkene, OneCoin,
    )
}  # fmt: skip


def model(name: str, **settings: Any) -> Model:
    """The model of that name, with these settings and its defaults for the rest."""
    if name not in MODELS:
        raise UnknownNameError("model", name, MODELS)
    known = [field.name for field in fields(MODELS[name])]
    for setting in settings:
        if setting not in known:
            raise UnknownNameError(f"setting of {name}", setting, known)
    found: Model = MODELS[name](**settings)
    return found
