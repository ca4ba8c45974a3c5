from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from consilience.errors import CheckpointError
from consilience.results.checkpoint import HEAD, Checkpoint

IDENTITY = {"claims": "1234", "seed": 0, "pair": (1.0, 2.0)}


def leave(path: Path, **marks: Any) -> None:
    """A checkpoint of a fit that was stopped."""
    kept = Checkpoint(path, every=0.0)
    with pytest.raises(KeyboardInterrupt), kept.during(lambda: IDENTITY):  # noqa: PT012
        for key, mark in marks.items():
            kept.note(key, mark)
        raise KeyboardInterrupt


def found(path: Path, key: str) -> Any:
    kept = Checkpoint(path)
    with kept.during(lambda: IDENTITY):
        return kept.mark(key)


def test_marks_come_back_bit_by_bit(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    mark = {"x": rng.random(7), "n": 3, "bound": -0.1 - 0.2, "rng": rng.bit_generator.state, "none": None}
    leave(tmp_path / "c", a=mark, b={"parts": [np.arange(3), np.arange(2)]})
    back = found(tmp_path / "c", "a")
    np.testing.assert_array_equal(back.pop("x"), mark.pop("x"))
    assert back == mark
    np.testing.assert_array_equal(found(tmp_path / "c", "b")["parts"], [0, 1, 2, 0, 1])
    assert found(tmp_path / "c", "other") is None


def test_a_mark_takes_the_place_of_those_within(tmp_path: Path) -> None:
    leave(tmp_path / "c", **{"a/0/1": {"n": 1}, "ab/0": {"n": 2}, "a": {"n": 3}})
    assert [found(tmp_path / "c", key) is not None for key in ("a", "a/0/1", "ab/0")] == [True, False, True]


def test_it_is_not_written_before_it_is_due_nor_by_a_fit_that_is_refused(tmp_path: Path) -> None:
    kept = Checkpoint(tmp_path / "c", every=60.0)
    with pytest.raises(KeyboardInterrupt), kept.during(lambda: IDENTITY):  # noqa: PT012
        kept.note("a", {"n": 1})
        raise KeyboardInterrupt
    kept = Checkpoint(tmp_path / "d", every=0.0)
    with pytest.raises(CheckpointError), kept.during(lambda: IDENTITY):
        raise CheckpointError("other numbers")
    assert not list(tmp_path.iterdir())


def test_one_that_is_not_ours_is_not_removed(tmp_path: Path) -> None:
    leave(tmp_path / "c", a={"n": 1})
    other = Checkpoint(tmp_path / "c", resume=False)
    with other.during(lambda: IDENTITY):
        assert other.mark("a") is None
    other.remove()
    assert found(tmp_path / "c", "a") == {"n": 1}
    ours = Checkpoint(tmp_path / "c")
    with ours.during(lambda: IDENTITY):
        pass
    ours.remove()
    assert not list(tmp_path.iterdir())


def test_a_disk_that_is_full_is_told_and_the_older_one_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave(tmp_path / "c", a={"n": 1})

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    kept = Checkpoint(tmp_path / "c", every=0.0)
    with kept.during(lambda: IDENTITY):
        kept.note("a", {"n": 2})
    assert kept.trouble == f"The checkpoint {tmp_path / 'c'} could not be written (no space left on device)."
    assert found(tmp_path / "c", "a") == {"n": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def rewritten(path: Path, **arrays: Any) -> None:
    with np.load(path) as stored:
        kept = dict(stored)
    with path.open("wb") as file:
        np.savez(file, **{**kept, **arrays})


def head(path: Path, **changes: Any) -> None:
    with np.load(path) as stored:
        content = json.loads(stored[HEAD].tobytes()) | changes
    rewritten(path, **{HEAD: np.frombuffer(json.dumps(content).encode(), np.uint8)})


@pytest.mark.parametrize(
    ("harm", "expected"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-40]), "cannot be read as a checkpoint"),
        (lambda path: path.write_bytes(b""), "cannot be read as a checkpoint"),
        (lambda path: path.write_text("thesis"), "cannot be read as a checkpoint"),
        (lambda path: rewritten(path, **{"a:x": np.array([{}], dtype=object)}), "pickle"),
        (lambda path: rewritten(path, **{"nobody:x": np.zeros(3)}), "cannot be read as a checkpoint"),
        (lambda path: head(path, format="other"), "its format is 'other'"),
        (lambda path: head(path, schema=99), "schema 99; this version of consilience reads 6"),
        (lambda path: head(path, identity={**IDENTITY, "seed": 4}), "seed 4, now 0"),
        (lambda path: head(path, identity={}), "other claims; seed None, now 0"),
    ],
)
def test_what_is_damaged_newer_or_pickled_is_refused_and_left_alone(
    tmp_path: Path, harm: Callable[[Path], object], expected: str
) -> None:
    path = tmp_path / "c"
    leave(path, a={"x": np.arange(4.0)})
    harm(path)
    before = path.read_bytes()
    with pytest.raises(CheckpointError, match=expected) as refused:
        found(path, "a")
    assert "delete the file to begin anew" in str(refused.value)
    assert path.read_bytes() == before


def test_arrays_of_objects_are_never_written(tmp_path: Path) -> None:
    kept = Checkpoint(tmp_path / "c", every=0.0)
    with pytest.raises(ValueError, match="pickle"), kept.during(lambda: IDENTITY):
        kept.note("a", {"x": np.array([{}], dtype=object)})
