"""What an allocation leaves behind when it is over: nothing that grows with the number of tasks."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import nats
import pytest

from libs.bus import BusSettings
from libs.bus.headers import TTL
from libs.clock import SystemClock
from libs.events import subjects
from libs.events.orders import Order
from services.scheduler.deletion import housekeeping
from services.scheduler.deletion.housekeeping import Housekeeping
from tests.harness import eventually
from tests.integration.scheduler.world import QUICK, World

ORDERS = subjects.bucket_stream(subjects.ORDERS_BUCKET)


async def _run_one(w: World) -> str:
    experiment = await w.api.create()
    [allocation] = await w.launcher.running()
    await w.launcher.exit(allocation)
    await w.api.ended(experiment, "COMPLETED")
    return allocation


async def test_members_of_its_gathers_end_with_an_allocation(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create()
        [allocation] = await w.launcher.running()
        await w.api.sql(
            "INSERT INTO gather_members (allocation_id, request_uuid, num_peers, data, holder, gathered)"
            " VALUES (:allocation, 'a', 2, '{}', 'h', '[]'), (:allocation, 'b', 2, '{}', 'h', NULL)",
            allocation=allocation,
        )
        await w.launcher.exit(allocation)
        await w.api.ended(experiment, "COMPLETED")
        assert await w.api.sql("SELECT request_uuid FROM gather_members") == []


async def test_withdrawn_order_is_forgotten_after_a_while(world: World, bus_settings: BusSettings) -> None:
    client = await nats.connect(bus_settings.url)
    async with world.scheduling() as w:
        key = subjects.kv_subject(subjects.ORDERS_BUCKET, subjects.order_key("default", await _run_one(w)))

        async def is_withdrawn() -> bool:
            last = await client.jetstream().get_last_msg(ORDERS, key)
            return not last.data and TTL in (last.headers or {})

        await eventually(is_withdrawn)
    await client.close()


async def test_orders_are_listed_once_and_not_every_time_somebody_looks(
    world: World, bus_settings: BusSettings
) -> None:
    client = await nats.connect(bus_settings.url)
    async with world.scheduling(QUICK) as w:
        bucket = w.bus.bucket(subjects.ORDERS_BUCKET)
        stale = subjects.order_key("default", "1.gone.1")

        async def look() -> None:
            """Have the scheduler find an order that nobody wants."""
            await bucket.put(stale, msgspec.json.encode(Order(allocation="1.gone.1", pool="default", desired="stop")))
            await eventually(is_absent)

        async def is_absent() -> bool:
            return await bucket.get(stale) is None

        await look()
        listings = await client.subscribe(f"$JS.EVENT.ADVISORY.CONSUMER.CREATED.{ORDERS}.>")
        await client.flush()
        for _ in range(3):
            await look()
        assert listings.pending_msgs == 0
        await bucket.keys()  # which does list it
        await eventually(lambda: listings.pending_msgs == 1)
    await client.close()


async def test_old_withdrawals_are_purged_by_whoever_keeps_house(
    world: World, bus_settings: BusSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "DELETIONS_KEPT_S", -timedelta(hours=1).total_seconds())
    monkeypatch.setattr(housekeeping, "PURGED_AT_ONCE", 2)
    client = await nats.connect(bus_settings.url)
    jetstream = client.jetstream()
    for number in range(5):
        key = subjects.kv_subject(subjects.ORDERS_BUCKET, subjects.order_key("default", f"1.{number}.1"))
        await jetstream.publish(key, b"", headers={"KV-Operation": "DEL"})
    await Housekeeping(
        db=world.db, bus=world.bus, clock=SystemClock(), sessions_kept_s=86400, audit_kept_days=None
    ).tidy()
    assert (await jetstream.stream_info(ORDERS)).state.messages == 0
    await client.close()
