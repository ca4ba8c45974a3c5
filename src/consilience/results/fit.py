"""Fit: what a model found, frozen. Tables are made on demand, in the kind of frame that came in.

What makes them is imported then: a fit itself needs NumPy and SciPy alone, as a machine with a GPU may have them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from consilience.claims.encoding import Claims, Float, Int
from consilience.claims.words import quantity
from consilience.kernels.state import Beliefs, Globals, Prior
from consilience.results import dependence
from consilience.results.cautions import Caution
from consilience.results.dependence import EffectiveSources
from consilience.results.groups import Numbering
from consilience.results.independence import IndependenceTest, independence_test

if TYPE_CHECKING:
    import pyarrow as pa

    from consilience.results.explain import Explanation
    from consilience.results.score import Score


FALL = 1e-9
"""A fall of the bound by more than this share of it is no rounding: something is wrong."""


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """The answer of a model to a table of claims.

    truth              : (n_candidates,) probability that the candidate is the truth; sums to one for each
                         object
    decision           : (n_objects,) the candidate decided for: the most probable, ties by the seed
    source_reliability : (n_sources, 3) mean, low, high (90 % interval; NaN where the model gives none)
    groups_found       : memberships and group reliabilities, for models that have groups
    prior              : the settings that the groups were found under, as numbers
    """

    model: str
    settings: Mapping[str, Any]
    """The settings as asked for."""
    learned: Mapping[str, Any]
    """The values in force where the settings left them open: decided by the data, or by the other settings.

    Of MSS by its default inference (docs/theory/model.md): `true_count`, `false_count` (η, θ), `reliability` (b by
    kind, of r = 0 and 1), `habit` (h by kind), `share` (p by kind and label), `concentration` (κ), `lured` (f by kind:
    how probable it is that an unreliable group falls for the lure of an object; 0 where there are no lures),
    `shared_errors` (ρ, how far groups err together) and `design_effect` (T, by how much groups were doubted for it; 1:
    not at all). Of a kind whose share is 0, b and h are where they began."""
    claims: Claims
    truth: Float
    decision: Int
    source_reliability: Float
    seed: int
    ties: int
    """Objects whose best candidates were equally probable; the seed decided."""
    sweeps: int
    converged: bool
    seconds: float
    """Time of the fit alone, without reading and encoding."""
    known: NDArray[np.bool_] | None = None
    """(n_objects,) whose truth was given, not found; None where none was."""
    trace: tuple[Mapping[str, float], ...] = ()
    """One record a sweep, the bound and its named terms; of a search those sweeps that reached a higher bound."""
    starts: tuple[Mapping[str, float], ...] = ()
    """One record a start of the search, the best first: its bound, its sweeps, and `agreement`, the share of objects
    that it decides as the answer does."""
    groups_found: Globals | None = None
    prior: Prior | Beliefs | None = None
    warnings: tuple[Caution, ...] = ()
    """What to know before trusting the answer: texts, each with a `kind` that programs can tell apart, and `data`."""
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def truths(self) -> Any:
        """A frame with a row for each object: object, value, probability, runner_up, margin, n_claims.

        `runner_up` is the next most probable value, `margin` how far it is behind; null and the whole
        probability where there is no other candidate.
        """
        from consilience.results.tables import truths_table

        return self._frame(truths_table(self))

    @property
    def sources(self) -> Any:
        """A frame with a row for each source, the most reliable first: source, reliability, low, high, group,
        n_claims.

        `reliability` is the share of its claims expected to be right (under the paper's inferences, of objects on
        which its groups are reliable), `low` and `high` a 90 % interval, `group` the group it most probably belongs to.
        """
        from consilience.results.tables import sources_table

        return self._frame(sources_table(self))

    @property
    def groups(self) -> Any:
        """A frame with a row for each group, the largest first: group, n_sources, reliability, low, high,
        kind, weight.

        `kind` is reliable, careless or malicious; `weight` the share of sources that a group like this draws.
        """
        from consilience.results.groups import groups_table

        return self._frame(groups_table(self.groups_found, self.prior))

    @property
    def n_groups(self) -> int | None:
        """Number of groups that have sources; None for a model without groups."""
        return None if self.groups_found is None else len(Numbering.of(self.groups_found).order)

    @property
    def bound(self) -> float | None:
        """The bound at the end, by which fits of one table compare; None for a model without one."""
        return self.trace[-1]["bound"] if self.trace else None

    @property
    def effective_sources(self) -> EffectiveSources:
        """How many independent sources the table is worth, overall and for each object."""
        return dependence.effective_sources(self.claims, self.groups_found)

    def independence(self, permutations: int = 199) -> IndependenceTest:
        """Whether sources share wrong values more than independent ones would: a permutation test."""
        return independence_test(self.claims, self.decision, permutations, self.seed)

    def dependence(self, min_probability: float = 0.5) -> Any:
        """A frame of pairs of sources that probably share a group: source_a, source_b, probability."""
        import pyarrow as pa

        from consilience.results.tables import ids

        a: Int = np.zeros(0, np.int64)
        b, probability = a, np.zeros(0)
        if self.groups_found is not None:
            a, b, probability = dependence.dependent_pairs(self.groups_found, min_probability)
        sources = ids(self.claims.sources)
        pair = {"source_a": sources.take(pa.array(a)), "source_b": sources.take(pa.array(b))}
        return self._frame(pa.table({**pair, "probability": probability}))

    def explain(self, object_id: Any) -> Explanation:
        """Why this object's truth was decided so: whose claims, which groups, how much each weighed."""
        from consilience.results.explain import explain

        return explain(self, object_id)

    def score(self, truth: Any) -> Score:
        """Accuracy, log loss and calibration against gold truths: whatever `read_truths` understands."""
        from consilience.results.score import score

        return score(self, truth)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write everything into a folder, whole or not at all; `consilience.load` reads it back.

        The folder can then be reported on, explained and explored from the command line.
        """
        from consilience.results.storage import save

        return save(self, folder)

    def report(
        self,
        path: str | os.PathLike[str],
        truth: Any = None,
        rivals: str | Sequence[str] = ("vote",),
    ) -> Path:
        """Write what was found as one HTML file with charts, which loads nothing; it needs the extra `report`.

        With gold truths it says how right the fit is, beside rivals: names of models, or "all", run on the same claims.
        """
        from consilience.report.write import check_path, summary_of, write_report

        check_path(path)
        return write_report(summary_of(self, truth, rivals), path)

    def summary(self) -> str:
        """The fit in a few lines of text."""
        from consilience.results.tables import against_majority

        claims = self.claims
        lines = [
            f"{self.model}: {claims.n_claims:,} claims by {claims.n_sources:,} sources "
            f"on {claims.n_objects:,} objects, {self.seconds:.2g} s"
        ]
        if self.n_groups is not None:
            groups = quantity(self.n_groups, "group")
            worth = quantity(self.effective_sources.overall, "independent one")
            lines.append(f"{groups} of sources; together they are worth {worth}")
        n_different = len(against_majority(self))
        lines.append(f"{n_different:,} decisions differ from the majority of claims")
        if self.ties:
            lines.append(f"{self.ties:,} ties, decided by seed {self.seed}")
        if self.bound is not None:
            state = "converged" if self.converged else "NOT converged"
            lines.append(f"{state} after {self.sweeps:,} sweeps at a bound of {self.bound:,.2f}")
        return "\n".join([*lines, *(f"warning: {warning}" for warning in self.warnings)])

    def __repr__(self) -> str:
        groups = "" if self.n_groups is None else f", {self.n_groups:,} groups"
        return (
            f"Fit({self.model!r}: {self.claims.n_objects:,} truths from {self.claims.n_claims:,} claims "
            f"by {self.claims.n_sources:,} sources{groups}, seed={self.seed})"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from consilience.report.notebook import notebook

        return notebook(self)

    def _frame(self, table: pa.Table) -> Any:
        from consilience.claims.frames import to_frame

        return to_frame(table, self.claims.frame)
