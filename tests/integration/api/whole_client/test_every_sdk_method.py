"""Each public method of the classes of the unmodified SDK, with objects that there are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.api import ApiProcess
from tests.harness.client_program import ClientProgram
from tests.integration.api.whole_client.objects import Objects
from tests.scenarios.sdk_methods import METHODS, Method


@pytest.fixture(scope="module")
def client(api: ApiProcess, token: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClientProgram]:
    home: Path = tmp_path_factory.mktemp("home")
    env = {"DET_MASTER": api.url, "DET_USER": "admin", "DET_USER_TOKEN": token, "DET_DEBUG_CONFIG_PATH": str(home)}
    with ClientProgram("sdk_calls", env=env) as program:
        yield program


@pytest.mark.parametrize("row", METHODS, ids=lambda row: row.name)
def test_the_method_does_what_it_says(client: ClientProgram, objects: Objects, row: Method) -> None:
    outcome = client.ask(row.expression.format_map(objects))
    if row.refused:
        assert row.refused in outcome["refused"]
    else:
        assert "answer" in outcome, outcome


def test_no_method_is_left_out() -> None:
    assert sorted(row.name for row in METHODS) == ClientProgram("sdk_calls", "methods").printed()
