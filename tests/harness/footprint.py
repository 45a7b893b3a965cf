"""Footprint of a whole system: rows, messages, consumers, files and descriptors, to be compared over time."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass

import nats
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from deploy.local.configuration import bus_users
from libs.bus.headers import TTL
from libs.db.tables.metadata import metadata
from libs.events import subjects
from tests.harness.whole_system import WholeSystem

STREAMS = (
    subjects.EVENTS_STREAM,
    subjects.LOGS_STREAM,
    subjects.bucket_stream(subjects.ORDERS_BUCKET),
    subjects.bucket_stream(subjects.CAPACITY_BUCKET),
)
EXPIRES = frozenset({subjects.EVENTS_STREAM})
"""Streams whose messages are all forgotten after some days."""


@dataclass(frozen=True)
class Footprint:
    rows: dict[str, int]
    """By table."""
    messages: dict[str, int]
    """By stream: those that would stay for ever."""
    consumers: dict[str, int]
    """By stream."""
    files: int
    """Of the launcher, and of whatever it keeps for tasks."""
    descriptors: dict[str, int]
    """By process. PostgreSQL has a process for each connection, and they count on the other side."""


def footprint(system: WholeSystem) -> Footprint:
    messages, consumers = asyncio.run(_on_the_bus(system))
    launcher = system.layout.launcher
    return Footprint(
        rows=_rows(system),
        messages=messages,
        consumers=consumers,
        files=sum(len(directories) + len(files) for _, directories, files in os.walk(launcher)),
        descriptors={
            name: len(os.listdir(f"/proc/{pid}/fd")) for name, pid in system.pids().items() if name != "postgres"
        },
    )


def _rows(system: WholeSystem) -> dict[str, int]:
    counts = ", ".join(f'(SELECT count(*) FROM "{table}") AS "{table}"' for table in metadata.tables)
    return system.rows(f"SELECT {counts}")[0]


async def _on_the_bus(system: WholeSystem) -> tuple[dict[str, int], dict[str, int]]:
    settings = bus_users.services_bus(system.layout, system.options, "footprint")
    client = await nats.connect(
        settings["url"],
        user=settings["user"],
        password=settings["password"],
        inbox_prefix=settings["inbox_prefix"].encode(),
    )
    try:
        jetstream = client.jetstream()
        messages = {stream: await _kept(jetstream, stream) for stream in STREAMS if stream not in EXPIRES}
        return messages, {stream: len(await jetstream.consumers_info(stream)) for stream in STREAMS}
    finally:
        await client.close()


async def _kept(jetstream: JetStreamContext, stream: str) -> int:
    """Messages of a stream that have no time to live."""
    state = (await jetstream.stream_info(stream)).state
    kept = 0
    for sequence in range(state.first_seq, state.last_seq + 1) if state.messages else ():
        try:
            message = await jetstream.get_msg(stream, seq=sequence)
        except NotFoundError:
            continue  # something newer is under its subject
        kept += TTL not in (message.headers or {})
    return kept
