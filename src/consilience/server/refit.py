"""A refit with the answers of reviewers, in a process of its own: python -m consilience.server.refit FOLDER

The same model, settings and seed as before. It writes its progress to stdout, a JSON object a line. The result
appears whole in the folder's place; a refit that is stopped changes nothing.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from consilience.claims.id_types import is_text
from consilience.errors import ConsilienceError, InputError
from consilience.models import registry
from consilience.report.write import summary_of, write_report
from consilience.results.fit import Fit
from consilience.results.manifest import REPORT
from consilience.results.storage import check_target, load, save
from consilience.results.tables import ids, values_of
from consilience.server.reviews import Reviews
from consilience.server.shapes import text_of

EVERY = 0.1
"""Seconds between lines of progress."""


def refit(folder: str, tell: Any) -> None:
    """Fit the claims of a saved result again, with the answers as known truths, and save it in the same place."""
    check_target(folder)
    reviews = Reviews.beside(folder)
    before = load(folder)
    answers = reviews.answers()
    known = known_truths(before, answers, reviews.applied())
    model = registry.model(before.model, **_settings(before.settings))
    after = model.fit(before.claims, known=known, seed=before.seed, progress=tell)
    # First this: else a result that knows an answer could be taken for one that was given the truth.
    reviews.apply(list(answers))
    had_report = (Path(folder) / REPORT).exists()
    saved = save(after, folder)
    reviews.close()
    if had_report:
        # The page that lay in the result, made anew; one that cannot be made does not cost the result.
        with suppress(Exception):
            write_report(summary_of(after), saved / REPORT)


def known_truths(fit: Fit, answers: Mapping[str, str], applied: set[str]) -> pa.Table | None:
    """What the fit was given, and the answers; truths that earlier answers brought in count only while they stand.

    An answer about an object that is not in this result is left alone; one whose value nobody claims is a new value,
    where values are text and domains are what was claimed.
    """
    objects = ids(fit.claims.objects)
    number = {text_of(each): m for m, each in enumerate(objects.to_pylist())}
    truths: dict[int, Any] = {}
    if fit.known is not None:
        given = np.flatnonzero(fit.known)
        names = [text_of(each) for each in objects.take(pa.array(given)).to_pylist()]
        values = values_of(fit.claims, fit.decision[given]).to_pylist()
        truths = {
            int(m): value for m, name, value in zip(given, names, values, strict=True) if name not in applied
        }
    for name, text in answers.items():
        if name in number:
            m = number[name]
            truths[m] = _value(fit, m, name, text)
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
        refit(sys.argv[1], _telling())
    except ConsilienceError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
