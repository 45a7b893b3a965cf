"""Run the loops of a service side by side until the first of them exits, then end the others.

Like ``asyncio.TaskGroup``, but a loop that returns ends the others too, and one that swallows its cancellation is
cancelled again. Before Python 3.12 ``asyncio.wait_for`` swallows it when its result arrives in the same moment
(bpo-37658). ``libs/bus`` keeps that away from us; this is the net below, since a group would wait for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

CANCEL_AGAIN_S: Final = 15.0
"""Longer than any loop takes to put its things in order: a second cancellation would cut that short."""


async def run_until_first_exits(**loops: Coroutine[Any, Any, None]) -> None:
    """Run ``loops`` until one raises or returns, or until cancelled; then end the others.

    The names name the tasks. Raises what the first that failed has raised.
    """
    tasks = [asyncio.create_task(loop, name=name) for name, loop in loops.items()]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        ended = [task for task in tasks if task.done()]
        await end(*tasks)
    for task in (*ended, *tasks):
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error


async def end(*tasks: asyncio.Future[Any]) -> None:
    """Cancel ``tasks`` and wait until they have ended, even if cancelled meanwhile; raises nothing of theirs."""
    interrupted: asyncio.CancelledError | None = None
    pending = {task for task in tasks if not task.done()}
    while pending:
        for task in pending:
            task.cancel()
        try:
            _, pending = await asyncio.wait(pending, timeout=CANCEL_AGAIN_S)
        except asyncio.CancelledError as error:
            interrupted = error
            pending = {task for task in pending if not task.done()}
    if interrupted is not None:
        raise interrupted
