"""Each function of the client's bindings, which is each endpoint of the reference: its answer is of the shape that the
unmodified client expects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.harness.api import ApiProcess
from tests.harness.client_program import ClientProgram
from tests.integration.api.whole_client.objects import Objects
from tests.scenarios.bindings import CALLS
from tests.scenarios.bindings.call import Call
from tests.scenarios.reference_endpoints import reference_endpoints


@pytest.fixture(scope="module")
def client(api: ApiProcess, token: str) -> Iterator[ClientProgram]:
    with ClientProgram("binding_calls", api.url, token) as program:
        yield program


def filled(value: Any, objects: Objects) -> Any:
    """With the objects that it names in braces; one that stands alone keeps its type."""
    if isinstance(value, dict):
        return {key: filled(each, objects) for key, each in value.items()}
    if isinstance(value, list):
        return [filled(each, objects) for each in value]
    if not isinstance(value, str):
        return value
    alone = value.strip("{}")
    return objects[alone] if value == f"{{{alone}}}" else value.format_map(objects)


@pytest.mark.parametrize("row", CALLS, ids=lambda row: row.function)
def test_the_answer_is_what_the_client_expects(client: ClientProgram, objects: Objects, row: Call) -> None:
    outcome = client.ask([row.function, filled(row.arguments, objects)])
    if row.refused:
        assert row.refused in outcome["refused"]
    else:
        assert "answer" in outcome, outcome


def test_no_function_and_no_endpoint_is_left_out() -> None:
    rows = sorted(row.function for row in CALLS)
    assert rows == ClientProgram("binding_calls").printed()
    assert {name.partition("_")[2] for name in rows} == {endpoint.rpc for endpoint in reference_endpoints()}
