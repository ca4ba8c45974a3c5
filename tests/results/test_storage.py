from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import consilience
from consilience.errors import InputError, ResultFormatError
from consilience.kernels.state import Beliefs, Partition
from consilience.results import manifest, storage
from consilience.results.fit import Fit
from consilience.results.groups import groups_table
from consilience.results.manifest import sealed
from consilience.results.storage import check_target, load, save
from consilience.results.tables import ids, sources_table, truths_table
from tests.results.made_fits import capitals_fit, claims_of, fit_of, partition_fit, random_fit


def assert_same(one: Fit, other: Fit) -> None:
    for field in fields(one.claims):
        name, value, kept = field.name, getattr(one.claims, field.name), getattr(other.claims, field.name)
        assert np.array_equal(value, kept) if isinstance(value, np.ndarray) else value == kept, name
    for part in ("truth", "decision", "source_reliability", "known"):
        np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
    for part in ("groups_found", "prior"):
        here, there = getattr(one, part), getattr(other, part)
        assert (here is None) == (there is None)
        for name, value in vars(here).items() if here is not None else ():
            np.testing.assert_array_equal(value, getattr(there, name))
    for name in ("model", "seed", "ties", "sweeps", "converged", "seconds", "trace", "starts", "warnings"):
        assert getattr(one, name) == getattr(other, name), name
    for name in ("settings", "learned", "provenance"):
        assert dict(getattr(one, name)) == dict(getattr(other, name)), name


@pytest.mark.parametrize("groups", [True, False])
def test_what_is_saved_comes_back_bit_by_bit(tmp_path: Path, groups: bool) -> None:
    fit = random_fit(5, groups=groups)
    assert fit.save(tmp_path / "out") == tmp_path / "out"
    back = load(tmp_path / "out")
    assert_same(fit, back)
    assert sources_table(back).equals(sources_table(fit))
    assert str(back.explain("o01")) == str(fit.explain("o01"))


@pytest.mark.parametrize("domain", ["common", "claimed"])
@pytest.mark.parametrize("known", [False, True])
def test_a_partition_comes_back_and_explains_itself_as_before(
    tmp_path: Path, domain: str, known: bool
) -> None:
    fit = partition_fit(domain, known)
    fit.save(tmp_path / "out")
    back = load(tmp_path / "out")
    assert_same(fit, back)
    for part in ("groups_found", "prior"):
        assert type(getattr(back, part)) is type(getattr(fit, part))
    assert isinstance(back.groups_found, Partition)
    assert isinstance(back.prior, Beliefs)
    assert isinstance(back.prior.concentration, float)
    assert groups_table(back.groups_found, back.prior).equals(groups_table(fit.groups_found, fit.prior))
    assert (back.n_groups, back.bound) == (fit.n_groups, fit.bound)
    assert back.summary() == fit.summary()
    for object_id in ids(fit.claims.objects).to_pylist():
        assert back.explain(object_id) == fit.explain(object_id)
    assert str(back.explain(object_id)) == str(fit.explain(object_id))


def test_a_result_of_before_there_were_lures_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = partition_fit("common")
    really = storage._arrays

    def before(fit: Fit) -> dict[str, Any]:
        return {name: array for name, array in really(fit).items() if name != "prior_lured"}

    monkeypatch.setattr(storage, "_arrays", before)
    fit.save(tmp_path / "out")
    back = load(tmp_path / "out")
    assert isinstance(back.prior, Beliefs)
    assert back.prior.lured.tolist() == [0.0, 0.0]
    assert_same(fit, back)


def test_which_truths_were_given_comes_back(tmp_path: Path) -> None:
    fit = replace(capitals_fit(), known=np.array([True, False, False]))
    save(fit, tmp_path / "out")
    assert_same(fit, load(tmp_path / "out"))
    assert str(load(tmp_path / "out").explain("Australia")) == str(fit.explain("Australia"))


