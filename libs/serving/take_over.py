"""Taking a connection over from HTTP: what a request that asks for an upgrade offers to the application.

The application sees such a request like any other, so it may refuse it like any other; or it takes the connection,
writes the head of the answer (101) itself, and from then on the bytes are between it and the client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeAlias

from starlette.types import Scope

EXTENSION: Final = "resolute.take_over"

TakeOver: TypeAlias = Callable[[asyncio.Protocol], asyncio.Transport]
"""Gives the connection to a protocol, which is told of it and of what the client sent early, in this order. Raises
ConnectionError when the client has left. To be called at most once, and before anything of an answer is sent."""


def take_over_of(scope: Scope) -> TakeOver | None:
    """How to take over the connection of a request; None for one that did not ask for a websocket."""
    take_over: TakeOver | None = scope.get("extensions", {}).get(EXTENSION)
    return take_over
