"""One client for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.looking import Looking
from tests.harness.client import Client
from tests.harness.whole_system import WholeSystem


@pytest.fixture(scope="session")
def det(whole_system: WholeSystem) -> Client:
    return whole_system.det("e2e")


@pytest.fixture(scope="session")
def look(whole_system: WholeSystem) -> Iterator[Looking]:
    with whole_system.http() as http:
        yield Looking(http)
