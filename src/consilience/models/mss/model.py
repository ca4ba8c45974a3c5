"""MSS: the model's settings and its fit, from claims to an answer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.special import betaincinv

from consilience.claims.encoding import Claims, Float, Shard
from consilience.errors import SettingsError
from consilience.kernels.choose import Kernel
from consilience.kernels.choose import choose as choose_kernel
from consilience.kernels.state import Globals, Locals, Prior, Stats
from consilience.models.base import (
    Ascent,
    Progress,
    as_claims,
    ascend,
    log_truth_prior,
    provenance,
    settings_of,
)
from consilience.models.mss.bound import bound_terms
from consilience.models.mss.select import grid
from consilience.models.mss.starts import random_start
from consilience.models.mss.updates import global_step, relabel
from consilience.results.decide import decide
from consilience.results.fit import Fit
from consilience.runners.base import Runner
from consilience.runners.choose import choose as choose_runner

INFERENCES = ("structured", "mean-field")
NEGLIGIBLE = 1e-4
"""A membership below this is proposed for removal: an empty pair (group, object) costs bound and time."""


@dataclass(frozen=True)
class MSS:
    """Multi-source sensing: latent groups of dependent sources, whose evidence counts once.

    After "Learning from Collective Intelligence in Groups" (ICML 2013); docs/theory says what differs and why. In pairs
    of settings the first number is for an unreliable group (r = 0), the second for a reliable one (r = 1).
    """

    name: ClassVar[str] = "mss"

    inference: str = "structured"
    """"structured" sums each object out exactly; "mean-field" is the paper's six updates."""
    true_count: tuple[float, float] = (0.1, 10.0)
    """η: soft counts of the true value."""
    false_count: tuple[float, float] = (0.1, 0.5)
    """θ: soft counts of each false value. θ⁰ = η⁰ makes unreliable groups careless, θ⁰ > η⁰ malicious."""
    reliability: tuple[float, float] = (1.0, 2.0)
    """b: prior counts of objects on which a group is unreliable and reliable."""
    concentration: float = 5.0
    """κ: two sources share a group with prior probability 1 / (1 + κ)."""
    max_groups: int = 30
    """Truncation of the infinitely many groups."""
    select: str | None = None
    """"grid" tries the paper's grid of counts and concentrations and keeps the highest bound."""
    n_starts: int = 4
    """Random starts; the highest bound wins."""
    max_sweeps: int = 300
    """Sweeps of one start at the most; a start that reaches them is warned of."""
    tolerance: float = 1e-6
    """Converged when a sweep raises the bound by less than this share of it."""

    def __post_init__(self) -> None:
        _check(self)

    def fit(
        self,
        claims: Any,
        *,
        known: Any = None,
        seed: int = 0,
        engine: str = "auto",
        runner: str | Runner = "inline",
        progress: Progress | None = None,
    ) -> Fit:
        """Find truths, groups and reliabilities.

        claims   : Claims, or anything `read_claims` takes
        known    : truths of some objects that the model may use (a table or a dict of object to value)
        seed     : decides everything random
        engine, runner : how and where it is computed; they never change the answer
        """
        kernel, where = choose_kernel(engine), choose_runner(runner)
        claims, log_truth = log_truth_prior(as_claims(claims), known)
        started = time.perf_counter()
        shards = list(claims.shards(where.n_shards(claims.n_claims), log_truth))

        best: tuple[Ascent[Globals, Sequence[Locals]], Prior] | None = None
        priors = list(grid()) if self.select == "grid" else [self._prior()]
        for i, prior in enumerate(priors):
            for j in range(self.n_starts):
                rng = np.random.default_rng([seed, j])
                stage = f"settings {i + 1}/{len(priors)}, start {j + 1}/{self.n_starts}"
                ascent = self._ascend(claims, shards, prior, rng, kernel, where, stage, progress)
                if best is None or ascent.bound > best[0].bound:
                    best = ascent, prior
        assert best is not None
        return self._fit_of(claims, best[0], best[1], seed, kernel, where, time.perf_counter() - started)

    def _ascend(
        self,
        claims: Claims,
        shards: Sequence[Shard],
        prior: Prior,
        rng: np.random.Generator,
        kernel: Kernel,
        runner: Runner,
        stage: str,
        progress: Progress | None,
    ) -> Ascent[Globals, Sequence[Locals]]:
        mean_field = self.inference == "mean-field"
        n_groups = min(self.max_groups, claims.n_sources)
        step = kernel.mean_field if mean_field else kernel.structured
        warm: Sequence[Locals | None] = [None] * len(shards)

        def local_step(given: Globals) -> tuple[Sequence[Locals], Stats]:
            nonlocal warm
            locals_, stats = runner.map_sum(step, shards, given, prior, warm)
            warm = locals_ if mean_field else warm
            return locals_, stats

        return ascend(
            random_start(claims, prior, n_groups, rng, tail=mean_field),
            local_step=local_step,
            global_step=partial(global_step, prior=prior),
            bound=partial(bound_terms, prior=prior),
            tidy=None if mean_field else _drop_negligible,
            max_sweeps=self.max_sweeps,
            tolerance=self.tolerance,
            progress=partial(progress, stage) if progress else None,
        )

    def _fit_of(
        self,
        claims: Claims,
        ascent: Ascent[Globals, Sequence[Locals]],
        prior: Prior,
        seed: int,
        kernel: Kernel,
        runner: Runner,
        seconds: float,
    ) -> Fit:
        truth = np.concatenate([locals_.truth for locals_ in ascent.locals])
        decision, ties = decide(truth, claims.first_candidate, seed)
        found = relabel(ascent.globals) if self.inference == "structured" else ascent.globals
        warnings = (
            ()
            if ascent.converged
            else (f"Not converged after {len(ascent.trace)} sweeps: raise max_sweeps.",)
        )
        return Fit(
            model=self.name,
            settings=settings_of(self),
            learned=_as_settings(prior) if self.select else {},
            claims=claims,
            truth=truth,
            decision=decision,
            source_reliability=source_reliability(found, prior),
            seed=seed,
            ties=ties,
            sweeps=len(ascent.trace),
            converged=ascent.converged,
            seconds=seconds,
            trace=ascent.trace,
            groups_found=found,
            prior=prior,
            warnings=warnings,
            provenance=provenance(kernel.name, runner.name),
        )

    def _prior(self) -> Prior:
        return Prior(
            np.array(self.true_count, float),
            np.array(self.false_count, float),
            np.array(self.reliability, float),
            float(self.concentration),
        )


