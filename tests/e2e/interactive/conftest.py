"""A whole system whose tasks have JupyterLab and TensorBoard."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.interactive.users import User
from tests.harness.installed_client import interactive_python
from tests.harness.whole_system import WholeSystem, running_system


@pytest.fixture(scope="session")
def system() -> Iterator[WholeSystem]:
    """Shared by all tests that kill nothing of it."""
    with running_system(slots=8, python=str(interactive_python())) as started:
        yield started


@pytest.fixture(scope="session")
def user(system: WholeSystem) -> Iterator[User]:
    """Somebody who is logged in as ``determined``; what he started is killed in the end."""
    with system.http() as http:
        somebody = User(system, http)
        yield somebody
        somebody.kill_all()
