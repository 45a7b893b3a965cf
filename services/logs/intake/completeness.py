"""Completeness of a container's output: whether everything that it printed is stored, for which its pod waits.

A shipper stops reading the moment it is told to end, so nobody may tell it before its streams are complete here
(docs/reference/logs.md 13.11).
"""

from __future__ import annotations

import asyncio
from typing import Final

from msgspec import Struct

from libs.bus import Bus, CoreMessage
from libs.capture.lines import STREAMS
from libs.db.connecting.pool import DriverPool
from libs.events import subjects
from libs.waiting import wait_until_set
from services.logs.lines.streams import LineOrigin

LONGEST_WAIT_S: Final = 10.0
_LOOK_AGAIN_S: Final = 2.0
"""A notification may be lost; this bounds the harm."""
_STREAMS: Final = "SELECT stream_key, next_seq, missing, sealed_at FROM log_streams WHERE stream_key = ANY($1)"


class Completeness(Struct, frozen=True, kw_only=True):
    """How far the outputs of one container have come."""

    complete: bool
    missing: tuple[str, ...]
    """The outputs that are not complete."""
    stored: dict[str, int]
    """By output: the number below which every line is stored."""


async def completeness_of(db: DriverPool, origin: LineOrigin) -> Completeness:
    """What the rows of the two streams say; a stream without a row has not begun."""
    by_key = {f"{origin.key}/{stdtype}": stdtype for stdtype in STREAMS}
    async with db.read() as connection:
        rows = await connection.fetch(_STREAMS, list(by_key))
    stored: dict[str, int] = dict.fromkeys(STREAMS, 0)
    stored |= {by_key[row["stream_key"]]: row["missing"][0] if row["missing"] else row["next_seq"] for row in rows}
    sealed = {by_key[row["stream_key"]] for row in rows if row["sealed_at"] is not None and not row["missing"]}
    missing = tuple(stdtype for stdtype in STREAMS if stdtype not in sealed)
    return Completeness(complete=not missing, missing=missing, stored=stored)


async def wait_until_complete(db: DriverPool, bus: Bus, origin: LineOrigin, *, wait_s: float) -> Completeness:
    """How far the streams have come once they are complete, or after ``wait_s``.

    Raises Unavailable when the bus cannot say that there is news.
    """
    found = await completeness_of(db, origin)
    if found.complete or wait_s <= 0:
        return found
    news = asyncio.Event()

    async def hear(message: CoreMessage) -> None:
        news.set()

    deadline = asyncio.get_running_loop().time() + wait_s
    async with bus.subscribe(subjects.log_stored(origin.task), hear, on_gap=news.set):
        while True:
            news.clear()
            found = await completeness_of(db, origin)
            left_s = deadline - asyncio.get_running_loop().time()
            if found.complete or left_s <= 0:
                return found
            await wait_until_set(news, timeout_s=min(left_s, _LOOK_AGAIN_S))
