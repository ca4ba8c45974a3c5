"""Domains: which values an object may take."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from consilience.claims import domains as module
from consilience.claims.encoding import Claims
from consilience.claims.reading import read_claims
from consilience.errors import ClaimsError

DATA = Path(os.environ.get("CONSILIENCE_DATA", Path(__file__).parents[3] / "shared" / "data"))
CLAIMED = ("birthplaces", "book", "flight", "n_emotion", "weather")
COMMON = ("bluebirds", "cf_weather", "cf_weather_amt", "d_possent", "dog", "ducks", "fact_eval", "labelme")
COMMON += ("llm_mmlu_pro_a", "rte", "s_adult", "s_face", "s_rel", "sp", "sp_amt", "temp", "trec")
COMMON += ("zencrowd_in", "zencrowd_us")


def domains_of(claims: Claims) -> dict[Any, list[Any]]:
    values = claims.values.to_pylist()
    first = claims.first_candidate
    return {
        name: [values[v] for v in claims.candidate_value[first[m] : first[m + 1]]]
        for m, name in enumerate(claims.objects.to_pylist())
    }


ROWS = [("a", "o1", "y"), ("b", "o1", "x"), ("a", "o2", "z"), ("b", "o3", "x")]


@pytest.mark.parametrize(
    ("domain", "kind", "expected"),
    [
        ("claimed", "claimed", {"o1": ["x", "y"], "o2": ["z"], "o3": ["x"]}),
        ("common", "common", {"o1": ["x", "y", "z"], "o2": ["x", "y", "z"], "o3": ["x", "y", "z"]}),
        (["z", "q", "y", "x"], "given", {"o1": list("qxyz"), "o2": list("qxyz"), "o3": list("qxyz")}),
        (
            {"o1": ["y", "x"], "o2": ("z", "q"), "o3": {"x"}},
            "given",
            {"o1": ["x", "y"], "o2": ["q", "z"], "o3": ["x"]},
        ),
    ],
)
def test_domains_are_formed_as_asked(domain: Any, kind: str, expected: dict[str, list[str]]) -> None:
    claims = read_claims(ROWS, domain=domain)
    assert claims.domain == kind
    assert domains_of(claims) == expected
    said = claims.candidate_value[claims.claim_candidate]
    assert [claims.values[int(v)].as_py() for v in said] == ["y", "x", "z", "x"]


def test_objects_of_the_domain_without_claims_are_counted() -> None:
    claims = read_claims([("a", "o", "x")], domain={"o": ["x"], "p": ["never"], "q": ["never"]})
    assert claims.values.to_pylist() == ["x"]
    assert claims.notes == ("2 objects of the domain given without claims, not used.",)


def test_labels_take_the_type_of_the_table() -> None:
    claims = read_claims([("a", 1, 2.0), ("b", 1, 3.5)], domain=[1, 2, 3.5])
    assert domains_of(claims) == {1: [1.0, 2.0, 3.5]}
    with pytest.raises(ClaimsError, match="cannot be read as int64"):
        read_claims([("a", 1, 2)], domain=[2, 3.5])


def letters(rng: np.random.Generator, n_objects: int, labels: str) -> list[tuple[str, str, str]]:
    return [(f"s{s}", f"o{m}", str(rng.choice(list(labels)))) for m in range(n_objects) for s in range(5)]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([("a", "o1", "yes"), ("a", "o2", "yes"), ("a", "o3", "no")], "common"),
        (
            [
                ("a", "o1", "yes"),
                ("b", "o1", "no"),
                ("a", "o2", "yes"),
                ("a", "o3", "no"),
                ("b", "o3", "yess"),
            ],
            "common",
        ),
        (letters(np.random.default_rng(0), 6, "ABCDEFGHIJ"), "common"),
        (letters(np.random.default_rng(0), 200, "ABCDEFGHIJ"), "common"),
        ([(f"s{s}", f"o{m}", f"author {m} {s % 3}") for m in range(5) for s in range(6)], "claimed"),
        ([(f"s{s}", f"o{m}", f"{7 * m % 60:02}:{s % 2}") for m in range(500) for s in range(6)], "claimed"),
        ([("a", "o1", "x"), ("b", "o1", "y")], "claimed"),
    ],
    ids=["yes/no", "a typing error", "few questions", "many questions", "authors", "times", "one object"],
)
def test_auto_is_common_when_few_labels_recur(rows: list[tuple[str, str, str]], expected: str) -> None:
    assert read_claims(rows).domain == expected


@pytest.mark.parametrize(
    ("name", "expected"), [(n, "claimed") for n in CLAIMED] + [(n, "common") for n in COMMON]
)
def test_auto_on_real_data(name: str, expected: str) -> None:
    path = DATA / name / "claims.csv.gz"
    if not path.exists():
        pytest.skip(f"no {name} in {DATA}; set CONSILIENCE_DATA to the folder of data sets")
    assert read_claims(path).domain == expected


def test_too_many_candidates_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST_INDEX", 8)
    with pytest.raises(ClaimsError, match=r"3 labels for each of 3 objects.*\n.*claimed"):
        read_claims(ROWS, domain="common")
