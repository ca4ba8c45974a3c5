from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.errors import UnknownNameError
from consilience.results.explain import find_object
from consilience.results.tables import ids
from consilience.results.wording import plain
from tests.results.made_fits import capitals_fit, claims_of, fit_of, random_fit


@given(st.integers(0, 10_000))
def test_the_voices_add_up_to_the_probabilities(seed: int) -> None:
    fit = random_fit(seed)
    for object_id in ids(fit.claims.objects).to_pylist()[:3]:
        why = fit.explain(object_id)
        nats = np.sum([voice.contributions for voice in why.voices], axis=0)
        probability = np.exp(nats - nats.max()) / np.exp(nats - nats.max()).sum()
        assert [c.probability for c in why.candidates] == pytest.approx(probability)


@given(st.integers(0, 10_000), st.booleans(), st.booleans())
def test_every_claim_is_in_exactly_one_voice(seed: int, groups: bool, tail: bool) -> None:
    fit = random_fit(seed, groups=groups, tail=tail)
    m = 0
    why = fit.explain(fit.claims.objects[m].as_py())
    here = fit.claims.claim_source[fit.claims.first_claim[m] : fit.claims.first_claim[m + 1]]
    spoken = sorted(member.source for voice in why.voices for member in voice.members)
    assert spoken == [fit.claims.sources[n].as_py() for n in here]
    assert sum(c.n_claims for c in why.candidates) == len(here)
    assert why.candidates[0].value == why.decision
    assert str(why)


def test_copiers_count_as_one_voice_and_the_sentence_says_so() -> None:
    why = capitals_fit().explain("Australia")
    assert why.decision == "Canberra"
    copiers = next(voice for voice in why.voices if voice.group == 1)
    assert len(copiers.members) == 5
    assert copiers.reliability is not None
    assert copiers.reliability < 0.1
    sydney = [c.value for c in why.candidates].index("Sydney")
    assert copiers.contributions[sydney] > copiers.contributions[0]
    assert copiers.strength < max(voice.strength for voice in why.voices)
    assert "More sources claim Sydney (5 against 2), but all of them are in group 1" in why.sentence
    text = str(why)
    assert text.startswith("Australia: Canberra")
    assert "group 1" in text
    assert max(len(line) for line in text.splitlines() if line != why.sentence) < 110


def test_one_candidate_needs_no_weights() -> None:
    text = str(capitals_fit().explain("Canada"))
    assert "the only value that is possible here; 7 sources claim it" in text
    assert "+0.0" not in text


def test_ties_are_admitted() -> None:
    fit = fit_of(claims_of([("a", "x", "1"), ("b", "x", "2")]))
    assert "equally probable (50.0% each); the seed decided" in fit.explain("x").sentence


def test_an_unknown_object_is_an_error_with_the_nearest_names() -> None:
    with pytest.raises(UnknownNameError, match=r"no object 'Austria'.*'Australia'"):
        capitals_fit().explain("Austria")
    many = claims_of([("a", f"object-{i:05d}", "1") for i in range(3000)])
    with pytest.raises(UnknownNameError, match="Did you mean 'object-01"):
        find_object(many, "object-012341")


def test_ids_that_are_numbers_are_found_as_text_too() -> None:
    claims = claims_of([("a", 10, "1"), ("a", 20, "1")])
    assert find_object(claims, 20) == find_object(claims, "20") == 1
    with pytest.raises(UnknownNameError):
        find_object(claims, "twenty")


def test_a_long_list_is_cut_and_counted() -> None:
    fit = fit_of(claims_of([(f"s{i:02d}", "x", f"v{i:02d}") for i in range(30)]))
    text = str(fit.explain("x"))
    assert "… and 18 more values" in text
    assert "… and 18 more voices" in text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a\nb", "a\\nb"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("‮abc", "\\u202eabc"),
        ("x" * 100, "x" * 59 + "…"),
        (3, "3"),
        ("東京", "東京"),
    ],
)
def test_hostile_text_cannot_move_the_cursor(value: object, shown: str) -> None:
    assert plain(value) == shown
