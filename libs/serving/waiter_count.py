"""An event that counts its waiters, so that others can tell whether anybody waits for it."""

from __future__ import annotations

import asyncio
from typing import Literal


class CountingEvent(asyncio.Event):
    waiters = 0
    """Tasks that wait for it now."""

    async def wait(self) -> Literal[True]:
        self.waiters += 1
        try:
            return await super().wait()
        finally:
            self.waiters -= 1
