"""MSS: the model's settings and its fit, from claims to an answer."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from numbers import Real
from typing import Any, ClassVar, overload

import numpy as np

from consilience.claims.encoding import Claims, Int
from consilience.errors import SettingsError
from consilience.kernels.choose import Kernel
from consilience.kernels.choose import choose as choose_kernel
from consilience.kernels.state import Beliefs, Prior
from consilience.models.base import (
    Progress,
    Resumable,
    as_claims,
    as_truths,
    digests,
    identity_of,
    provenance,
    settings_of,
    truth_prior,
    whole_number,
)
from consilience.models.mss.answer import Answer, answer
from consilience.models.mss.ascents import Climb
from consilience.models.mss.found import Found
from consilience.models.mss.partition import DIFFERENT, best_partition, is_close
from consilience.models.mss.search import Search
from consilience.models.mss.select import grid
from consilience.models.mss.spread import digests_of, prepared
from consilience.models.mss.table import Table, with_domains
from consilience.results.cautions import Caution, disconnected, one_group
from consilience.results.checkpoint import Checkpoint
from consilience.results.fit import Fit
from consilience.results.spread import SpreadFit
from consilience.runners.base import Runner
from consilience.runners.choose import choose as choose_runner
from consilience.runners.spread import Spread

INFERENCES = ("partition", "structured", "mean-field")
COUNTS = {
    "structured": ((0.1, 10.0), (0.1, 0.5)),
    "mean-field": ((1.0, 5.0), (1.0, 1.0)),
}
"""By inference: true and false counts where none are given. Below one they say that copiers agree sharply on anything
(docs/theory/model.md); mean-field cannot use that and collapses, so it gets counts from the paper's grid."""
SMALLEST, LARGEST = 1e-9, 1e6
"""Of counts, b and κ of the paper's inferences: far beyond, sums of Γ and ψ lose the digits that the bound needs."""
RELIABILITY, CONCENTRATION, GROUPS = (1.0, 2.0), 5.0, 30
"""b, κ and the truncation of structured and mean-field inference, where none are given."""