def source_reliability(found: Globals, prior: Prior, level: float = 0.9) -> Float:
    """(n_sources, 3): Σ_l q(g_n = l) E[u_l] (the paper's formula) and an interval.

    The posterior of a source's reliability is a mixture of its groups' Betas; the interval is that of the Beta with
    the mixture's mean and variance. A source in the tail is as reliable as the prior says.
    """
    beta = np.vstack(
        [found.reliability, prior.reliability]
    )  # the last row serves the tail, at index n_groups
    total = beta.sum(axis=1)
    mean = beta[:, 1] / total
    square = mean**2 + mean * (1 - mean) / (total + 1)
    source_mean = np.sum(found.weight * mean[found.group], axis=1)
    variance = np.maximum(np.sum(found.weight * square[found.group], axis=1) - source_mean**2, 1e-12)
    strength = np.maximum(source_mean * (1 - source_mean) / variance - 1, 1e-6)
    a, b = source_mean * strength, (1 - source_mean) * strength
    tail = (1 - level) / 2
    return np.column_stack([source_mean, betaincinv(a, b, tail), betaincinv(a, b, 1 - tail)])


def _drop_negligible(given: Globals) -> Globals:
    """Memberships worth less than NEGLIGIBLE go to the source's other groups."""
    weight = np.where(given.weight < NEGLIGIBLE, 0.0, given.weight)
    if np.array_equal(weight > 0, given.weight > 0):
        return given
    return Globals(given.group, weight / weight.sum(axis=1, keepdims=True), given.reliability, given.sticks)


def _as_settings(prior: Prior) -> dict[str, Any]:
    return {
        "true_count": prior.true_count.tolist(),
        "false_count": prior.false_count.tolist(),
        "reliability": prior.reliability.tolist(),
        "concentration": prior.concentration,
    }


def _check(model: MSS) -> None:
    """Every setting within what it means, or a SettingsError."""
    if model.inference not in INFERENCES:
        raise SettingsError("inference", "one of " + ", ".join(INFERENCES), model.inference)
    if model.select not in (None, "grid"):
        raise SettingsError("select", "None or 'grid'", model.select)
    for setting in ("true_count", "false_count", "reliability"):
        pair = getattr(model, setting)
        if len(pair) != 2 or not all(np.isfinite(x) and x > 0 for x in pair):
            raise SettingsError(setting, "two positive numbers, for r = 0 and r = 1", pair)
    if not model.true_count[1] > model.false_count[1]:
        raise SettingsError(
            "true_count",
            f"greater than false_count ({model.false_count[1]}) for a reliable group",
            model.true_count,
        )
    if not model.true_count[0] <= model.false_count[0]:
        raise SettingsError(
            "true_count",
            f"at most false_count ({model.false_count[0]}) for an unreliable group",
            model.true_count,
        )
    for setting in ("concentration", "tolerance"):
        if not (np.isfinite(getattr(model, setting)) and getattr(model, setting) > 0):
            raise SettingsError(setting, "a positive number", getattr(model, setting))
    for setting in ("max_groups", "n_starts", "max_sweeps"):
        if not (isinstance(getattr(model, setting), int) and getattr(model, setting) >= 1):
            raise SettingsError(setting, "a positive whole number", getattr(model, setting))
