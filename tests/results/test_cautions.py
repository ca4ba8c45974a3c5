"""Warnings are texts that programs can tell apart."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest

from consilience.claims.reading import read_claims
from consilience.kernels.state import Globals
from consilience.models.mss.model import MSS
from consilience.models.registry import model
from consilience.models.vote import Vote
from consilience.results.cautions import KINDS, Caution, Connected, disconnected, one_group
from consilience.results.storage import load

TWO_PARTS = [("a", "1", "x"), ("b", "1", "x"), ("c", "2", "y"), ("d", "3", "z"), ("d", "2", "z")]


def kinds(fit):
    return [warning.kind for warning in fit.warnings]


def test_a_caution_is_a_text_and_survives_copies():
    caution = Caution("Be careful.", "one-group", n_sources=3)
    assert caution == "Be careful."
    assert json.dumps([caution]) == '["Be careful."]'
    for twin in (pickle.loads(pickle.dumps(caution)), copy.deepcopy(caution), Caution.read(caution.record())):
        assert (twin, twin.kind, twin.data) == ("Be careful.", "one-group", {"n_sources": 3})
    assert Caution.read("of an older version").kind == "other"


def test_parts_without_a_common_object_are_counted_and_named():
    for fitted in (Vote().fit(TWO_PARTS), MSS().fit(TWO_PARTS)):
        assert "disconnected" in kinds(fitted)
        (caution,) = (warning for warning in fitted.warnings if warning.kind == "disconnected")
        assert caution.data == {"n_parts": 2, "sizes": [2, 2]}
        assert "2 sources ('a', 'b'); 2 sources ('c', 'd')" in caution
    joined = read_claims([*TWO_PARTS, ("a", "2", "x")])
    assert not list(disconnected(Connected.of(joined), joined.sources))


def test_only_the_largest_parts_are_named():
    claims = read_claims([(f"s{n}", f"o{n}", "x") for n in range(1000)])
    (caution,) = disconnected(Connected.of(claims), claims.sources)
    assert caution.data["n_parts"] == 1000
    assert len(caution) < 400
    assert "and 997 more" in caution


def test_one_group_has_nobody_to_check_it():
    assert kinds(MSS().fit([("a", "1", "x"), ("a", "2", "y")])) == ["one-group"]
    sticks = reliability = np.array([[1.0, 2.0], [1.0, 2.0]])
    for group, said in (([0, 0, 0], ["All 3 sources form one group"]), ([0, 1, 0], [])):
        found = Globals(np.array(group, np.int32)[:, None], np.ones((3, 1)), reliability, sticks)
        assert [caution.partition(":")[0] for caution in one_group(found)] == said


@pytest.mark.parametrize("name", ["mss", "dawid-skene", "truthfinder"])
def test_too_few_sweeps_are_told(name):
    rng = np.random.default_rng(1)
    triples = [(f"s{n}", f"o{m}", f"v{rng.integers(3)}") for n in range(6) for m in range(20)]
    settings = {"mss": {"max_sweeps": 1}}.get(name, {"max_rounds": 1})
    assert "not-converged" in kinds(model(name, **settings).fit(triples))


def test_kinds_come_back_from_disk(tmp_path):
    fit = MSS(max_sweeps=1).fit(TWO_PARTS)
    fit.save(tmp_path / "result")
    back = load(tmp_path / "result")
    assert back.warnings == fit.warnings
    assert [w.record() for w in back.warnings] == [w.record() for w in fit.warnings]
    assert set(kinds(fit)) <= set(KINDS)


def test_a_result_of_texts_is_still_read(tmp_path):
    MSS().fit(TWO_PARTS).save(tmp_path / "result")
    path = tmp_path / "result" / "manifest.json"
    manifest = json.loads(path.read_text("utf-8"))
    manifest["fit"]["warnings"] = ["an old text"]
    del manifest["sha256"]  # nor were results sealed
    path.write_text(json.dumps(manifest), "utf-8")
    assert [(w, w.kind) for w in load(tmp_path / "result").warnings] == [("an old text", "other")]
