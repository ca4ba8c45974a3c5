"""Data sets as arrays, with what the CPU's kernel decides, for `run.py sets` on a machine that cannot read them.

.venv/bin/python benchmarks/gpu/encode.py [NAME ...]        # writes out/gpu/NAME.npz; data are never committed
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

import consilience as cs

DATA = Path(os.environ.get("CONSILIENCE_DATA", "../shared/data"))
OUT = Path(__file__).parents[2] / "out" / "gpu"


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or ["book", "flight", "llm_mmlu_pro_a"]:
        claims = cs.read_claims(DATA / name / "claims.csv.gz")
        fit = cs.MSS().fit(claims, engine="numba")
        np.savez(
            OUT / f"{name}.npz", n_sources=claims.n_sources, n_values=claims.n_values,
            claim_source=claims.claim_source, claim_candidate=claims.claim_candidate,
            first_claim=claims.first_claim, first_candidate=claims.first_candidate,
            candidate_value=claims.candidate_value, domain=claims.domain, decision=fit.decision, bound=fit.bound,
        )  # fmt: skip


if __name__ == "__main__":
    main()