@given(st.lists(st.tuples(*[st.text(max_size=8)] * 3), min_size=1, max_size=8, unique_by=lambda row: row[:2]))
def test_any_text_survives(
    tmp_path_factory: pytest.TempPathFactory, triples: list[tuple[str, str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("texts")
    storable = {(_utf8(source), _utf8(object_)): _utf8(value) for source, object_, value in triples}
    fit = fit_of(claims_of([(*key, value) for key, value in storable.items()]))
    save(fit, folder / "out")
    assert_same(fit, load(folder / "out"))


def _utf8(text: str) -> str:
    return text.encode("utf-8", "ignore").decode()


def test_ids_keep_their_types_and_unclaimed_values_stay(tmp_path: Path) -> None:
    claims = claims_of([(7, 1.5, 10), (9, 1.5, 20), (9, 2.5, 10)], frame="pandas", notes=("merged 2",))
    values = pa.array([10, 20, 30], pa.int16())  # one more value than anybody claims
    claims = type(claims)(**{**vars(claims), "values": values})
    save(fit_of(claims), tmp_path / "out")
    back = load(tmp_path / "out").claims
    assert ids(back.sources).type == pa.int64()
    assert ids(back.objects).type == pa.float64()
    assert ids(back.values).equals(values)
    assert (back.frame, back.notes) == ("pandas", ("merged 2",))


def test_the_tables_are_for_other_tools(tmp_path: Path) -> None:
    fit = capitals_fit()
    save(fit, tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "claims.parquet",
        "groups.parquet",
        "manifest.json",
        "sources.parquet",
        "state.npz",
        "trace.json",
        "truths.parquet",
        "values.parquet",
    ]
    assert pq.read_table(tmp_path / "out/truths.parquet").equals(truths_table(fit))
    assert pq.read_table(tmp_path / "out/groups.parquet").equals(groups_table(fit.groups_found, fit.prior))
    claims = pq.read_table(tmp_path / "out/claims.parquet")
    assert claims.schema.types == [pa.string()] * 3
    assert claims.num_rows == 21
    assert {"source": "copier0", "object": "Australia", "value": "Sydney"} in claims.to_pylist()
    manifest = json.loads((tmp_path / "out/manifest.json").read_text("utf-8"))
    assert manifest["schema"] == 1
    assert manifest["consilience"] == consilience.__version__
    assert manifest["counts"] == {"n_sources": 7, "n_objects": 3, "n_claims": 21, "n_candidates": 5}
    assert manifest["learned"] == {"starts_agree": 3}


def test_the_same_fit_gives_the_same_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        save(capitals_fit(), tmp_path / name)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_a_result_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    save(random_fit(1), tmp_path / "deep/er/out")
    save(random_fit(2), tmp_path / "deep/er/out")
    assert_same(load(tmp_path / "deep/er/out"), random_fit(2))
    assert [path.name for path in (tmp_path / "deep/er").iterdir()] == ["out"]


def test_an_empty_folder_and_a_link_to_one_may_be_filled(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    save(random_fit(1), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    load(tmp_path / "real")


def test_what_is_not_a_result_is_never_overwritten(tmp_path: Path) -> None:
    fit = random_fit(1)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("years of work")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/manifest.json").write_text('{"format": "something else"}')
    (tmp_path / "file").write_text("x")
    save(fit, tmp_path / "annotated")
    (tmp_path / "annotated/notes.txt").write_text("mine")
    for name, expected in [
        ("mine", "exists, and what is in it must not be overwritten"),
        ("theirs", "must not be overwritten"),
        ("file", "is a file, not a folder"),
        ("file/below", "file is a file, not a folder"),
        ("annotated", "also holds notes.txt"),
    ]:
        with pytest.raises(InputError, match=expected):
            save(fit, tmp_path / name)
    assert (tmp_path / "mine/thesis.txt").read_text() == "years of work"
    assert (tmp_path / "annotated/notes.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["x" * 300, "x" * 250, f"new/{'x' * 300}/out"])
def test_a_name_that_no_folder_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"name too long\). Choose another folder"):
        check_target(tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a file system that takes no folders")
@pytest.mark.parametrize("name", ["/proc/x", "/proc/x/y/z"])
def test_a_place_that_takes_no_folders_is_refused_before_anything_is_written(name: str) -> None:
    with pytest.raises(InputError, match="Choose another folder"):
        check_target(name)


@pytest.mark.parametrize("name", ["", ".", "..", "../here", "below/.."])
def test_the_folder_one_stands_in_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(InputError, match=r"the folder you are in.*such as 'result'"):
        save(random_fit(1), name)
    assert not list((tmp_path / "here").iterdir())


def test_a_mounted_volume_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "ismount", lambda path: Path(path) == tmp_path / "volume")
    (tmp_path / "volume").mkdir()
    with pytest.raises(InputError, match="a folder inside it"):
        check_target(tmp_path / "volume")
    assert check_target(tmp_path / "volume/out") == tmp_path / "volume/out"


def test_a_result_that_is_being_replaced_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    save(random_fit(1), out)
    listdir = os.listdir

    def listed(path: Path) -> list[str]:
        names = listdir(path)
        if Path(path) == out:
            out.rename(tmp_path / "aside")  # another process begins to replace it right now
        return names

    monkeypatch.setattr(os, "listdir", listed)
    assert check_target(out) == out


def test_a_manifest_that_leads_nowhere_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/manifest.json").symlink_to("nowhere")
    with pytest.raises(InputError, match="must not be overwritten"):
        check_target(tmp_path / "out")


def test_the_old_result_is_kept_where_it_can_neither_be_replaced_nor_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = save(random_fit(1), tmp_path / "out")
    rename, renamed = Path.rename, []

    def once(self: Path, target: Path) -> Path:
        renamed.append(target)
        if len(renamed) > 1:
            raise OSError(errno.EIO, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", once)
    with pytest.raises(OSError, match="Input/output error") as failure:
        save(random_fit(2), out)
    (left,) = tmp_path.iterdir()
    assert str(left) in failure.value.__notes__[0]
    assert_same(load(left), random_fit(1))


def test_a_save_that_fails_leaves_the_old_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(random_fit(1), tmp_path / "out")

    def full_disk(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full_disk)
    with pytest.raises(OSError, match="No space left"):
        save(random_fit(2), tmp_path / "out")
    assert_same(load(tmp_path / "out"), random_fit(1))
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_two_saves_at_once_leave_one_whole_result(tmp_path: Path) -> None:
    fits = [random_fit(seed) for seed in range(2)]
    failures: list[BaseException] = []

    def save_often(fit: Fit) -> None:
        try:
            for _ in range(15):
                save(fit, tmp_path / "out")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=save_often, args=(fit,)) for fit in fits]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert load(tmp_path / "out").claims.n_claims in {fit.claims.n_claims for fit in fits}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("harm", "expected"),
    [
        (lambda out: (out / "state.npz").unlink(), "state.npz is missing.*run the fit again"),
        (lambda out: (out / "truths.parquet").write_bytes(b"PAR1"), "truths.parquet was altered"),
        (lambda out: (out / "manifest.json").unlink(), "not a consilience result: there is no manifest.json"),
        (lambda out: (out / "manifest.json").write_text("{"), "manifest.json is damaged"),
        (lambda out: (out / "manifest.json").write_text("[]"), "not a consilience result"),
        (lambda out: change_manifest(out, schema=2, consilience="9.0"), "by consilience 9.0.*Upgrade"),
        (lambda out: change_manifest(out, schema="one"), "damaged: no schema"),
        (lambda out: change_manifest(out, files={}), "claims.parquet was altered"),
        (lambda out: change_manifest(out, fit={"seed": 1}), "does not describe the files"),
    ],
)
def test_a_damaged_or_newer_result_is_refused_with_advice(
    tmp_path: Path, harm: Callable[[Path], object], expected: str
) -> None:
    save(random_fit(1), tmp_path / "out")
    harm(tmp_path / "out")
    with pytest.raises(ResultFormatError, match=expected):
        load(tmp_path / "out")


def test_nothing_there_is_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(ResultFormatError, match="there is no such folder"):
        load(tmp_path / "nowhere")


def change_manifest(out: Path, **changes: object) -> None:
    manifest = json.loads((out / "manifest.json").read_text("utf-8"))
    (out / "manifest.json").write_text(json.dumps(sealed(manifest | changes)), "utf-8")


@pytest.mark.parametrize(
    "sweeps", [[{"bouhd": -1.0}], [{"bound": "-1"}], [{"bound": -1.0}, {"bound": -2.0}], 7]
)
def test_a_trace_that_is_none_is_refused(tmp_path: Path, sweeps: object) -> None:
    out = tmp_path / "out"
    save(random_fit(1), out)
    (out / "trace.json").write_text(json.dumps({"sweeps": sweeps, "starts": []}), "utf-8")
    change_manifest(out, files={name: manifest.digest(out / name) for name in manifest.FILES})
    with pytest.raises(ResultFormatError, match="does not describe"):
        load(out)


@pytest.mark.parametrize("name", ["claim_source", "claim_candidate", "candidate_value"])
def test_a_number_where_an_array_was_is_refused(tmp_path: Path, name: str) -> None:
    out = tmp_path / "out"
    save(random_fit(1), out)
    with np.load(out / "state.npz") as stored:
        arrays = dict(stored) | {name: np.array(0)}
    np.savez(out / "state.npz", **arrays)
    change_manifest(out, files={name: manifest.digest(out / name) for name in manifest.FILES})
    with pytest.raises(ResultFormatError, match="does not describe"):
        load(out)


def test_pickled_arrays_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    save(random_fit(1), out)
    with np.load(out / "state.npz") as stored:
        arrays = dict(stored)
    arrays["truth"] = np.array([{"a": 1}], dtype=object)
    np.savez(out / "state.npz", **arrays)
    files = {name: manifest.digest(out / name) for name in manifest.FILES}
    change_manifest(out, files=files)
    with pytest.raises(ResultFormatError, match="pickle"):
        load(out)


KILLED = """
import os, random, signal, sys, time
from pathlib import Path
from tests.results.made_fits import random_fit
from consilience.errors import ResultFormatError
from consilience.results.storage import load, save

out, fits = Path(sys.argv[1]), [random_fit(1), random_fit(2)]
sizes = {fit.claims.n_claims for fit in fits}
save(fits[0], out.with_name("warm"))  # everything is imported before the first child
chance, absent = random.Random(0), 0
for _ in range(int(sys.argv[2])):
    child = os.fork()
    if not child:
        while True:
            for fit in fits:
                save(fit, out)
    time.sleep(chance.uniform(0.0, 0.06))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if out.exists():
        assert load(out).claims.n_claims in sizes
    else:
        absent += 1
left = [path.name for path in out.parent.iterdir() if path.name.startswith(".out.")]
save(fits[0], out)
stale = [path.name for path in out.parent.iterdir() if path.name.startswith(".out.")]
assert not stale, stale
print(absent, len(left))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that can be forked and killed")
def test_a_killed_process_leaves_a_whole_result_or_none(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "out"), "50"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
