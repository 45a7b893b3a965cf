"""What the api makes of a scheduler that does not know what it asks about."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from libs.errors import NotFound, ResoluteError, Unavailable
from libs.events.requests.queue_checks import EmptyPoolRequest
from services.api.actions.requirements import answers_about
from services.api.app import App

ASKED = EmptyPoolRequest(pool="new", task_type="TRIAL", slots=1, num_pods=1)


@pytest.mark.parametrize("error", [NotFound("resource pool", "new"), Unavailable("nobody answered")])
async def test_what_cannot_be_asked_is_not_refused(error: ResoluteError) -> None:
    """A scheduler of before the pool was added refuses questions about it in some releases."""

    async def request(*_: Any, **__: Any) -> bytes:
        raise error

    app = cast("App", SimpleNamespace(bus=SimpleNamespace(request=request)))
    assert await answers_about(app, (ASKED,)) == ()
