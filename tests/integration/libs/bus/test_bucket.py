"""Watching desired state: a snapshot first, changes afterwards, and a snapshot again after any doubt."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import aclosing

from libs.bus import Bucket, Bus, BusSettings, KvChange, SnapshotEnd, connect_bus
from libs.bus.headers import deletion_headers
from libs.errors import Unavailable
from libs.events.subjects import ORDERS_BUCKET, kv_subject, order_key, orders_of
from tests.harness import NatsServer
from tests.harness.waiting import PATIENCE_S

A, B, OTHER = order_key("gpu", "1.a.1"), order_key("gpu", "1.b.1"), order_key("cpu", "2.c.1")


class Watcher:
    """What a launcher does with a watch: keep the keys that exist."""

    def __init__(self, changes: AsyncIterator[KvChange | SnapshotEnd]) -> None:
        self.values: dict[str, bytes] = {}
        self._changes = changes

    async def read(self) -> KvChange | SnapshotEnd:
        async with asyncio.timeout(PATIENCE_S):
            change = await anext(self._changes)
        if isinstance(change, SnapshotEnd):
            self.values = {key: value for key, value in self.values.items() if key in change.keys}
        elif change.value is None:
            self.values.pop(change.key, None)
        else:
            self.values[change.key] = change.value
        return change

    async def read_snapshot(self) -> dict[str, bytes]:
        while not isinstance(await self.read(), SnapshotEnd):
            pass
        return self.values


async def test_get_sees_put_and_delete(bus: Bus) -> None:
    bucket = bus.bucket(ORDERS_BUCKET)
    assert await bucket.get(A) is None
    first = await bucket.put(A, b"1")
    second = await bucket.put(A, b"2")
    entry = await bucket.get(A)
    assert entry is not None
    assert (entry.key, entry.value, entry.revision) == (A, b"2", second)
    assert second > first
    await bucket.delete(A)
    assert await bucket.get(A) is None


async def test_keys_lists_what_exists_and_matches(bus: Bus) -> None:
    bucket = bus.bucket(ORDERS_BUCKET)
    assert await bucket.keys() == []
    for key in (B, A, OTHER):
        await bucket.put(key, b"x")
    await bucket.delete(B)
    assert await bucket.keys() == sorted([A, OTHER])
    assert await bucket.keys(orders_of("gpu")) == [A]


async def test_relay_may_publish_instead_of_put(bus: Bus) -> None:
    bucket = bus.bucket(ORDERS_BUCKET)
    for _ in range(2):
        await bus.publish(kv_subject(ORDERS_BUCKET, A), b"1", msg_id="outbox-1")
    entry = await bucket.get(A)
    assert entry is not None
    assert entry.value == b"1"
    await bus.publish(kv_subject(ORDERS_BUCKET, A), b"", msg_id="outbox-2", headers=deletion_headers())
    assert await bucket.get(A) is None


async def test_watch_of_empty_bucket_ends_its_snapshot(bus: Bus) -> None:
    async with aclosing(bus.bucket(ORDERS_BUCKET).watch(orders_of("gpu"))) as changes:
        assert await Watcher(changes).read() == SnapshotEnd(frozenset())


async def test_watch_yields_present_then_changes(bus: Bus) -> None:
    bucket = bus.bucket(ORDERS_BUCKET)
    await bucket.put(A, b"old")
    await bucket.put(A, b"new")
    await bucket.put(B, b"b")
    await bucket.put(OTHER, b"not ours")
    await bucket.delete(B)
    async with aclosing(bucket.watch(orders_of("gpu"))) as changes:
        watcher = Watcher(changes)
        assert await watcher.read_snapshot() == {A: b"new"}
        revision = await bucket.put(B, b"again")
        assert await watcher.read() == KvChange(B, b"again", revision)
        await bucket.delete(A)
        await watcher.read()
        assert watcher.values == {B: b"again"}


async def test_snapshot_is_complete_while_keys_are_rewritten(bus: Bus) -> None:
    bucket = bus.bucket(ORDERS_BUCKET)
    keys = [order_key("gpu", str(number)) for number in range(700)]
    await asyncio.gather(*(bucket.put(key, b"0") for key in keys))

    async def rewrite() -> None:
        while True:
            for key in keys:
                await bucket.put(key, b"1")

    writer = asyncio.create_task(rewrite())
    try:
        for _ in range(3):
            async with aclosing(bucket.watch()) as changes:
                assert set(await Watcher(changes).read_snapshot()) == set(keys)
    finally:
        writer.cancel()


async def test_watch_survives_kill_and_restart_with_new_snapshot(own_nats_server: NatsServer) -> None:
    async with connect_bus(settings_of(own_nats_server)) as bus:
        bucket = bus.bucket(ORDERS_BUCKET)
        await bucket.put(A, b"a")
        async with aclosing(bucket.watch()) as changes:
            watcher = Watcher(changes)
            assert await watcher.read_snapshot() == {A: b"a"}
            own_nats_server.restart()
            assert await watcher.read_snapshot() == {A: b"a"}
            await put_with_retry(bucket, B, b"b")
            await watcher.read()
            assert watcher.values == {A: b"a", B: b"b"}


async def test_watch_notices_keys_lost_with_the_disk(own_nats_server: NatsServer) -> None:
    async with connect_bus(settings_of(own_nats_server)) as bus:
        bucket = bus.bucket(ORDERS_BUCKET)
        await bucket.put(A, b"a")
        async with aclosing(bucket.watch()) as changes:
            watcher = Watcher(changes)
            assert await watcher.read_snapshot() == {A: b"a"}
            own_nats_server.kill()
            shutil.rmtree(own_nats_server.store_directory)
            own_nats_server.start()
            assert await watcher.read_snapshot() == {}


async def put_with_retry(bucket: Bucket, key: str, value: bytes) -> None:
    while True:
        try:
            await bucket.put(key, value)
            return
        except Unavailable:
            await asyncio.sleep(0.05)


def settings_of(server: NatsServer) -> BusSettings:
    return BusSettings(url=server.url, connect_timeout_s=PATIENCE_S, logs_max_bytes=2**28, request_timeout_s=3)
