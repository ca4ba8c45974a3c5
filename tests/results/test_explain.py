from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.errors import UnknownNameError
from consilience.kernels.numpy_ import structured
from consilience.kernels.numpy_partition import partition
from consilience.kernels.state import Beliefs, Partition, Prior
from consilience.results.evidence import shard_of
from consilience.results.explain import find_object
from consilience.results.fit import Fit
from consilience.results.groups import Numbering
from consilience.results.tables import ids
from consilience.results.wording import plain
from tests.results.made_fits import capitals_fit, claims_of, fit_of, partition_fit, random_fit


@given(st.integers(0, 10_000))
def test_the_voices_add_up_to_the_probabilities(seed: int) -> None:
    fit = random_fit(seed)
    for object_id in ids(fit.claims.objects).to_pylist()[:3]:
        why = fit.explain(object_id)
        nats = np.sum([why.before, *(voice.contributions for voice in why.voices)], axis=0)
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


@pytest.mark.parametrize("domain", ["common", "claimed"])
def test_the_voices_of_a_partition_add_up_to_the_log_odds(domain: str) -> None:
    """Also where an object may be of two kinds, labels are not equally common and probabilities are tempered."""
    fit = partition_fit(domain)
    assert fit.learned["shared_errors"] > 0
    for object_id in ids(fit.claims.objects).to_pylist():
        why = fit.explain(object_id)
        nats = np.sum([why.before, *(voice.contributions for voice in why.voices)], axis=0)
        probability = np.array([c.probability for c in why.candidates])
        assert nats - nats[0] == pytest.approx(np.log(probability / probability[0]), abs=1e-9)
        assert (np.ptp(why.before) > 1e-3) == (domain == "common")


@pytest.mark.parametrize("domain", ["common", "claimed"])
@pytest.mark.parametrize("known", [False, True])
def test_a_group_of_a_partition_is_one_voice_with_all_its_members(domain: str, known: bool) -> None:
    fit = partition_fit(domain, known)
    group = dict(zip(*(fit.sources[name].to_pylist() for name in ("source", "group")), strict=True))
    for m, object_id in enumerate(ids(fit.claims.objects).to_pylist()):
        why = fit.explain(object_id)
        here = fit.claims.claim_source[fit.claims.first_claim[m] : fit.claims.first_claim[m + 1]]
        spoken = sorted(member.source for voice in why.voices for member in voice.members)
        assert spoken == [fit.claims.sources[n].as_py() for n in here]
        assert len({voice.group for voice in why.voices}) == len(why.voices)
        for voice in why.voices:
            assert {group[member.source] for member in voice.members} == {voice.group}
            assert voice.reliability is not None
            assert 0 <= voice.reliability <= 1
            assert len(voice.contributions) == len(why.candidates)
        assert why.known == (known and bool(fit.known is not None and fit.known[m]))
        assert str(why)


def test_a_group_is_reliable_on_an_object_only_where_it_says_what_is_true() -> None:
    """A group may be right by luck; one that is wrong was not reliable."""
    fit, right, wrong = partition_fit(), [], []
    for row in fit.truths.to_pylist():
        if row["probability"] > 0.95:
            for voice in fit.explain(row["object"]).voices:
                said = [member.value for member in voice.members]
                if len(said) > 2 and len(set(said)) == 1:
                    (right if said[0] == row["value"] else wrong).append(voice.reliability)
    assert len(right) > 10
    assert len(wrong) > 10
    assert np.mean(right) > 0.6
    assert max(wrong) < 0.1


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
    assert why.sentence.endswith(
        "More sources claim Sydney (5 against 2), but all of them are in group 1, whose claims count as one voice: by "
        "voices it is 1 against 2."
    )
    assert "(on its own, " in why.sentence
    fewer = replace(why, voices=tuple(voice for voice in why.voices if voice is copiers))
    assert fewer.sentence.endswith(
        "by voices it is 1 against 0, and weighed all together they speak for Canberra."
    )
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


@pytest.mark.parametrize("groups", [True, False])
def test_a_truth_that_was_given_is_called_so(groups: bool) -> None:
    fit = capitals_fit()
    if not groups:
        fit = fit_of(fit.claims)
    fit = replace(fit, known=np.array([True, False, True]))
    why = fit.explain("Australia")
    assert why.known
    assert why.sentence == f"{why.decision} was given as the truth, not found. " + (
        "2 of 7 sources claim it." if groups else "5 of 7 sources claim it."
    )
    assert "was given as the truth, not found. 7 of 7 sources claim it." in str(fit.explain("Canada"))
    assert not fit.explain("Brazil").known


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


