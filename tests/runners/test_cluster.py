"""The same fit on a Ray cluster: real processes of a cluster on this machine."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import consilience as cs
from consilience.cli.main import app
from consilience.datasets.synthetic import planted
from consilience.errors import ClaimsError, InputError, ResultFormatError, SettingsError
from consilience.models.mss import samples
from consilience.results.checkpoint import Checkpoint
from consilience.runners.spread import Spread
from consilience.testing.processes import ray_workers

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'consilience[cluster]'")
cluster = pytest.importorskip("consilience.runners.cluster")
MODEL = cs.MSS(n_starts=2)


@pytest.fixture(scope="module", autouse=True)
def heard() -> Iterator[list[int]]:
    """A cluster for all tests, and what a handler of the signal to terminate that was there before it hears of one."""
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        cluster.Ray().connect()
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    yield heard
    ray.shutdown()


@pytest.fixture
def small_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the table is searched in samples, and only the last sweeps go to the cluster."""
    monkeypatch.setattr(samples, "FEW_CLAIMS", 1_000)
    monkeypatch.setattr(samples, "FEW_OF_SOURCE", 1)
    monkeypatch.setattr(samples, "MANY_OF_SOURCE", 30)


@pytest.fixture(scope="module")
def made() -> pa.Table:
    return planted("copied-leader", n_objects=300, seed=0)


