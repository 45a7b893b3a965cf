from __future__ import annotations

import asyncio

import pytest

from libs.run_until_first_exits import run_until_first_exits


async def test_first_failure_ends_all() -> None:
    ended: list[str] = []

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("waited")

    async def fail() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await run_until_first_exits(a=wait(), b=fail(), c=wait())
    assert ended == ["waited", "waited"]


async def test_swallowed_cancellation_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("libs.run_until_first_exits.CANCEL_AGAIN_S", 0.01)
    swallowed = 0

    async def stubborn() -> None:
        nonlocal swallowed
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                swallowed += 1
                if swallowed == 2:
                    raise

    task = asyncio.create_task(run_until_first_exits(a=stubborn()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert swallowed == 2


async def test_first_that_returns_ends_all() -> None:
    ended: list[str] = []

    async def serve() -> None:
        ended.append("served")

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("waited")

    await run_until_first_exits(http=serve(), background=wait())
    assert ended == ["served", "waited"]
