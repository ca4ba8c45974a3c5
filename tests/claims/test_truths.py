"""Truths: read from any table, lined up with candidates, added to domains."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from claim_tables import triples_of
from hypothesis import given
from hypothesis import strategies as st

from consilience.claims.encoding import Claims
from consilience.claims.reading import align_truths, extend_domains, read_claims, read_truths
from consilience.claims.truths import written_otherwise
from consilience.claims.vocabulary import TEXT
from consilience.errors import ClaimsError

ROWS = [("a", "o1", "x"), ("b", "o1", "y"), ("a", "o2", "y"), ("a", "o3", "z")]


def truth_values(claims: Claims, candidates: Any) -> list[str | None]:
    return [claims.values[int(claims.candidate_value[c])].as_py() if c >= 0 else None for c in candidates]


@pytest.mark.parametrize(
    ("table", "frame"),
    [
        ({"o2": "y", "o1": "x"}, "pyarrow"),
        ([("o1", "x"), ("o2", "y"), ("o1", "x")], "pyarrow"),
        (pd.DataFrame({"task": ["o2", "o1"], "label": ["y", "x"]}), "pandas"),
        (pl.DataFrame({"object": ["o2", "o1"], "value": ["y", "x"]}), "polars"),
        (pa.table({"object": ["o2", "o1"], "value": ["y", "x"], "source": ["", ""]}), "pyarrow"),
        ("SELECT 'o1' AS item, 'x' AS answer UNION ALL SELECT 'o2', 'y'", "pyarrow"),
    ],
)
def test_truths_from_any_table(table: Any, frame: str) -> None:
    truths = read_truths(table)
    assert truths.objects.to_pylist() == ["o1", "o2"]
    assert truths.values.to_pylist() == ["x", "y"]
    assert truths.frame == frame
    assert repr(truths) == "Truths(2 objects)"


def test_truths_from_a_file_with_other_names(tmp_path: Path) -> None:
    (tmp_path / "gold.csv").write_text("isbn,authors\no1,NA\n")
    truths = read_truths(tmp_path / "gold.csv", object="isbn", value="authors")
    assert truths.objects.to_pylist() == ["o1"]
    assert truths.values.to_pylist() == ["NA"]


def test_truths_are_lined_up_with_candidates() -> None:
    claims = read_claims(ROWS, domain="claimed")
    aligned = align_truths(read_truths({"o1": "y", "o2": "x", "nobody's": "x"}), claims)
    assert aligned.dtype == "int64"
    assert truth_values(claims, aligned) == ["y", None, None]
    assert aligned[1:].tolist() == [-2, -1]
    assert align_truths(read_truths({"o1": "never said"}), claims).tolist() == [-2, -1, -1]


labels = st.sampled_from("wxyz")
some_truths = st.dictionaries(st.sampled_from(["o1", "o2", "o3", "o4"]), labels, min_size=1)


@given(some_truths, st.sampled_from(["claimed", "common", ["x", "y", "z", "q"]]))
def test_alignment_agrees_with_plain_loops(known: dict[str, str], domain: Any) -> None:
    claims = read_claims(ROWS, domain=domain)
    first = claims.first_candidate
    expected = []
    for m, name in enumerate(claims.objects.to_pylist()):
        held = truth_values(claims, range(first[m], first[m + 1]))
        truth = known.get(name)
        expected.append(-1 if truth is None else first[m] + held.index(truth) if truth in held else -2)
    assert align_truths(read_truths(known), claims).tolist() == expected


@given(some_truths, st.sampled_from(["claimed", "common", ["w", "x", "y", "z", "q"]]))
def test_extended_domains_hold_the_truths_and_all_they_held(known: dict[str, str], domain: Any) -> None:
    claims = read_claims(ROWS, domain=domain)
    truths = read_truths(known)
    extended = extend_domains(claims, truths)
    expected = [known.get(name) for name in claims.objects.to_pylist()]
    assert truth_values(extended, align_truths(truths, extended)) == expected
    assert triples_of(extended) == sorted(ROWS)
    assert extended.values.to_pylist() == sorted(extended.values.to_pylist())
    for m in range(claims.n_objects):
        before = truth_values(claims, range(claims.first_candidate[m], claims.first_candidate[m + 1]))
        after = truth_values(extended, range(extended.first_candidate[m], extended.first_candidate[m + 1]))
        assert set(before) <= set(after)
        assert after == sorted(after, key=str)
        if domain != "common":
            assert set(after) == set(before) | ({expected[m]} - {None})
    if domain == "common":
        assert extended.n_candidates == extended.n_objects * extended.n_values
    assert ("o4" in known) == any("without claims" in note for note in extended.notes)


def test_nothing_changes_when_the_domains_hold_the_truths() -> None:
    claims = read_claims(ROWS)
    assert extend_domains(claims, read_truths({"o1": "x"})) is claims


def test_what_is_added_and_what_is_not_used_is_counted() -> None:
    claims = read_claims(ROWS, domain="claimed")
    extended = extend_domains(claims, read_truths({"o1": "new", "o2": "x", "o9": "x"}))
    assert extended.notes == (
        "1 truth of 3 about objects without claims, not used.",
        "2 truths that nobody claimed added to the domains.",
    )


def test_numbers_are_compared_as_numbers() -> None:
    claims = read_claims(pd.DataFrame({"source": ["a", "b"], "object": [1, 1], "value": [3, 4]}))
    assert align_truths(read_truths(pd.DataFrame({"object": [1.0], "value": [4.0]})), claims).tolist() == [1]
    assert align_truths(read_truths({1: 3.5}), claims).tolist() == [-2]
    with pytest.raises(ClaimsError, match=r"1 truth has no form as int64.*\n.*object 1: 3\.5\n.*→"):
        extend_domains(claims, read_truths({1: 3.5}))


HUGE = 2**53 + 1  # the first whole number that a float cannot hold
DAY = datetime.date(1500, 1, 2)  # before what nanoseconds reach
LONG_AGO = datetime.datetime(1500, 1, 2)
TIME = datetime.datetime(2024, 1, 1, 12)


@pytest.mark.parametrize(
    ("here", "in_claims"),
    [
        (pa.array([3.0, 3.5, 2.0**70, -1.0]), pa.array([3, HUGE, -1])),
        (pa.array([3, HUGE, -1]), pa.array([3.0, 3.5, float(2**53), 2.0**70, -1.0])),
        (pa.array([3, HUGE, 2**63], pa.uint64()), pa.array([3, HUGE, -1, -(2**63)])),
        (pa.array([3, HUGE, -1]), pa.array([3, HUGE, 2**64 - 1], pa.uint64())),
        (pa.array([3, 2**64 - 1], pa.uint64()), pa.array([3.0, 0.5, 2.0**64])),
        (pa.array([Decimal("3.0"), Decimal("3.5")]), pa.array([3, HUGE])),
        (pa.array([Decimal(10**30), Decimal(10**30 + 1)]), pa.array([Decimal(10**30), Decimal("0.1")])),
        (pa.array([3], pa.int8()), pa.array([3, 4], pa.uint32())),
        (pa.array([0.5, 0.1], pa.float32()), pa.array([0.5, 0.1])),
        (pa.array([TIME, LONG_AGO], pa.timestamp("us")), pa.array([TIME, None], pa.timestamp("ns"))),
        (pa.array([TIME], pa.timestamp("ns")), pa.array([TIME, LONG_AGO], pa.timestamp("s"))),
        (
            pa.array([TIME], pa.timestamp("s", "UTC")),
            pa.array([TIME, LONG_AGO], pa.timestamp("us", "Europe/Berlin")),
        ),
        (pa.array([DAY, TIME.date()], pa.date32()), pa.array([DAY, TIME.date()], pa.date64())),
        (pa.array([DAY, TIME.date()]), pa.array([TIME, TIME.replace(hour=0)], pa.timestamp("ns"))),
        (pa.array([TIME, TIME.replace(hour=0)]), pa.array([DAY, TIME.date()])),
        (pa.array([TIME - TIME.replace(hour=0)]), pa.array([43_200, 10**12], pa.duration("s"))),
        (pa.array([TIME.time()], pa.time32("s")), pa.array([TIME.time()], pa.time64("ns"))),
        (pa.array([b"a", b"\xff"]), pa.array([b"\xff", b"b"], pa.large_binary())),
        (pa.array(["a", "b"], pa.string_view()), pa.array(["b", "c"], pa.large_string())),
    ],
    ids=lambda ids: str(ids.type),
)
def test_ids_of_related_types_are_equal_where_they_mean_the_same(here: Any, in_claims: Any) -> None:
    in_claims = in_claims.drop_null()
    n = len(in_claims)
    claims = read_claims(pa.table({"source": ["s"] * n, "object": in_claims, "value": ["v"] * n}))
    truths = read_truths(pa.table({"object": here, "value": ["v"] * len(here)}))
    known = {_meaning(truth) for truth in here}
    expected = [_meaning(object_) in known for object_ in claims.objects]
    assert any(expected)
    assert (align_truths(truths, claims) >= 0).tolist() == expected
    assert extend_domains(claims, truths).n_candidates == claims.n_candidates


def _meaning(scalar: Any) -> Any:
    """What an id is, whatever type writes it: plain Python, with which 3 == 3.0 == Decimal(3)."""
    if pa.types.is_temporal(scalar.type):
        unit = getattr(scalar.type, "unit", {"date32[day]": "day", "date64[ms]": "ms"}.get(str(scalar.type)))
        return (
            Fraction(scalar.value)
            * {"day": 86_400 * 10**9, "s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}[unit]
        )
    return scalar.as_py()


@pytest.mark.parametrize(
    ("here", "in_claims"),
    [
        (pa.array([TIME], pa.timestamp("us", "UTC")), pa.array([TIME])),
        (pa.array([TIME.date()]), pa.array([TIME], pa.timestamp("us", "UTC"))),
        (pa.array([True]), pa.array([1])),
        (pa.array(["1"]), pa.array([b"1"])),
        (pa.array([TIME.time()]), pa.array([TIME])),
        (pa.array([1]), pa.array([TIME])),
    ],
    ids=lambda ids: str(ids.type),
)
def test_ids_of_unrelated_types_are_not_compared(here: Any, in_claims: Any) -> None:
    claims = read_claims(pa.table({"source": ["s"], "object": in_claims, "value": ["v"]}))
    with pytest.raises(ClaimsError, match="none can be equal"):
        align_truths(read_truths(pa.table({"object": here, "value": ["v"]})), claims)


def test_a_truth_too_fine_for_the_claims_is_named() -> None:
    kind = pa.timestamp("us")
    claims = read_claims(pa.table({"source": ["s"], "object": ["o"], "value": pa.array([TIME], kind)}))
    fine = pa.array([10**18 + 1], pa.timestamp("ns"))
    with pytest.raises(ClaimsError, match=r"no form as timestamp\[us\].*\n.*object 'o'"):
        extend_domains(claims, read_truths(pa.table({"object": ["o"], "value": fine})))


@pytest.mark.parametrize(
    "nothing",
    [{}, [], (), iter(()), pa.table({"object": pa.array([], pa.int64()), "value": pa.array([], TEXT)})],
)
def test_no_truths_yet_is_no_mistake(nothing: Any) -> None:
    truths = read_truths(nothing)
    assert repr(truths) == "Truths(0 objects)"
    for claims in (read_claims(ROWS), read_claims([("a", 1, 2.5)])):
        assert align_truths(truths, claims).tolist() == [-1] * claims.n_objects
        assert extend_domains(claims, truths) is claims


@pytest.mark.parametrize("content", ["", "object,value\n"])
def test_a_file_of_truths_without_rows_is_a_mistake(tmp_path: Path, content: str) -> None:
    (tmp_path / "gold.csv").write_text(content)
    with pytest.raises(ClaimsError, match="at least one row"):
        read_truths(tmp_path / "gold.csv")


@pytest.mark.parametrize(
    "domain", [["x", "y", "z"], {"o1": ["x", "y"], "o2": ["y"], "o3": ["z"]}], ids=["labels", "by object"]
)
def test_a_truth_outside_a_given_domain_is_refused(domain: Any) -> None:
    claims = read_claims(ROWS, domain=domain)
    known = {"o1": "new", "o2": "y", "elsewhere": "new"}
    with pytest.raises(ClaimsError) as caught:
        extend_domains(claims, read_truths(known))
    (problem,) = caught.value.problems
    assert (problem.kind, problem.count) == ("outside-domain", 1)
    assert problem.examples == ("object 'o1': 'new'",)
    assert extend_domains(claims, read_truths({"o2": "y"})) is claims


def test_text_and_numbers_are_not_compared() -> None:
    claims = read_claims(ROWS)
    with pytest.raises(ClaimsError, match="objects are int64 here and text in the claims") as caught:
        align_truths(read_truths({1: "x"}), claims)
    assert "Give the objects as text" in str(caught.value)


def test_claims_made_by_hand_may_hold_plain_lists() -> None:
    read = read_claims(ROWS)
    fields = {name: getattr(read, name) for name in read.__dataclass_fields__}
    lists = {name: fields[name].to_pylist() for name in ("sources", "objects", "values")}
    claims = Claims(**(fields | lists))
    truths = read_truths({"o1": "y", "o2": "new"})
    assert align_truths(truths, claims).tolist() == align_truths(truths, read).tolist()
    assert extend_domains(claims, truths).values.to_pylist() == ["new", "x", "y", "z"]


def test_truths_that_are_only_written_otherwise_are_told() -> None:
    claims = read_claims(
        [("a", "o1", "New York"), ("b", "o1", "Boston"), ("a", "o2", "Rome")], domain="claimed"
    )
    otherwise = read_truths({"o1": "new york ", "o2": "Rome"})
    assert "'new york ' does from 'New York' (object 'o1')" in written_otherwise(otherwise, claims)
    assert written_otherwise(otherwise, claims, np.array([True, False])) == ""
    assert any("'New York'" in note for note in extend_domains(claims, otherwise).notes)
    for known in ({"o1": "New York"}, {"o1": "Chicago"}, {"o2": "New York"}, {"o3": "rome"}):
        assert written_otherwise(read_truths(known), claims) == ""
    numbers = read_claims(pa.table({"source": ["a"], "object": ["o1"], "value": [1]}))
    assert written_otherwise(read_truths(pa.table({"object": ["o1"], "value": [2]})), numbers) == ""
