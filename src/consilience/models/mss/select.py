"""The paper's choice of settings: every combination of a grid, the highest bound wins."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from consilience.kernels.state import Prior

COUNTS = (1.0, 2.0, 5.0, 10.0)
RELIABILITY = (1.0, 2.0, 4.0)
CONCENTRATIONS = (1.0, 5.0, 10.0)


def grid() -> Iterator[Prior]:
    """The paper's grid (its section 6), within what the model means: η¹ > θ¹ and θ⁰ ≥ η⁰."""
    for eta0, eta1, theta0, theta1 in product(COUNTS, repeat=4):
        if eta1 > theta1 and theta0 >= eta0:
            for b0, b1, kappa in product(RELIABILITY, RELIABILITY, CONCENTRATIONS):
                yield Prior(np.array([eta0, eta1]), np.array([theta0, theta1]), np.array([b0, b1]), kappa)
