"""Tests that take a `device` run on PyTorch's CPU build and, marked `gpu`, on a CUDA device."""

from __future__ import annotations

from importlib.util import find_spec

import pytest


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "device" not in metafunc.fixturenames:
        return
    has_torch = find_spec("torch") is not None
    without_torch = pytest.mark.skipif(
        not has_torch, reason="PyTorch is not installed: pip install 'consilience[gpu]'"
    )
    without_cuda = pytest.mark.skipif(not (has_torch and _has_cuda()), reason="there is no CUDA device")
    metafunc.parametrize(
        "device",
        [
            pytest.param("cpu", marks=without_torch),
            pytest.param("cuda", marks=[pytest.mark.gpu, without_torch, without_cuda]),
        ],
    )


def _has_cuda() -> bool:
    import torch

    return torch.cuda.is_available()
