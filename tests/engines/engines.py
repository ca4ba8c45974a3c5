"""The engines under test, with how far each may be from the reference."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

TOLERANCE = {"numpy": 1e-9, "numba": 1e-9, "torch": 1e-9}  # relative to max(1, |x|), in float64
if find_spec("torch") is None:
    del TOLERANCE["torch"]
ENGINES = [*TOLERANCE]
if "torch" not in TOLERANCE:
    missing = pytest.mark.skip(reason="PyTorch is not installed: pip install 'consilience[gpu]'")
    ENGINES.append(pytest.param("torch", marks=missing))