@dataclass(frozen=True)
class MSS:
    """Multi-source sensing: latent groups of dependent sources, whose evidence counts once.

    After "Learning from Collective Intelligence in Groups" (ICML 2013); docs/theory says what differs and why. In
    pairs of settings the first number is for an unreliable group (r = 0), the second for a reliable one (r = 1).
    """

    name: ClassVar[str] = "mss"

    inference: str = "partition"
    """"partition" gives every source one group, searches for the best partition and learns all settings from the data;
    "structured" climbs from random memberships under fixed settings; "mean-field" is the paper's six updates."""
    concentration: float | None = None
    """κ: two sources share a group with prior probability 1 / (1 + κ). None learns it under partition inference, and
    raises it to the power of `fit.learned["design_effect"]` where strangers share mistakes; it is 5 otherwise."""
    true_count: tuple[float, float] | None = None
    """η: soft counts of the true value. Learned under partition inference; None is (0.1, 10) for structured, (1, 5) for
    mean-field."""
    false_count: tuple[float, float] | None = None
    """θ: soft counts of each false value. θ⁰ = η⁰ makes unreliable groups careless, θ⁰ > η⁰ malicious. Learned under
    partition inference; None is (0.1, 0.5) for structured, (1, 1) for mean-field."""
    reliability: tuple[float, float] | None = None
    """b: prior counts of objects on which a group is unreliable and reliable. Learned under partition inference; None
    is (1, 2) otherwise."""
    max_groups: int | None = None
    """Truncation of the infinitely many groups. Partition inference needs none; None is 30 otherwise."""
    select: str | None = None
    """"grid" tries the paper's grid of counts, reliabilities and concentrations in place of those set here, and
    keeps the highest bound; for structured and mean-field inference."""
    n_starts: int = 3
    """Starts; the highest bound wins. Under partition inference the first has every source alone, the second groups by
    agreement, all others are random; with more than 4,000 sources there are two at the most."""
    max_sweeps: int = 300
    """Sweeps of one ascent at the most; one that reaches them is warned of."""
    tolerance: float = 1e-5
    """Converged when a sweep raises the bound by less than this share of it."""

    def __post_init__(self) -> None:
        _check(self)

    @overload
    def fit(
        self,
        claims: Spread,
        *,
        known: Any = None,
        seed: int = 0,
        engine: str = "auto",
        runner: str | Runner = "inline",
        progress: Progress | None = None,
        checkpoint: Resumable = None,
    ) -> SpreadFit: ...

    @overload
    def fit(
        self,
        claims: Any,
        *,
        known: Any = None,
        seed: int = 0,
        engine: str = "auto",
        runner: str | Runner = "inline",
        progress: Progress | None = None,
        checkpoint: Resumable = None,
    ) -> Fit: ...

    def fit(
        self,
        claims: Any,
        *,
        known: Any = None,
        seed: int = 0,
        engine: str = "auto",
        runner: str | Runner = "inline",
        progress: Progress | None = None,
        checkpoint: Resumable = None,
    ) -> Fit | SpreadFit:
        """Find truths, groups and reliabilities.

        claims   : Claims, or anything `read_claims` takes; or claims that a cluster read, which stay there
        known    : truths of some objects that the model may use (a table or a dict of object to value)
        seed     : decides everything random
        engine, runner : how and where it is computed. A runner never changes the answer; engines round differently and,
            above 20,000 claims, ask sources in another order, which may tip what is close
        progress : told of every sweep: the stage, its number, the bound
        checkpoint : a file in which a long fit is kept while it runs, removed when it is done; where there is one of
            the same fit it goes on from there, to the same bits
        """
        seed = whole_number("seed", seed, 0)
        kept = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
        if isinstance(claims, Spread):
            if runner not in ("inline", claims.runner):
                raise SettingsError("runner", "left out: the claims are where a cluster read them", runner)
            done = self._fit_spread(claims, known, seed, choose_kernel(engine), progress, kept)
            if kept is not checkpoint:
                kept.remove()
            return done
        choose_kernel(engine)
        where, claims = choose_runner(runner), as_claims(claims)
        kernel = choose_kernel(engine, claims.n_claims)
        claims, log_truth, is_known = truth_prior(claims, known)
        started = time.perf_counter()
        with kept.during(partial(identity_of, self, partial(digests, claims, log_truth), seed, kernel.name)):
            if self.inference == "partition":
                whole, n_labels = with_domains(claims, log_truth, is_known)
                table = Table.of(whole, n_labels, where, kernel.fewest)
                found = self._partition(table, seed, kernel, progress, kept)
            else:
                (whole,) = claims.shards(1, log_truth)
                table = Table.of(whole, 1, where, kernel.fewest)
                found = self._climb(claims, table, seed, kernel, progress, kept)
        reported = answer(found, seed)
        if kept is not checkpoint:
            kept.remove()
        return Fit(
            claims=claims,
            truth=np.concatenate(where.fetch(reported.truth)),
            decision=_in_whole(where.fetch(reported.decision), found.table, claims),
            known=is_known,
            seconds=time.perf_counter() - started,
            provenance=provenance(kernel.name, where.name),
            **self._told(found, reported, claims.sources, seed, kept),
        )

    def _fit_spread(
        self,
        claims: Spread,
        known: Any,
        seed: int,
        kernel: Kernel,
        progress: Progress | None,
        kept: Checkpoint,
    ) -> SpreadFit:
        """The same, of claims that are elsewhere and stay there."""
        if self.inference != "partition":
            raise SettingsError("inference", "'partition' for claims that a cluster read", self.inference)
        started = time.perf_counter()
        known = None if known is None else as_truths(known)
        parts, table = prepared(claims, known, kernel.fewest)
        with kept.during(partial(identity_of, self, partial(digests_of, table), seed, kernel.name)):
            found = self._partition(table, seed, kernel, progress, kept)
        reported = answer(found, seed)
        return SpreadFit(
            claims=claims,
            parts=parts,
            known=known,
            truth=reported.truth,
            decision=reported.decision,
            seconds=time.perf_counter() - started,
            provenance=provenance(kernel.name, claims.runner.name),
            **self._told(found, reported, claims.sources, seed, kept),
        )

    def _told(
        self, found: Found, reported: Answer, sources: Sequence[Any], seed: int, kept: Checkpoint
    ) -> dict[str, Any]:
        """What a fit tells beside truths and decisions."""
        starts = tuple(
            {**start, "agreement": agreement}
            for start, agreement in zip(found.starts, reported.agreement, strict=True)
        )
        return {
            "model": self.name,
            "settings": settings_of(self),
            "learned": learned_settings(found.prior) | reported.learned,
            "source_reliability": reported.reliability,
            "seed": seed,
            "ties": reported.ties,
            "sweeps": int(starts[0]["sweeps"]),
            "converged": found.converged,
            "trace": found.trace,
            "groups_found": found.groups,
            "prior": found.prior,
            "starts": starts,
            "warnings": (
                *self._warnings(found, starts),
                *one_group(found.groups),
                *disconnected(reported.connected, sources),
                *([Caution(kept.trouble)] if kept.trouble else []),
            ),
        }

    def _partition(
        self, table: Table, seed: int, kernel: Kernel, progress: Progress | None, kept: Checkpoint
    ) -> Found:
        search = Search(table, kernel, self.concentration, self.max_sweeps, self.tolerance)
        return best_partition(search, self.n_starts, seed, progress, kept)

    def _climb(
        self,
        claims: Claims,
        table: Table,
        seed: int,
        kernel: Kernel,
        progress: Progress | None,
        kept: Checkpoint,
    ) -> Found:
        climb = Climb(
            claims=claims,
            table=table,
            kernel=kernel,
            mean_field=self.inference == "mean-field",
            n_groups=min(self.max_groups or GROUPS, claims.n_sources),
            n_starts=self.n_starts,
            max_sweeps=self.max_sweeps,
            tolerance=self.tolerance,
            seed=seed,
            progress=progress,
            checkpoint=kept,
        )
        return climb.best(list(grid()) if self.select == "grid" else [self._prior()])

    def _warnings(self, found: Found, starts: Sequence[Mapping[str, float]]) -> Iterator[Caution]:
        """What a user should know before trusting the answer."""
        if not found.converged:
            yield Caution(
                f"Not converged: {self.max_sweeps:,} sweeps were not enough. Raise max_sweeps.",
                "not-converged",
                max_sweeps=self.max_sweeps,
            )
        if len(starts) > 1:
            behind, agreement = starts[0]["bound"] - starts[1]["bound"], starts[1]["agreement"]
            near = max(1.0, 1e-4 * abs(starts[0]["bound"]))
            if self.inference != "partition" and behind > near:
                yield Caution(
                    f"Only one of {len(starts)} starts reached this bound; the next ended {behind:,.0f} nats lower and "
                    f"decides {1 - agreement:.0%} of the objects otherwise. A better answer may exist: raise n_starts.",
                    "lonely-start",
                    behind=behind,
                    agreement=agreement,
                )
        if self.inference == "partition":
            best = starts[0]["bound"]
            close = [
                {**start, "behind": best - start["bound"]}
                for start in starts[1:]
                if is_close(start["bound"], best)
            ]
            for other in (*close, *found.rivals):
                behind, agreement = other["behind"], other["agreement"]
                if 1 - agreement > DIFFERENT:
                    yield Caution(
                        f"Another story explains the claims nearly as well ({behind:,.0f} nats less) and decides "
                        f"{1 - agreement:.0%} of the objects otherwise: check some of them by hand, and give "
                        "what you find as known truths.",
                        "another-story",
                        behind=behind,
                        agreement=agreement,
                    )
                    break
        if found.lured > DIFFERENT:
            yield Caution(
                "Sources that do not share a group fall for the same wrong values: with that known, "
                f"{found.lured:.0%} of the objects are decided otherwise. Which of two values that many claim is true "
                "hangs on who claims them: check some of these by hand, and give what you find as known truths.",
                "lures",
                share=found.lured,
            )
        occupied = np.unique(found.groups.group[found.groups.membership > 0.5])
        if self.inference == "structured" and len(occupied) == (self.max_groups or GROUPS):
            yield Caution(
                f"All {len(occupied)} groups are in use: there may be more. Raise max_groups.",
                "all-groups-used",
                n_groups=len(occupied),
            )

    def _prior(self) -> Prior:
        true_count, false_count = COUNTS[self.inference]
        return Prior(
            np.array(self.true_count or true_count, float),
            np.array(self.false_count or false_count, float),
            np.array(self.reliability or RELIABILITY, float),
            float(self.concentration or CONCENTRATION),
        )


