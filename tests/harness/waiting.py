"""Waits for what happens elsewhere, with a time limit and a good message."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

T = TypeVar("T")

PATIENCE_S: Final = 60.0
"""Longer than anything takes on a machine that is busy with other tests; only a test that fails waits for so long."""


async def eventually(
    look: Callable[[], T | Awaitable[T]], *, timeout_s: float = PATIENCE_S, every_s: float = 0.01, what: str = ""
) -> T:
    """Call ``look`` until it returns something true, and return that. AssertionError after ``timeout_s``."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    while True:
        found = look()
        value: T = await found if inspect.isawaitable(found) else found
        if value:
            return value
        if loop.time() > deadline:
            raise AssertionError(f"did not happen in {timeout_s} s: {what or inspect.getsource(look).strip()}")
        await asyncio.sleep(every_s)


def wait_until(look: Callable[[], T], *, timeout_s: float = PATIENCE_S, every_s: float = 0.05, what: str = "") -> T:
    """``eventually`` for tests that block: what they wait for are processes."""
    deadline = time.monotonic() + timeout_s
    while not (value := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"did not happen in {timeout_s} s: {what or inspect.getsource(look).strip()}")
        time.sleep(every_s)
    return value
