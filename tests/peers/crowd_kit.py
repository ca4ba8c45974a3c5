"""Runs Crowd-Kit's aggregators, in the peers' environment: crowd_kit.py CLAIMS.csv RESULT.json '{"glad": {}, …}'"""

from __future__ import annotations

import json
import sys
import time

import pandas as pd
from crowdkit.aggregation import GLAD, MACE, DawidSkene, MajorityVote, OneCoinDawidSkene

MODELS = {
    "vote": MajorityVote,
    "dawid-skene": DawidSkene,
    "one-coin": OneCoinDawidSkene,
    "glad": GLAD,
    "mace": MACE,
}


def main() -> None:
    path, result, wanted = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    claims = pd.read_csv(path, dtype=str, keep_default_na=False)
    claims.columns = ["worker", "task", "label"]
    found = {name: run(name, settings, claims) for name, settings in wanted.items()}
    with open(result, "w", encoding="utf-8") as file:
        json.dump(found, file)


def run(name: str, settings: dict, claims: pd.DataFrame) -> dict:
    """Seconds, rounds, and the probability of every label of every task."""
    model = MODELS[name](**settings)
    started = time.perf_counter()
    model.fit(claims)
    found = {"seconds": time.perf_counter() - started, "rounds": len(getattr(model, "loss_history_", []))}
    probability = model.probas_
    found["labels"] = [str(label) for label in probability.columns]
    found["probability"] = {
        str(task): row.tolist() for task, row in zip(probability.index, probability.to_numpy(), strict=True)
    }
    if name == "glad":
        found["ability"] = {str(worker): float(a) for worker, a in model.alphas_.items()}
        found["log_easiness"] = {str(task): float(b) for task, b in model.betas_.items()}
    return found


if __name__ == "__main__":
    main()
