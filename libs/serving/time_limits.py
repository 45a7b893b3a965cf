"""Lifting the time limits of a request: what an application is offered for requests that go on for hours.

From then on its body may come as slowly and be as silent as it likes, and a server that stops neither waits for the
request nor cuts it: whoever has lifted the limits ends it. Whether its client is still there is asked by the operating
system. The head has had its limits before, and the next request of the connection has its own again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from starlette.types import Scope

EXTENSION: Final = "resolute.lift_time_limits"

LiftTimeLimits: TypeAlias = Callable[[], None]


def lift_time_limits(scope: Scope) -> None:
    """Lift the limits of a request that is being served; nothing happens where the server has none."""
    lift: LiftTimeLimits | None = scope.get("extensions", {}).get(EXTENSION)
    if lift is not None:
        lift()
