"""Options of the whole suite."""

from __future__ import annotations

import signal

import pytest
from hypothesis import settings

# The machines are shared: the first example of a test may wait for an import or a compiler.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")

# What a shell starts in the background ignores Ctrl-C, and so would every process that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-golden",
        action="store_true",
        help="write the present answers of every model into tests/golden instead of comparing (make golden)",
    )
