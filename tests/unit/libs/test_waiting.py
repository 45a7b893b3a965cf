"""Whoever waits for an event hears of it at once, or looks again by the clock."""

from __future__ import annotations

import asyncio

import pytest

from libs.waiting import wait_until_set


@pytest.mark.parametrize("timeout_s", [0, 10, None])
async def test_an_event_that_is_set_is_not_waited_for(timeout_s: float | None) -> None:
    event = asyncio.Event()
    event.set()
    assert await wait_until_set(event, timeout_s=timeout_s)


async def test_an_event_that_comes_ends_the_wait() -> None:
    event = asyncio.Event()
    asyncio.get_running_loop().call_soon(event.set)
    assert await wait_until_set(event, timeout_s=10)


async def test_the_wait_ends_without_the_event() -> None:
    assert not await wait_until_set(asyncio.Event(), timeout_s=0)
