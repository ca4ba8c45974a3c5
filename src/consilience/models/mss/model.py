"""MSS: the model's settings and its fit, from claims to an answer."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from numbers import Real
from threading import Event
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from consilience.claims.encoding import Claims, Float, Shard
from consilience.errors import SettingsError
from consilience.kernels.choose import Kernel
from consilience.kernels.choose import choose as choose_kernel
from consilience.kernels.state import LARGEST_SCORE, Beliefs, Globals, Locals, Prior, Stats
from consilience.models.base import (
    Ascent,
    Place,
    Progress,
    Resumable,
    as_claims,
    ascend,
    identity_of,
    provenance,
    settings_of,
    truth_prior,
    whole_number,
)
from consilience.models.mss.bound import bound_terms
from consilience.models.mss.marks import mark_of, restored
from consilience.models.mss.reliability import of_groups, right_claims
from consilience.models.mss.search import Path, Search, Story, as_partition
from consilience.models.mss.select import grid
from consilience.models.mss.starts import random_start
from consilience.models.mss.table import Table
from consilience.models.mss.updates import global_step, relabel
from consilience.results.cautions import Caution, disconnected, one_group
from consilience.results.checkpoint import Checkpoint
from consilience.results.decide import decide
from consilience.results.fit import Fit
from consilience.results.temper import shared_errors, temperature, tempered, voices_by_object
from consilience.runners.base import Runner
from consilience.runners.choose import choose as choose_runner

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
CLOSE, DIFFERENT = 0.005, 0.02
"""Two stories are close within this share of the bound, and different beyond this share of the objects."""
DOUBT = 25.0
"""Nats within which they are close in any case: what the bound leaves out differs from story to story."""
HOPELESS = 2 * CLOSE
"""A story this share of the bound behind on more objects than it grew on will not win, and is swept no further."""
MOVES = 2**31
"""Where the larger moves' randomness begins: apart from that of any start, however many there are."""
FEW_CLAIMS, FEW_OF_SOURCE, MANY_OF_SOURCE = 100_000, 10, 1_000
"""Claims in a sample of objects where groups are looked for: in all, and a source's on average; and a source's in the
larger sample that decides who belongs where. Tables less than twice as large as a sample are taken whole."""
LIGHT = 100
"""A source with no more claims is light: chance would leave it too few of them."""
LOST = "settings that lost"
"""Under this key a checkpoint has those of the grid that need not be tried again."""
NEGLIGIBLE = 1e-4
"""A membership below this is proposed for removal: an empty pair (group, object) costs bound and time."""


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
    """κ: two sources share a group with prior probability 1 / (1 + κ). None learns it under partition inference, and is
    5 otherwise."""
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
    agreement, all others are random."""
    max_sweeps: int = 300
    """Sweeps of one ascent at the most; one that reaches them is warned of."""
    tolerance: float = 1e-5
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
        checkpoint: Resumable = None,
    ) -> Fit:
        """Find truths, groups and reliabilities.

        claims   : Claims, or anything `read_claims` takes
        known    : truths of some objects that the model may use (a table or a dict of object to value)
        seed     : decides everything random
        engine, runner : how and where it is computed; they never change the answer
        progress : told of every sweep: the stage, its number, the bound
        checkpoint : a file in which a long fit is kept while it runs, removed when it is done; where there is one of
            the same fit it goes on from there, to the same bits
        """
        seed = whole_number("seed", seed, 0)
        choose_kernel(engine)
        where, claims = choose_runner(runner), as_claims(claims)
        kernel = choose_kernel(engine, claims.n_claims)
        claims, log_truth, is_known = truth_prior(claims, known)
        find = self._search if self.inference == "partition" else self._ascents
        kept = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
        started = time.perf_counter()
        with kept.during(partial(identity_of, self, claims, log_truth, seed, kernel.name)):
            found = find(claims, log_truth, is_known, seed, kernel, where, progress, kept)
        decisions = [decide(truth, claims.first_candidate, seed) for truth in found.truths]
        decision, ties = decisions[0]
        starts = tuple(
            {**start, "agreement": float(np.mean(decided == decision))}
            for start, (decided, _) in zip(found.starts, decisions, strict=True)
        )
        truth, reliability, learned = self._reported(found, claims)
        if kept is not checkpoint:
            kept.remove()
        return Fit(
            model=self.name,
            settings=settings_of(self),
            learned=learned,
            claims=claims,
            truth=truth,
            decision=decision,
            source_reliability=reliability,
            seed=seed,
            ties=ties,
            sweeps=int(found.starts[0]["sweeps"]),
            converged=found.converged,
            seconds=time.perf_counter() - started,
            known=is_known,
            trace=found.trace,
            groups_found=found.groups,
            prior=found.prior,
            starts=starts,
            warnings=(
                *self._warnings(found, starts),
                *one_group(found.groups),
                *disconnected(claims),
                *([Caution(kept.trouble)] if kept.trouble else []),
            ),
            provenance=provenance(kernel.name, where.name),
        )

    def _search(
        self,
        claims: Claims,
        log_truth: Float,
        is_known: NDArray[np.bool_] | None,
        seed: int,
        kernel: Kernel,
        runner: Runner,
        progress: Progress | None,
        checkpoint: Checkpoint,
    ) -> Found:
        """Partition inference: every start's story, the best moved on, the best first.

        Of a large table some objects tell where to look for groups, more of them who belongs where, and all of them
        what follows.
        """

        def over(chosen: NDArray[np.bool_] | None) -> Search:
            """The search among these objects, or all."""
            some, log_prior, known = claims, log_truth, is_known
            if chosen is not None:
                some = claims.of_objects(chosen)
                log_prior = log_truth[np.repeat(chosen, np.diff(claims.first_candidate))]
                known = None if is_known is None else is_known[chosen]
            return Search(
                table=Table.of(some, log_prior, known, runner.n_shards(some.n_claims)),
                kernel=kernel,
                runner=runner,
                concentration=self.concentration,
                max_sweeps=self.max_sweeps,
                tolerance=self.tolerance,
            )

        few, many = _samples(claims, is_known, np.random.default_rng([seed, MOVES + 2]))
        search = over(few)
        stop = Event()

        def path_of(stage: str, number: int = 0) -> Path:
            hears = partial(progress, stage) if progress else None
            return Path(hears, stop, checkpoint=checkpoint, place=[stage, number])

        def grow(j: int) -> tuple[Story, Path]:
            path = path_of(f"start {j + 1}/{n_starts}")
            return replace(search, path=path).start(j, np.random.default_rng([seed, j])), path

        def carry(stage: str, search: Search) -> list[tuple[Story, Path]]:
            """Every story on more objects, with the sweeps that it had, the best first. Those that may yet win are
            swept a few times, in which their groups learn from all of these objects."""
            carried = []
            for i, (story, path) in enumerate(grown):
                longer = path_of(stage, i)
                longer.swept = path.swept + len(path.records)
                carried.append((replace(search, path=longer).carried(story), longer))
            highest = max(story.bound for story, _ in carried)
            within = highest - max(DOUBT, HOPELESS * abs(highest))
            return _best_first(
                [
                    (replace(search, path=path).converge(story, sweeps=4), path)
                    if story.bound >= within
                    else (story, path)
                    for story, path in carried
                ]
            )

        # Where nobody can be moved, other starts would stay where they begin.
        n_starts = self.n_starts if search.table.uncrowded else 1
        grown = _best_first(runner.map(grow, range(n_starts), stop))
        best, path = grown[0]
        moving = path_of("larger moves")
        best = replace(search, path=moving).move(best, np.random.default_rng([seed, MOVES]))
        path.records.extend(moving.records)
        grown[0] = best, path
        if many is not few:
            search = over(many)
            grown = carry("more objects", search)
            best, path = grown[0]
            settling = np.random.default_rng([seed, MOVES + 1])
            grown[0] = replace(search, path=path).settle(best, settling), path
        if many is not None:
            search = over(None)
            grown = carry("all objects", search)
            best, path = grown[0]
            grown[0] = replace(search, path=path).converge(best), path
        best, path = grown[0]
        return Found(
            truths=[story.truth for story, _ in grown],
            starts=[{"bound": story.bound, "sweeps": p.swept + len(p.records)} for story, p in grown],
            groups=as_partition(best),
            prior=best.beliefs,
            trace=path.rising(best.bound),
            converged=best.converged,
        )

    def _ascents(
        self,
        claims: Claims,
        log_truth: Float,
        is_known: NDArray[np.bool_] | None,
        seed: int,
        kernel: Kernel,
        runner: Runner,
        progress: Progress | None,
        checkpoint: Checkpoint,
    ) -> Found:
        """Structured or mean-field inference: of the best settings every start, the best first."""
        priors = list(grid()) if self.select == "grid" else [self._prior()]
        _check_range(priors, claims)
        shards = list(claims.shards(runner.n_shards(claims.n_claims), log_truth))
        lost = list((checkpoint.mark(LOST) or {"settings": ()})["settings"])
        best: list[Ascent[Globals, Sequence[Locals]]] = []
        winner = 0
        for i, prior in enumerate(priors):
            if i in lost:
                continue
            of_settings = f"settings {i + 1}/{len(priors)}, " if len(priors) > 1 else ""
            ascents = []
            for j in range(self.n_starts):
                rng = np.random.default_rng([seed, j])
                stage = f"{of_settings}start {j + 1}/{self.n_starts}"
                ascents.append(
                    self._ascend(claims, shards, prior, rng, kernel, runner, stage, progress, checkpoint)
                )
            ascents.sort(key=lambda ascent: -ascent.bound)
            wins = not best or ascents[0].bound > best[0].bound
            if best:
                lost.append(winner if wins else i)
                checkpoint.forget(f"settings {lost[-1] + 1}/{len(priors)}, ")
                checkpoint.note(LOST, {"settings": tuple(lost)})
            if wins:
                best, chosen, winner = ascents, prior, i
        return Found(
            truths=[np.concatenate([locals_.truth for locals_ in each.locals]) for each in best],
            starts=[{"bound": each.bound, "sweeps": len(each.trace)} for each in best],
            groups=best[0].globals,
            prior=chosen,
            trace=best[0].trace,
            converged=best[0].converged,
        )

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
        checkpoint: Checkpoint,
    ) -> Ascent[Globals, Sequence[Locals]]:
        mean_field = self.inference == "mean-field"
        n_groups = min(self.max_groups or GROUPS, claims.n_sources)
        step = kernel.mean_field if mean_field else kernel.structured
        warm: Sequence[Locals | None] = [None] * len(shards)

        def local_step(given: Globals) -> tuple[Sequence[Locals], Stats]:
            nonlocal warm
            locals_, stats = runner.map_sum(step, shards, given, prior, warm)
            warm = locals_ if mean_field else warm
            return locals_, stats

        def reached(place: Place[Globals]) -> None:
            if checkpoint.is_kept:
                checkpoint.note(stage, mark_of(place, warm))

        start: Globals | Place[Globals] = random_start(claims, prior, n_groups, rng, tail=mean_field)
        if mark := checkpoint.mark(stage):
            start, warm = restored(mark, shards)
        return ascend(
            start,
            local_step=local_step,
            global_step=partial(global_step, prior=prior),
            bound=partial(bound_terms, prior=prior),
            tidy=None if mean_field else partial(_tidy, prior=prior),
            max_sweeps=self.max_sweeps,
            tolerance=self.tolerance,
            progress=partial(progress, stage) if progress else None,
            reached=reached,
        )

    def _reported(self, found: Found, claims: Claims) -> tuple[Float, Float, dict[str, Any]]:
        """Truths and reliabilities as a user should read them, and what was learned. The paper's inferences give what
        the paper gives; of a partition, truths are no surer than groups that err together allow."""
        truth, learned = found.truths[0], learned_settings(found.prior)
        if isinstance(found.prior, Prior):
            return truth, of_groups(found.groups, found.prior), learned
        group = found.groups.group[:, 0].astype(np.int64)
        shared = learned["shared_errors"] = shared_errors(claims, group, truth)
        truth = tempered(truth, claims.first_candidate, temperature(voices_by_object(claims, group), shared))
        return truth, right_claims(claims, truth, group), learned

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
        for start in starts[1:]:
            if self.inference == "partition" and 1 - start["agreement"] > DIFFERENT:
                behind = starts[0]["bound"] - start["bound"]
                if behind < max(DOUBT, CLOSE * abs(starts[0]["bound"])):
                    yield Caution(
                        f"Another story explains the claims nearly as well ({behind:,.0f} nats less) and decides "
                        f"{1 - start['agreement']:.0%} of the objects otherwise: check some of them by hand, and give "
                        "what you find as known truths.",
                        "another-story",
                        behind=behind,
                        agreement=start["agreement"],
                    )
                    break
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


@dataclass(frozen=True, eq=False)
class Found:
    """What an inference found; of every start the truths and a record, the best first, of the best the rest."""

    truths: Sequence[Float]
    starts: Sequence[Mapping[str, float]]
    groups: Globals
    prior: Prior | Beliefs
    trace: tuple[Mapping[str, float], ...]
    converged: bool


def _best_first(grown: Sequence[tuple[Story, Path]]) -> list[tuple[Story, Path]]:
    return sorted(grown, key=lambda each: -each[0].bound)


def _samples(
    claims: Claims, is_known: NDArray[np.bool_] | None, rng: np.random.Generator
) -> list[NDArray[np.bool_] | None]:
    """Two samples of objects, the second with all of the first: (n_objects,) whether chosen, or None for all.

    All objects whose truth is known are chosen, then those of light sources, as many claims as are wanted, and as many
    again of any objects.
    """
    sizes = [max(FEW_CLAIMS, of_source * claims.n_sources) for of_source in (FEW_OF_SOURCE, MANY_OF_SOURCE)]
    if claims.n_claims <= 2 * sizes[0]:
        return [None, None]
    order = rng.permutation(claims.n_objects)
    n_claims = np.diff(claims.first_claim)[order]
    of_light = np.bincount(claims.claim_source, minlength=claims.n_sources)[claims.claim_source] <= LIGHT
    is_light = np.logical_or.reduceat(of_light, claims.first_claim[:-1])[order]
    samples: list[NDArray[np.bool_] | None] = []
    for wanted in sizes:
        if samples and wanted == sizes[0]:
            samples.append(samples[0])
            continue
        if claims.n_claims <= 2 * wanted:
            samples.append(None)
            continue
        chosen = np.zeros(claims.n_objects, np.bool_) if is_known is None else is_known.copy()
        chosen[order[is_light & (np.cumsum(n_claims * is_light) <= wanted)]] = True
        chosen[order[: int(np.searchsorted(np.cumsum(n_claims), wanted)) + 1]] = True
        samples.append(chosen)
    return samples


def _tidy(given: Globals, prior: Prior) -> Globals:
    """Memberships worth less than NEGLIGIBLE go to the source's other groups; groups are numbered by size."""
    weight = np.where(given.membership < NEGLIGIBLE, 0.0, given.membership)
    weight /= weight.sum(axis=1, keepdims=True)
    return relabel(Globals(given.group, weight, given.group_reliability, given.sticks), prior)


