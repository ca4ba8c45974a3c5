"""Runs Crowd-Kit's aggregators with a Python that has them: crowd_kit.py CLAIMS.csv RESULT.json '{"glad": {}, …}'

A program of its own, run by `peers.py`: that Python has no consilience, and ours no Crowd-Kit.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

# Wawa and ZeroBasedSkill are left out: in 1.4.2 they fail with the scikit-learn that it installs.
MODELS = {
    "vote": "MajorityVote",
    "mmsr": "MMSR",
    "one-coin": "OneCoinDawidSkene",
    "dawid-skene": "DawidSkene",
    "glad": "GLAD",
    "mace": "MACE",
}


def main() -> None:
    """Read the claims once, run what is wanted, write what it found."""
    import pandas as pd  # type: ignore[import-untyped]

    path, result, wanted = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    claims = pd.read_csv(path, dtype=str, keep_default_na=False)
    claims.columns = pd.Index(["worker", "task", "label"])
    found = {name: run(name, settings, claims) for name, settings in wanted.items()}
    with open(result, "w", encoding="utf-8") as file:
        json.dump(found, file)


def run(name: str, settings: dict[str, Any], claims: Any) -> dict[str, Any]:
    """Seconds, rounds, and the answer to every task, with the probability of every label where it gives one."""
    from crowdkit import aggregation  # type: ignore[import-not-found]

    model = getattr(aggregation, MODELS[name])(**settings)
    started = time.perf_counter()
    model.fit(claims)
    answer = model.labels_ if hasattr(model, "labels_") else model.predict(claims)
    found: dict[str, Any] = {
        "seconds": time.perf_counter() - started,
        "rounds": len(getattr(model, "loss_history_", [])),
        "answer": {str(task): str(label) for task, label in answer.items()},
    }
    probability = getattr(model, "probas_", None)
    if probability is not None:
        found["labels"] = [str(label) for label in probability.columns]
        found["probability"] = {
            str(task): row.tolist()
            for task, row in zip(probability.index, probability.to_numpy(), strict=True)
        }
    if name == "glad":
        found["ability"] = {str(worker): float(a) for worker, a in model.alphas_.items()}
        found["log_easiness"] = {str(task): float(b) for task, b in model.betas_.items()}
    return found


if __name__ == "__main__":
    main()
