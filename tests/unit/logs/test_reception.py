"""Bodies are read whole or refused before they cost too much; shards are shared."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator

import msgspec
import pytest

from libs.events.subjects import LOG_SHARDS
from services.logs.reception import (
    DECODED_FACTOR,
    MemoryBudget,
    OverloadedError,
    ReceptionError,
    TooLargeError,
    UndecodableError,
    read_body,
)
from services.logs.settings import IntakeSettings, LogsSettings
from services.logs.sharing import share_of

MIB = 2**20


async def in_chunks(data: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def read(
    data: bytes, *, is_gzip: bool, chunk: int = 1000, max_bytes: int = 4 * MIB, budget: MemoryBudget | None = None
) -> bytes:
    with (budget or MemoryBudget(100 * MIB)).reservation() as reservation:
        return await read_body(in_chunks(data, chunk), is_gzip=is_gzip, reservation=reservation, max_bytes=max_bytes)


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
    assert len(await read(data, is_gzip=True, max_bytes=settings.max_body_bytes, budget=budget)) == 32 * MIB


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
    budget = MemoryBudget(100 * MIB)
    with pytest.raises(error):
        await read(data, is_gzip=is_gzip, budget=budget)
    assert budget.free_bytes == 100 * MIB


async def test_memory_is_refused_while_others_have_it_and_given_back() -> None:
    budget = MemoryBudget(DECODED_FACTOR * len(TEXT))
    with budget.reservation() as other:
        other.take(1)
        with pytest.raises(OverloadedError):
            await read(TEXT, is_gzip=False, budget=budget)
    assert await read(TEXT, is_gzip=False, budget=budget) == TEXT


def test_settings_leave_room_for_the_largest_body() -> None:
    with pytest.raises(msgspec.ValidationError, match="memory_bytes"):
        msgspec.convert({"intake": {"memory_bytes": 10 * MIB}}, LogsSettings)


def test_every_shard_falls_to_one_writer() -> None:
    writers = ["a", "b", "c"]
    shares = [share_of(writer, writers) for writer in writers]
    assert sorted(shard for share in shares for shard in share) == list(range(LOG_SHARDS))
    assert share_of("a", ["a"]) == frozenset(range(LOG_SHARDS))
    assert share_of("a", []) == share_of("stranger", writers) == frozenset()


def test_a_writer_that_leaves_moves_only_its_own_shards() -> None:
    for writer in ("a", "b"):
        assert share_of(writer, ["a", "b", "c"]) <= share_of(writer, ["a", "b"])
