"""Inputs that nobody should send, sent: readers, settings and saved results, and numbers at the end of their range.

    .venv/bin/python benchmarks/chaos/fuzz.py            # prints a record a line

What must hold: an answer that is right, or a ConsilienceError; never another exception, a wrong answer or NaN.
`make test` sends a few of each (tests/fuzz); `make chaos` many.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from datetime import UTC, date, datetime
from datetime import time as clock
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import consilience as cs
from consilience.errors import ConsilienceError
from consilience.models.registry import MODELS, model
from consilience.results.manifest import FILES, MANIFEST, digest, sealed

EXAMPLES = 1_000
"""Inputs of each kind that `make chaos` sends, or fewer where the time is up."""
HOSTILE = (
    "", " ", "NA", "null", "None", "nan", "-0", "0x1F", "1e999", "=1+1", "=cmd|' /C calc'!A0", "@SUM(A1)", "+1",
    "\x00", "a\x00b", "\x1b[2J", "\x07", "\u202eevil\u202c", "\u200f", "\ufeff", "\u2028", "\uffff", "\U0001f9e0",
    "é", "e\u0301", "\u212b", "Å", '"', '""', "'", ",", ";", "\t", "|", "\r", "\n", "\r\n", "\\", "\\N", "{", "[1]",
    "2147483648", "9007199254740993", "9223372036854775808", "x" * 70_000,
)  # fmt: skip
LONE_SURROGATE = "\ud800"
TYPED = (
    None, True, False, 0, -1, 2**31 - 1, 2**31, -(2**31) - 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63),
    date(2026, 1, 2), datetime(2026, 1, 2, 3), datetime(2026, 1, 2, 3, tzinfo=UTC), clock(3),
    0.0, -0.0, 0.5, float("nan"), float("inf"), 1e300, b"\xff\xfe", LONE_SURROGATE, [1], {"a": 1}, "text", (1, 2),
)  # fmt: skip
NUMBERS = (1e-300, 1e-100, 1e-9, 0.1, 1.0, 5.0, 1e9, 1e100, 1e300, 0.0, -1.0, float("nan"), float("inf"))

texts = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=6))
named = texts.filter(bool)
"""Texts that are not empty: in delimited files an empty one is no cell."""
triples = st.lists(st.tuples(named, named, named), min_size=1, max_size=12)
mutations = st.lists(
    st.tuples(
        st.sampled_from(["flip", "cut", "drop", "repeat", "insert"]),
        st.integers(0, 10**6),
        st.binary(max_size=8),
    ),
    max_size=6,
)


def mutated(data: bytes, how: list[tuple[str, int, bytes]]) -> bytes:
    """The bytes after some accidents."""
    for kind, where, extra in how:
        at = where % (len(data) + 1)
        if kind == "flip" and data:
            at %= len(data)
            data = data[:at] + bytes([data[at] ^ (1 << where % 8)]) + data[at + 1 :]
        elif kind == "cut":
            data = data[:at]
        elif kind == "drop":
            data = data[:at] + data[at + 1 + where % 7 :]
        elif kind == "repeat":
            data = data[:at] + data[max(at - 20, 0) : at] * 2 + data[at:]
        elif kind == "insert":
            data = data[:at] + extra + data[at:]
    return data


def delimited(rows: list[tuple[str, str, str]]) -> bytes:
    """As Python's own writer quotes it."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerows([("source", "object", "value"), *rows])
    return text.getvalue().encode()


def json_lines(rows: list[tuple[str, str, str]]) -> bytes:
    """One object a line."""
    names = ("source", "object", "value")
    return b"".join(json.dumps(dict(zip(names, row, strict=True))).encode() + b"\n" for row in rows)


def parquet(rows: list[tuple[str, str, str]]) -> bytes:
    """A Parquet file of text columns."""
    sink = io.BytesIO()
    columns = zip(*rows, strict=True)
    pq.write_table(pa.table(dict(zip(("source", "object", "value"), map(list, columns), strict=True))), sink)
    return sink.getvalue()


