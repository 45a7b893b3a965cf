"""Stored exactly once and in order, whoever is killed, and whatever comes late, twice or never."""

from __future__ import annotations

import asyncio
import math
import random
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from sqlalchemy import text

from libs.bus import Bus, BusSettings, Message
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import Database, connect_database
from libs.events import subjects
from libs.events.logs import LogBatch, LogLine
from libs.loglines.batches import message_id
from libs.loglines.message import moment_of
from libs.loglines.partitions import SHARD_LOCK
from services.api.queries.tasks.log_following import streams_sealed
from services.logs.settings import WriterSettings
from services.logs.writing import store as store_module
from services.logs.writing.parking import waiting_streams
from services.logs.writing.store import store
from services.logs.writing.writer import LogWriter
from tests.harness import PostgresServer, ServiceProcess, eventually
from tests.integration.logs.conftest import (
    Service,
    Task,
    chunk,
    lines_of,
    logs_settings,
    new_task,
    parked,
    pool_of,
    post,
    texts_of,
)


def batch(task: Task, first: int, count: int, *, stream: str = "stdout", ends: bool = False, **more: bool) -> LogBatch:
    return LogBatch(
        task=task.task,
        stream=f"{task.allocation}/pod/0/{stream}",
        allocation=task.allocation,
        lines=tuple(
            LogLine(seq, seq, b"%d\n" % seq, allocation_id=task.allocation) for seq in range(first, first + count)
        ),
        end_of_stream=ends,
        end_seq=first + count if ends else None,
        **more,
    )


def message(batch: LogBatch) -> Message:
    return Message(
        subject=subjects.logs(batch.task), data=msgspec.msgpack.encode(batch), headers={}, sequence=1, delivered=1
    )


def numbers(first: int, end: int) -> list[bytes]:
    return [b"%d\n" % seq for seq in range(first, end)]


async def keep(
    db: Database, task: Task, *batches: LogBatch, gaps_older_than_s: float = math.inf, parked_bytes: int = 2**30
) -> None:
    """Store batches, and what waits for them; give up gaps that are older than so."""
    shard = subjects.log_shard(task.task)
    streams = {stream: gaps_older_than_s for stream in await waiting_streams(pool_of(db), shard) if task.task in stream}
    stored = await store(pool_of(db), shard, batches, overdue=streams, parked_bytes=parked_bytes)
    while stored.unfinished:
        again = {stream: streams.get(stream, math.inf) for stream in stored.unfinished}
        stored = await store(pool_of(db), shard, (), overdue=again, parked_bytes=parked_bytes)


async def test_what_is_delivered_again_is_stored_once(db: Database, task: Task) -> None:
    for batches in (
        [batch(task, 0, 5)],
        [batch(task, 0, 5), batch(task, 3, 6)],
        [batch(task, 0, 9), batch(task, 0, 2)],
    ):
        await keep(db, task, *batches)
    assert await texts_of(db, task) == numbers(0, 9)


async def test_odd_lines_are_stored_to_the_byte(db: Database, task: Task) -> None:
    odd = LogLine(1, 2**64 - 1, b"\x00\xff", "\0", 2**40, "\0", "a\0", "b\0", None, "\0")
    lines = (LogLine(0, 10**18, b"plain\n", "INFO", 2**31 - 1), odd, LogLine(2, 0, b"", None, -1))
    await keep(db, task, LogBatch(task=task.task, stream=f"{task.allocation}/odd", lines=lines))
    rows = await lines_of(db, task)
    assert [(row.log, row.level, row.rank_id) for row in rows] == [
        (b"plain\n", "INFO", 2**31 - 1),
        (b"\x00\xff", "", None),
        (b"", None, -1),
    ]
    assert [row.timestamp for row in rows] == [moment_of(line.timestamp_ns) for line in lines]


async def test_what_comes_early_is_parked_over_restarts_until_its_turn(db: Database, task: Task) -> None:
    await keep(db, task, batch(task, 6, 2, ends=True), batch(task, 4, 2))
    assert (await texts_of(db, task), await parked(db)) == ([], 2)
    await keep(db, task, batch(task, 0, 4))
    assert (await texts_of(db, task), await parked(db)) == (numbers(0, 8), 0)


