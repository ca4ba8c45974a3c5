"""Shared mistakes, against slow loops."""

from __future__ import annotations

import numpy as np
import pytest

from consilience.results.fit import Fit
from consilience.server.copying import shared
from tests.results.made_fits import capitals_fit, random_fit


def said(fit: Fit) -> dict[int, dict[int, int]]:
    """What each source claims: source to object to candidate."""
    found: dict[int, dict[int, int]] = {n: {} for n in range(fit.claims.n_sources)}
    for object_, source, candidate in zip(
        fit.claims.claim_object(), fit.claims.claim_source, fit.claims.claim_candidate, strict=True
    ):
        found[int(source)][int(object_)] = int(candidate)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_mates_and_shared_mistakes_are_counted(seed: int) -> None:
    fit = random_fit(seed, groups=False)
    claims = said(fit)
    rng = np.random.default_rng(seed)
    members = np.flatnonzero(rng.random(fit.claims.n_sources) < 0.6)
    source = int(rng.integers(fit.claims.n_sources))
    inside = {*members.tolist(), source}
    found = shared(fit, members, source)
    mates = dict(
        zip(
            found.mates.tolist(),
            zip(found.n_common, found.n_same, found.n_mistakes, strict=True),
            strict=True,
        )
    )
    for mate in inside - {source}:
        both = claims[source].keys() & claims[mate].keys()
        same = [m for m in both if claims[source][m] == claims[mate][m]]
        wrong = [m for m in same if claims[source][m] != fit.decision[m]]
        assert tuple(map(int, mates.get(mate, (0, 0, 0)))) == (len(both), len(same), len(wrong))

    rows = zip(
        found.objects, found.candidates, found.n_members, found.n_others, found.n_others_claiming, strict=True
    )
    listed = {int(m): tuple(map(int, row)) for m, *row in rows}
    for m, z in claims[source].items():
        who = [n for n in claims if claims[n].get(m) == z]
        n_inside = sum(n in inside for n in who)
        if n_inside > 1 and z != fit.decision[m]:
            outside = sum(m in claims[n] for n in claims if n not in inside)
            assert listed[m] == (z, n_inside, len(who) - n_inside, outside)
        else:
            assert m not in listed


def test_a_group_of_copiers_shares_its_mistakes() -> None:
    fit = capitals_fit()
    copiers = np.flatnonzero([str(name).startswith("copier") for name in fit.claims.sources])
    found = shared(fit, copiers)
    assert [fit.claims.objects[int(m)].as_py() for m in found.objects] == ["Australia", "Brazil"]  # type: ignore[attr-defined]
    assert found.n_members.tolist() == [5, 5]
    assert found.n_others.tolist() == [0, 0]
    assert found.n_others_claiming.tolist() == [2, 2]