FORMATS: dict[str, Callable[[list[tuple[str, str, str]]], bytes]] = {
    "csv": delimited, "jsonl": json_lines, "parquet": parquet,
}  # fmt: skip


def file_of(ending: str, rows: list[tuple[str, str, str]]) -> bytes:
    """A well-formed file that ends like this."""
    data = FORMATS[ending.removesuffix(".gz")](rows)
    return gzip.compress(data, 1) if ending.endswith(".gz") else data


def read_as(folder: Path, ending: str, data: bytes) -> Any:
    """What the reader makes of a file: claims, or the ConsilienceError it raises."""
    path = folder / f"claims.{ending}"
    path.write_bytes(data)
    try:
        return cs.read_claims(path, on_conflict="first", on_missing="drop")
    except ConsilienceError as error:
        return error


def said(claims: cs.Claims) -> set[tuple[Any, Any, Any]]:
    """The claims as triples of the caller's own ids."""
    sources, objects, values = (ids.to_pylist() for ids in (claims.sources, claims.objects, claims.values))
    value = claims.candidate_value[claims.claim_candidate]
    return {
        (sources[n], objects[m], values[v])
        for n, m, v in zip(claims.claim_source, claims.claim_object(), value, strict=True)
    }


def first_of_each(rows: list[tuple[Any, Any, Any]]) -> set[tuple[Any, Any, Any]]:
    """What on_conflict="first" keeps."""
    kept: dict[tuple[Any, Any], Any] = {}
    for source, object_, value in rows:
        kept.setdefault((source, object_), value)
    return {(*key, value) for key, value in kept.items()}


def check_whole_file(folder: Path, ending: str, rows: list[tuple[str, str, str]]) -> None:
    """A file of hostile text that is well formed comes back text for text."""
    found = read_as(folder, ending, file_of(ending, rows))
    if isinstance(found, ConsilienceError):
        raise AssertionError(f"a well-formed {ending} file was refused: {found}")
    assert said(found) == first_of_each(rows), f"{ending} was read wrongly"


def check_broken_file(
    folder: Path, ending: str, rows: list[tuple[str, str, str]], how: list[tuple[str, int, bytes]]
) -> None:
    """A file after accidents is read or refused; if its bytes are what they were, it is read as it was."""
    good = file_of(ending, rows)
    bad = mutated(good, how)
    found = read_as(folder, ending, bad)
    if bad == good:
        assert not isinstance(found, ConsilienceError)
        assert said(found) == first_of_each(rows)


def check_rows(rows: list[tuple[Any, Any, Any]]) -> None:
    """Rows of any Python values are read exactly, or refused; what was read can be fitted."""
    try:
        claims = cs.read_claims(rows, on_conflict="first", on_missing="drop")
    except ConsilienceError:
        return
    assert said(claims) <= set(rows), "a claim that nobody made"
    check_fit(cs.Vote().fit(claims))


def check_fit(fit: cs.Fit) -> None:
    """Probabilities that sum to one, reliabilities that are numbers, a bound that never falls."""
    sums = np.add.reduceat(fit.truth, fit.claims.first_candidate[:-1])
    assert np.allclose(sums, 1, atol=1e-9), f"probabilities sum to {sums.min()} … {sums.max()}"
    assert np.all(np.isfinite(fit.source_reliability[:, 0])), "a reliability is no number"
    path = np.array([record["bound"] for record in fit.trace])
    assert np.all(np.isfinite(path)), "a bound is no number"
    assert np.all(np.diff(path) >= -1e-9 * np.maximum(1, np.abs(path[1:]))), "the bound fell"


