"""Connecting to a task: a failure is what its user reads about, in words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from libs.serving.keep_alive import keep_alive
from services.api.proxy.targets import Target

Protocol = TypeVar("Protocol", bound=asyncio.Protocol)


class NotReached(Exception):
    """The task does not accept connections, or what it says is no answer."""


async def dial(make: Callable[[], Protocol], target: Target, *, timeout_s: float) -> Protocol:
    """Connect a protocol to a task. Raises NotReached."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout_s):
            transport, protocol = await loop.create_connection(make, target.host, target.port)
    except (OSError, TimeoutError) as error:
        raise NotReached(str(error)) from error
    keep_alive(transport)
    return protocol