@pytest.mark.parametrize(
    ("names", "asked", "meant"),
    [
        ([f"o{i:02d}" for i in range(40)], "o1", "'o01'"),
        ([f"{i:04d}-{i}" for i in range(4000)], "12-12", "'0012-12'"),
        (["USA (United States)", "USSR", "UAE"], "USA", "'USA (United States)'"),
        (["South Korea", "Kordofan"], "korea", "'South Korea'"),
        (["Bermuda", "Berlin"], "Berln", "'Berlin'"),
        (["Berlin", "berlin"], "BERLIN", "'Berlin' or 'berlin'"),
    ],
)
def test_names_that_hold_the_text_are_nearer_than_those_spelt_alike(
    names: list[str], asked: str, meant: str
) -> None:
    claims = claims_of([("a", name, "1") for name in names])
    with pytest.raises(UnknownNameError) as error:
        find_object(claims, asked)
    assert str(error.value) == f"There is no object {asked!r}. Did you mean {meant}?"
    assert " or ".join(map(repr, error.value.nearest)) == meant


def test_of_few_names_all_are_listed_where_none_is_near() -> None:
    with pytest.raises(UnknownNameError, match=r"no object '99'\. Known: Bonn, Rome\."):
        find_object(claims_of([("a", "Rome", "1"), ("a", "Bonn", "1")]), "99")
    with pytest.raises(UnknownNameError, match=r"no object '99'\.$"):
        find_object(claims_of([("a", f"name {i:03d}", "1") for i in range(50)]), "99")


@pytest.mark.parametrize(
    ("names", "asked"),
    [
        (pa.array([5, 2**64 - 1], pa.uint64()), [2**64 - 1, str(2**64 - 1)]),
        (pa.array([timedelta(0), timedelta(days=1)]), [timedelta(days=1), "1 day, 0:00:00"]),
        (pa.array([b"a", b"b"], pa.large_binary()), [b"b", "b", "b'b'"]),
    ],
)
def test_ids_of_any_type_are_found(names: pa.Array, asked: list[Any]) -> None:
    claims = claims_of([("a", 0, "1"), ("a", 1, "1")])
    claims = replace(claims, objects=names)
    assert [find_object(claims, name) for name in asked] == [1] * len(asked)
    for stranger in (2**70, -1, None, object(), "elsewhere"):
        with pytest.raises(UnknownNameError):
            find_object(claims, stranger)


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
        ("x" * 100, "x" * 30 + "…" + "x" * 29),
        (3, "3"),
        ("東京", "東京"),
        ("", "(blank)"),
        (" \u2003", " \\u2003"),
        (" ", "(blank)"),
        ("a\u3164\u2800", "a\\u3164\\u2800"),
        ("pay\u200dpal\u200b", "pay\\u200dpal\\u200b"),
        ("می\u200cشود 👩\u200d👧", "می\u200cشود 👩\u200d👧"),
    ],
)
def test_text_of_others_is_seen_whole_and_cannot_move_the_cursor(value: object, shown: str) -> None:
    assert plain(value) == shown


@pytest.mark.parametrize(
    "made",
    [partial(random_fit, 0), partition_fit, partial(partition_fit, "claimed")],
    ids=["structured", "common", "claimed"],
)
def test_what_would_be_decided_without_a_group(made: Callable[[], Fit]) -> None:
    """The object's truth from a table in which the group's members have said nothing about it."""
    fit = made()
    claims, found = fit.claims, fit.groups_found
    assert found is not None
    number = Numbering.of(found).of_source[claims.claim_source]
    n_changed = 0
    for m, name in enumerate(ids(claims.objects)[:20]):
        why = fit.explain(name.as_py())
        for voice in why.voices:
            if voice.group is None:
                assert voice.otherwise is None
                continue
            kept = ~((claims.claim_object() == m) & (number == voice.group))
            of_object = np.bincount(claims.claim_object()[kept], minlength=claims.n_objects)
            if not of_object[m]:
                assert voice.otherwise is None
                continue
            silenced = replace(
                claims,
                claim_source=claims.claim_source[kept],
                claim_candidate=claims.claim_candidate[kept],
                first_claim=np.append(0, np.cumsum(of_object)),
            )
            shard = shard_of(replace(fit, claims=silenced), m, m + 1)
            if isinstance(found, Partition):
                assert isinstance(fit.prior, Beliefs)
                truth = partition(shard, found.grouping(), fit.prior)[0].truth
            else:
                assert isinstance(fit.prior, Prior)
                truth = structured(shard, found, fit.prior)[0].truth
            value = claims.values[claims.candidate_value[claims.first_candidate[m] + int(np.argmax(truth))]]
            best = np.sort(truth)[::-1]
            if len(best) > 1 and best[0] - best[1] > 1e-6:
                assert voice.otherwise == value.as_py()
            n_changed += voice.otherwise != why.decision
    assert n_changed or isinstance(found, Partition)


def test_nothing_hinges_on_a_group_where_the_truth_was_given() -> None:
    fit = partition_fit(known=True)
    assert fit.known is not None
    for m in np.flatnonzero(fit.known):
        assert all(
            voice.otherwise is None for voice in fit.explain(fit.claims.objects[int(m)].as_py()).voices
        )  # type: ignore[attr-defined]