def check_settings(name: str, given_settings: dict[str, Any], rows: list[tuple[str, str, str]]) -> None:
    """A model with these settings answers with numbers, or refuses them; one that would never end is stopped."""
    told = count()

    def progress(*_: Any) -> None:
        if next(told) > MOST_ROUNDS:
            raise Enough

    try:
        fit = model(name, **given_settings).fit(rows, progress=progress)
    except (ConsilienceError, Enough):
        return
    check_fit(fit)


class Enough(Exception):
    """A fit has gone on for long enough."""


def check_result(good: Path, folder: Path, name: str, bad: bytes, resealed: bool) -> None:
    """A saved result of which one file was altered is refused, or is the same as before.

    resealed : whether the hashes are made to fit, as somebody would who edits a result by hand
    """
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(good, folder)
    (folder / name).write_bytes(bad)
    if resealed and name != MANIFEST:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        manifest["files"][name] = digest(folder / name)
        (folder / MANIFEST).write_text(json.dumps(sealed(manifest)), "utf-8")
    try:
        fit = cs.load(folder)
    except ConsilienceError:
        return
    before = cs.load(good)
    if not resealed:
        assert np.array_equal(fit.truth, before.truth), "an altered result was read as if it were whole"
        assert fit.settings == before.settings
        assert fit.warnings == before.warnings
    check_fit(fit)
    str(fit.explain(fit.claims.objects[0].as_py()))


def check_state(good: Path, folder: Path, name: int, kind: str, number: int) -> None:
    """A result of which one array is another, its hashes made to fit: refused, or read and of use."""
    with np.load(good / "state.npz") as stored:
        arrays = dict(stored)
    key = sorted(arrays)[name % len(arrays)]
    old = arrays[key]
    arrays[key] = {
        "missing": lambda: None,
        "shorter": lambda: old[:-1] if old.ndim else old,
        "longer": lambda: np.concatenate([old, old]) if old.ndim else old,
        "other": lambda: np.full_like(old, number % 1000 - 500),
        "shifted": lambda: old + old.dtype.type(1),
        "text": lambda: np.array(["x"] * max(len(np.atleast_1d(old)), 1)),
        "scalar": lambda: np.array(number),
        "reversed": lambda: np.flip(old),
    }[kind]()
    if arrays[key] is None:
        del arrays[key]
    altered = io.BytesIO()
    np.savez(altered, **arrays)
    check_result(good, folder, "state.npz", altered.getvalue(), resealed=True)


def check_manifest(good: Path, folder: Path, keys: tuple[str, ...], value: Any) -> None:
    """A manifest of which one key was removed, or has another value, its seal made to fit: refused, or read."""
    manifest = json.loads((good / MANIFEST).read_text("utf-8"))
    at = manifest
    for key in keys[:-1]:
        at = at[key]
    if value is ...:
        del at[keys[-1]]
    else:
        at[keys[-1]] = value
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(good, folder)
    (folder / MANIFEST).write_text(json.dumps(sealed(manifest)), "utf-8")
    try:
        fit = cs.load(folder)
    except ConsilienceError:
        return
    check_fit(fit)
    fit.summary()
    fit.save(folder.with_name("again"))


def saved_result(folder: Path) -> Path:
    """A small result to alter."""
    rows = [(f"s{n}", f"o{m}", f"v{(n * m) % 3}") for n in range(5) for m in range(6)]
    return cs.MSS(n_starts=1).fit(rows).save(folder / "good")


def paths_of(manifest: dict[str, Any]) -> list[tuple[str, ...]]:
    """Every key of a manifest, and the keys within."""
    return [
        *((key,) for key in manifest),
        *((key, inner) for key, part in manifest.items() if isinstance(part, dict) for inner in part),
    ]


json_values = st.sampled_from([..., None, True, -1, 2**70, 1e300, "", "text", [], [1], {}, {"a": [None]}])
MOST_ROUNDS = 500
"""Of a fit: with huge numbers for settings some would never end."""
setting_values = st.one_of(
    st.sampled_from(NUMBERS), st.sampled_from(TYPED), st.tuples(st.sampled_from(NUMBERS), st.sampled_from(NUMBERS)),
    st.sampled_from(["partition", "structured", "mean-field", "grid"]), st.integers(-2, 4),
)  # fmt: skip
TABLE = [(f"s{n}", f"o{m}", f"v{(n * m + m) % 3}") for n in range(4) for m in range(5)]


