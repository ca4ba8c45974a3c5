"""What every model shares: the sweep loop, written once, and how a fit begins and ends."""

from __future__ import annotations

import hashlib
import operator
import os
import platform
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

import consilience
from consilience.claims.encoding import Claims, Float
from consilience.errors import BoundError, InputError, SettingsError, UnsuitableTableError
from consilience.kernels.choose import choose as choose_kernel
from consilience.kernels.segments import Labels, Segments
from consilience.results.cautions import Caution, Connected, disconnected
from consilience.results.checkpoint import Checkpoint
from consilience.results.decide import decide
from consilience.results.fit import FALL, Fit
from consilience.runners.base import Runner
from consilience.runners.choose import choose as choose_runner
from consilience.runners.spread import Spread

Progress = Callable[[str, int, float], None]
"""Told after each sweep: the stage, the sweep's number, the bound (NaN where a model has none)."""
Tell = Callable[[int, float], None]
"""The same within one stage."""
Resumable = str | os.PathLike[str] | Checkpoint | None
"""Where a fit is kept while it runs: a file, or a Checkpoint whose owner removes it."""


class Model(Protocol):
    """Settings, frozen; `fit` gives a frozen Fit."""

    name: ClassVar[str]

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
        """Find the truths. `known` are truths the model may see; `engine` and `runner` never change the answer.
        `checkpoint` is a file in which a long fit is kept while it runs, and from which it goes on."""
        ...


MOST_LABELS = 100
"""Labels beyond which no model keeps a confusion matrix, or a habit, for every source."""

G = TypeVar("G")  # globals
L = TypeVar("L")  # locals
S = TypeVar("S")  # statistics


@dataclass(frozen=True)
class Ascent(Generic[G, L]):
    """Where a sweep loop ended: the globals, the locals they gave, and the bound sweep by sweep."""

    globals: G
    locals: L
    trace: tuple[Mapping[str, float], ...]
    converged: bool

    @property
    def bound(self) -> float:
        """The bound at the end."""
        return self.trace[-1]["bound"]


@dataclass(frozen=True)
class Place(Generic[G]):
    """Where an ascent stands before a sweep: the globals as the last update left them, whether simpler ones are still
    proposed, and the sweeps so far."""

    globals: G
    tidies: bool
    trace: tuple[Mapping[str, float], ...]


def ascend(
    start: G | Place[G],
    *,
    local_step: Callable[[G], tuple[L, S]],
    global_step: Callable[[S, G], G],
    bound: Callable[[S, G], dict[str, float]],
    tidy: Callable[[G], G] | None = None,
    max_sweeps: int,
    tolerance: float,
    progress: Callable[[int, float], None] | None = None,
    reached: Callable[[Place[G]], None] | None = None,
) -> Ascent[G, L]:
    """Coordinate ascent: local step, statistics, bound, global step, until the bound rises by less than `tolerance`
    of itself.

    `tidy` may propose simpler globals than the exact update (fewer groups); a proposal that lowers the bound is taken
    back and no more are made, so the bound never falls. `reached` hears where it stands after each sweep: from such a
    place an ascent goes on as if it had never stopped.
    """
    trace: list[Mapping[str, float]] = []
    if isinstance(start, Place):
        tidy, plain, trace = tidy if start.tidies else None, start.globals, list(start.trace)
        given = tidy(plain) if tidy else plain
    else:
        given = plain = start
    while True:
        locals_, stats = local_step(given)
        terms = bound(stats, given)
        now = sum(terms.values())
        rise = now - trace[-1]["bound"] if trace else np.inf
        if given is not plain and not rise >= 0:
            tidy, given = None, plain
            continue
        if not (np.isfinite(now) and rise >= -FALL * max(1.0, abs(now))):
            raise BoundError(
                f"The bound changed by {rise} to {now} in sweep {len(trace) + 1}: please report this."
            )
        trace.append({"bound": now, **terms})
        if progress:
            progress(len(trace), now)
        converged = rise <= tolerance * max(1.0, abs(now))
        if converged or len(trace) == max_sweeps:
            return Ascent(given, locals_, tuple(trace), converged)
        plain = global_step(stats, given)
        given = tidy(plain) if tidy else plain
        if reached:
            reached(Place(plain, tidy is not None, tuple(trace)))