async def test_what_never_comes_is_not_waited_for_for_ever_and_taken_when_it_comes(db: Database, task: Task) -> None:
    await keep(db, task, batch(task, 0, 2))
    await keep(db, task, batch(task, 4, 2))
    assert await texts_of(db, task) == numbers(0, 2)
    await keep(db, task, gaps_older_than_s=0.0)
    lost = b"2 lines of stdout, 2 to 3, have not arrived and will be out of order if anything of it still comes\n"
    assert await texts_of(db, task) == [*numbers(0, 2), lost, *numbers(4, 6)]
    for _ in range(2):
        await keep(db, task, batch(task, 1, 4))
    assert await texts_of(db, task) == [*numbers(0, 2), lost, *numbers(4, 6), *numbers(2, 4)]
    assert await parked(db) == 0


async def test_ten_minutes_of_chunks_in_any_order_are_stored_in_order(db: Database, task: Task) -> None:
    """After an outage fluent-bit brings a chunk per flush, in any order: more than twice as many as there are here."""
    outage = [batch(task, first, 3, ends=first == 1497) for first in range(0, 1500, 3)]
    random.Random(7).shuffle(outage)
    for start in range(0, len(outage), 64):
        await keep(db, task, *outage[start : start + 64])
        await keep(db, task, *outage[start : start + 64])  # delivered again
    assert await texts_of(db, task) == numbers(0, 1500)
    assert await parked(db) == 0


async def test_hundreds_of_gaps_that_were_given_up_are_filled_later(db: Database, task: Task) -> None:
    await keep(db, task, *(batch(task, seq, 1) for seq in range(1, 1200, 2)))
    await keep(db, task, gaps_older_than_s=0.0)
    lines = await lines_of(db, task)
    assert [row.log for row in lines if row.source == "task"] == [b"%d\n" % seq for seq in range(1, 1200, 2)]
    await keep(db, task, *(batch(task, seq, 1, ends=seq == 1198) for seq in range(0, 1200, 2)))
    lines = await lines_of(db, task)
    assert sorted(int(row.log) for row in lines if row.source == "task") == list(range(1200))


async def test_only_gaps_that_are_old_are_given_up(db: Database, task: Task) -> None:
    await keep(db, task, batch(task, 0, 1), batch(task, 2, 1))
    await _age(db, task, seconds=100)
    await keep(db, task, batch(task, 4, 1))  # behind a gap that is young
    await keep(db, task, gaps_older_than_s=60.0)
    assert [row.log for row in await lines_of(db, task) if row.source == "task"] == [b"0\n", b"2\n"]
    await keep(db, task, batch(task, 3, 1))
    assert [row.log for row in await lines_of(db, task) if row.source == "task"] == [b"0\n", b"2\n", b"3\n", b"4\n"]


async def test_waiting_begins_anew_while_what_is_missing_comes(db: Database, task: Task) -> None:
    await keep(db, task, batch(task, 0, 1), batch(task, 6, 1))
    await _age(db, task, seconds=100)
    await keep(db, task, batch(task, 3, 1))  # so the rest of the backlog is on its way
    await keep(db, task, gaps_older_than_s=60.0)
    assert await texts_of(db, task) == numbers(0, 1)
    await _age(db, task, seconds=100)
    await keep(db, task, batch(task, 9, 1))  # only news
    await keep(db, task, gaps_older_than_s=60.0)
    assert [row.log for row in await lines_of(db, task) if row.source == "task"] == [b"0\n", b"3\n", b"6\n"]


async def test_more_than_may_wait_ends_the_wait_for_the_first_gap(db: Database, task: Task) -> None:
    for first in (2, 4):
        await keep(db, task, batch(task, first, 1), parked_bytes=10)
    assert b"2\n" in await texts_of(db, task)
    assert b"4\n" not in await texts_of(db, task)


