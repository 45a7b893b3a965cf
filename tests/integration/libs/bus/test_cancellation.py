"""Whoever cancels a call on the bus can rely on it: a loop that swallowed its cancellation would never end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from libs.bus import Bus, CoreMessage
from libs.events.subjects import ORDERS_BUCKET, event, events_of

ROUNDS = 400
"""Cancellations at as many moments of a call; among them those at which its answer has just come."""


async def publish(bus: Bus) -> None:
    await bus.publish(event("trial", 1, "state"), b"x")


async def read(bus: Bus) -> None:
    await bus.bucket(ORDERS_BUCKET).get("a.b")


async def list_keys(bus: Bus) -> None:
    await bus.bucket(ORDERS_BUCKET).keys()


async def provide_streams(bus: Bus) -> None:
    await bus.ensure_streams()


async def listen(bus: Bus) -> None:
    async def hear(_: CoreMessage) -> None:
        pass

    async with bus.subscribe(events_of("trial"), hear):
        pass


@pytest.mark.parametrize("call", [publish, read, list_keys, provide_streams, listen])
async def test_cancellation_is_never_swallowed(bus: Bus, call: Callable[[Bus], Awaitable[None]]) -> None:
    at_work = 0
    for turns in range(ROUNDS):
        async with running(call, bus) as task:
            for _ in range(turns):
                await asyncio.sleep(0)
            if not task.cancel():
                continue  # it was done already
            at_work += 1
        assert task.cancelled(), f"after {turns} turns of the loop"
    assert at_work


async def test_a_subscription_that_is_given_up_leaves_the_connection_reading(bus: Bus) -> None:
    given_up = 0
    for turns in range(ROUNDS):
        async with running(listen, bus) as task:
            for _ in range(turns):
                await asyncio.sleep(0)
            given_up += task.cancel()
        async with asyncio.timeout(5):
            await read(bus)
    assert given_up


@asynccontextmanager
async def running(call: Callable[[Bus], Awaitable[None]], bus: Bus) -> AsyncIterator[asyncio.Task[None]]:
    async def work() -> None:
        await call(bus)

    task = asyncio.create_task(work())
    yield task
    await asyncio.wait((task,), timeout=60)
