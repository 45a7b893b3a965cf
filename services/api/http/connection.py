"""The connection of a client, which may go away while its request is being served."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from starlette.types import Receive

Result = TypeVar("Result")


class ClientGone(Exception):
    """The client closed the connection before its answer was complete; nobody is left to be told anything."""


async def until_gone(receive: Receive) -> None:
    """Returns when the client has closed the connection; drops whatever of the body is still to come."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def raise_when_gone(receive: Receive) -> None:
    """Raises ClientGone when the client has closed the connection."""
    await until_gone(receive)
    raise ClientGone


async def while_connected(receive: Receive, work: Awaitable[Result]) -> Result:
    """The result of ``work``, which is cancelled and awaited when the client goes away first: ClientGone then."""
    working = asyncio.ensure_future(work)
    gone = asyncio.create_task(until_gone(receive))
    both: set[asyncio.Future[Any]] = {working, gone}
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientGone
        return working.result()
    finally:
        for task in both:
            task.cancel()
        await asyncio.gather(*both, return_exceptions=True)
