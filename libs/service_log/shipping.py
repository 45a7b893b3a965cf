"""Ships what a service logs to the bus. A line may be lost with the process or with the server; none is waited for."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

import msgspec

from libs.service_log.buffer import LINES, LineBuffer

GATHER_S: Final = 0.05
"""Lines come in bursts; they go out together."""
AWAY_S: Final = 0.5


class LineSink(Protocol):
    """What shipping needs of a ``libs.bus.Bus``."""

    @property
    def is_connected(self) -> bool: ...

    async def publish_core(self, subject: str, payload: bytes) -> None: ...


async def ship_lines(bus: LineSink, subject: str, *, lines: LineBuffer = LINES) -> None:
    """Publish lines as they come, until cancelled; while the bus is away the newest wait."""
    lines.attach()
    while True:
        await lines.wait()
        if not bus.is_connected:
            await asyncio.sleep(AWAY_S)
            continue
        while bus.is_connected and (line := lines.take()) is not None:
            await bus.publish_core(subject, msgspec.json.encode(line))
        await asyncio.sleep(GATHER_S)
