"""A refit with the answers of reviewers, in a process of its own: python -m consilience.server.refit FOLDER

The same model, settings and seed as before. It writes its progress to stdout, a JSON object a line. The result
appears whole in the folder's place; a refit that is stopped changes nothing.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from consilience.claims.id_types import is_text
from consilience.claims.words import quantity
from consilience.errors import ConsilienceError, InputError
from consilience.models import registry
from consilience.report.write import summary_of, write_report
from consilience.results.fingerprint import fingerprint
from consilience.results.fit import Fit
from consilience.results.manifest import REPORT
from consilience.results.storage import check_target, load, save
from consilience.results.tables import ids, values_of
from consilience.server.reviews import Reviews
from consilience.server.shapes import text_of

REFIT = "refit"
"""In the provenance of a result: which refit made it."""
EVERY = 0.1
"""Seconds between lines of progress."""


def refit(folder: str, tell: Any) -> str:
    """Fit the claims of a saved result again, with the answers as known truths, and save it in the same place.

    A report that lay in the result is made anew; one that cannot be made does not cost the result. Returns why it could
    not, empty where all is well.
    """
    check_target(folder)
    before = load(folder)
    reviews = Reviews.beside(folder, fingerprint(before.claims))
    answers = reviews.answers()
    given = given_truths(before, reviews.replaced(refit_of(before)))
    known = known_truths(before, given, answers)
    model = registry.model(before.model, **_settings(before.settings))
    after = model.fit(before.claims, known=known, seed=before.seed, progress=tell)
    made = f"with {quantity(len(answers), 'answer')}, {datetime.now(UTC).isoformat()}"
    after = replace(after, provenance={**after.provenance, REFIT: made})
    # First this: else a result that knows an answer could be taken for one that was given the truth.
    reviews.replace(made, {name: text_of(given[name]) if name in given else None for name in answers})
    had_report = (Path(folder) / REPORT).exists()
    saved = save(after, folder)
    if had_report:
        try:
            write_report(summary_of(after), saved / REPORT)
        except Exception as error:
            return str(error) or type(error).__name__
    return ""


def refit_of(fit: Fit) -> str:
    """Which refit made this result; empty for none."""
    return str(fit.provenance.get(REFIT, ""))


def given_truths(fit: Fit, replaced: Mapping[str, str | None]) -> dict[str, Any]:
    """The truths that were given to the model by object, answers of reviewers apart.

    replaced : the objects whose truth the fit has from an answer, with what had been given before, None for nothing
    """
    if fit.known is None:
        return {}
    known = np.flatnonzero(fit.known)
    names = [text_of(each) for each in ids(fit.claims.objects).take(pa.array(known)).to_pylist()]
    values = values_of(fit.claims, fit.decision[known]).to_pylist()
    given: dict[str, Any] = {}
    for m, name, value in zip(known.tolist(), names, values, strict=True):
        if name not in replaced:
            given[name] = value
        elif (text := replaced[name]) is not None:
            given[name] = _value(fit, m, name, text)
    return given


def known_truths(fit: Fit, given: Mapping[str, Any], answers: Mapping[str, str]) -> pa.Table | None:
    """What was given, and in its place the answers.

    An answer about an object that is not in this result is left alone; one whose value nobody claims is a new value,
    where values are text and domains are what was claimed.
    """
    objects = ids(fit.claims.objects)
    number = {text_of(each): m for m, each in enumerate(objects.to_pylist())}
    truths = {number[name]: value for name, value in given.items()}
    truths |= {
        number[name]: _value(fit, number[name], name, text)
        for name, text in answers.items()
        if name in number
    }
    if not truths:
        return None
    kind = ids(fit.claims.values).type
    return pa.table(
        {"object": objects.take(pa.array(list(truths))), "value": pa.array(list(truths.values()), kind)}
    )


def _value(fit: Fit, m: int, name: str, text: str) -> Any:
    first, last = fit.claims.first_candidate[m], fit.claims.first_candidate[m + 1]
    for value in values_of(fit.claims, np.arange(first, last)).to_pylist():
        if text_of(value) == text:
            return value
    if can_be_new(fit):
        return text
    raise InputError(
        f"The answer on {name!r} is {text!r}, which it cannot be in this result: undo that answer."
    )


def can_be_new(fit: Fit) -> bool:
    """Whether an answer may be a value that nobody claims."""
    return fit.claims.domain == "claimed" and is_text(ids(fit.claims.values).type)


def _settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as they came back from JSON; pairs are tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}


def _telling() -> Any:
    last = 0.0

    def tell(stage: str, sweep: int, bound: float) -> None:
        nonlocal last
        if time.monotonic() - last >= EVERY:
            last = time.monotonic()
            progress = {"stage": stage, "sweep": sweep, "bound": bound if isfinite(bound) else None}
            sys.stdout.write(json.dumps(progress) + "\n")
            sys.stdout.flush()

    return tell


def main() -> None:
    """Refit; an error of the user's is the last line of stderr, without a traceback."""
    try:
        if warning := refit(sys.argv[1], _telling()):
            sys.stdout.write(json.dumps({"warning": warning}) + "\n")
    except ConsilienceError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
