"""Every model by name: for the command line, comparisons and benchmarks."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from consilience.errors import UnknownNameError
from consilience.models.base import Model

HOMES = {
    "mss": "mss.model:MSS",
    "vote": "vote:Vote",
    "truthfinder": "truthfinder:TruthFinder",
    "2-estimates": "estimates:TwoEstimates",
    "3-estimates": "estimates:ThreeEstimates",
    "cosine": "estimates:Cosine",
    "accu": "accu:Accu",
    "accu-independent": "accu:AccuIndependent",
    "sstf": "sstf:SSTF",
    "ltm": "ltm:LTM",
    "sums": "investment:Sums",
    "average-log": "investment:AverageLog",
    "investment": "investment:Investment",
    "pooled-investment": "investment:PooledInvestment",
    "cobayes": "cobayes:CoBayes",
    "dare": "dare:Dare",
    "dawid-skene": "dawid_skene:DawidSkene",
    "one-coin": "dawid_skene:OneCoin",
    "glad": "glad:GLAD",
    "ibcc": "bcc:IBCC",
    "ebcc": "bcc:EBCC",
    "mace": "mace:MACE",
    "bwa": "bwa:BWA",
    "crh": "crh:CRH",
    "catd": "crh:CATD",
    "wawa": "wawa:Wawa",
    "zero-based-skill": "wawa:ZeroBasedSkill",
}
"""Where each is: ours, those in the paper's table, those that it cites, and the standards of the field."""


class _Models(Mapping[str, type[Any]]):
    """Models by name, each imported when it is asked for: who fits one should not wait for thirty."""

    def __getitem__(self, name: str) -> type[Any]:
        module, _, kind = HOMES[name].partition(":")
        found: type[Any] = getattr(importlib.import_module(f"consilience.models.{module}"), kind)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(HOMES)

    def __len__(self) -> int:
        return len(HOMES)


MODELS = _Models()


def model(name: str, **settings: Any) -> Model:
    """The model of that name, with these settings and its defaults for the rest."""
    if name not in HOMES:
        raise UnknownNameError("model", name, HOMES, "`consilience models` lists them.")
    chosen = MODELS[name]
    known = [field.name for field in fields(chosen)]
    for setting in settings:
        if setting not in known:
            raise UnknownNameError(f"setting of {name}", setting, known)
    found: Model = chosen(**settings)
    return found
