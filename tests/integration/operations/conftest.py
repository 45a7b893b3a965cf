"""Commands are run inside of the test, whose logging stays as it is."""

from __future__ import annotations

import pytest

from deploy.operations import settings


@pytest.fixture(autouse=True)
def logging_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "configure_logging", lambda *_, **__: None)