def attacks(folder: Path) -> dict[str, tuple[Callable[..., None], dict[str, Any]]]:
    """Every kind of attack by name: what is checked, and the strategies that its arguments are drawn from."""
    good = saved_result(folder)
    manifest = json.loads((good / MANIFEST).read_text("utf-8"))
    at = folder / "altered"

    def whole(ending: str, rows: Any) -> None:
        check_whole_file(folder, ending, rows)

    def broken(ending: str, rows: Any, how: Any) -> None:
        check_broken_file(folder, ending, rows, how)

    def result(name: str, how: Any, resealed: bool) -> None:
        check_result(good, at, name, mutated((good / name).read_bytes(), how), resealed)

    def manifest_key(keys: Any, value: Any) -> None:
        check_manifest(good, at, keys, value)

    def setting(name: str, key: int, value: Any) -> None:
        names = [field.name for field in fields(MODELS[name])]
        if names:
            check_settings(name, {names[key % len(names)]: value}, TABLE)

    endings = ["csv", "csv.gz", "jsonl", "jsonl.gz", "parquet"]
    return {
        **{
            f"hostile text in {ending}": (lambda rows, ending=ending: whole(ending, rows), {"rows": triples})
            for ending in endings
        },
        **{
            f"damaged {ending}": (
                lambda rows, how, ending=ending: broken(ending, rows, how),
                {"rows": triples, "how": mutations},
            )
            for ending in endings
        },
        "rows of any values": (
            check_rows,
            {"rows": st.lists(st.tuples(*[st.sampled_from(TYPED[:-4]) | texts] * 3), min_size=1, max_size=6)},
        ),
        "settings": (
            setting,
            {"name": st.sampled_from(sorted(MODELS)), "key": st.integers(0, 9), "value": setting_values},
        ),
        "damaged results": (
            result,
            {"name": st.sampled_from([*FILES, MANIFEST]), "how": mutations, "resealed": st.booleans()},
        ),
        "results with another array": (
            lambda **other: check_state(good, at, **other),
            {
                "name": st.integers(0, 20),
                "number": st.integers(-(2**40), 2**40),
                "kind": st.sampled_from(
                    ["missing", "shorter", "longer", "other", "shifted", "text", "scalar", "reversed"]
                ),
            },
        ),
        "manifests with another value": (
            manifest_key,
            {"keys": st.sampled_from(paths_of(manifest)), "value": json_values},
        ),
    }


class TimeIsUp(BaseException):
    """No exception of those that Hypothesis takes for a failure: it ends the attack at once."""


class Failed(Exception):
    """An input got through: which, and after how many."""

    def __init__(self, sent: int, why: Exception) -> None:
        self.sent = sent
        notes = " ".join(getattr(why, "__notes__", ()))
        super().__init__(" ".join(f"{type(why).__name__}: {why} {notes}".split()))


def attack(
    check: Callable[..., None], given_by: dict[str, Any], examples: int, until: float = math.inf
) -> int:
    """Send so many inputs, always the same, or as many as there is time for; returns how many, or raises Failed."""
    sent = 0

    @seed(0)
    @settings(
        max_examples=examples, deadline=None, database=None, phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck), print_blob=False,
    )  # fmt: skip
    @given(**given_by)
    def send(**inputs: Any) -> None:
        nonlocal sent
        if time.monotonic() >= until:
            raise TimeIsUp
        sent += 1
        check(**inputs)

    try:
        send()
    except TimeIsUp:
        pass
    except Exception as why:
        raise Failed(sent, why) from why
    return sent


