"""Commands are run inside of the test; afterwards its logging is as it was."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def logging_as_it_was(loggers: None) -> None:
    """For every command, whichever of its modules configures logging."""