async def test_a_stream_that_misses_its_last_lines_says_so_and_is_not_sealed(db: Database, task: Task) -> None:
    await keep(db, task, batch(task, 0, 2), batch(task, 5, 0, ends=True))
    await keep(db, task, gaps_older_than_s=0.0)
    assert (await texts_of(db, task))[2].startswith(b"3 lines of stdout, 2 to 4, have not arrived")
    assert not await _is_sealed(db, task)
    await keep(db, task, batch(task, 2, 3))
    assert await _is_sealed(db, task)


async def test_what_a_killed_writer_left_ready_is_stored_by_the_next(
    database_url: str, bus_settings: BusSettings, db: Database, task: Task
) -> None:
    await store(
        pool_of(db), subjects.log_shard(task.task), [batch(task, seq, 1) for seq in range(1, 200)], parked_bytes=2**30
    )
    stored = await store(pool_of(db), subjects.log_shard(task.task), [batch(task, 0, 1)], parked_bytes=2**30)
    assert stored.unfinished
    async with Service(logs_settings(database_url, bus_settings)):
        await eventually(lambda: _texts_are(db, task, numbers(0, 200)))


async def test_the_service_gives_up_waiting_by_itself(
    database_url: str, bus_settings: BusSettings, db: Database, task: Task
) -> None:
    async with Service(logs_settings(database_url, bus_settings, gap_wait_s=0.3)) as client:
        assert await post(client, task, chunk([b"late"], first=7, ends=True)) == 200
        await eventually(lambda: _last_is(db, task, b"late\n"))
        assert await post(client, task, chunk([b"%d" % seq for seq in range(7)])) == 200
        await eventually(lambda: _last_is(db, task, b"6\n"))
        assert [row.log for row in await lines_of(db, task) if row.source == "task"] == [b"late\n", *numbers(0, 7)]


async def test_a_restart_of_the_service_lets_everybody_wait_anew(
    database_url: str, bus_settings: BusSettings, db: Database, task: Task
) -> None:
    await keep(db, task, batch(task, 1, 1))
    await _age(db, task, seconds=10_000)
    async with Service(logs_settings(database_url, bus_settings, gap_wait_s=60)) as client:
        await eventually(lambda: _waits_less_than(db, task, seconds=60))
        assert await post(client, task, chunk([b"0"]), pod="pod") == 200
        await eventually(lambda: _texts_are(db, task, numbers(0, 2)))


async def test_lines_that_were_sent_back_are_waited_for_anew(
    database_url: str, bus_settings: BusSettings, bus: Bus, db: Database, task: Task
) -> None:
    async with Service(logs_settings(database_url, bus_settings, gap_wait_s=60)) as client:
        assert await post(client, task, chunk([b"1"], first=1)) == 200
        await eventually(lambda: _waits_less_than(db, task, seconds=60))
        await eventually(lambda: _aged_and_refused(bus, db, task))
        assert await texts_of(db, task) == []


async def test_out_of_order_posts_end_up_in_order(intake: httpx.AsyncClient, db: Database, task: Task) -> None:
    bodies = [
        chunk([b"%d" % (first + k) for k in range(3)], first=first, ends=first == 12) for first in range(0, 15, 3)
    ]
    for index in (3, 1, 4, 0, 2, 1):
        assert await post(intake, task, bodies[index]) == 200
    await eventually(lambda: _texts_are(db, task, numbers(0, 15)))


async def test_outputs_of_a_pod_interleave_by_time(db: Database, task: Task) -> None:
    out, err = batch(task, 0, 3), batch(task, 0, 3, stream="stderr")
    err = msgspec.structs.replace(
        err, lines=tuple(msgspec.structs.replace(line, log=b"e%d\n" % line.seq) for line in err.lines)
    )
    await keep(db, task, out, err)
    found = await texts_of(db, task)
    assert [sorted(found[index : index + 2]) for index in (0, 2, 4)] == [[b"%d\n" % k, b"e%d\n" % k] for k in range(3)]


async def test_streams_of_services_keep_every_line_whatever_the_numbers(db: Database, task: Task) -> None:
    for first in (100, 10**18, 50, 100, 50):
        await keep(db, task, batch(task, first, 2, stream="sys", contiguous=False))
    assert await texts_of(db, task) == [*numbers(100, 102), *numbers(10**18, 10**18 + 2), *numbers(50, 52)]


