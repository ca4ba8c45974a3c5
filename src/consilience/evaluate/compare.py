"""All models on one table, run the same way: how right, how sure, how fast, how large."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from consilience.claims.frames import to_frame
from consilience.errors import ConsilienceError, SettingsError
from consilience.kernels.choose import choose as choose_kernel
from consilience.memory import grown
from consilience.models import registry
from consilience.models.base import Model, Progress, as_claims, whole_number
from consilience.results.fit import Fit
from consilience.results.score import Score, gold_candidates

SMALL = [("a", "x", "1"), ("b", "x", "1"), ("c", "x", "2"), ("a", "y", "1"), ("b", "y", "2")]
"""Every model is first fitted to this, so that what it loads and compiles is not counted."""
SCHEMA = pa.schema(
    [
        ("model", pa.string()),
        ("n_gold", pa.int64()),
        ("accuracy", pa.float64()),
        ("log_loss", pa.float64()),
        ("calibration_error", pa.float64()),
        ("seconds", pa.float64()),
        ("sweeps", pa.int64()),
        ("converged", pa.bool_()),
        ("peak_memory", pa.int64()),
        ("n_groups", pa.int64()),
        ("bound", pa.float64()),
        ("warnings", pa.list_(pa.string())),
        ("error", pa.string()),
    ]
)


@dataclass(frozen=True)
class Outcome:
    """What became of one model; what does not apply is None.

    log_loss, calibration_error : for models whose truths are probabilities
    seconds                     : of the fit alone
    peak_memory                 : bytes by which the process had grown at the height of the fit, on Linux; fewer
                                  where earlier fits have left room
    error                       : why it failed, where it did
    """

    model: str
    n_gold: int | None = None
    accuracy: float | None = None
    log_loss: float | None = None
    calibration_error: float | None = None
    seconds: float | None = None
    sweeps: int | None = None
    converged: bool | None = None
    peak_memory: int | None = None
    n_groups: int | None = None
    bound: float | None = None
    warnings: tuple[str, ...] = ()
    error: str | None = None


def compare(
    claims: Any,
    *,
    truth: Any = None,
    models: str | Model | Sequence[str | Model] = "all",
    known: Any = None,
    seed: int = 0,
    engine: str = "auto",
    progress: Progress | None = None,
) -> Any:
    """A frame with a row for each model: model, accuracy, log_loss, calibration_error, seconds, sweeps, peak_memory, …

    claims : Claims, or anything `read_claims` takes
    truth  : gold, which scores; no model sees it
    models : names, or models with settings of your own; "all" are those of `consilience.models()`
    known  : truths of some objects that every model may use
    """
    table = as_claims(claims)
    outcomes = list(
        run(table, named(models), truth=truth, known=known, seed=seed, engine=engine, progress=progress)
    )
    return to_frame(pa.Table.from_pylist([asdict(each) for each in outcomes], schema=SCHEMA), table.frame)


def run(
    claims: Any,
    models: Sequence[Model],
    *,
    truth: Any = None,
    known: Any = None,
    seed: int = 0,
    engine: str = "auto",
    progress: Progress | None = None,
) -> Iterator[Outcome]:
    """The models one after another, each outcome when it is there. What no model could use is an error at once."""
    claims = as_claims(claims)
    choose_kernel(engine)
    seed = whole_number("seed", seed, 0)
    if truth is not None:
        gold_candidates(truth, claims)
    if known is not None:
        gold_candidates(known, claims, "known")
    for model in models:
        try:
            how = {"known": known, "seed": seed, "engine": engine, "progress": progress}
            yield examine(model, claims, truth, **how)[0]
        except Exception as error:
            yield Outcome(model.name, error=told(error))


def told(error: Exception) -> str:
    """An error in one line or more, for a table of outcomes."""
    return str(error) if isinstance(error, ConsilienceError) else f"{type(error).__name__}: {error}"


def named(models: str | Model | Sequence[str | Model]) -> list[Model]:
    """Models by their names, or as they are; "all" is every one."""
    wanted: Sequence[str | Model]
    if models == "all":
        wanted = list(registry.MODELS)
    elif isinstance(models, str) or not isinstance(models, Sequence):
        wanted = [models]
    else:
        wanted = models
    for each in wanted:
        if not isinstance(each, str) and not hasattr(each, "fit"):
            raise SettingsError("models", "names of models, or models", each)
    return [registry.model(each) if isinstance(each, str) else each for each in wanted]


def examine(
    model: Model, claims: Any, truth: Any, *, engine: str = "auto", **how: Any
) -> tuple[Outcome, Fit]:
    """One model: what became of it, and its fit."""
    warm_up(model, engine)
    how["engine"] = engine
    fit, peak = grown(lambda: model.fit(claims, **how))
    score: Score | None = None if truth is None else fit.score(truth)
    sure = score is not None and getattr(model, "probabilistic", True)
    outcome = Outcome(
        model=model.name,
        n_gold=None if score is None else score.n_gold,
        accuracy=None if score is None else score.accuracy,
        log_loss=score.log_loss if score is not None and sure else None,
        calibration_error=score.calibration_error if score is not None and sure else None,
        seconds=fit.seconds,
        sweeps=fit.sweeps,
        converged=fit.converged,
        peak_memory=peak,
        n_groups=fit.n_groups,
        bound=fit.bound,
        warnings=fit.warnings,
    )
    return outcome, fit


def warm_up(model: Model, engine: str = "auto") -> None:
    """Load and compile what the model needs, so that a fit that is timed need not."""
    with suppress(Exception):
        model.fit(SMALL, engine=engine)
