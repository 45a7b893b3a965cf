"""What tasks of the process backend find around them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.launcher.fakes import FakeMaster, serve_master


@pytest.fixture
def master() -> Iterator[FakeMaster]:
    with serve_master() as fake:
        yield fake
