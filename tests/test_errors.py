"""Errors travel between processes as they are."""

from __future__ import annotations

import pickle

import pytest

from consilience.errors import (
    ClaimsError,
    ConsilienceError,
    Problem,
    SettingsError,
    UnknownNameError,
    UnsuitableTableError,
)


@pytest.mark.parametrize(
    "error",
    [
        ClaimsError("a table", [Problem("kind", "found", "advice", 3, ("one", "two"))]),
        SettingsError("n_starts", "a whole number", -1),
        UnknownNameError("model", "vot", ["vote", "mss"]),
        UnsuitableTableError("glad", "labels", "many", "use another"),
    ],
)
def test_errors_come_back_with_message_and_data(error: ConsilienceError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)
