"""Schemathesis on the JSON interface: whatever is asked, it answers as described and never breaks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from tests.server.conftest import HEADERS, hostile, visited

CHECKS = [not_a_server_error, response_schema_conformance, status_code_conformance]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with visited(hostile(tmp_path_factory.mktemp("schema") / "result")) as client:
        yield str(client.base_url)


def test_the_interface_never_breaks(address: str) -> None:
    schema = schemathesis.openapi.from_url(f"{address}/api/openapi.json")
    asked = []
    for each in schema.get_all_operations():
        operation = each.ok()
        if operation.label == "POST /api/refit":
            continue  # tests/server/test_refit.py: a process for each of these would take minutes
        asked.append(operation.label)

        valid, invalid = (operation.as_strategy(generation_mode=mode) for mode in GenerationMode)

        @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
        @given(case=valid | invalid)
        def ask(case: schemathesis.Case) -> None:
            case.call_and_validate(headers=HEADERS, checks=CHECKS)

        ask()
    assert len(asked) == 14
