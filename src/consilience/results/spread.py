"""SpreadFit: what a model found in claims that a cluster holds. Truths stay there until they are written or asked
for."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from consilience.claims.encoding import Claims, Float, Int
from consilience.errors import InputError
from consilience.kernels.state import Beliefs, Globals, Prior
from consilience.results.cautions import Caution
from consilience.results.groups import Numbering
from consilience.runners.spread import Spread

if TYPE_CHECKING:
    import pyarrow as pa

    from consilience.claims.truths import Truths


TRUTHS, OTHER_FILES = "truths.parquet", ("sources.parquet", "groups.parquet", "trace.json")
"""The folder that parts write to, and the files beside it."""


@dataclass(frozen=True, eq=False, repr=False)
class SpreadFit:
    """The answer of a model to claims in parts. What it has in common with a Fit means the same.

    parts, truth, decision : by part, as the runner keeps them
    known                  : truths that the model was given
    """

    model: str
    settings: Mapping[str, Any]
    learned: Mapping[str, Any]
    claims: Spread
    parts: Sequence[Any]
    known: Truths | None
    truth: Sequence[Any]
    decision: Sequence[Any]
    source_reliability: Float
    seed: int
    ties: int
    sweeps: int
    converged: bool
    seconds: float
    trace: tuple[Mapping[str, float], ...]
    starts: tuple[Mapping[str, float], ...]
    groups_found: Globals
    prior: Prior | Beliefs
    warnings: tuple[Caution, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def bound(self) -> float:
        """The bound at the end."""
        return self.trace[-1]["bound"]

    @property
    def n_groups(self) -> int:
        """Groups that have sources."""
        return len(Numbering.of(self.groups_found).order)

    @property
    def sources(self) -> pa.Table:
        """source, reliability, low, high, group, n_claims: the most reliable first."""
        from consilience.results.tables import rated

        _, n_claims = self._each(_claims_by_source)
        return rated(self.claims.sources, self.source_reliability, self.groups_found, n_claims)

    @property
    def groups(self) -> pa.Table:
        """group, n_sources, reliability, low, high, kind, weight: the largest first."""
        from consilience.results.groups import groups_table

        return groups_table(self.groups_found, self.prior)

    @property
    def truths(self) -> pa.Table:
        """object, value, probability, runner_up, margin, n_claims, of all objects: brought here, so they must fit."""
        import pyarrow as pa

        _, tables = self._each(_truths)
        return pa.concat_tables(tables)

    def accuracy(self, truth: Any) -> tuple[int, int, float | None]:
        """How many objects have a gold truth, those left out whose truth the model was given; how many these are; and
        the share decided right."""
        from consilience.claims.reading import read_truths
        from consilience.results.score import no_overlap

        truths = read_truths(truth)
        _, (n_right, n_gold, n_known) = self._each(_right, truths, self.known)
        if not n_gold + n_known:
            raise no_overlap(truths, "truth")
        return int(n_gold), int(n_known), float(n_right / n_gold) if n_gold else None

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the result into `folder`, whole or not at all: the truths are files of `truths.parquet`, one a part.

        All machines must see the folder under this path.
        """
        import pyarrow.parquet as pq

        from consilience.results.atomic import replacing
        from consilience.results.manifest import MANIFEST, SCHEMA, SPREAD_FORMAT, digest, sealed
        from consilience.results.storage import check_target, write_json

        target = check_target(folder)
        with replacing(target) as fresh:
            (fresh / TRUTHS).mkdir()
            numbers = list(range(len(self.parts)))
            _, written = self._each(_write, str(fresh / TRUTHS), None, numbers)
            files = dict(written)
            missing = [name for name in files if not (fresh / name).exists()]
            if missing:
                raise InputError(
                    f"Cannot save in {str(folder)!r}: {len(missing):,} of {len(files):,} parts were written on "
                    "machines that have another folder of this name. Give a folder that all machines share."
                )
            pq.write_table(self.sources, fresh / "sources.parquet")
            pq.write_table(self.groups, fresh / "groups.parquet")
            write_json(fresh / "trace.json", {"sweeps": self.trace, "starts": self.starts})
            manifest = {
                "format": SPREAD_FORMAT,
                "schema": SCHEMA,
                "consilience": self.provenance["consilience"],
                "model": self.model,
                "settings": self.settings,
                "learned": self.learned,
                "provenance": self.provenance,
                "counts": {
                    name: getattr(self.claims, name) for name in ("n_sources", "n_objects", "n_claims")
                },
                "fit": {
                    **{
                        name: getattr(self, name)
                        for name in ("seed", "ties", "sweeps", "converged", "seconds")
                    },
                    "bound": self.bound,
                    "warnings": [Caution.read(warning).record() for warning in self.warnings],
                },
                "claims": {"columns": self.claims.columns, "notes": self.claims.notes},
                "files": {**files, **{name: digest(fresh / name) for name in OTHER_FILES}},
            }
            write_json(fresh / MANIFEST, sealed(json.loads(json.dumps(manifest, allow_nan=False))))
        return target

    def _each(self, step: Any, given: Any = None, prior: Any = None, *kept: Sequence[Any]) -> tuple[Any, Any]:
        return self.claims.runner.map_sum(step, self.parts, given, prior, self.truth, self.decision, *kept)

    def __repr__(self) -> str:
        return (
            f"SpreadFit({self.model!r}: {self.claims.n_objects:,} truths from "
            f"{self.claims.n_claims:,} claims by {self.claims.n_sources:,} sources, "
            f"{self.n_groups:,} groups, seed={self.seed})"
        )


def _claims_by_source(
    part: Claims, given: None, prior: None, truth: Float, decision: Int
) -> tuple[None, Int]:
    return None, np.bincount(part.claim_source, minlength=part.n_sources)


def _truths(part: Claims, given: None, prior: None, truth: Float, decision: Int) -> tuple[None, tuple[Any]]:
    from consilience.results.tables import decided

    return None, (decided(part, truth, decision),)


def _right(
    part: Claims, truths: Truths, known: Truths | None, truth: Float, decision: Int
) -> tuple[None, Int]:
    """Decided right, with gold, and with gold that was known."""
    from consilience.claims.truths import align_truths

    gold = align_truths(truths, part)
    is_known = np.zeros(len(gold), np.bool_) if known is None else align_truths(known, part) != -1
    has_gold = (gold != -1) & ~is_known
    right = np.count_nonzero(decision[has_gold] == gold[has_gold])
    return None, np.array([right, np.count_nonzero(has_gold), np.count_nonzero((gold != -1) & is_known)])


def _write(
    part: Claims, folder: str, prior: None, truth: Float, decision: Int, number: int
) -> tuple[None, tuple[tuple[str, str]]]:
    """Write this part's truths, once whole under its name: where it is tried again, the same bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from consilience.results.atomic import replace_file
    from consilience.results.manifest import digest
    from consilience.results.storage import ROWS_AT_A_TIME
    from consilience.results.tables import decided

    name, sink = f"part-{number:05}.parquet", pa.BufferOutputStream()
    pq.write_table(decided(part, truth, decision), sink, row_group_size=ROWS_AT_A_TIME)
    Path(folder).mkdir(parents=True, exist_ok=True)
    replace_file(Path(folder) / name, sink.getvalue().to_pybytes())
    return None, ((f"{TRUTHS}/{name}", digest(Path(folder) / name)),)
