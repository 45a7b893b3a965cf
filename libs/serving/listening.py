"""An event that knows whether anybody waits for it."""

from __future__ import annotations

import asyncio
from typing import Literal


class ListenedEvent(asyncio.Event):
    listeners = 0
    """Tasks that wait for it now."""

    async def wait(self) -> Literal[True]:
        self.listeners += 1
        try:
            return await super().wait()
        finally:
            self.listeners -= 1
