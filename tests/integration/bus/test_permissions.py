"""A launcher with credentials for its own pool only: what it needs works, the rest does not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from uuid import uuid4

import pytest

from libs.bus import BusSettings, KvChange, SnapshotEnd, connect_bus
from libs.errors import Unavailable
from libs.events.subjects import (
    CAPACITY_BUCKET,
    ORDERS_BUCKET,
    capacity_key,
    event,
    order_key,
    orders_of,
)
from tests.harness import NatsServer

PERMISSIONS = """
authorization {
  users: [
    { user: scheduler, password: s }
    { user: launcher, password: l, permissions: {
        publish: [
          "$JS.API.CONSUMER.CREATE.KV_ORDERS.*.$KV.ORDERS.gpu.*"
          "$JS.API.CONSUMER.MSG.NEXT.KV_ORDERS.*"
          "$JS.API.DIRECT.GET.KV_ORDERS.$KV.ORDERS.gpu.*"
          "$KV.CAPACITY.gpu"
          "resolute.v1.allocation.*.observed"
        ]
        subscribe: ["_INBOX_gpu.>"]
    } }
  ]
}
"""


@pytest.fixture
def guarded(server_directory: Path) -> Iterator[NatsServer]:
    server = NatsServer(server_directory / uuid4().hex[:8], extra_config=PERMISSIONS, dies_with_parent=True)
    try:
        server.start()
        yield server
    finally:
        server.stop()


async def test_launcher_reaches_its_pool_and_nothing_else(guarded: NatsServer) -> None:
    ours, theirs = order_key("gpu", "1.a.1"), order_key("cpu", "2.a.1")
    scheduler = BusSettings(url=guarded.url, user="scheduler", password="s", logs_max_bytes=2**28)
    launcher = BusSettings(
        url=guarded.url,
        user="launcher",
        password="l",
        manage_streams=False,
        inbox_prefix="_INBOX_gpu",
        request_timeout_s=0.3,
    )
    async with connect_bus(scheduler) as above, connect_bus(launcher) as below:
        await above.bucket(ORDERS_BUCKET).put(ours, b"run")
        await above.bucket(ORDERS_BUCKET).put(theirs, b"run")
        orders = below.bucket(ORDERS_BUCKET)

        async with aclosing(orders.watch(orders_of("gpu"))) as changes:
            first = await anext(changes)
            assert isinstance(first, KvChange)
            assert (first.key, first.value) == (ours, b"run")
            assert await anext(changes) == SnapshotEnd(frozenset({ours}))
        await below.bucket(CAPACITY_BUCKET).put(capacity_key("gpu"), b"{}")
        await below.publish(event("allocation", "1.a.1", "observed"), b"{}", msg_id="1")

        with pytest.raises(Unavailable):
            await orders.get(theirs)
        with pytest.raises(Unavailable):
            await orders.put(ours, b"mine")
        with pytest.raises(Unavailable):
            await orders.keys()
        with pytest.raises(Unavailable):
            await below.publish(event("trial", 1, "state"), b"{}")
