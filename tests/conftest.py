"""Options of the whole suite."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys

import pytest
from hypothesis import settings

# The machines are shared: the first example of a test may wait for an import or a compiler.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")

# What a shell starts in the background ignores Ctrl-C, and so would every process that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

FIT = """
import sys
from consilience.models.mss.model import MSS
from consilience.testing.checks import tables

MSS(inference=sys.argv[1]).fit(next(tables()), engine="numba")
"""
compiling: list[subprocess.Popen[bytes]] = []


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Have the kernels compiled where they are not yet, while workers collect tests: each would compile them all."""
    for inference in ("partition", "structured", "mean-field"):
        compiling.append(subprocess.Popen([sys.executable, "-c", FIT, inference]))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished() -> None:
    """No test begins before they are there."""
    for process in compiling:
        process.wait()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those of the cluster first: a worker that has run out of tests takes the last of another, and would start one."""
    items.sort(key=lambda item: "runners" not in item.path.parts)


def pytest_collection_finish() -> None:
    """What is there by now stays. To look for garbage in it again and again would make many tests slow."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Libraries complain of what is not gone at the end."""
    gc.unfreeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-golden",
        action="store_true",
        help="write the present answers of every model into tests/golden instead of comparing (make golden)",
    )
