"""A message of a stream as handlers see it, and what is said back to the server about it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

import structlog
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from libs.bus.connection import apart

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Message:
    subject: str
    data: bytes
    headers: Mapping[str, str]
    sequence: int
    """Position in its stream; grows, unless the server lost its disk."""
    delivered: int
    """1 for the first delivery; more when an earlier one failed or was never acknowledged."""
    stored_at: datetime | None = None
    """When the server stored it; None for one that no server gave."""


def read(raw: Msg) -> Message:
    metadata = raw.metadata
    return Message(
        subject=raw.subject,
        data=raw.data,
        headers=raw.headers or {},
        sequence=metadata.sequence.stream,
        delivered=metadata.num_delivered,
        stored_at=metadata.timestamp,
    )


async def ack(raws: Iterable[Msg]) -> None:
    """Say that the messages are done. What does not arrive at the server leads to a redelivery, no more."""
    try:
        await apart(_ack(raws))
    except (NatsError, OSError) as error:
        log.warning("bus.ack_lost", error=repr(error))


async def give_back(raws: Iterable[Msg], *, delay_s: float = 0.0) -> None:
    """Ask for redelivery, to anybody, after ``delay_s``. Without an answer the server does so after ``ack_wait_s``."""
    try:
        await apart(_nak(raws, delay_s))
    except (NatsError, OSError) as error:
        log.warning("bus.nak_lost", error=repr(error))


async def _ack(raws: Iterable[Msg]) -> None:
    for raw in raws:
        await raw.ack()


async def _nak(raws: Iterable[Msg], delay_s: float) -> None:
    for raw in raws:
        await raw.nak(delay=delay_s or None)


async def _say_in_progress(raws: Iterable[Msg]) -> None:
    for raw in raws:
        await raw.in_progress()


@asynccontextmanager
async def kept_alive(raws: Iterable[Msg], *, ack_wait_s: float) -> AsyncIterator[None]:
    """Tell the server three times per ``ack_wait_s`` that the messages are being worked on, while the block runs."""

    async def beat() -> None:
        while True:
            await asyncio.sleep(ack_wait_s / 3)
            try:
                await apart(_say_in_progress(raws))
            except (NatsError, OSError) as error:
                log.warning("bus.progress_lost", error=repr(error))

    beats = asyncio.create_task(beat(), name="bus heartbeat")
    try:
        yield
    finally:
        beats.cancel()
        await asyncio.gather(beats, return_exceptions=True)
