"""Pages about a million objects; slow, so not part of `make test`."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "explorer" / "pages.py"


@pytest.mark.recovery
@pytest.mark.timeout(1800)
def test_an_object_of_a_million_has_its_page_in_a_fifth_of_a_second() -> None:
    found = runpy.run_path(str(SCRIPT))["benchmark"](1_000_000, 10)
    assert found["ms"]["object"]["median"] < 200, found
    assert found["ms"]["object"]["p95"] < 200, found
