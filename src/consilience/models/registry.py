"""Every model by name: for the command line, comparisons and benchmarks."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from consilience.errors import UnknownNameError
from consilience.models.accu import Accu, AccuIndependent
from consilience.models.base import Model
from consilience.models.bcc import EBCC, IBCC
from consilience.models.bwa import BWA
from consilience.models.cobayes import CoBayes
from consilience.models.crh import CATD, CRH
from consilience.models.dare import Dare
from consilience.models.dawid_skene import DawidSkene, OneCoin
from consilience.models.estimates import Cosine, ThreeEstimates, TwoEstimates
from consilience.models.glad import GLAD
from consilience.models.investment import AverageLog, Investment, PooledInvestment, Sums
from consilience.models.ltm import LTM
from consilience.models.mace import MACE
from consilience.models.mss.model import MSS
from consilience.models.sstf import SSTF
from consilience.models.truthfinder import TruthFinder
from consilience.models.vote import Vote
from consilience.models.wawa import Wawa, ZeroBasedSkill

MODELS: dict[str, type[Any]] = {
    each.name: each for each in (
        MSS,
        Vote, TruthFinder, TwoEstimates, ThreeEstimates, Cosine, Accu, AccuIndependent, SSTF,
        LTM, Sums, AverageLog, Investment, PooledInvestment, CoBayes, Dare,
        DawidSkene, OneCoin, GLAD, IBCC, EBCC, MACE, BWA, CRH, CATD, Wawa, ZeroBasedSkill,
    )
}  # fmt: skip
"""Ours, those in the paper's table, those that it cites, and the standards of the field."""


def model(name: str, **settings: Any) -> Model:
    """The model of that name, with these settings and its defaults for the rest."""
    if name not in MODELS:
        raise UnknownNameError("model", name, MODELS, "`consilience models` lists them.")
    known = [field.name for field in fields(MODELS[name])]
    for setting in settings:
        if setting not in known:
            raise UnknownNameError(f"setting of {name}", setting, known)
    found: Model = MODELS[name](**settings)
    return found