def learned_settings(prior: Prior | Beliefs) -> dict[str, Any]:
    """Settings in force, ready for JSON."""
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in asdict(prior).items()
    }


def _check_range(priors: Sequence[Prior], claims: Claims) -> None:
    """Scores are sums of E ln π over a source's claims in fixed point: refuse counts whose logarithms overflow it."""
    smallest = min(min(prior.true_count.min(), prior.false_count.min()) for prior in priors)
    most = int(np.bincount(claims.claim_source).max())
    if most * -float(digamma(smallest)) > LARGEST_SCORE:
        least = most / LARGEST_SCORE
        raise SettingsError("counts", f"at least {least:.1g} for a source with {most:,} claims", smallest)


def _check(model: MSS) -> None:
    """Every setting within what it means, or a SettingsError; pairs become tuples of floats."""
    if model.inference not in INFERENCES:
        raise SettingsError("inference", "one of " + ", ".join(INFERENCES), model.inference)
    if model.select not in (None, "grid"):
        raise SettingsError("select", "None or 'grid'", model.select)
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
        for setting in ("true_count", "false_count", "reliability", "max_groups", "select"):
            if getattr(model, setting) is not None:
                expected = "None: partition inference finds it itself; use inference='structured' to set it"
                raise SettingsError(setting, expected, getattr(model, setting))
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
