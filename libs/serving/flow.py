"""When a connection is read from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from uvicorn.protocols.http.flow_control import FlowControl


class PipelineFlow(FlowControl):
    """Reads on only when there is room: what follows a request that is being answered waits in the network."""

    def __init__(self, transport: asyncio.Transport, *, is_held: Callable[[], bool]) -> None:
        super().__init__(transport)
        self._is_held = is_held

    def resume_reading(self) -> None:
        if self.read_paused and not self._is_held():
            super().resume_reading()