@pytest.fixture(scope="module")
def folder(made, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four files whose rows are in no order, so that every object is in several of them."""
    path = tmp_path_factory.mktemp("claims")
    table = made.claims.take(pa.array(np.random.default_rng(0).permutation(len(made.claims))))
    for i in range(4):
        pq.write_table(table.slice(i * len(table) // 4, len(table) // 4 + 4), path / f"{i}.parquet")
    return path


def assert_same(spread, fit) -> None:
    assert spread.bound == fit.bound
    assert spread.trace == fit.trace
    assert spread.starts == fit.starts
    assert spread.learned == fit.learned
    for table in ("truths", "sources", "groups"):
        assert getattr(spread, table).equals(getattr(fit, table))


@pytest.mark.parametrize("shards", [1, 7])
@pytest.mark.usefixtures("small_samples")
def test_claims_that_the_cluster_reads_give_the_same_bits(shards: int, folder: Path, made) -> None:
    known = dict(zip(made.truth["object"].to_pylist()[:9], made.truth["value"].to_pylist()[:9], strict=True))
    known[made.truth["object"][200].as_py()] = "a label that nobody claims"
    spread = cluster.Ray(shards=shards).read(folder)
    assert len(spread.parts) == shards
    claims = cs.read_claims(folder)
    assert "merged" in spread.notes[0]
    found, expected = (MODEL.fit(each, known=known, seed=1) for each in (spread, claims))
    assert_same(found, expected)
    score = expected.score(made.truth)
    assert found.accuracy(made.truth) == (score.n_gold, score.n_known, score.accuracy)


def test_claims_of_this_process_give_the_same_bits(made) -> None:
    claims = cs.read_claims(made.claims)
    for model in (cs.MSS(n_starts=1), cs.MSS(inference="mean-field", max_groups=5, n_starts=1, max_sweeps=9)):
        found, expected = (model.fit(claims, runner=runner) for runner in (cluster.Ray(shards=3), "inline"))
        assert found.bound == expected.bound
        assert np.array_equal(found.truth, expected.truth)
        assert np.array_equal(found.decision, expected.decision)
        assert np.array_equal(found.source_reliability, expected.source_reliability)


@pytest.mark.usefixtures("small_samples")
def test_workers_that_are_killed_cost_time_and_nothing_else(folder: Path) -> None:
    expected = MODEL.fit(cs.read_claims(folder))
    done, killed = threading.Event(), []

    def kill() -> None:
        rng = np.random.default_rng(0)
        while not done.wait(0.3) and len(killed) < 3:
            if there := ray_workers():
                killed.append(rng.choice(there))
                os.kill(killed[-1], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        spread = cluster.Ray(shards=5).read(folder)
        while len(killed) < 3:
            assert_same(MODEL.fit(spread), expected)
    finally:
        done.set()
        killer.join()


@pytest.mark.usefixtures("small_samples")
def test_a_driver_that_was_stopped_goes_on_from_its_checkpoint(folder: Path, tmp_path: Path) -> None:
    class Stop(Exception):
        pass

    def stop(stage: str, sweep: int, bound: float) -> None:
        if stage == "all objects":
            raise Stop

    path = tmp_path / "x.checkpoint"
    checkpoint = Checkpoint(path, every=0.0)
    with pytest.raises(Stop):
        MODEL.fit(cluster.Ray(shards=3).read(folder), checkpoint=checkpoint, progress=stop)
    heard: list[str] = []
    spread = cluster.Ray(shards=4).read(folder)
    again = MODEL.fit(spread, checkpoint=path, progress=lambda stage, *_: heard.append(stage))
    assert not path.exists()
    assert {stage.removesuffix(" anew") for stage in heard} <= {"more objects", "lures", "all objects"}
    assert_same(again, MODEL.fit(cs.read_claims(folder)))


@pytest.mark.usefixtures("small_samples")
def test_the_command_line_saves_what_the_parts_write(folder: Path, made, tmp_path: Path) -> None:
    gold = tmp_path / "gold.csv"
    made.truth.to_pandas().to_csv(gold, index=False)
    out = tmp_path / "out"
    asked = [
        "fit",
        f"{folder}/*.parquet",
        "--runner",
        "ray",
        "--out",
        str(out),
        "--json",
        "--truth",
        str(gold),
        "--set",
        f"n_starts={MODEL.n_starts}",
    ]
    for _ in range(2):  # the second replaces the first
        ran = CliRunner().invoke(app, asked)
        assert ran.exit_code == 0, ran.stderr
    expected = MODEL.fit(cs.read_claims(folder))
    assert pq.read_table(out / "truths.parquet").equals(expected.truths)
    assert pq.read_table(out / "sources.parquet").equals(expected.sources)
    assert f'"bound": {expected.bound!r}' in ran.stdout
    assert f'"accuracy": {expected.score(made.truth).accuracy!r}' in ran.stdout
    assert ": sweep " in ran.stderr
    with pytest.raises(ResultFormatError, match="in parts"):
        cs.load(out)
    (out / "truths.parquet" / "notes.txt").write_text("mine")
    ran = CliRunner().invoke(app, asked)
    assert ran.exit_code == 2
    assert "notes.txt" in ran.stderr
    assert not (tmp_path / "out.checkpoint").exists()


def test_what_is_wrong_with_files_is_said_with_file_and_row(tmp_path: Path) -> None:
    def table(name: str, rows: list[tuple[str | None, str, str]]) -> None:
        columns = [list(column) for column in zip(*rows, strict=True)]
        pq.write_table(pa.table(columns, ["source", "object", "value"]), tmp_path / name)

    runner = cluster.Ray(shards=2)
    table("a.parquet", [("s", "o1", "x"), ("t", "o1", "y"), ("s", "o2", "x")])
    table("b.parquet", [("u", "o1", "x"), ("s", "o1", "y")])
    with pytest.raises(
        ClaimsError, match=r"(?s)more than one value.*row 1 of .*a\.parquet.*row 2 of .*b\.parquet"
    ):
        runner.read(tmp_path)
    kept = runner.read(tmp_path, on_conflict="last")
    assert (kept.n_claims, kept.n_objects, kept.n_sources) == (4, 2, 3)
    table("c.parquet", [(None, "o3", "x")])
    with pytest.raises(ClaimsError, match=r"(?s)empty cell.*row 1 of .*c\.parquet: no source"):
        runner.read(tmp_path, on_conflict="last")
    assert (
        "1 row with an empty cell dropped."
        in runner.read(tmp_path, on_conflict="last", on_missing="drop").notes
    )
    pq.write_table(pa.table({"source": ["s"], "object": ["o"]}), tmp_path / "d.parquet")
    with pytest.raises(ClaimsError, match="no column 'value'"):
        runner.read(tmp_path)
    (tmp_path / "x.csv").write_text("source,object,value\ns,o,x\n")
    with pytest.raises(ClaimsError, match="A cluster reads Parquet"):
        runner.read(tmp_path / "x.csv")
    with pytest.raises(SettingsError, match="inference"):
        cs.MSS(inference="structured").fit(kept)


def test_a_cluster_of_ones_own_listens_to_this_machine_alone() -> None:
    cluster.Ray().connect()
    assert {node["NodeManagerAddress"] for node in ray.nodes()} == {"127.0.0.1"}


def test_a_cluster_leaves_the_signal_to_terminate_to_us(heard: list[int]) -> None:
    assert heard == [signal.SIGTERM]


def test_odd_tables_give_the_same_bits(tmp_path: Path) -> None:
    """Labels that only rows which give way have; more labels than are taken for such unasked; a file of no rows."""
    rng = np.random.default_rng(0)

    def write(name: str, rows: list[tuple[str, str, str]]) -> None:
        columns = [pa.array(list(column), pa.string()) for column in zip(*rows, strict=True)] or [
            pa.array([], pa.string())
        ] * 3
        pq.write_table(pa.table(columns, ["source", "object", "value"]), tmp_path / name)

    model, runner = cs.MSS(n_starts=1, max_sweeps=3), cluster.Ray(shards=3)
    write("a.parquet", [(f"s{n}", f"o{m:02}", f"v{rng.integers(3)}") for n in range(5) for m in range(30)])
    write("b.parquet", [("s0", "o00", "only here"), ("s1", "o07", "and here")])
    write("c.parquet", [])
    for rule in ("first", "last", "most frequent"):
        assert_same(
            model.fit(runner.read(tmp_path, on_conflict=rule)),
            model.fit(cs.read_claims(tmp_path, on_conflict=rule)),
        )
    write(
        "b.parquet",
        [(f"t{n}", f"o{m:02}", f"w{(m + rng.integers(2)) % 40:02}") for n in range(3) for m in range(80)],
    )
    for domain in ("common", "claimed", [f"v{i}" for i in range(3)] + [f"w{i:02}" for i in range(40)]):
        spread = runner.read(tmp_path, domain=domain)
        assert_same(model.fit(spread), model.fit(cs.read_claims(tmp_path, domain=domain)))
    with pytest.raises(SettingsError, match="domain"):
        runner.read(tmp_path, domain={"o00": ["x"]})
    with pytest.raises(SettingsError, match="on_conflict"):
        runner.read(tmp_path, on_conflict="frist")
    damaged = bytearray((tmp_path / "a.parquet").read_bytes())
    damaged[4:200] = bytes(196)
    (tmp_path / "a.parquet").write_bytes(damaged)
    with pytest.raises(ClaimsError, match="cannot be read"):
        runner.read(tmp_path)


def test_an_address_of_a_store_stands_for_its_files(folder: Path) -> None:
    runner = cluster.Ray(shards=2)
    for address in (f"file://{folder}/*.parquet", f"file://{folder}"):
        assert runner.read(address).n_claims == cs.read_claims(folder).n_claims


def test_runners_that_cannot_be_used_are_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="only mss"):
        cs.Vote().fit(Spread(cluster.Ray(), [], [], (), ()))
    with pytest.raises(InputError, match=r"no Ray cluster at '127\.0\.0\.1:9'"):
        cluster._connected("127.0.0.1:9")
    (tmp_path / "x.csv").write_text("source,object,value\ns,o,x\n")
    ran = CliRunner().invoke(app, ["fit", str(tmp_path / "x.csv"), "--address", "auto"])
    assert ran.exit_code == 2
    assert "--runner ray" in ran.stderr
    monkeypatch.setitem(__import__("sys").modules, "consilience.runners.cluster", None)
    ran = CliRunner().invoke(app, ["fit", str(tmp_path / "x.csv"), "--runner", "ray"])
    assert ran.exit_code == 1
    assert "pip install 'consilience[cluster]'" in ran.stderr
