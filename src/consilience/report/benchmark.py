"""A benchmark's records as a summary: how right each model is on each data set, its rank, gain over voting and time.

Of several records of one model, data set and seed the last counts; seeds are averaged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from consilience.claims.words import quantity
from consilience.evaluate.metrics import bootstrap
from consilience.report import page
from consilience.report.charts import intervals, scatter
from consilience.report.page import Section

TITLE = "How good the models are"
RANKS, SETS, SPEED, MADE = "All data sets", "Data set by data set", "Time", "Provenance"
TIMED = ("vote", "dawid-skene", "one-coin", "glad", "mace")
"""Drawn against size: those that both we and Crowd-Kit have, and mss."""
TIMED_FROM = 5_000
"""Claims below which a fit's time says little about larger tables."""
FEW_SETS = 5
"""Data sets below which drawing them again says nothing."""
Record = Mapping[str, Any]


@dataclass(frozen=True)
class Row:
    """A model over all data sets.

    rank            : mean of its ranks by accuracy; where it cannot run it is last
    gain, low, high : mean gain in accuracy over voting where it runs, and its interval if other such data sets had been
                      drawn
    worst           : its lowest gain, and the data set
    per_100k        : median seconds for 100,000 claims, over data sets of at least TIMED_FROM
    """

    model: str
    n_sets: int
    accuracy: float
    rank: float
    gain: float
    low: float
    high: float
    worst: float
    worst_set: str
    per_100k: float | None


@dataclass(frozen=True)
class Cell:
    """A model on a data set, the mean of its seeds."""

    accuracy: float
    low: float
    high: float
    gain: float
    seconds: float


@dataclass(frozen=True)
class Summary:
    """Every number of the page."""

    sets: Mapping[str, Record]
    """Name of a data set to a record of it."""
    seeds: Sequence[int]
    cells: Mapping[tuple[str, str], Cell]
    """By model and data set."""
    rows: Sequence[Row]
    """By mean rank."""
    failed: Mapping[tuple[str, str], str]
    made: Sequence[Mapping[str, Any]]
    """The provenances, each once."""


def summarise(records: Sequence[Record]) -> Summary:
    """What the records say."""
    last = {(record["model"], record["data"], record["seed"]): record for record in records}
    by_pair: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for (model, data, _), record in last.items():
        by_pair[model, data].append(record)
    cells, failed = {}, {}
    for pair, of in by_pair.items():
        errors = [record["error"] for record in of if record["error"] is not None]
        if errors:
            failed[pair] = errors[0]
        else:
            figures = ("accuracy", "low", "high", "gain", "seconds")
            cells[pair] = Cell(*(float(np.mean([record[figure] for record in of])) for figure in figures))
    sets = {
        data: record
        for (model, data, _), record in sorted(last.items(), key=lambda item: item[0][1].lower())
        if (model, data) in cells
    }
    models = list(dict.fromkeys(model for model, _ in by_pair))
    ranks = _ranks(models, list(sets), cells, failed)
    rows = [
        _row(model, sets, cells, ranks[model]) for model in models if any((model, d) in cells for d in sets)
    ]
    return Summary(
        sets=sets,
        seeds=sorted({seed for _, _, seed in last}),
        cells=cells,
        rows=sorted(rows, key=lambda row: row.rank),
        failed=failed,
        made=list({repr(r["provenance"]): r["provenance"] for r in last.values()}.values()),
    )


def not_run(summary: Summary) -> list[str]:
    """Which models failed where and why, one line for all that failed alike."""
    reasons: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (model, data), error in summary.failed.items():
        reason = (error.splitlines() or ["no message"])[0].rstrip(".")
        reasons[model, reason.removeprefix(f"{model} ")].append(data)
    alike: dict[tuple[tuple[str, ...], str], list[str]] = defaultdict(list)
    for (model, reason), sets in reasons.items():
        alike[tuple(sets), reason].append(model)
    return [
        f"{', '.join(models)} on {', '.join(sets)} ({reason})" for (sets, reason), models in alike.items()
    ]


def _ranks(
    models: Sequence[str],
    sets: Sequence[str],
    cells: Mapping[tuple[str, str], Cell],
    failed: Mapping[tuple[str, str], str],
) -> dict[str, float]:
    """Mean over the data sets on which a model was tried; equal accuracies share a rank, failures the last."""
    ranks: dict[str, list[float]] = {model: [] for model in models}
    for data in sets:
        tried = [model for model in models if (model, data) in cells or (model, data) in failed]
        lost = [-cells[model, data].accuracy if (model, data) in cells else 1.0 for model in tried]
        for model, rank in zip(tried, rankdata(lost).tolist(), strict=True):
            ranks[model].append(rank)
    return {model: float(np.mean(of)) for model, of in ranks.items() if of}


def _row(model: str, sets: Mapping[str, Record], cells: Mapping[tuple[str, str], Cell], rank: float) -> Row:
    there = {data: cells[model, data] for data in sets if (model, data) in cells}
    gains = [cell.gain for cell in there.values()]
    low, high = bootstrap(gains)
    worst = min(there, key=lambda data: there[data].gain)
    speeds = [
        1e5 * c.seconds / sets[d]["n_claims"] for d, c in there.items() if sets[d]["n_claims"] >= TIMED_FROM
    ]
    return Row(
        model=model,
        n_sets=len(there),
        accuracy=float(np.mean([cell.accuracy for cell in there.values()])),
        rank=rank,
        gain=float(np.mean(gains)),
        low=low,
        high=high,
        worst=there[worst].gain,
        worst_set=worst,
        per_100k=float(np.median(speeds)) if speeds else None,
    )


