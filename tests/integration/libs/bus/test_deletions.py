"""Deletions of keys leave no trace for ever, on whatever way they came to the bucket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import nats
import pytest
from nats.js import JetStreamContext

from libs.bus import Bus, BusSettings, Outbound, publish
from libs.bus.headers import TTL, deletion_headers
from libs.db.outbox import order_withdrawal
from libs.events.subjects import ORDERS_BUCKET, bucket_stream, kv_subject, order_key
from tests.harness import eventually

STREAM = bucket_stream(ORDERS_BUCKET)
A, B, C = (order_key("gpu", f"1.{name}.1") for name in "abc")
LATER = timedelta(hours=1)


@pytest.fixture
async def jetstream(bus: Bus, bus_settings: BusSettings) -> AsyncIterator[JetStreamContext]:
    client = await nats.connect(bus_settings.url)
    yield client.jetstream()
    await client.close()


async def messages(jetstream: JetStreamContext) -> int:
    return (await jetstream.stream_info(STREAM)).state.messages


async def headers_of(jetstream: JetStreamContext, key: str) -> dict[str, str]:
    last = await jetstream.get_last_msg(STREAM, kv_subject(ORDERS_BUCKET, key))
    return dict(last.headers or {})


async def test_deletion_has_a_time_to_live_on_every_way(bus: Bus, jetstream: JetStreamContext) -> None:
    bucket = bus.bucket(ORDERS_BUCKET)
    for key in (A, B, C):
        await bucket.put(key, b"x")
    await bucket.delete(A)
    await bus.publish(kv_subject(ORDERS_BUCKET, B), b"", headers=deletion_headers())
    # As the relay sends what is in the outbox.
    row = order_withdrawal("gpu", "1.c.1")
    assert await bus.publish_ahead([Outbound(row["subject"], row["payload"], "id", row["headers"])]) == 1
    for key in (A, B, C):
        assert TTL in await headers_of(jetstream, key)
    assert await bucket.keys() == []


async def test_deletion_is_gone_when_its_time_is_over(
    bus: Bus, jetstream: JetStreamContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish, "DELETIONS_KEPT_S", 1)
    await bus.bucket(ORDERS_BUCKET).put(A, b"x")
    row = order_withdrawal("gpu", "1.a.1")
    await bus.publish(row["subject"], row["payload"], headers=row["headers"])

    async def is_empty() -> bool:
        return await messages(jetstream) == 0

    await eventually(is_empty)


async def test_old_deletions_that_would_stay_for_ever_are_purged(bus: Bus, jetstream: JetStreamContext) -> None:
    bucket = bus.bucket(ORDERS_BUCKET)
    for key in (A, B, C):
        await bucket.put(key, b"x")
    for key in (A, B):
        await jetstream.publish(kv_subject(ORDERS_BUCKET, key), b"", headers={"KV-Operation": "DEL"})
    now = datetime.now(UTC)
    assert await bucket.purge_deletions(before=now - LATER) == 0, "a watcher may have yet to see them"
    assert await messages(jetstream) == 3
    assert await bucket.purge_deletions(before=now + LATER, most=1) == 1
    await bucket.put(A, b"again")
    await bucket.put(B, b"again")
    assert await bucket.purge_deletions(before=now + LATER) == 0
    assert await bucket.keys() == [A, B, C]
