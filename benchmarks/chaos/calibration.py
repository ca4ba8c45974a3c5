"""Whether probabilities and intervals can be believed: calibration of truths, coverage of reliabilities.

    .venv/bin/python benchmarks/chaos/calibration.py     # prints a record a line

Planted cases are made of several seeds; real data are looked for in $CONSILIENCE_DATA. No model sees the gold.
"Before" is the posterior of the model as it is, "after" what is reported: tempered by the errors that groups share.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import consilience as cs
from consilience.datasets import synthetic
from consilience.models.mss.reliability import count_right, right_claims
from consilience.results.temper import temperature, tempered, voices_by_object

DATA = Path(os.environ.get("CONSILIENCE_DATA", Path(__file__).parents[3] / "shared" / "data"))
PLANTED = ("copied-leader", "six-groups", "malicious-bloc", "good-leader", "independent", "guessers")
SETS = (
    "bluebirds", "book", "cf_weather", "cf_weather_amt", "d_possent", "dog", "ducks", "labelme", "rte", "s_face",
    "sp", "sp_amt", "temp", "zencrowd_in", "zencrowd_us", "trec", "birthplaces", "flight", "llm_mmlu_pro_a",
    "s_rel", "s_adult", "fact_eval",
)  # fmt: skip
SEEDS = range(4)
QUANTILES = {80: (0.1, 0.9), 90: (0.05, 0.95)}


def groups_of(fit: cs.Fit) -> Any:
    return fit.groups_found.group[:, 0].astype(np.int64)


def untempered(fit: cs.Fit) -> cs.Fit:
    """The fit with the model's own posterior."""
    voices = voices_by_object(fit.claims, groups_of(fit))
    undone = 1 / temperature(voices, fit.learned["shared_errors"])
    return replace(fit, truth=tempered(fit.truth, fit.claims.first_candidate, undone))


def truths(fit: cs.Fit, gold: Any) -> dict[str, Any]:
    """Calibration error (ten bins of equally many) and log loss, before and after tempering."""
    before, after = untempered(fit).score(gold), fit.score(gold)
    return {
        "n_gold": after.n_gold, "accuracy": after.accuracy, "shared_errors": fit.learned["shared_errors"],
        "error_before": before.calibration_error, "error_after": after.calibration_error,
        "log_loss_before": before.log_loss, "log_loss_after": after.log_loss,
    }  # fmt: skip


def coverage(fit: cs.Fit, made: synthetic.Simulated) -> dict[str, float]:
    """The share of sources whose interval holds the accuracy that was planted; before, it was that of the group's u."""
    planted = dict(zip(*(made.groups[name].to_pylist() for name in ("source", "accuracy")), strict=True))
    true = np.array([planted[name.as_py()] for name in fit.claims.sources])
    found = {
        f"coverage_{level}": right_claims(count_right(fit.claims, fit.truth), groups_of(fit), quantiles)[
            :, 1:
        ]
        for level, quantiles in QUANTILES.items()
    }
    of_group = np.array([fit.groups[name].to_pylist() for name in ("low", "high")]).T
    number = dict(zip(*(fit.sources[name].to_pylist() for name in ("source", "group")), strict=True))
    found["coverage_90_of_groups"] = of_group[[number[name.as_py()] - 1 for name in fit.claims.sources]]
    return {name: float(np.mean((low <= true) & (true <= high))) for name, (low, high) in
            ((name, each.T) for name, each in found.items())}  # fmt: skip


def two_kinds(seed: int = 0) -> tuple[cs.Claims, dict[str, str]]:
    """The control that tempering pays for: objects of exactly two kinds, as the model has them, and nobody misled."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(4, size=600)
    right = rng.random((8, 600)) < np.repeat([0.95, 0.55], 300)
    said = np.where(right, truth, (truth + rng.integers(1, 4, size=right.shape)) % 4)
    rows = [(f"s{n}", f"o{m}", f"v{said[n, m]}") for n in range(8) for m in range(600)]
    return cs.read_claims(rows), {f"o{m}": f"v{truth[m]}" for m in range(600)}


def calibration(until: float = math.inf) -> Iterator[dict[str, Any]]:
    """A record for each planted case and seed, the control, and each real data set; after this moment they are skipped,
    and say so."""
    for measure, about in measurements():
        begun = time.monotonic()
        found = measure() if begun <= until else {"skipped": "the time was up"}
        yield {"part": "calibration", **about, **found, "seconds": time.monotonic() - begun}


def measurements() -> Iterator[tuple[Callable[[], dict[str, Any]], dict[str, Any]]]:
    """Everything that is measured, the first seeds first, and what it is about."""
    for seed in SEEDS:
        for case in PLANTED:
            yield partial(of_planted, case, seed), {"suite": "planted", "data": case, "seed": seed}
        if seed == 0:
            yield of_control, {"suite": "control", "data": "two kinds"}
            for name in SETS:
                yield partial(of_real, name), {"suite": "real", "data": name}


def of_planted(case: str, seed: int) -> dict[str, Any]:
    made = synthetic.planted(case, seed=seed)
    fit = cs.MSS().fit(made.claims, seed=seed)
    return {**truths(fit, made.truth), **coverage(fit, made)}


def of_control() -> dict[str, Any]:
    claims, gold = two_kinds()
    return truths(cs.MSS().fit(claims), gold)


def of_real(name: str) -> dict[str, Any]:
    folder = DATA / name
    if not folder.exists():
        return {"skipped": "not in $CONSILIENCE_DATA"}
    return truths(cs.MSS().fit(cs.read_claims(folder / "claims.csv.gz")), folder / "truth.csv")


def main() -> None:
    for record in calibration():
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