def markdown(
    summary: Summary, preface: Sequence[str] = (), images: Mapping[str, Sequence[str]] = page.NONE
) -> str:
    """The tables."""
    return page.markdown(TITLE, [*preface, *about(summary)], sections(summary), images)


def html(summary: Summary) -> str:
    """The same with charts."""
    return page.html(TITLE, about(summary), sections(summary), charts(summary))


def about(summary: Summary) -> list[str]:
    """What was run."""
    seeds = "means of seeds" if len(summary.seeds) > 1 else "seed"
    codes = len({each.get("code") for each in summary.made})
    mixed = f" Made by {codes} versions of the code: see below." if codes > 1 else ""
    return [
        f"{quantity(len(summary.rows), 'model')} on {quantity(len(summary.sets), 'data set')}, with default settings "
        f"and without a look at the gold; {seeds} {', '.join(map(str, summary.seeds))}.{mixed}"
    ]


def sections(summary: Summary) -> list[Section]:
    """The ranking, the data sets, the times, and what made them."""
    return [_ranking(summary), _matrix(summary), _times(summary), _made(summary)]


def charts(summary: Summary) -> dict[str, list[str]]:
    """Gains with intervals, mean ranks, and seconds against claims; none where no model ran."""
    if not summary.rows:
        return {}
    gains = [{"model": r.model, "gain": r.gain, "low": r.low, "high": r.high} for r in summary.rows]
    ranks = [{"model": r.model, "rank": r.rank} for r in summary.rows]
    best = [
        {"data": f"{data}: {row.model}", "model": row.model, **asdict(cell)}
        for data in summary.sets
        for row in summary.rows
        if row.model in ("mss", "vote") and (cell := summary.cells.get((row.model, data)))
    ]
    drawn = {
        RANKS: [
            intervals(gains, "model", "gain", "Mean gain in accuracy over voting, 95 % intervals"),
            intervals(ranks, "model", "rank", "Mean rank by accuracy (1 is best)"),
        ],
        SPEED: [scatter(_points(summary), "claims", "seconds", "model", "by", "Seconds against claims")],
    }
    if best:
        title = "Accuracy, 95 % intervals over the gold objects"
        drawn[SETS] = [intervals(best, "data", "accuracy", title, "model")]
    return drawn


def _points(summary: Summary) -> list[dict[str, Any]]:
    drawn = {name: ("ours", name) for name in ("mss", *TIMED)}
    drawn |= {f"crowd-kit/{name}": ("Crowd-Kit", name) for name in TIMED}
    return [
        {"claims": summary.sets[data]["n_claims"], "seconds": max(cell.seconds, 1e-4),
         "by": drawn[model][0], "model": drawn[model][1]}
        for (model, data), cell in summary.cells.items() if model in drawn
    ]  # fmt: skip


def _ranking(summary: Summary) -> Section:
    header = ["model", "sets", "mean rank", "accuracy", "gain over voting", "95 % interval", "worst gain"]
    rows = [
        [
            row.model, str(row.n_sets), f"{row.rank:.1f}", f"{row.accuracy:.4f}", f"{row.gain:+.4f}",
            f"{row.low:+.3f} to {row.high:+.3f}" if row.n_sets >= FEW_SETS else "too few sets",
            f"{row.worst_set} {row.worst:+.3f}",
        ]
        for row in summary.rows
    ]  # fmt: skip
    notes = [
        "Means are over the data sets on which a model ran, so compare gains and ranks, not accuracies, of models that "
        "ran on different ones. A model that fails on a data set is ranked last there; where it was not tried it has "
        "no rank. The interval is that of the mean gain if other data sets like these had been drawn."
    ]
    return Section(RANKS, header, rows, notes)


def _matrix(summary: Summary) -> Section:
    """Accuracies; the best of each data set in bold."""
    best = {
        data: max((cell.accuracy for (_, d), cell in summary.cells.items() if d == data), default=1.0)
        for data in summary.sets
    }
    rows = []
    for row in summary.rows:
        cells = []
        for data in summary.sets:
            cell = summary.cells.get((row.model, data))
            text = "" if cell is None else f"{cell.accuracy:.3f}"
            cells.append(f"**{text}**" if cell and cell.accuracy == best[data] else text)
        rows.append([row.model, *cells])
    gold = [str(record["n_gold"] or "") for record in summary.sets.values()]
    claims = [f"{record['n_claims']:,}" for record in summary.sets.values()]
    notes = [f"Not run: {line}." for line in not_run(summary)]
    return Section(
        SETS, ["model", *summary.sets], [["(gold objects)", *gold], ["(claims)", *claims], *rows], notes
    )


def _times(summary: Summary) -> Section:
    rows = [[row.model, "" if row.per_100k is None else f"{row.per_100k:.3f}"] for row in summary.rows]
    note = f"Seconds over claims, times 100,000; over data sets of at least {TIMED_FROM:,} claims."
    return Section(SPEED, ["model", "seconds for 100,000 claims, median"], rows, [note])


def _made(summary: Summary) -> Section:
    names = list(dict.fromkeys(name for of in summary.made for name in of if name != "commit"))
    header = ["commit", *names]
    rows = [
        [str(of.get("commit") or "none"), *(str(of.get(name, "")) for name in names)] for of in summary.made
    ]
    return Section(MADE, header, rows)
