"""Observations that no scheduler ever hears: their launchers are asked, and report them again."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import nats
import pytest

from libs.bus import BusSettings, durables
from libs.events.subjects import EVENTS_STREAM, OBSERVER
from services.scheduler.settings import SchedulerSettings
from tests.harness import eventually
from tests.integration.scheduler.world import QUICK, USUAL, World


async def end_unheard(world: World, settings: BusSettings, allocation: str) -> None:
    """The task ends, and the message about it goes as if it had never been."""
    client = await nats.connect(settings.url)
    try:
        await client.jetstream().delete_consumer(EVENTS_STREAM, OBSERVER)
        # It is there, but nothing that is said of allocations comes through it.
        config = {"durable_name": OBSERVER, "ack_policy": "explicit", "filter_subject": "resolute.v1.nothing.>"}
        asked: dict[str, Any] = {"stream_name": EVENTS_STREAM, "config": config}
        subject = f"$JS.API.CONSUMER.DURABLE.CREATE.{EVENTS_STREAM}.{OBSERVER}"
        answer = json.loads((await client.request(subject, json.dumps(asked).encode())).data)
        assert "error" not in answer
        await world.launcher.exit(allocation)
        await client.jetstream().purge_stream(EVENTS_STREAM)
    finally:
        await client.close()


async def test_a_scheduler_that_starts_asks_for_what_was_said_before(world: World, bus_settings: BusSettings) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create()
        [allocation] = await w.launcher.running()
        await eventually(lambda: _is_running(w, allocation))
    await end_unheard(world, bus_settings, allocation)
    async with world.scheduling():
        await world.api.ended(experiment, "COMPLETED")


async def test_a_scheduler_asks_when_its_consumer_is_not_as_it_made_it(
    world: World, bus_settings: BusSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durables, "LOOK_EVERY_S", 0.5)
    async with world.scheduling() as w:
        experiment = await w.api.create()
        [allocation] = await w.launcher.running()
        await eventually(lambda: _is_running(w, allocation))
        await end_unheard(w, bus_settings, allocation)
        await w.api.ended(experiment, "COMPLETED")


async def test_a_scheduler_asks_when_an_allocation_is_silent_for_long(world: World) -> None:
    engine = msgspec.structs.replace(QUICK.engine, silence_s=0.5)
    settings: SchedulerSettings = msgspec.structs.replace(USUAL, engine=engine)
    async with world.scheduling(settings) as w:
        experiment = await w.api.create()
        [allocation] = await w.launcher.running()
        await eventually(lambda: _is_running(w, allocation))
        # It has ended, and no message was ever sent about it.
        seen = w.launcher.said[allocation]
        [pod] = seen.pods
        ended = msgspec.structs.replace(pod, state="TERMINATED", exit_code=0)
        w.launcher.said[allocation] = msgspec.structs.replace(seen, pods=(ended,), revision=seen.revision + 1)
        await w.api.ended(experiment, "COMPLETED")


async def _is_running(world: World, allocation: str) -> bool:
    return (await world.api.allocation(allocation))["state"] == "RUNNING"