@dataclass(frozen=True, eq=False)
class Answer:
    """What a rival found.

    truth       : (n_candidates,) probability of each candidate, or what takes its place; sums to one for each object
    reliability : (n_sources,) or (n_sources, 3) with a 90 % interval
    """

    truth: Float
    reliability: Float
    rounds: int
    converged: bool
    trace: tuple[Mapping[str, float], ...] = ()
    """Where it climbs something: one record a round, with its `bound`."""
    learned: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[Caution, ...] = ()


class Rival(ABC):
    """A model that works on the whole table at once. A subclass, a frozen dataclass of settings, says how in `solve`;
    `fit` does what all have in common."""

    name: ClassVar[str]
    cites: ClassVar[str]
    """The publication that it is faithful to."""
    probabilistic: ClassVar[bool] = False
    """Whether its truths are probabilities: else they are scores made to sum to one, and only their order counts."""

    @abstractmethod
    def solve(self, table: Segments, seed: int, tell: Tell) -> Answer:
        """Find the truths. `tell` hears of every round: its number and what it climbs (NaN where it climbs nothing)."""

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
        """Find the truths. `known` are truths the model may see; `engine` and `runner` never change the answer.
        `checkpoint` is taken and not used: rivals are fast, and begin anew."""
        seed = whole_number("seed", seed, 0)
        choose_kernel(engine)
        choose_runner(runner)
        claims, log_truth, is_known = truth_prior(as_claims(claims), known)
        table = choose_kernel(engine, claims.n_claims).segments(claims, log_truth, is_known)
        started = time.perf_counter()
        tell = partial(progress, self.name) if progress else _silent
        answer = self.solve(table, seed, tell)
        decision, ties = decide(answer.truth, claims.first_candidate, seed)
        reliability = np.full((claims.n_sources, 3), np.nan)
        reliability[:, : 1 if answer.reliability.ndim == 1 else 3] = answer.reliability.reshape(
            claims.n_sources, -1
        )
        warnings = [*answer.warnings, *disconnected(Connected.of(claims), claims.sources)]
        if not answer.converged:
            text = f"Not converged: {answer.rounds:,} rounds were not enough."
            warnings.insert(0, Caution(text, "not-converged", rounds=answer.rounds))
        return Fit(
            model=self.name,
            settings=settings_of(self),
            learned=answer.learned,
            claims=claims,
            truth=answer.truth,
            decision=decision,
            source_reliability=reliability,
            known=is_known,
            seed=seed,
            ties=ties,
            sweeps=answer.rounds,
            converged=answer.converged,
            seconds=time.perf_counter() - started,
            trace=answer.trace,
            warnings=tuple(warnings),
            provenance=provenance(table.engine, "inline"),
        )


def repeat(
    start: S,
    step: Callable[[S], S],
    distance: Callable[[S, S], float],
    *,
    max_rounds: int,
    tolerance: float,
    tell: Tell,
) -> tuple[S, int, bool]:
    """Take a step again and again until it moves by no more than the tolerance: the end, the rounds, and whether it
    came to rest."""
    state = start
    for i in range(1, max_rounds + 1):
        before, state = state, step(state)
        tell(i, float("nan"))
        if distance(before, state) <= tolerance:
            return state, i, True
    return state, max_rounds, False


def em(
    start: L,
    *,
    maximise: Callable[[L], G],
    expect: Callable[[G], tuple[L, float]],
    max_rounds: int,
    tolerance: float,
    tell: Tell,
) -> Ascent[G, L]:
    """Expectation-maximisation from a first guess of the truths: the sweep loop, with the likelihood as the bound.
    `expect` gives the truths and the ln likelihood of the claims."""

    def local_step(given: G) -> tuple[L, tuple[L, float]]:
        truth, likelihood = expect(given)
        return truth, (truth, likelihood)

    return ascend(
        maximise(start),
        local_step=local_step,
        global_step=lambda stats, given: maximise(stats[0]),
        bound=lambda stats, given: {"likelihood": stats[1]},
        max_sweeps=max_rounds,
        tolerance=tolerance,
        progress=tell,
    )


