"""Bodies are read whole or refused before they cost too much."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator

import msgspec
import pytest

from services.logs.intake.reception import (
    DECODED_FACTOR,
    MemoryBudget,
    OverloadedError,
    Reception,
    ReceptionError,
    TooLargeError,
    UndecodableError,
)
from services.logs.settings import IntakeSettings, LogsSettings

MIB = 2**20


async def in_chunks(data: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def read(
    data: bytes,
    *,
    is_gzip: bool,
    chunk: int = 1000,
    max_bytes: int = 4 * MIB,
    decoded: MemoryBudget | None = None,
    received: MemoryBudget | None = None,
) -> bytes:
    reception = Reception(
        received=received or MemoryBudget(100 * MIB),
        decoded=decoded or MemoryBudget(100 * MIB),
        max_body_bytes=max_bytes,
    )
    async with reception.body(in_chunks(data, chunk), is_gzip=is_gzip, length=0) as body:
        return body


TEXT = b"".join(b"line %d\n" % number for number in range(100_000))


@pytest.mark.parametrize("chunk", [7, 65536, 10**9])
@pytest.mark.parametrize(
    ("data", "body"),
    [
        (gzip.compress(TEXT), TEXT),
        (gzip.compress(bytes(3 * MIB)), bytes(3 * MIB)),
        (gzip.compress(bytes(MIB)), bytes(MIB)),
        (gzip.compress(b"a") + gzip.compress(TEXT) + gzip.compress(b""), b"a" + TEXT),
        (b"", b""),
    ],
    ids=["text", "zeros", "exactly a piece", "members", "nothing"],
)
async def test_gzip_is_undone_however_it_arrives(data: bytes, body: bytes, chunk: int) -> None:
    if chunk == 7:
        data, body = gzip.compress(TEXT[:5000]), TEXT[:5000]
    assert await read(data, is_gzip=True, chunk=chunk) == body


async def test_plain_bodies_are_taken_as_they_are() -> None:
    assert await read(TEXT, is_gzip=False) == TEXT


async def test_thirty_two_mebibytes_are_taken() -> None:
    settings = IntakeSettings()
    budget = MemoryBudget(settings.memory_bytes)
    data = gzip.compress(bytes(32 * MIB))
    assert len(await read(data, is_gzip=True, max_bytes=settings.max_body_bytes, decoded=budget)) == 32 * MIB


@pytest.mark.parametrize(
    ("data", "is_gzip", "error"),
    [
        (gzip.compress(bytes(5 * MIB)), True, TooLargeError),
        (bytes(5 * MIB), False, TooLargeError),
        (gzip.compress(TEXT)[:-5], True, UndecodableError),
        (gzip.compress(TEXT)[:50], True, UndecodableError),
        (b"no gzip", True, UndecodableError),
        (gzip.compress(b"a") + b"more", True, UndecodableError),
    ],
    ids=["bomb", "large", "no trailer", "torn", "plain", "trailing"],
)
async def test_refusals(data: bytes, is_gzip: bool, error: type[ReceptionError]) -> None:
    decoded, received = MemoryBudget(100 * MIB), MemoryBudget(100 * MIB)
    with pytest.raises(error):
        await read(data, is_gzip=is_gzip, decoded=decoded, received=received)
    assert (decoded.free_bytes, received.free_bytes) == (100 * MIB, 100 * MIB)


async def test_who_waits_too_long_for_memory_is_refused() -> None:
    budget = MemoryBudget(DECODED_FACTOR * len(TEXT))
    with budget.reservation() as other:
        other.grow_to(1)
        with pytest.raises(OverloadedError):
            await read(TEXT, is_gzip=False, decoded=budget)
    assert await read(TEXT, is_gzip=False, decoded=budget) == TEXT


async def test_memory_is_given_in_the_order_in_which_it_is_asked_for() -> None:
    budget = MemoryBudget(10, max_wait_s=60)
    served: list[str] = []

    async def ask(name: str, size_bytes: int) -> None:
        await budget.take_in_turn(size_bytes)
        served.append(name)

    await ask("first", 8)
    waiting = []
    for name, size_bytes in (("large", 9), ("small", 1), ("gone", 1), ("last", 9)):
        waiting.append(asyncio.create_task(ask(name, size_bytes)))
        await asyncio.sleep(0)
    assert served == ["first"], "what would fit does not overtake"
    waiting[2].cancel()
    await asyncio.gather(waiting[2], return_exceptions=True)
    budget.give_back(8)
    await asyncio.gather(*waiting[:2])
    budget.give_back(10)
    await waiting[3]
    assert served == ["first", "large", "small", "last"]
    budget.give_back(9)
    assert budget.free_bytes == 10


def test_settings_leave_room_for_the_largest_body() -> None:
    with pytest.raises(msgspec.ValidationError, match="memory_bytes"):
        msgspec.convert({"intake": {"memory_bytes": 10 * MIB}}, LogsSettings)
