"""Flow control of pipelined requests: what follows one that is being answered waits in the network."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from uvicorn.protocols.http.flow_control import FlowControl


class PipelineFlowControl(FlowControl):
    """Resumes reading only when there is room.

    is_full  whether requests that were read still wait for the response to one before them
    """

    def __init__(self, transport: asyncio.Transport, *, is_full: Callable[[], bool]) -> None:
        super().__init__(transport)
        self._is_full = is_full

    def resume_reading(self) -> None:
        if self.read_paused and not self._is_full():
            super().resume_reading()
