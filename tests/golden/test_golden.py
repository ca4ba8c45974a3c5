"""What every model answers on one small table, kept in a file: an answer that changes, changes on purpose.

`make golden` accepts the present answers. The table is `capitals(seed=0)`, or where a model needs a label set a planted
one; settings and seed are the defaults.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from consilience.claims.reading import read_claims
from consilience.datasets.capitals import capitals
from consilience.datasets.synthetic import planted
from consilience.errors import UnsuitableTableError
from consilience.models.registry import MODELS
from consilience.results.fit import Fit

FOLDER = Path(__file__).parent
TOLERANCE = 1e-4
"""Of probabilities, of reliabilities, and of the bound as a share of itself: other versions of NumPy, SciPy and
Numba round differently, and where an ascent stops depends on it."""


def answer(fit: Fit) -> dict[str, Any]:
    """What is kept of a fit: by name, in the order of the names, with no more digits than are compared."""
    sources = sorted(fit.sources.to_pylist(), key=lambda row: row["source"])
    return {
        "decisions": {row["object"]: row["value"] for row in fit.truths.to_pylist()},
        "probabilities": {row["object"]: round(row["probability"], 6) for row in fit.truths.to_pylist()},
        "reliabilities": {row["source"]: round(row["reliability"], 6) for row in sources},
        "n_groups": fit.n_groups,
        "bound": None if fit.bound is None else round(fit.bound, 4),
    }


def differences(found: dict[str, Any], kept: dict[str, Any]) -> list[str]:
    """Everything in which two answers differ, in words."""
    told = []
    if found["n_groups"] != kept["n_groups"]:
        told.append(f"n_groups: {found['n_groups']} instead of {kept['n_groups']}")
    if found["bound"] != kept["bound"] and not _close(
        found["bound"], kept["bound"], abs(kept["bound"] or 0.0)
    ):
        told.append(f"bound: {found['bound']} instead of {kept['bound']}")
    for key in ("decisions", "probabilities", "reliabilities"):
        for name in sorted({*found[key], *kept[key]}):
            now, before = found[key].get(name), kept[key].get(name)
            same = now == before if key == "decisions" else _close(now, before)
            if not same:
                told.append(f"{key}: {name}: {now} instead of {before}")
    return told


def _close(now: float | None, before: float | None, scale: float = 1.0) -> bool:
    return now is not None and before is not None and abs(now - before) <= TOLERANCE * scale


@pytest.mark.parametrize("name", MODELS)
def test_answers_are_those_in_the_golden_file(name: str, request: pytest.FixtureRequest) -> None:
    try:
        fit = MODELS[name]().fit(read_claims(capitals(seed=0).claims))
    except UnsuitableTableError:
        fit = MODELS[name]().fit(read_claims(planted("good-leader", n_objects=60, seed=0).claims))
    found = answer(fit)
    path = FOLDER / f"{name}.json"
    if request.config.getoption("--rewrite-golden"):
        path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
        return
    assert path.is_file(), f"{path.name} is missing: run `make golden`, look at the file, commit it"
    told = differences(found, json.loads(path.read_text("utf-8")))
    assert not told, "\n".join([f"{name} answers differently; `make golden` if that is meant:", *told])


def test_every_golden_file_belongs_to_a_model() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} <= set(MODELS)


def test_a_changed_answer_is_noticed() -> None:
    kept = json.loads((FOLDER / "vote.json").read_text("utf-8"))
    assert not differences(kept, kept)
    country = next(iter(kept["decisions"]))
    for key, other in (("decisions", "Atlantis"), ("probabilities", 0.123), ("reliabilities", None)):
        name = country if key != "reliabilities" else next(iter(kept["reliabilities"]))
        changed = {**kept, key: {**kept[key], name: other}}
        assert len(differences(changed, kept)) == 1
    assert len(differences({**kept, "bound": -1.0}, kept)) == 1
    assert len(differences({**kept, "n_groups": 3}, kept)) == 1