async def test_a_stream_is_sealed_when_its_last_line_is_stored(db: Database, task: Task) -> None:
    async def sealed() -> bool:
        async with db.read() as connection:
            return await streams_sealed(connection, task.task)

    await keep(db, task, batch(task, 2, 2, ends=True))
    assert not await sealed()  # lines before it are missing
    await keep(db, task, batch(task, 0, 2))
    assert not await sealed()  # the pod has another output
    await keep(db, task, batch(task, 0, 0, stream="stderr", ends=True))
    assert await sealed()


@pytest.mark.parametrize("where", ["commit", "copy"])
async def test_a_writer_killed_in_the_middle_loses_and_doubles_nothing(
    where: str, database_url: str, bus: Bus, bus_settings: BusSettings, db: Database, task: Task, tmp_path: Path
) -> None:
    batches = [batch(task, first, 100, ends=first == 400) for first in range(0, 500, 100)]
    for each in batches:
        await bus.publish(subjects.logs(task.task), msgspec.msgpack.encode(each), msg_id=message_id(each))
    crashing = ServiceProcess(
        "tests.integration.logs.writing.crashing_writer",
        database_url,
        bus_settings.url,
        where,
        log_path=tmp_path / "log",
    )
    with crashing:
        await eventually(lambda: not crashing.is_running, timeout_s=30)
    assert crashing.returncode == -9, crashing.log()
    stored = await texts_of(db, task)
    assert bool(stored) == (where == "commit")
    async with Service(logs_settings(database_url, bus_settings)):
        await eventually(lambda: _texts_are(db, task, numbers(0, 500)), timeout_s=30)


async def test_a_value_that_postgres_refuses_costs_its_own_batch_only(db: Database, bus: Bus, task: Task) -> None:
    writer = LogWriter(db=pool_of(db), bus=bus, settings=WriterSettings(), name="test")
    impossible = batch(task, 2**63, 1, stream="impossible", contiguous=False)
    await writer.write(
        subjects.log_shard(task.task),
        [message(batch(task, 0, 3)), message(impossible), message(batch(task, 3, 3))],
    )
    assert await texts_of(db, task) == numbers(0, 6)


async def test_a_message_that_is_no_batch_does_not_hold_up_the_shard(
    intake: httpx.AsyncClient, bus: Bus, db: Database, task: Task
) -> None:
    await bus.publish(subjects.logs(task.task), b"\xc1 no batch")
    assert await post(intake, task, chunk([b"x"])) == 200
    await eventually(lambda: _texts_are(db, task, [b"x\n"]))


