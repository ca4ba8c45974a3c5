"""A fit that is stopped anywhere goes on to the bits that it would have reached without a stop."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import consilience as cs
from consilience.datasets.capitals import capitals
from consilience.datasets.synthetic import planted
from consilience.errors import CheckpointError
from consilience.models.mss import model as mss
from consilience.models.mss import samples
from consilience.models.mss.model import MSS
from consilience.results.checkpoint import Checkpoint
from consilience.results.fit import Fit
from consilience.runners.inline import Inline

MODELS = {
    "partition": MSS(n_starts=3),
    "structured": MSS(inference="structured", n_starts=2, max_groups=6, tolerance=1e-9),
    "mean-field": MSS(inference="mean-field", n_starts=2, max_groups=6, tolerance=1e-9),
}


@cache
def made(seed: int) -> cs.Claims:
    return cs.read_claims(capitals(seed=seed).claims)


class Stop:
    """Interrupts a fit when it is told of something for the n-th time."""

    def __init__(self, n: int) -> None:
        self.left = n

    def __call__(self, stage: str, sweep: int, bound: float) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def assert_same(one: Fit, other: Fit) -> None:
    """The same bits, in all but the time it took."""
    for name in ("truth", "decision", "source_reliability"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    for part in ("groups_found", "prior"):
        for name, value in vars(getattr(one, part)).items():
            np.testing.assert_array_equal(value, getattr(getattr(other, part), name), err_msg=name)
    for name in ("trace", "starts", "sweeps", "converged", "ties", "warnings", "learned"):
        assert getattr(one, name) == getattr(other, name), name


def stopped(model: MSS, claims: cs.Claims, path: Path, after: int, **how: object) -> bool:
    """Run until it was told so often; whether that was before it ended."""
    try:
        model.fit(claims, progress=Stop(after), checkpoint=Checkpoint(path, every=0.0), **how)
    except KeyboardInterrupt:
        return True
    return False


def test_stopped_while_lures_are_tried_it_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    knows, rows = rng.uniform(0.3, 0.7, size=12), []
    for m in range(300):
        truth, lure = rng.choice(5, size=2, replace=False)
        guess = np.where(rng.random(12) < 0.7, lure, rng.integers(5, size=12))
        said = np.where(rng.random(12) < knows, truth, guess)
        rows += [(f"s{n}", f"o{m}", f"v{value}") for n, value in enumerate(said)]
    claims, heard = cs.read_claims(rows, domain="common"), list[str]()
    whole = MSS().fit(claims, progress=lambda stage, *_: heard.append(stage))
    assert max(whole.learned["lured"]) > 0
    first = heard.index("lures") + 1
    for after in (first + 1, (first + len(heard)) // 2, len(heard)):
        path = tmp_path / f"{after}.checkpoint"
        assert stopped(MSS(), claims, path, after, runner=Inline(threads=1))
        assert_same(MSS().fit(claims, checkpoint=path), whole)


@pytest.mark.parametrize("name", MODELS)
def test_stopped_anywhere_it_goes_on_to_the_same_bits(name: str, tmp_path: Path) -> None:
    model, claims = MODELS[name], made(7)
    whole = model.fit(claims, seed=3)
    heard: list[object] = []
    model.fit(claims, seed=3, progress=lambda *what: heard.append(what))
    for after in np.unique(np.linspace(12, len(heard), 7).astype(int)):
        path = tmp_path / f"{after}.checkpoint"
        assert stopped(model, claims, path, int(after), seed=3, runner=Inline(threads=1))
        assert path.exists()
        assert_same(model.fit(claims, seed=3, checkpoint=path), whole)
        assert not path.exists()


def test_stopped_again_and_again_it_still_arrives(tmp_path: Path) -> None:
    model, claims, path = MODELS["partition"], made(8), tmp_path / "x.checkpoint"
    whole, stops = model.fit(claims), 0
    # Progress is heard anew of what is evaluated again, so every try must get further than it needs to come back.
    while stopped(model, claims, path, 12 + 8 * stops):
        stops += 1
    assert stops > 3
    assert_same(model.fit(claims, checkpoint=path), whole)


def test_what_was_found_is_not_looked_for_again(tmp_path: Path) -> None:
    model, claims, path = MODELS["partition"], made(7), tmp_path / "x.checkpoint"
    heard: list[str] = []
    model.fit(claims, progress=lambda stage, *_: heard.append(stage))
    assert stopped(model, claims, path, len(heard) - 1, runner=Inline(threads=1))
    again: list[str] = []
    model.fit(claims, checkpoint=path, progress=lambda stage, *_: again.append(stage))
    assert len(again) < len(heard) / 4
    assert set(again) <= {"larger moves"}


@pytest.mark.parametrize("at", [0.5, 0.9, 0.99])
def test_a_table_that_is_searched_in_samples(
    at: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "FEW_CLAIMS", 200)
    monkeypatch.setattr(samples, "FEW_OF_SOURCE", 2)
    monkeypatch.setattr(samples, "MANY_OF_SOURCE", 10)
    claims = made(7)
    heard: list[str] = []
    whole = MSS().fit(claims, progress=lambda stage, *_: heard.append(stage))
    assert {"more objects", "all objects"} <= set(heard)
    path = tmp_path / "x.checkpoint"
    assert stopped(MSS(), claims, path, int(at * len(heard)))
    assert_same(MSS().fit(claims, checkpoint=path), whole)


def test_the_grid_forgets_settings_that_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grid = list(mss.grid())[::60]
    monkeypatch.setattr(mss, "grid", lambda: iter(grid))
    model = MSS(inference="structured", select="grid", n_starts=2, max_groups=4)
    claims, heard = made(7), []
    whole = model.fit(claims, progress=lambda stage, *_: heard.append(stage))
    path, again = tmp_path / "x.checkpoint", []
    assert stopped(model, claims, path, len(heard) - 1)
    with np.load(path) as stored:
        tried = {key.split(",")[0] for key in stored if key.startswith("settings ")}
    assert len(tried) <= 2 < len(grid)  # the best, and those that it is at
    assert_same(model.fit(claims, checkpoint=path, progress=lambda stage, *_: again.append(stage)), whole)
    assert len(again) < len(heard) / 4


@pytest.mark.parametrize("name", ["structured", "mean-field"])
def test_shards_may_be_others_when_it_goes_on(name: str, tmp_path: Path) -> None:
    model, claims, path = MODELS[name], made(7), tmp_path / "x.checkpoint"
    assert stopped(model, claims, path, 9, runner=Inline(shards=3))
    assert_same(model.fit(claims, checkpoint=path, runner=Inline(shards=2)), model.fit(claims))


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"claims": made(9)}, "other claims"),
        ({"known": {"o0": "v0"}}, "other known truths"),
        ({"seed": 1}, "seed 0, now 1"),
        ({"engine": "numpy"}, "engine 'numba', now 'numpy'"),
        ({"model": MSS(n_starts=4)}, "n_starts 3, now 4"),
        ({"model": MODELS["structured"]}, "inference 'partition', now 'structured'"),
    ],
)
def test_a_checkpoint_of_another_fit_is_refused_and_left_alone(
    changed: dict[str, object], complaint: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.checkpoint"
    given = {"model": MODELS["partition"], "claims": made(7), "engine": "numba"}
    model = given.pop("model")
    assert stopped(model, given.pop("claims"), path, 20, **given)
    before = path.read_bytes()
    given |= {"claims": made(7), **changed}
    if "known" in changed:
        claims = given["claims"]
        given["known"] = {claims.objects[0]: claims.values[0]}
    with pytest.raises(
        CheckpointError, match=f"is of another fit: .*{complaint}.*delete the file to begin anew"
    ):
        given.pop("model", model).fit(checkpoint=Checkpoint(path, every=0.0), **given)
    assert path.read_bytes() == before


def test_a_checkpoint_of_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.checkpoint"
    assert stopped(MODELS["partition"], made(7), path, 20)
    monkeypatch.setattr(cs, "__version__", "9.9")
    with pytest.raises(CheckpointError, match=r"version of consilience '0\..*', now '9.9'"):
        MODELS["partition"].fit(made(7), checkpoint=path)


def test_numbers_that_come_out_otherwise_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine whose arithmetic differs in the last digit."""
    path, claims = tmp_path / "x.checkpoint", made(7)
    assert stopped(MODELS["partition"], claims, path, 20)
    other = mss.Search._story

    def elsewhere(self: mss.Search, *of: object) -> object:
        story = other(self, *of)
        return replace(story, terms={**story.terms, "groups": np.nextafter(story.terms["groups"], 0.0)})

    monkeypatch.setattr(mss.Search, "_story", elsewhere)
    with pytest.raises(CheckpointError, match="gives other numbers here"):
        MODELS["partition"].fit(claims, checkpoint=path)


