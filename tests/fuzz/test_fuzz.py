"""A few of the inputs that `make chaos` sends in numbers: an answer that is right, or an error in words."""

from __future__ import annotations

import time
from itertools import islice

import numpy as np
import pyarrow as pa
import pytest
from benchmarks.chaos import calibration, faults, fuzz, shapes
from hypothesis import strategies as st

import consilience as cs
from consilience.errors import ClaimsError, ResultFormatError, SettingsError
from consilience.models.mss.table import CROWD

EXAMPLES = 25
ATTACKS = [
    *(f"{what} {ending}" for what in ("hostile text in", "damaged") for ending in
      ("csv", "csv.gz", "jsonl", "jsonl.gz", "parquet")),
    "rows of any values", "settings", "damaged results", "results with another array", "manifests with another value",
]  # fmt: skip


@pytest.fixture(scope="module")
def attacks(tmp_path_factory):
    return fuzz.attacks(tmp_path_factory.mktemp("fuzz"))


def test_every_attack_is_tried_here(attacks):
    assert sorted(attacks) == sorted(ATTACKS)


@pytest.mark.parametrize("name", ATTACKS)
def test_no_input_gets_through(attacks, name):
    examples = EXAMPLES if "jsonl" not in name else EXAMPLES // 3  # a database is opened for each
    assert fuzz.attack(*attacks[name], examples) >= examples


def test_an_input_that_gets_through_is_named_with_how_many_were_sent():
    def check(n):
        assert n < 1000, "too large"

    with pytest.raises(fuzz.Failed, match=r"AssertionError: too large.*Failing test case") as caught:
        fuzz.attack(check, {"n": st.integers(0, 10_000)}, 50)
    assert caught.value.sent > 0


def test_when_the_time_is_up_nothing_more_is_tried_and_the_records_say_so():
    now = time.monotonic()
    assert fuzz.attack(pytest.fail, {"reason": st.text()}, 5, until=now) == 0
    assert {record["sent"] for record in fuzz.numeric(now)} == {0}
    assert {record["skipped"] for record in calibration.calibration(now)} == {"the time was up"}
    assert {record["skipped"] for record in faults.faults(now)} == {"the time was up"}
    assert list(shapes.shapes(now)) == []


@pytest.mark.parametrize("name", fuzz.small_tables())
def test_extreme_settings_are_refused_or_give_numbers(name):
    rows, known = fuzz.small_tables()[name]
    for chosen in islice(fuzz.extreme_settings(), 0, None, 6):
        try:
            fit = cs.MSS(**chosen).fit(rows, known=known)
        except SettingsError:
            continue
        fuzz.check_fit(fit)


@pytest.mark.parametrize("setting", ["reliability", "true_count", "false_count", "concentration"])
@pytest.mark.parametrize("number", [1e-300, 1e300])
def test_settings_whose_digits_would_be_lost_are_refused_under_the_papers_inferences(setting, number):
    """With these the bound used to fall."""
    for inference in ("structured", "mean-field"):
        given = number if setting == "concentration" else (number, number)
        with pytest.raises(SettingsError, match=r"from 1e-09 to 1e\+06|greater than|at most"):
            cs.MSS(inference=inference, **{setting: given})


@pytest.mark.parametrize("n", [2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1])
def test_ids_near_the_ends_of_integers_are_kept_exactly(n):
    rows = [(n, n, n - 1), (n - 1, n, n - 1), (n - 2, n, n), (n - 2, n - 1, n)]
    fit = cs.MSS().fit(rows)
    assert fit.truths["object"].to_pylist() == [n - 1, n]
    assert sorted(fit.sources["source"].to_pylist()) == [n - 2, n - 1, n]
    assert fuzz.said(cs.read_claims(rows)) == set(rows)


def test_integers_beyond_64_bits_are_refused_and_unsigned_ones_kept():
    with pytest.raises(ClaimsError, match="too large to be kept exactly"):
        cs.read_claims([(2**64, 1, 1)])
    table = pa.table(
        {name: pa.array([2**64 - 1, 2**63], pa.uint64()) for name in ("source", "object", "value")}
    )
    assert fuzz.said(cs.read_claims(table)) == {(2**64 - 1,) * 3, (2**63,) * 3}