def fuzz(until: float, examples: int = EXAMPLES) -> Iterator[dict[str, Any]]:
    """Every attack, each with its share of the time: how many inputs were sent, and what went wrong, if anything."""
    with tempfile.TemporaryDirectory() as folder:
        every = attacks(Path(folder))
        for i, (name, (check, given_by)) in enumerate(every.items()):
            started, failure = time.monotonic(), None
            share = started + (until - started) / (len(every) - i)
            try:
                # For JSON lines a database is opened each time, which takes long.
                sent = attack(check, given_by, examples // 4 if "jsonl" in name else examples, share)
            except Failed as error:
                sent, failure = error.sent, str(error)[:500]
            yield {
                "part": "fuzz", "input": name, "sent": sent, "failure": failure,
                "seconds": time.monotonic() - started,
            }  # fmt: skip


def small_tables() -> dict[str, tuple[list[tuple[str, str, str]], dict[str, str] | None]]:
    """Tables at the edge of what can be told, each with truths that are known, or none."""
    sources, objects = [f"s{n}" for n in range(6)], [f"o{m}" for m in range(8)]
    agree = [(n, m, f"v{m[1]}") for n in sources for m in objects]
    disagree = [(n, m, f"{n}{m}") for n in sources for m in objects]
    copies = [(n, m, f"v{(i * 7 + (n > 's2')) % 3}") for n in sources for i, m in enumerate(objects)]
    return {
        "all agree": (agree, None),
        "all disagree": (disagree, None),
        "perfect copies": (copies, None),
        "one claim": ([("s", "o", "v")], None),
        "known truths that nobody claims": (agree, dict.fromkeys(objects, "other")),
        "known truths against everybody, each time another": (
            agree, {m: f"v{(i + 1) % 8}" for i, m in enumerate(objects)}
        ),
        "known truths that contradict each other on alike objects": (
            agree + [(n, f"{m}'", f"v{m[1]}") for n in sources for m in objects],
            {**{m: f"v{m[1]}" for m in objects}, **{f"{m}'": "other" for m in objects}},
        ),
    }  # fmt: skip


def extreme_settings() -> Iterator[dict[str, Any]]:
    """Settings of MSS from 1e-300 to 1e300."""
    yield {}
    for number in NUMBERS:
        yield {"concentration": number}
        yield {"tolerance": number, "max_sweeps": 20}
        for inference in ("structured", "mean-field"):
            few = {"inference": inference, "n_starts": 1, "max_sweeps": 30}
            yield {**few, "concentration": number}
            yield {**few, "true_count": (number, 1e300), "false_count": (number, number)}
            yield {**few, "true_count": (1e-300, number), "false_count": (number, 1e-300)}
            yield {**few, "reliability": (number, 1.0)}
            yield {**few, "reliability": (number, number)}


def numeric(until: float) -> Iterator[dict[str, Any]]:
    """Every table under every extreme setting, until the time is up: an answer in numbers with a bound that never
    falls, or a refusal."""
    for name, (rows, known) in small_tables().items():
        started, sent, refused, failures = time.perf_counter(), 0, 0, []
        for chosen in extreme_settings():
            if time.monotonic() > until:
                break
            sent += 1
            try:
                check_fit(cs.MSS(**chosen).fit(rows, known=known))
            except ConsilienceError as error:
                refused += not isinstance(error, cs.errors.BoundError)
                failures += [f"{chosen}: {error}"[:300]] * isinstance(error, cs.errors.BoundError)
            except Exception as error:
                failures.append(f"{chosen}: {type(error).__name__}: {error}"[:300])
        yield {
            "part": "numeric", "input": name, "sent": sent, "refused": refused, "failed": len(failures),
            "failure": failures[0] if failures else None, "seconds": time.perf_counter() - started,
        }  # fmt: skip


def main() -> None:
    examples = int(sys.argv[1]) if len(sys.argv) > 1 else EXAMPLES
    for record in chain(numeric(math.inf), fuzz(math.inf, examples)):
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    main()