def common_labels(model: str, table: Segments) -> Labels:
    """The table as one of labels common to all objects, or an UnsuitableTableError where there are too many."""
    n_labels = table.claims.n_values
    if n_labels > MOST_LABELS:
        raise UnsuitableTableError(
            model,
            f"labels that all objects share, at most {MOST_LABELS}",
            f"{n_labels:,} different values",
            "use a model for open domains, such as mss, one-coin, accu or truthfinder",
        )
    return table.labels()


def _silent(round_: int, bound: float) -> None:
    """Nobody listens."""


def positive(setting: str, given: Any, least: float = 0.0) -> None:
    """A finite number greater than this, or a SettingsError."""
    if isinstance(given, bool) or not isinstance(given, Real) or not least < float(given) < np.inf:
        raise SettingsError(setting, f"a number greater than {least:g}", given)


def truth_prior(claims: Claims, known: Any) -> tuple[Claims, Float, NDArray[np.bool_] | None]:
    """ln p(t_m = z): uniform over the domain; a known truth rules every other candidate out.

    A known truth that nobody claims joins the object's domain, so the claims come back too, and with them which
    objects' truths were known.
    """
    known_candidate = is_known = None
    if known is not None:
        from consilience.claims.truths import align_truths, extend_domains

        truths = as_truths(known)
        claims = extend_domains(claims, truths)
        known_candidate = align_truths(truths, claims)
    domain_size = np.diff(claims.first_candidate)
    log_truth = -np.log(np.repeat(domain_size, domain_size).astype(np.float64))
    if known_candidate is not None:
        is_known = known_candidate >= 0
        if not is_known.any():
            return claims, log_truth, None
        log_truth[np.repeat(is_known, domain_size)] = -np.inf
        log_truth[known_candidate[is_known]] = 0.0
    return claims, log_truth, is_known


def whole_number(setting: str, given: Any, least: int) -> int:
    """A whole number of any type (NumPy's too), or a SettingsError."""
    try:
        number = operator.index(given)
    except TypeError:
        number = least - 1
    if isinstance(given, bool) or number < least:
        raise SettingsError(setting, f"a whole number of at least {least}", given)
    return number


def as_claims(claims: Any) -> Claims:
    """Claims as they are; anything else through `read_claims`."""
    if isinstance(claims, Claims):
        return claims
    if isinstance(claims, Spread):
        raise InputError(
            "Claims that a cluster read stay there, and only mss fits them there: read them with `read_claims` for "
            "other models."
        )
    from consilience.claims.reading import read_claims

    return read_claims(claims)


def as_truths(known: Any) -> Any:
    """Truths as they are; anything else through `read_truths`."""
    from consilience.claims.reading import read_truths

    return read_truths(known)


def provenance(engine: str, runner: str) -> dict[str, Any]:
    """What was run, on what, so that a saved result can be told apart."""
    return {
        "consilience": consilience.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "engine": engine,
        "runner": runner,
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def identity_of(
    model: Model, of_table: Callable[[], Mapping[str, str]], seed: int, engine: str
) -> dict[str, Any]:
    """All that decides the bits of a fit, by name: a checkpoint serves no other."""
    return {
        **of_table(),
        "model": model.name,
        **settings_of(model),
        "seed": seed,
        "engine": engine,
        "version of consilience": consilience.__version__,
        "version of NumPy": np.__version__,
        "machine": platform.machine(),
    }


def digests(claims: Claims, log_truth: Float) -> dict[str, str]:
    """Of a table and what is known of it. Names of sources, objects and values decide nothing, and are not part of
    it."""
    arrays = (
        claims.claim_source, claims.claim_candidate, claims.first_claim, claims.first_candidate,
        claims.candidate_value,
    )  # fmt: skip
    return {
        "claims": _digest(claims.domain, claims.n_sources, claims.n_values, *arrays),
        "known truths": _digest(log_truth),
    }


def _digest(*parts: Any) -> str:
    digest = hashlib.sha256()
    for part in parts:
        is_array = isinstance(part, np.ndarray)
        digest.update(np.ascontiguousarray(part).data if is_array else repr(part).encode())
    return digest.hexdigest()


def settings_of(model: Any) -> dict[str, Any]:
    """A model's settings, ready for JSON."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(model).items()}