def test_a_lone_surrogate_is_refused_in_words(tmp_path):
    with pytest.raises(ClaimsError, match=r"UTF-8|surrogate"):
        cs.read_claims([("a", "b", fuzz.LONE_SURROGATE)])
    path = tmp_path / "claims.jsonl"
    path.write_text(
        '{"source": "a", "object": "b", "value": "\\ud800"}\n{"source": "b", "object": "b", "value": "c"}\n'
    )
    try:
        claims = cs.read_claims(path)
    except ClaimsError:
        return
    assert ("a", "b", "c") not in fuzz.said(claims)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_text_of_a_megabyte_is_read_whole(tmp_path, ending):
    fuzz.check_whole_file(
        tmp_path, ending, [("a", "o", "x" * 2**20), ("b", "o", "y" + "x" * 2**20), ("c", "o", "z")]
    )


def test_names_that_only_unicode_tells_apart_are_kept_apart_and_noted():
    rows = [("Zoe\u0308", "o", "x"), ("Zo\u00eb", "o", "y"), ("Z", "o", "\u212b"), ("Y", "o", "\u00c5")]
    claims = cs.read_claims(rows)
    assert fuzz.said(claims) == set(rows)
    assert [note.partition(" written")[0] for note in claims.notes] == ["1 source is", "1 value is"]
    assert "'Zo\\xeb' and 'Zoe\\u0308'" in claims.notes[0]
    assert cs.read_claims([("Zoe", "é", "x"), ("Zoé", "è", "y")]).notes == ()


def test_an_altered_manifest_is_not_taken_for_the_one_that_was_written(tmp_path):
    good = fuzz.saved_result(tmp_path)
    path = good / "manifest.json"
    path.write_text(path.read_text("utf-8").replace('"seed": 0', '"seed": 1'), "utf-8")
    with pytest.raises(ResultFormatError, match="was altered"):
        cs.load(good)


def shaped(kind, n):
    """Tables of extreme shapes, with n claims."""
    rng, some = np.random.default_rng(0), np.arange(n)
    few = rng.integers(4, size=n)
    source, object_, value = {
        "one object": (some, few * 0, few),
        "one source": (few * 0, some, few),
        "an object a claim": (rng.integers(50, size=n), some, few),
        "all of one object differ": (some, few * 0, some),
    }[kind]
    return pa.table({"source": source, "object": object_, "value": value})


@pytest.mark.parametrize(
    "kind", ["one object", "one source", "an object a claim", "all of one object differ"]
)
def test_extreme_shapes_are_fitted(kind):
    claims = cs.read_claims(shaped(kind, CROWD + 500))
    for fit in (cs.Vote().fit(claims), cs.MSS(n_starts=1).fit(claims)):
        fuzz.check_fit(fit)
        if kind == "all of one object differ":
            assert fit.truth.max() < 0.01


def test_crowded_objects_move_nobody_and_the_others_still_do(monkeypatch):
    """Copiers are found by what they share elsewhere, though one object has more claims than are compared."""
    rng = np.random.default_rng(0)
    truth, sheet = rng.integers(4, size=(2, 150))
    said = np.where(rng.random((8, 150)) < 0.8, truth, rng.integers(4, size=(8, 150)))
    rows = [(f"c{n}", f"o{m}", f"v{sheet[m]}") for n in range(6) for m in range(150)]
    rows += [(f"s{n}", f"o{m}", f"v{said[n, m]}") for n in range(8) for m in range(150)]
    rows += [(f"x{i}", "crowded", f"v{i % 4}") for i in range(60)]
    monkeypatch.setattr("consilience.models.mss.table.CROWD", 40)
    fit = cs.MSS(n_starts=1).fit(rows)
    group = dict(zip(fit.sources["source"].to_pylist(), fit.sources["group"].to_pylist(), strict=True))
    assert len({group[f"c{n}"] for n in range(6)}) == 1
    assert group["s0"] != group["c0"]
