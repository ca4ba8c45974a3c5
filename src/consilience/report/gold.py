"""What gold adds to a summary: how right the answer is, beside rivals, and how honest its probabilities are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from consilience.claims.reading import read_truths
from consilience.claims.truths import Truths, written_otherwise
from consilience.evaluate.compare import named, told
from consilience.evaluate.metrics import bootstrap
from consilience.report.summary import Calibration, Gold, Rival
from consilience.results.fit import Fit
from consilience.results.score import BINS, gold_candidates, is_right
from consilience.results.tables import ids, is_found, values_of


@dataclass(frozen=True)
class Ran:
    """A rival that was run: its fit, or why there is none."""

    model: str
    fit: Fit | None = None
    error: str | None = None


def run_rivals(fit: Fit, models: str | Sequence[str]) -> list[Ran]:
    """Other models on the claims of a fit, with the truths that it was given; "all" are those of the registry."""
    given = None
    if fit.known is not None and fit.known.any():
        given = Truths(
            ids(fit.claims.objects).filter(fit.known), values_of(fit.claims, fit.decision[fit.known])
        )
    ran = []
    for model in named(models):
        if model.name == fit.model:
            continue
        try:
            ran.append(Ran(model.name, model.fit(fit.claims, known=given, seed=fit.seed)))
        except (
            Exception
        ) as error:  # a rival that fails is a row that says so, and no reason to have no report
            reason = told(error).partition("\n")[0].removeprefix(f"{model.name} ")
            ran.append(Ran(model.name, error=f"{model.name} {reason}"))
    return ran


def against_gold(fit: Fit, truth: Any, ran: Sequence[Ran]) -> Gold:
    """Score, calibration curve, and rivals by accuracy."""
    score, right = fit.score(truth), is_right(fit, truth)
    rivals: list[Rival] = []
    if len(right):
        rivals = [_rival(Ran(fit.model, fit), truth), *(_rival(each, truth) for each in ran)]
    rivals.sort(key=lambda rival: -1.0 if rival.accuracy is None else -rival.accuracy)
    worked = [rival for rival in rivals if rival.error is None]
    failed = [rival for rival in rivals if rival.error is not None]
    return Gold(
        n_gold=score.n_gold,
        n_known=score.n_known,
        n_unclaimed=score.n_unclaimed,
        n_outside=score.n_outside,
        n_right=int(np.count_nonzero(right)),
        accuracy=score.accuracy,
        log_loss=score.log_loss,
        calibration_error=score.calibration_error,
        calibration=_calibration(fit, truth),
        rivals=tuple(worked + failed),
        otherwise=written_otherwise(read_truths(truth), fit.claims, fit.known) if score.n_outside else "",
    )


def _rival(ran: Ran, truth: Any) -> Rival:
    if ran.fit is None:
        return Rival(ran.model, None, None, None, None, ran.error)
    right = is_right(ran.fit, truth)
    return Rival(ran.model, float(right.mean()), *bootstrap(right), ran.fit.seconds)


def _calibration(fit: Fit, truth: Any) -> tuple[Calibration, ...]:
    """Bins of about equally many decisions; equal probabilities share one, as in the calibration error."""
    gold, _ = gold_candidates(truth, fit.claims)
    scored = np.flatnonzero((gold != -1) & is_found(fit))
    if not len(scored):
        return ()
    probability, right = fit.truth[fit.decision[scored]], fit.decision[scored] == gold[scored]
    bin_of = np.searchsorted(np.quantile(probability, np.linspace(0, 1, BINS + 1)[1:-1]), probability)
    return tuple(
        Calibration(
            float(probability[bin_of == b].mean()), float(right[bin_of == b].mean()), int(np.sum(bin_of == b))
        )
        for b in np.unique(bin_of)
    )