async def test_no_line_appears_behind_a_reader_however_many_write(
    db: Database, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied, go_on = asyncio.Event(), asyncio.Event()
    copy = store_module._copy

    async def copy_and_pause(*arguments: Any) -> Any:
        result = await copy(*arguments)
        if not copied.is_set():
            copied.set()
            await go_on.wait()
        return result

    monkeypatch.setattr(store_module, "_copy", copy_and_pause)
    stalled = asyncio.create_task(keep(db, task, batch(task, 0, 3)))
    await copied.wait()  # its lines have ids, and nobody sees them
    other = asyncio.create_task(keep(db, task, batch(task, 0, 3, stream="stderr")))
    await eventually(lambda: _somebody_waits(db), what="the second writer waits for the first")
    assert await texts_of(db, task) == []
    assert not other.done()
    go_on.set()
    await asyncio.gather(stalled, other)
    assert len(await texts_of(db, task)) == 6


async def test_followers_are_told(intake: httpx.AsyncClient, bus: Bus, task: Task) -> None:
    told = asyncio.Event()

    async def hear(_: object) -> None:
        told.set()

    async with bus.subscribe(subjects.log_stored(task.task), hear):
        await post(intake, task, chunk([b"x"]))
        async with asyncio.timeout(10):
            await told.wait()


async def test_replicas_share_the_shards_and_take_over(
    database_url: str, bus_settings: BusSettings, db: Database
) -> None:
    async def live() -> list[str]:
        async with db.read() as connection:
            found = await connection.scalars(text("SELECT writer FROM log_writers WHERE expires_at > now() ORDER BY 1"))
            return list(found)

    tasks = [await new_task(db) for _ in range(2 * subjects.LOG_SHARDS)]
    async with Service(logs_settings(database_url, bus_settings, name="a")) as client:
        async with Service(logs_settings(database_url, bus_settings, name="b")):
            await eventually(lambda: _is(live, ["a", "b"]))
            for task in tasks:
                assert await post(client, task, chunk([b"one"])) == 200
            for task in tasks:
                await eventually(lambda task=task: _texts_are(db, task, [b"one\n"]), what="one")
        await eventually(lambda: _is(live, ["a"]))
        for task in tasks:
            assert await post(client, task, chunk([b"two"], first=1)) == 200
        for task in tasks:
            await eventually(lambda task=task: _texts_are(db, task, [b"one\n", b"two\n"]), what="two")
    assert await live() == []


async def test_a_restart_of_the_database_only_delays(
    postgres_server: PostgresServer, database_url: str, bus_settings: BusSettings
) -> None:
    async with Service(logs_settings(database_url, bus_settings)) as client:
        async with connect_database(DatabaseSettings(url=database_url)) as db:
            task = await new_task(db)
            assert await post(client, task, chunk([b"0"])) == 200
        postgres_server.restart()  # not in a thread: the server would die with it
        await eventually(lambda: _posted(client, task), timeout_s=30, what="posted")
        async with connect_database(DatabaseSettings(url=database_url)) as db:
            await eventually(lambda: _texts_are(db, task, numbers(0, 2)), timeout_s=30, what="stored")


async def _age(db: Database, task: Task, *, seconds: float) -> None:
    """Let everything that waits have waited for longer."""
    past = "clock_timestamp() - :seconds * interval '1 second'"
    async with db.transaction() as connection:
        for statement in (
            f"UPDATE log_streams SET waits_since = {past} WHERE task_id = :task AND waits_since IS NOT NULL",
            f"UPDATE log_parked SET parked_at = {past} WHERE stream_key LIKE :task || '%'",
        ):
            await connection.execute(text(statement), {"seconds": seconds, "task": task.task})


async def _waits_less_than(db: Database, task: Task, *, seconds: float) -> bool:
    async with db.read() as connection:
        query = "SELECT bool_and(waits_since > clock_timestamp() - :s * interval '1 second') FROM log_streams"
        found = await connection.scalar(
            text(f"{query} WHERE task_id = :task AND waits_in IS NOT NULL"), {"s": seconds, "task": task.task}
        )
        return bool(found)


async def _aged_and_refused(bus: Bus, db: Database, task: Task) -> bool:
    """Whether a stream that has waited for 50 s waits anew once an intake says that it sent lines back."""
    await _age(db, task, seconds=50)
    await bus.publish_core(subjects.log_refused(task.task), task.task.encode())
    try:
        await eventually(lambda: _waits_less_than(db, task, seconds=20), timeout_s=6)
    except AssertionError:
        return False
    return True


async def _is_sealed(db: Database, task: Task) -> bool:
    async with db.read() as connection:
        query = "SELECT bool_and(sealed_at IS NOT NULL) FROM log_streams WHERE task_id = :task"
        return bool(await connection.scalar(text(query), {"task": task.task}))


async def _last_is(db: Database, task: Task, line: bytes) -> bool:
    return (await texts_of(db, task))[-1:] == [line]


async def _posted(client: httpx.AsyncClient, task: Task) -> bool:
    return await post(client, task, chunk([b"1"], first=1)) == 200


async def _texts_are(db: Database, task: Task, expected: list[bytes]) -> bool:
    return await texts_of(db, task) == expected


async def _somebody_waits(db: Database) -> bool:
    async with db.read() as connection:
        query = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = :space AND NOT granted)"
        return bool(await connection.scalar(text(query), {"space": SHARD_LOCK}))


async def _is(look: object, expected: object) -> bool:
    assert callable(look)
    return bool(await look() == expected)
