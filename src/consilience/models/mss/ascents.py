"""Structured and mean-field inference: coordinate ascent from random memberships, under fixed settings or a grid of
them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import digamma

from consilience.claims.encoding import Claims
from consilience.errors import SettingsError
from consilience.kernels.choose import Kernel
from consilience.kernels.state import LARGEST_SCORE, Globals, Prior, Stats
from consilience.models.base import Ascent, Place, Progress, ascend
from consilience.models.mss.bound import bound_terms
from consilience.models.mss.found import Found
from consilience.models.mss.marks import mark_of, restored
from consilience.models.mss.starts import random_start
from consilience.models.mss.table import Table
from consilience.models.mss.updates import global_step, relabel
from consilience.results.checkpoint import Checkpoint

LOST = "settings that lost"
"""Under this key a checkpoint has those of the grid that need not be tried again."""
NEGLIGIBLE = 1e-4
"""A membership below this is proposed for removal: an empty pair (group, object) costs bound and time."""


@dataclass(frozen=True, eq=False)
class Climb:
    """Everything that ascents under any settings share."""

    claims: Claims
    table: Table
    kernel: Kernel
    mean_field: bool
    n_groups: int
    n_starts: int
    max_sweeps: int
    tolerance: float
    seed: int
    progress: Progress | None
    checkpoint: Checkpoint

    def best(self, priors: Sequence[Prior]) -> Found:
        """Of the best settings every start, the best first."""
        _check_range(priors, self.claims)
        checkpoint = self.checkpoint
        lost = list((checkpoint.mark(LOST) or {"settings": ()})["settings"])
        best: list[Ascent[Globals, Sequence[Any]]] = []
        winner = 0
        for i, prior in enumerate(priors):
            if i in lost:
                continue
            of_settings = f"settings {i + 1}/{len(priors)}, " if len(priors) > 1 else ""
            ascents = [self._ascend(prior, of_settings, j) for j in range(self.n_starts)]
            ascents.sort(key=lambda ascent: -ascent.bound)
            wins = not best or ascents[0].bound > best[0].bound
            if best:
                lost.append(winner if wins else i)
                checkpoint.forget(f"settings {lost[-1] + 1}/{len(priors)}, ")
                checkpoint.note(LOST, {"settings": tuple(lost)})
            if wins:
                best, chosen, winner = ascents, prior, i
        return Found(
            table=self.table,
            locals=[each.locals for each in best],
            starts=[{"bound": each.bound, "sweeps": len(each.trace)} for each in best],
            groups=best[0].globals,
            prior=chosen,
            trace=best[0].trace,
            converged=best[0].converged,
        )

    def _ascend(self, prior: Prior, of_settings: str, j: int) -> Ascent[Globals, Sequence[Any]]:
        rng = np.random.default_rng([self.seed, j])
        stage = f"{of_settings}start {j + 1}/{self.n_starts}"
        step = self.kernel.mean_field if self.mean_field else self.kernel.structured
        runner, shards = self.table.runner, self.table.shards
        warm: Sequence[Any] = [None] * len(shards)

        def local_step(given: Globals) -> tuple[Sequence[Any], Stats]:
            nonlocal warm
            locals_, stats = runner.map_sum(step, shards, given, prior, warm)
            warm = locals_ if self.mean_field else warm
            return locals_, stats

        def reached(place: Place[Globals]) -> None:
            if self.checkpoint.is_kept:
                self.checkpoint.note(stage, mark_of(place, runner.fetch(warm) if self.mean_field else warm))

        start: Globals | Place[Globals] = random_start(
            self.claims, prior, self.n_groups, rng, tail=self.mean_field
        )
        if mark := self.checkpoint.mark(stage):
            start, warm = restored(mark, shards)
        return ascend(
            start,
            local_step=local_step,
            global_step=partial(global_step, prior=prior),
            bound=partial(bound_terms, prior=prior),
            tidy=None if self.mean_field else partial(_tidy, prior=prior),
            max_sweeps=self.max_sweeps,
            tolerance=self.tolerance,
            progress=partial(self.progress, stage) if self.progress else None,
            reached=reached,
        )


def _tidy(given: Globals, prior: Prior) -> Globals:
    """Memberships worth less than NEGLIGIBLE go to the source's other groups; groups are numbered by size."""
    weight = np.where(given.membership < NEGLIGIBLE, 0.0, given.membership)
    weight /= weight.sum(axis=1, keepdims=True)
    return relabel(Globals(given.group, weight, given.group_reliability, given.sticks), prior)


def _check_range(priors: Sequence[Prior], claims: Claims) -> None:
    """Scores are sums of E ln π over a source's claims in fixed point: refuse counts whose logarithms overflow it."""
    smallest = min(min(prior.true_count.min(), prior.false_count.min()) for prior in priors)
    most = int(np.bincount(claims.claim_source).max())
    if most * -float(digamma(smallest)) > LARGEST_SCORE:
        least = most / LARGEST_SCORE
        raise SettingsError("counts", f"at least {least:.1g} for a source with {most:,} claims", smallest)
