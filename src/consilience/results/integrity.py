"""Whether what was read from disk can be a result at all: types, shapes and ranges.

Hashes tell that a file is the one that was written; this tells that files fit together which
somebody edited or another version wrote. Everything else may then rely on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from consilience.claims.encoding import Claims, Int
from consilience.claims.frames import KINDS
from consilience.kernels.state import Beliefs, Globals, Partition, Prior
from consilience.results.fit import FALL, Fit

TYPES: dict[tuple[str, ...], type | tuple[type, ...]] = {
    ("model",): str,
    ("settings",): dict,
    ("learned",): dict,
    ("provenance",): dict,
    ("fit", "seed"): int,
    ("fit", "ties"): int,
    ("fit", "sweeps"): int,
    ("fit", "converged"): bool,
    ("fit", "seconds"): (int, float),
    ("fit", "warnings"): list,
    ("claims", "domain"): str,
    ("claims", "columns"): list,
    ("claims", "frame"): str,
    ("claims", "notes"): list,
}
"""What the manifest has where, and of which type."""


def check_types(manifest: Mapping[str, Any]) -> None:
    """ValueError at the first entry of a manifest that is missing or of another type."""
    for keys, kind in TYPES.items():
        entry: Any = manifest
        for key in keys:
            _require(isinstance(entry, Mapping) and key in entry, f"{'.'.join(keys)} is missing")
            entry = entry[key]
        right = isinstance(entry, kind) and (kind is bool or not isinstance(entry, bool))
        _require(right, f"{'.'.join(keys)} is {entry!r}")
    claims = manifest["claims"]
    _require(manifest["fit"]["seed"] >= 0, "fit.seed is negative")
    _require(claims["frame"] in KINDS, f"claims.frame is {claims['frame']!r}")
    for name, n in (("columns", 3), ("notes", len(claims["notes"]))):
        texts = claims[name]
        _require(
            len(texts) == n and all(isinstance(text, str) for text in texts), f"claims.{name} is {texts!r}"
        )


def check_shapes(fit: Fit) -> None:
    """ValueError unless the arrays of a result fit each other and the names of sources, objects and values."""
    claims = fit.claims
    _require(len(claims.objects) == claims.n_objects, "objects and their claims differ in number")
    _require(claims.n_claims > 0, "there are no claims")
    _runs(claims.first_claim, claims.n_claims, "first_claim")
    _runs(claims.first_candidate, claims.n_candidates, "first_candidate")
    for name, n in (
        ("claim_source", "n_claims"),
        ("claim_candidate", "n_claims"),
        ("candidate_value", "n_candidates"),
    ):
        _require(getattr(claims, name).shape == (getattr(claims, n),), f"{name} is of another length")
    _within(claims.claim_source, claims.n_sources, "claim_source")
    _within(claims.candidate_value, claims.n_values, "candidate_value")
    _owned(claims.claim_candidate, claims.claim_object(), claims, "claim_candidate")
    _owned(fit.decision, np.arange(claims.n_objects), claims, "decision")
    _require(fit.truth.shape == (claims.n_candidates,), "truth is of another length")
    sums = np.add.reduceat(fit.truth, claims.first_candidate[:-1])
    are_probabilities = np.all(fit.truth >= 0) and np.allclose(sums, 1.0, atol=1e-6)
    _require(bool(are_probabilities), "truth holds what are no probabilities")
    _require(fit.source_reliability.shape == (claims.n_sources, 3), "source_reliability is of another shape")
    _require(fit.known is None or fit.known.shape == (claims.n_objects,), "known is of another length")
    _numbers(fit.source_reliability[:, :1], "source_reliability")
    bounds = np.array([record["bound"] for record in fit.trace])
    _numbers(bounds, "the trace")
    falls = np.any(np.diff(bounds) < -FALL * np.maximum(1.0, np.abs(bounds[1:])))
    _require(not falls, "the bound falls in the trace")
    _numbers(np.array([[start["bound"], start["sweeps"]] for start in fit.starts]), "starts")
    if fit.groups_found is not None:
        _check_groups(fit.groups_found, fit.prior, claims.n_sources)


def _check_groups(found: Globals, prior: Prior | Beliefs | None, n_sources: int) -> None:
    """Groups of these sources, and the settings that they were found under."""
    _require(
        isinstance(found, Partition) == isinstance(prior, Beliefs),
        "groups and settings are of two inferences",
    )
    _require(len(found.group) == n_sources, "groups are of other sources")
    _within(found.group + 1, found.n_groups + 2, "group")
    _numbers(found.membership, "membership")
    parts = [("group_reliability", found.group_reliability), ("sticks", found.sticks)]
    if isinstance(found, Partition) and isinstance(prior, Beliefs):
        parts += [("kind_reliability", found.kind_reliability), ("habit", found.habit)]
        shape = (found.n_groups, prior.n_kinds)
        _require(found.group.shape[1] == 1, "a source is in several groups of a partition")
        _within(found.group, found.n_groups, "group")
        _require(found.kind_reliability.shape == (*shape, 2), "kind_reliability is of another shape")
        _require(found.habit.shape == (*shape, prior.n_labels), "habit is of another shape")
        _require(prior.reliability.shape == (prior.n_kinds, 2), "reliability is of another shape")
        _require(prior.habit.shape == (prior.n_kinds,), "the strengths of habits are of another shape")
        _require(prior.lured.shape == (prior.n_kinds,), "lured is of another shape")
        _require(bool(np.all(prior.lured < 1)), "lured holds what is no probability")
    if prior is not None:
        parts += [(field.name, getattr(prior, field.name)) for field in fields(prior)]
    for name, part in parts:
        _numbers(part, name)
        number = np.asarray(part)
        # Of a kind that does not occur all shares are 0; and there may be no lures.
        may_be_zero = name == "lured" or (name == "share" and np.any(number))
        is_right = np.all(number >= 0) if may_be_zero else np.all(number > 0)
        _require(bool(is_right), f"{name} holds what is not positive")


def _numbers(part: Any, name: str) -> None:
    number = np.asarray(part)
    _require(
        np.issubdtype(number.dtype, np.floating) and bool(np.all(np.isfinite(number))),
        f"{name} holds no numbers",
    )


def _runs(first: Int, n: int, name: str) -> None:
    """Where runs begin and the last one ends; none is empty."""
    right = (
        first.ndim == 1 and len(first) > 0 and first[0] == 0 and first[-1] == n and np.all(np.diff(first) > 0)
    )
    _require(bool(right), f"{name} does not cut {n:,} into runs")


def _within(index: Int, n: int, name: str) -> None:
    whole = np.issubdtype(index.dtype, np.integer)
    _require(bool(whole and np.all((index >= 0) & (index < n))), f"{name} points beyond {n:,}")


def _owned(candidate: Int, object_: Int, claims: Claims, name: str) -> None:
    """Candidates of these objects."""
    _require(
        candidate.shape == object_.shape and np.issubdtype(candidate.dtype, np.integer),
        f"{name} does not fit",
    )
    first = claims.first_candidate
    right = (candidate >= first[object_]) & (candidate < first[object_ + 1])
    _require(bool(np.all(right)), f"{name} points to other objects' candidates")


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)
