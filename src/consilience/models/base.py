"""What every model shares: the sweep loop, written once, and how a fit begins and ends."""

from __future__ import annotations

import operator
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

import consilience
from consilience.claims.encoding import Claims, Float
from consilience.errors import BoundError, SettingsError
from consilience.results.fit import Fit
from consilience.runners.base import Runner

Progress = Callable[[str, int, float], None]
"""Told after each sweep: the stage, the sweep's number, the bound (NaN where a model has none)."""


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
    ) -> Fit:
        """Find the truths. `known` are truths the model may see; `engine` and `runner` never change the answer."""
        ...


FALL = 1e-9
"""A fall of the bound by more than this share of it is no rounding: something is wrong."""


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


def ascend(
    start: G,
    *,
    local_step: Callable[[G], tuple[L, S]],
    global_step: Callable[[S, G], G],
    bound: Callable[[S, G], dict[str, float]],
    tidy: Callable[[G], G] | None = None,
    max_sweeps: int,
    tolerance: float,
    progress: Callable[[int, float], None] | None = None,
) -> Ascent[G, L]:
    """Coordinate ascent: local step, statistics, bound, global step, until the bound rises by less than `tolerance`
    of itself.

    `tidy` may propose simpler globals than the exact update (fewer groups); a proposal that lowers the bound is taken
    back and no more are made, so the bound never falls.
    """
    given, plain = start, start
    trace: list[Mapping[str, float]] = []
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


def truth_prior(claims: Claims, known: Any) -> tuple[Claims, Float, NDArray[np.bool_] | None]:
    """ln p(t_m = z): uniform over the domain; a known truth rules every other candidate out.

    A known truth that nobody claims joins the object's domain, so the claims come back too, and with them which
    objects' truths were known.
    """
    known_candidate = is_known = None
    if known is not None:
        from consilience.claims.reading import align_truths, extend_domains, read_truths

        truths = read_truths(known)
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
    from consilience.claims.reading import read_claims

    return read_claims(claims)


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


def settings_of(model: Any) -> dict[str, Any]:
    """A model's settings, ready for JSON."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(model).items()}
