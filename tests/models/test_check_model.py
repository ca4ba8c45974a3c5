"""Every model in the registry satisfies what every model must."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from consilience.claims.reading import read_claims
from consilience.models.mss.model import MSS
from consilience.models.registry import MODELS
from consilience.models.vote import Vote
from consilience.testing.checks import check_model, tables

VARIANTS = {
    "mss mean-field": MSS(
        inference="mean-field", true_count=(1.0, 10.0), false_count=(1.0, 1.0), max_groups=6
    ),
    "mss structured": MSS(inference="structured"),
    "mss malicious": MSS(inference="structured", true_count=(0.1, 10.0), false_count=(0.5, 0.5)),
    "mss paper counts": MSS(inference="structured", true_count=(1.0, 10.0), false_count=(2.0, 1.0)),
    "mss partition, concentration fixed": MSS(concentration=2.0, n_starts=1),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_model_with_its_defaults(name):
    check_model(MODELS[name]())


@pytest.mark.parametrize("name", VARIANTS)
def test_variants(name):
    check_model(VARIANTS[name])


def test_engines_give_the_same_answer():
    for triples in tables(2):
        claims = read_claims(triples)
        reference, other = MSS().fit(claims, engine="numpy"), MSS().fit(claims, engine="numba")
        assert np.allclose(reference.truth, other.truth, atol=1e-7)
        assert np.array_equal(reference.decision, other.decision)


@dataclass(frozen=True)
class Favourite(Vote):
    """A wrong model: prefers the candidate that comes first."""

    name: ClassVar[str] = "favourite"

    def fit(self, claims, **keywords):
        fit = super().fit(claims, **keywords)
        truth = np.zeros_like(fit.truth)
        truth[fit.claims.first_candidate[:-1]] = 1.0
        return replace(fit, truth=truth, decision=fit.claims.first_candidate[:-1].copy())


def test_the_checks_can_fail():
    with pytest.raises(AssertionError, match="favourite: unanimity wins"):
        check_model(Favourite())
