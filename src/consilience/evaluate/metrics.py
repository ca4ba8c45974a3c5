"""How well one label is found: precision and recall, for questions of yes or no where "yes" is rare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from consilience.claims.id_types import comparable
from consilience.claims.reading import read_truths
from consilience.claims.truths import Truths
from consilience.claims.vocabulary import positions
from consilience.errors import UnknownNameError
from consilience.results.fit import Fit
from consilience.results.score import no_overlap
from consilience.results.tables import ids, is_found, values_of


@dataclass(frozen=True)
class PrecisionRecall:
    """Decisions for one label, over the objects that have both a decision and gold.

    n_gold     : objects counted
    n_positive : of these, objects whose gold is the label
    n_decided  : of these, objects decided for the label
    n_right    : of these, objects with both
    precision  : n_right / n_decided; None where nothing was decided for the label
    recall     : n_right / n_positive; None where no gold is the label
    f1         : the harmonic mean of the two, 2 n_right / (n_positive + n_decided): 0 where one of them is None
                 because of the other's misses; None where there was nothing to find and nothing was found
    """

    n_gold: int
    n_positive: int
    n_decided: int
    n_right: int

    @property
    def precision(self) -> float | None:
        """Share of the decisions for the label that are right."""
        return self.n_right / self.n_decided if self.n_decided else None

    @property
    def recall(self) -> float | None:
        """Share of the objects with the label that are found."""
        return self.n_right / self.n_positive if self.n_positive else None

    @property
    def f1(self) -> float | None:
        """The harmonic mean of precision and recall."""
        n_either = self.n_positive + self.n_decided
        return 2 * self.n_right / n_either if n_either else None
