"""What the streams hold: events, log lines on their way, and the orders by which launchers know what to run.

What a launcher says of its capacity is not kept: it says it again. Messages keep their order, subjects and headers; a
stream that was made anew counts them anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

import msgspec

from deploy.backup.archive import ArchiveWriter
from libs.bus import Bus
from libs.bus.contents.reading import StoredMessage
from libs.bus.headers import is_deletion
from libs.errors import FailedPrecondition
from libs.events.subjects import (
    EVENTS_STREAM,
    LOGS_STREAM,
    ORDERS_BUCKET,
    bucket_stream,
    kv_subject,
    order_key,
    storage_check,
)

PREFIX: Final = "streams"
ORDERS: Final = bucket_stream(ORDERS_BUCKET)
KEPT: Final = (EVENTS_STREAM, LOGS_STREAM, ORDERS)


async def dump_streams(bus: Bus, archive: ArchiveWriter) -> dict[str, int]:
    """Write what the streams hold now; returns the number of messages by stream."""
    states = await bus.stream_states()
    counts = {}
    for name in KEPT:
        count = 0
        with archive.section(f"{PREFIX}/{name}") as section:
            last = states[name].last_sequence if name in states else 0
            async for message in bus.stored_messages(name, last=last):
                if message.subject != storage_check(name) and not is_deletion(message.headers):
                    section.write(msgspec.json.encode(message) + b"\n")
                    count += 1
        counts[name] = count
    return counts


async def expect_empty_streams(bus: Bus) -> None:
    """Raises FailedPrecondition when there is something in the streams."""
    for name in KEPT:
        state = (await bus.stream_states()).get(name)
        async for message in bus.stored_messages(name, last=state.last_sequence if state else 0):
            if message.subject != storage_check(name) and not is_deletion(message.headers):
                raise FailedPrecondition(
                    f"the bus is in use: there are messages in {name}; restore into a new, empty one"
                )


async def load_stream(bus: Bus, name: str, parts: Iterable[bytes], *, orders: Collection[str]) -> int:
    """Publish what was in a stream; returns how many messages.

    orders  keys of the orders to keep: an order of an allocation that is over would start it again
    """
    wanted = {kv_subject(ORDERS_BUCKET, key) for key in orders}
    count = 0
    for message in _messages(parts):
        if name != ORDERS or message.subject in wanted:
            await bus.publish(message.subject, message.data, headers=message.headers)
            count += 1
    return count


async def live_orders(connection: Any) -> set[str]:
    """Keys of the orders that allocations of this database have."""
    rows = await connection.fetch(
        "SELECT pool, allocation_id FROM allocations WHERE assigned_at IS NOT NULL AND released_at IS NULL"
    )
    return {order_key(row["pool"], row["allocation_id"]) for row in rows}


def _messages(parts: Iterable[bytes]) -> Iterator[StoredMessage]:
    """Messages, one a line; a part may end within one."""
    rest = b""
    for part in parts:
        *lines, rest = (rest + part).split(b"\n")
        yield from (msgspec.json.decode(line, type=StoredMessage) for line in lines)
