"""Tasks that run as long as a block does. One that fails ends the block, and the block raises what it failed with."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any

from libs.run_until_first_exits import end


class Background:
    """Like ``asyncio.TaskGroup``, but the end of the block ends the tasks, and its own exceptions pass as they are."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._owner: asyncio.Task[Any] | None = None
        self._failure: BaseException | None = None
        self._is_closing = False

    async def __aenter__(self) -> Background:
        self._owner = asyncio.current_task()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closing = True
        await end(*self._tasks)
        if self._failure is not None and (error is None or isinstance(error, asyncio.CancelledError)):
            if isinstance(error, asyncio.CancelledError) and self._owner is not None:
                self._owner.uncancel()
            raise self._failure

    def create_task(self, work: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None] | None:
        """The task, which may also be ended alone; None when the block is ending and nothing is begun any more."""
        if self._is_closing:
            work.close()
            return None
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        if self._is_closing:
            return
        self._tasks.discard(task)
        if task.cancelled() or task.exception() is None or self._failure is not None:
            return
        self._failure = task.exception()
        assert self._owner is not None
        self._owner.cancel()
