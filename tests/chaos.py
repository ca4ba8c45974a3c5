"""The faults and kills of benchmarks/chaos, for tests that try a few of them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parents[1] / "benchmarks" / "chaos"


def script(name: str) -> ModuleType:
    """A script of that folder as a module."""
    spec = importlib.util.spec_from_file_location(f"chaos_{name}", HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module