def test_a_short_fit_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        MODELS["partition"].fit(made(7), checkpoint=tmp_path / "x", progress=Stop(20))
    MODELS["partition"].fit(made(7), checkpoint=tmp_path / "x")
    assert not list(tmp_path.iterdir())


def test_a_rival_takes_a_checkpoint_and_needs_none(tmp_path: Path) -> None:
    cs.Vote().fit(made(7), checkpoint=tmp_path / "x")
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_that_cannot_be_written_does_not_stop_the_fit(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    path, claims = tmp_path / "file" / "x.checkpoint", made(7)
    fit = MODELS["partition"].fit(claims, checkpoint=Checkpoint(path, every=0.0))
    assert fit.warnings[-1] == f"The checkpoint {path} could not be written (file exists)."
    np.testing.assert_array_equal(fit.truth, MODELS["partition"].fit(claims).truth)


def test_a_checkpoint_changes_no_bit_where_stories_are_carried_to_more_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loops of different stories have marks of their own."""
    monkeypatch.setattr(samples, "FEW_CLAIMS", 300)
    monkeypatch.setattr(samples, "FEW_OF_SOURCE", 1)
    monkeypatch.setattr(samples, "MANY_OF_SOURCE", 60)
    for seed in range(3):
        claims = cs.read_claims(planted("six-groups", n_objects=300, seed=seed).claims)
        model = MSS(n_starts=3)
        kept = model.fit(claims, seed=seed, checkpoint=Checkpoint(tmp_path / f"{seed}", every=0.0))
        assert_same(kept, model.fit(claims, seed=seed))
