"""From fluent-bit to the reader: every line once, whatever form it has; and answers that lose no line."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import httpx
import msgspec
import pytest

from libs.bus import BusSettings
from libs.capture.lines import encode_line
from libs.db.engine import Database
from libs.telemetry import value
from services.logs.lines.streams import UNPARSED
from services.logs.settings import IntakeSettings
from tests.harness import NatsServer, eventually
from tests.harness.waiting import PATIENCE_S
from tests.integration.logs.conftest import Service, Task, chunk, lines_of, logs_settings, new_task, post, texts_of

NASTY = [b"", b"INFO: a\x00b", b"\xff\xfe", "é \U0001f600".encode(), b"[rank=3] ERROR: x", b"y" * 8191]
STORED = [b"\n", b"a\x00b\n", b"\xff\xfe\n", "é \U0001f600\n".encode(), b"x\n", b"y" * 8191 + b"\n"]


@pytest.mark.parametrize("compress", [True, False], ids=["gzip", "plain"])
async def test_msgpack_arrives_byte_for_byte(
    intake: httpx.AsyncClient, db: Database, task: Task, compress: bool
) -> None:
    assert await post(intake, task, chunk(NASTY), compress=compress) == 200
    await eventually(lambda: _has(db, task, len(NASTY)))
    rows = await lines_of(db, task)
    assert [row.log for row in rows] == STORED
    assert [(row.rank_id, row.level) for row in rows if row.level] == [(None, "INFO"), (3, "ERROR")]
    row = rows[0]
    assert (row.allocation_id, row.agent_id, row.container_id) == (task.allocation, "node-1", "pod-0")
    assert (row.stdtype, row.source, row.timestamp) == ("stdout", "task", datetime(2001, 9, 9, 1, 46, 40, tzinfo=UTC))


@pytest.mark.parametrize("form", ["json", "json_lines", "json_stream"])
async def test_json_arrives_in_every_form(intake: httpx.AsyncClient, db: Database, task: Task, form: str) -> None:
    records = [
        json.dumps({"date": 1.5, "path": "/logs/stderr.0.log", "log": encode_line(seq, 1, payload)[:-1].decode()})
        for seq, payload in enumerate([b"one", b"two\x00", "drei é".encode()])
    ]
    body = {"json": f"[{','.join(records)}]", "json_lines": "\n".join(records), "json_stream": "".join(records)}[form]
    assert await post(intake, task, body.encode(), **{"content-type": "application/json"}) == 200
    await eventually(lambda: _has(db, task, 3))
    assert [(row.log, row.stdtype) for row in await lines_of(db, task)] == [
        (b"one\n", "stderr"),
        (b"two\x00\n", "stderr"),
        ("drei é\n".encode(), "stderr"),
    ]


async def test_repeated_and_overlapping_posts_store_each_line_once(
    intake: httpx.AsyncClient, db: Database, task: Task
) -> None:
    lines = [b"%d" % number for number in range(3000)]
    bodies = [chunk(lines[first : first + 500], first=first) for first in range(0, 3000, 500)]
    bodies += [chunk(lines[first : first + 700], first=first) for first in range(0, 2800, 350)]  # cut anew by a restart
    statuses = await asyncio.gather(*(post(intake, task, body, compress=True) for body in bodies * 2))
    assert set(statuses) == {200}
    await eventually(lambda: _has(db, task, 3000))
    assert await texts_of(db, task) == [line + b"\n" for line in lines]


async def test_a_chunk_larger_than_a_message_of_the_bus_arrives_whole(
    intake: httpx.AsyncClient, db: Database, task: Task
) -> None:
    lines = [b"%d %s" % (number, b"x" * 8000) for number in range(500)]
    assert await post(intake, task, chunk(lines), compress=True) == 200
    await eventually(lambda: _has(db, task, 500))
    assert await texts_of(db, task) == [line + b"\n" for line in lines]


async def test_identity_comes_from_the_token(intake: httpx.AsyncClient, db: Database, task: Task) -> None:
    other = await new_task(db)
    assert await post(intake, task, chunk([b"mine"]), **{"x-det-allocation": other.allocation}) == 200
    assert await post(intake, other, chunk([b"theirs"])) == 200  # same pod, stream and seq
    await eventually(lambda: _has(db, task, 1))
    await eventually(lambda: _has(db, other, 1))
    assert (await lines_of(db, task))[0].allocation_id == task.allocation


async def test_what_cannot_be_read_is_stored_as_it_is(intake: httpx.AsyncClient, db: Database, task: Task) -> None:
    for _ in range(2):
        assert await post(intake, task, chunk([b"good"]) + b"\xc1 bad \x00\xff") == 200
    await eventually(lambda: _has(db, task, 2))
    assert sorted(await texts_of(db, task)) == [UNPARSED + b"\xc1 bad \x00\xff\n", b"good\n"]


async def test_restarts_of_a_container_are_streams_of_their_own(
    intake: httpx.AsyncClient, db: Database, task: Task
) -> None:
    for restart in ("0", "1", "nonsense"):  # the last counts as 0, and repeats it
        assert await post(intake, task, chunk([restart.encode()]), **{"x-det-restart": restart}) == 200
    await eventually(lambda: _has(db, task, 2))
    assert await texts_of(db, task) == [b"0\n", b"1\n"]


async def test_tokens_outlive_their_allocation_for_an_hour(intake: httpx.AsyncClient, db: Database) -> None:
    now = datetime.now(UTC)
    recent = await new_task(db, revoked_at=now - timedelta(minutes=59))
    old = await new_task(db, revoked_at=now - timedelta(minutes=61))
    assert await post(intake, recent, chunk([b"last words"])) == 200
    assert await post(intake, old, chunk([b"too late"])) == 503


async def test_a_token_that_is_not_known_yet_is_asked_to_come_again(intake: httpx.AsyncClient, db: Database) -> None:
    stranger = Task(task="t", allocation="t.1", token="unknown")
    assert await post(intake, stranger, chunk([b"x"])) == 503


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"authorization": ""}, b"x", 401),
        ({"authorization": "Basic abc"}, b"x", 401),
        ({"content-encoding": "gzip"}, b"no gzip", 400),
        ({"content-encoding": "gzip"}, gzip.compress(bytes(49 * 2**20)), 413),
        ({"content-encoding": "zstd"}, b"x", 503),
        ({}, b"", 200),
    ],
    ids=["no token", "no bearer", "broken gzip", "bomb", "unknown encoding", "nothing"],
)
async def test_only_what_can_never_succeed_is_refused_for_good(
    intake: httpx.AsyncClient, task: Task, headers: dict[str, str], body: bytes, status: int
) -> None:
    assert await post(intake, task, body, **headers) == status


async def test_thirty_two_mebibytes_in_one_request_are_taken(
    intake: httpx.AsyncClient, db: Database, task: Task
) -> None:
    lines = [b"z" * 8191] * 4096
    assert await post(intake, task, chunk(lines), compress=True) == 200
    await eventually(lambda: _has(db, task, 4096), timeout_s=30)


async def test_without_the_bus_nothing_is_acknowledged_and_afterwards_nothing_is_lost(
    database_url: str, own_nats_server: NatsServer, db: Database, task: Task
) -> None:
    bus = BusSettings(url=own_nats_server.url, connect_timeout_s=PATIENCE_S)
    async with Service(logs_settings(database_url, bus, request_timeout_s=1.0)) as client:
        assert await eventually(lambda: _posted(client, task, b"before", seq=0))
        own_nats_server.kill()
        assert await post(client, task, chunk([b"after"], first=1)) == 503
        own_nats_server.start()
        assert await eventually(lambda: _posted(client, task, b"after", seq=1))
        await eventually(lambda: _has(db, task, 2))
    assert await texts_of(db, task) == [b"before\n", b"after\n"]


async def test_who_finds_no_memory_is_asked_to_come_again(
    database_url: str, bus_settings: BusSettings, db: Database, task: Task
) -> None:
    small = IntakeSettings(
        host="127.0.0.1",
        port=0,
        max_body_bytes=2**20,
        memory_bytes=8 * 2**20,
        received_bytes=2**20,
        turn_wait_s=0.1,
    )
    settings = msgspec.structs.replace(logs_settings(database_url, bus_settings), intake=small)
    body = chunk([b"x" * 8000] * 120)

    async with Service(settings) as client:

        async def two_at_once() -> set[int]:
            """Statuses of a request that is held back half-way, and of another that comes meanwhile."""
            half_sent, go_on = asyncio.Event(), asyncio.Event()

            async def slowly() -> AsyncIterator[bytes]:
                yield body[:-1]
                half_sent.set()
                await go_on.wait()
                yield body[-1:]

            first = asyncio.create_task(client.post("/ingest/v1/logs", content=slowly(), headers=task.headers()))
            await half_sent.wait()
            second = await post(client, task, body)
            go_on.set()
            return {(await first).status_code, second}

        async def one_is_refused() -> bool:
            return await two_at_once() == {200, 429}

        # Who of the two is, and whether they meet at all, is up to the network.
        await eventually(one_is_refused)
        assert await post(client, task, body) == 200, "nothing of what was refused is held"


async def test_a_burst_waits_for_its_turn_and_is_not_sent_back(
    database_url: str, bus_settings: BusSettings, db: Database, task: Task
) -> None:
    small = IntakeSettings(host="127.0.0.1", port=0, max_body_bytes=2**20, memory_bytes=8 * 2**20)
    settings = msgspec.structs.replace(logs_settings(database_url, bus_settings), intake=small)
    bodies = [chunk([b"%d" % seq * 1000] * 60, first=60 * seq) for seq in range(64)]
    async with Service(settings) as client:
        statuses = await asyncio.gather(*(post(client, task, body, compress=True) for body in bodies))
        assert set(statuses) == {200}
        await eventually(lambda: _has(db, task, 64 * 60))


async def test_requests_are_counted_by_their_answer(intake: httpx.AsyncClient, task: Task) -> None:
    before = value("resolute_logs_requests_total", status="200")
    await post(intake, task, chunk([b"x"]))
    assert value("resolute_logs_requests_total", status="200") == before + 1


async def _has(db: Database, task: Task, count: int) -> bool:
    return len(await lines_of(db, task)) >= count


async def _posted(client: httpx.AsyncClient, task: Task, line: bytes, *, seq: int) -> bool:
    return await post(client, task, chunk([line], first=seq)) == 200


async def test_a_head_without_end_is_refused_to_anybody(intake: httpx.AsyncClient) -> None:
    page = "/ingest/v1/complete"
    assert (await intake.get(page, headers={"x-long": "a" * 100_000})).status_code == 431
    assert (await intake.get(page, headers=[("x-many", "a")] * 200)).status_code == 431
    assert (await intake.get(page)).status_code == 401
