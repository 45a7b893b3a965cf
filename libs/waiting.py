"""Wait for an event, but not for ever: a notification may be lost, so whoever waits for one also looks by the clock."""

from __future__ import annotations

import asyncio


async def wait_until_set(event: asyncio.Event, *, timeout_s: float | None) -> bool:
    """Return as soon as ``event`` is set, or after ``timeout_s`` seconds (never for None); says whether it is set."""
    try:
        async with asyncio.timeout(timeout_s):
            return await event.wait()
    except TimeoutError:
        return False