def _in_whole(decisions: Sequence[Int], table: Table, claims: Claims) -> Int:
    """Decisions of shards as candidates of all claims."""
    shards = zip(decisions, table.shards, strict=True)
    return np.concatenate([each + claims.first_candidate[shard.first_object] for each, shard in shards])


def learned_settings(prior: Prior | Beliefs) -> dict[str, Any]:
    """Settings in force, ready for JSON."""
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in asdict(prior).items()
    }


def _check(model: MSS) -> None:
    """Every setting within what it means, or a SettingsError; pairs become tuples of floats."""
    if model.inference not in INFERENCES:
        raise SettingsError("inference", "one of " + ", ".join(INFERENCES), model.inference)
    if model.select not in (None, "grid"):
        raise SettingsError("select", "None or 'grid'", model.select)
    if model.inference == "partition":
        for setting in ("true_count", "false_count", "reliability", "max_groups", "select"):
            if getattr(model, setting) is not None:
                expected = "None: partition inference finds it itself; use inference='structured' to set it"
                raise SettingsError(setting, expected, getattr(model, setting))
    for setting in ("true_count", "false_count", "reliability"):
        given = getattr(model, setting)
        if given is not None:
            object.__setattr__(model, setting, _positive_pair(setting, given))
    if model.select and not model.true_count is model.false_count is None:
        raise SettingsError("select", "None where counts are given: the grid chooses them", model.select)
    for setting in ("concentration", "tolerance"):
        given = getattr(model, setting)
        if not (_is_number(given) and given > 0) and not (setting == "concentration" and given is None):
            raise SettingsError(setting, "a positive number", given)
    for setting in ("max_groups", "n_starts", "max_sweeps"):
        if getattr(model, setting) is not None or setting != "max_groups":
            object.__setattr__(model, setting, whole_number(setting, getattr(model, setting), 1))
    if model.inference == "partition":
        return
    prior = model._prior()
    for setting in ("true_count", "false_count", "reliability", "concentration"):
        if not np.all((getattr(prior, setting) >= SMALLEST) & (getattr(prior, setting) <= LARGEST)):
            expected = f"from {SMALLEST:g} to {LARGEST:g} under {model.inference} inference"
            raise SettingsError(setting, expected, getattr(model, setting))
    if not prior.true_count[1] > prior.false_count[1]:
        expected = f"greater than false_count ({prior.false_count[1]}) for a reliable group"
        raise SettingsError("true_count", expected, tuple(prior.true_count.tolist()))
    if not prior.true_count[0] <= prior.false_count[0]:
        expected = f"at most false_count ({prior.false_count[0]}) for an unreliable group"
        raise SettingsError("true_count", expected, tuple(prior.true_count.tolist()))


def _positive_pair(setting: str, given: Any) -> tuple[float, float]:
    try:
        zero, one = given
    except (TypeError, ValueError):
        zero = one = None
    if not (_is_number(zero) and _is_number(one) and zero > 0 and one > 0):
        raise SettingsError(setting, "two positive numbers, for r = 0 and r = 1", given)
    return float(zero), float(one)


def _is_number(given: Any) -> bool:
    return isinstance(given, Real) and given is not True and bool(np.isfinite(float(given)))
