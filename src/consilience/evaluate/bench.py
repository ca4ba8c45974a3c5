"""Models × data sets × seeds, other people's implementations beside ours: one record for each, with its provenance."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consilience.claims.encoding import Claims
from consilience.claims.reading import Truths, read_claims, read_truths
from consilience.errors import ConsilienceError, InputError, UnknownNameError
from consilience.evaluate.compare import Outcome, examine, told
from consilience.evaluate.metrics import bootstrap
from consilience.evaluate.peers import MODELS as PEERS
from consilience.evaluate.peers import CrowdKit, write_csv
from consilience.evaluate.provenance import provenance
from consilience.models.base import Model, settings_of
from consilience.models.vote import Vote
from consilience.results.score import gold_candidates, is_right

ENDINGS = (".csv.gz", ".csv", ".parquet")
Record = dict[str, Any]
Right = NDArray[np.bool_]


@dataclass(frozen=True)
class Table:
    """A data set: where its claims and its gold lie."""

    name: str
    claims: Path
    truth: Path


def find_tables(folder: Path, wanted: Sequence[str] | None = None) -> list[Table]:
    """The data sets of a folder: each a folder with claims.csv.gz (or .csv, .parquet) and truth.csv.

    Another cleaning beside them, claims_NAME and truth_NAME, is a data set of its own: book/NAME.
    """
    found = {
        table.name: table
        for inside in (sorted(folder.iterdir()) if folder.is_dir() else ())
        if inside.is_dir()
        for table in _pairs(inside)
    }
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}. Give one with --data, or set CONSILIENCE_DATA.")
    if not found:
        itself = " It is a data set itself: give the folder around it." if list(_pairs(folder)) else ""
        raise InputError(
            f"No data sets in {folder}: expected folders, each with claims.csv (or .csv.gz, .parquet) and truth.csv."
            + itself
        )
    for name in wanted or ():
        if name not in found:
            raise UnknownNameError("data set", name, found)
    return [found[name] for name in wanted or found]


def _pairs(folder: Path) -> Iterator[Table]:
    files = {path.name: path for path in sorted(folder.iterdir())}
    for claims in files:
        for ending in ENDINGS:
            variant = claims.removeprefix("claims").removesuffix(ending)
            if claims != f"claims{variant}{ending}" or (variant and variant[0] != "_"):
                continue
            for truth in (f"truth{variant}{of}" for of in ENDINGS):
                if truth in files:
                    name = folder.name + (f"/{variant[1:]}" if variant else "")
                    yield Table(name, files[claims], files[truth])
                    break


def bench(
    tables: Sequence[Table],
    models: Sequence[Model],
    *,
    seeds: Sequence[int] = (0,),
    peer: CrowdKit | None = None,
    done: Collection[tuple[Any, ...]] = (),
    starting: Callable[[str], None] = lambda text: None,
    warn: Callable[[str], None] = lambda text: None,
) -> Iterator[Record]:
    """The records, each when it is there. Of what is in `done` (see `key`) no new record is made. A data set that
    cannot be read is told, and the others go on.

    Every model's gain is over voting with the same seed; peers are run once, with the first seed.
    """
    code = provenance()["code"]
    for table in tables:
        starting(f"{table.name}: reading")
        try:
            digest = _digest(table)
            ours = [(model, seed) for seed in seeds for model in models]
            ours = [each for each in ours if (table.name, digest, each[0].name, each[1], code) not in done]
            theirs = [f"crowd-kit/{name}" for name in PEERS] if peer else []
            theirs = [name for name in theirs if (table.name, digest, name, seeds[0], code) not in done]
            if not ours and not theirs:
                continue
            claims, truth = read_claims(table.claims), read_truths(table.truth)
            votes = {seed: is_right(Vote().fit(claims, seed=seed), truth) for seed in seeds}
        except (ConsilienceError, OSError) as error:
            warn(f"{table.name}: {told(error)}")
            continue
        about = {"data": table.name, "digest": digest, **_sizes(claims)}
        for model, seed in ours:
            starting(f"{table.name}, seed {seed}: {model.name}")
            right = None
            try:
                outcome, fit = examine(model, claims, truth, seed=seed)
                right = is_right(fit, truth)
            except Exception as error:
                outcome = Outcome(model.name, error=told(error))
            yield _record(about, asdict(outcome), seed, settings_of(model), right, votes[seed])
        if theirs and peer:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "claims.csv"
                write_csv(claims, path)
                for name in theirs:
                    starting(f"{table.name}: {name}")
                    outcome_of, right = _peer_outcome(peer, name, path, claims, truth)
                    record = _record(about, outcome_of, seeds[0], {}, right, votes[seeds[0]])
                    yield {**record, "provenance": {**record["provenance"], "crowd-kit": peer.version}}


def key(record: Record) -> tuple[Any, ...]:
    """What a record is about, and which code made it."""
    return record["data"], record["digest"], record["model"], record["seed"], record["provenance"]["code"]


def read_records(path: Path) -> list[Record]:
    """The records of a file of JSON lines, oldest first; none where there is no file."""
    if not path.is_file():
        return []
    records = []
    for number, line in enumerate(path.read_text("utf-8", errors="replace").split("\n"), 1):
        if not line:
            continue
        try:
            record = json.loads(line)
            record["provenance"]["code"]
        except (ValueError, TypeError, KeyError):
            raise InputError(
                f"Line {number} of {path} is not one of our records (JSON with its provenance). Was it cut off? Remove "
                "that line, or choose another folder."
            ) from None
        records.append(record)
    return records


def _record(
    about: Record, outcome: Record, seed: int, settings: Record, right: Right | None, vote: Right
) -> Record:
    """With intervals of the accuracy and of its gain over voting: gold objects drawn again, the same for both."""
    record = {**about, **outcome, "seed": seed, "settings": settings}
    if right is not None:
        record["low"], record["high"] = bootstrap(right)
        gain = right.astype(float) - vote
        record["gain"] = float(gain.mean())
        record["gain_low"], record["gain_high"] = bootstrap(gain)
    return {**record, "warnings": list(record.get("warnings", ())), "provenance": provenance()}


def _peer_outcome(
    peer: CrowdKit, name: str, path: Path, claims: Claims, truth: Truths
) -> tuple[Record, Right | None]:
    """As of our own models: `vote` is scored by the same gold, and an error is told."""
    try:
        plain = name.removeprefix("crowd-kit/")
        peer.suits(plain, claims)
        found = peer.run(path, {plain: {}})[plain]
    except Exception as error:
        return asdict(Outcome(name, error=told(error))), None
    gold, _ = gold_candidates(truth, claims)
    objects = np.flatnonzero(gold != -1)
    answer = np.array([int(found["answer"][str(m)]) for m in objects])
    right = (gold[objects] >= 0) & (answer == claims.candidate_value[np.maximum(gold[objects], 0)])
    outcome = Outcome(
        name,
        n_gold=len(right),
        accuracy=float(right.mean()),
        seconds=found["seconds"],
        sweeps=found["rounds"],
    )
    return asdict(outcome), right


def _sizes(claims: Claims) -> Record:
    return {"n_sources": claims.n_sources, "n_objects": claims.n_objects, "n_claims": claims.n_claims}


def _digest(table: Table) -> str:
    """Of the two files: the same name may hold other data elsewhere."""
    content = hashlib.sha256()
    for path in (table.claims, table.truth):
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            content.update(file.read_bytes())
    return content.hexdigest()[:16]
