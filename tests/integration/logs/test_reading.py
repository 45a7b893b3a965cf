"""What a reader gets: the right lines, in one order, for as long as there can be more, and no longer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

from libs.clock import SystemClock
from libs.db.engine import Database
from libs.db.tables.tasks import tasks
from libs.errors import InvalidRequest
from libs.events import subjects
from libs.events.logs import LogBatch, LogLine
from libs.loglines.batches import service_stream
from services.api.queries.tasks.log_following import (
    END_GRACE,
    WAITING_GRACE,
    follow_logs,
    log_is_complete,
    no_more_comes,
    read_logs,
    streams_sealed,
)
from services.api.queries.tasks.logs import LogFields, LogFilter, count_logs, log_fields, log_page, log_span
from services.logs.writing.store import store
from tests.harness import eventually
from tests.integration.logs.conftest import Task, new_task, pool_of

SECOND = 10**9


async def write(
    db: Database, task: Task, lines: Sequence[LogLine], *, stream: str = "pod/0/stdout", ends: bool = False
) -> None:
    batch = LogBatch(
        task=task.task,
        stream=f"{task.allocation}/{stream}",
        allocation=task.allocation,
        lines=tuple(lines),
        end_of_stream=ends,
        end_seq=lines[-1].seq + 1 if ends and lines else 0,
    )
    await store(pool_of(db), subjects.log_shard(task.task), [batch], parked_bytes=0)


def plain(first: int, end: int) -> list[LogLine]:
    return [LogLine(seq, seq * SECOND, b"%d\n" % seq) for seq in range(first, end)]


async def numbers(
    db: Database, task_ids: Sequence[str], wanted: LogFilter | None = None, *, limit: int = 0, descending: bool = False
) -> list[int]:
    pages = read_logs(db, task_ids, wanted or LogFilter(), limit=limit, descending=descending)
    return [int(row.log) async for page in pages for row in page]


async def test_heads_and_tails_are_ends_of_the_whole(db: Database, task: Task) -> None:
    await write(db, task, plain(0, 2500))
    whole = list(range(2500))
    assert await numbers(db, [task.task]) == whole
    assert await numbers(db, [task.task], limit=10) == whole[:10]
    assert await numbers(db, [task.task], limit=10, descending=True) == whole[::-1][:10]
    assert await numbers(db, [task.task], limit=2100, descending=True) == whole[::-1][:2100]
    assert await numbers(db, [task.task], descending=True) == whole[::-1]
    assert await numbers(db, [task.task], limit=5000) == whole


async def test_a_trial_of_several_tasks_is_one_log(db: Database) -> None:
    first, silent, last = [await new_task(db) for _ in range(3)]
    await write(db, last, [LogLine(seq, 0, b"%d\n" % (seq + 3)) for seq in range(3)])
    await write(db, first, plain(0, 3))
    ids = [first.task, silent.task, last.task]
    assert await numbers(db, ids) == [0, 1, 2, 3, 4, 5]
    assert await numbers(db, ids, limit=4) == [0, 1, 2, 3]
    assert await numbers(db, ids, descending=True) == [5, 4, 3, 2, 1, 0]
    assert await numbers(db, ids, limit=4, descending=True) == [5, 4, 3, 2]


async def test_no_lines_are_no_pages(db: Database, task: Task) -> None:
    assert [page async for page in read_logs(db, [task.task, "unknown"], LogFilter())] == []
    async with db.read() as connection:
        assert await log_span(connection, task.task) is None
        assert await log_fields(connection, [task.task]) == LogFields()
        assert await count_logs(connection, task.task, LogFilter()) == 0


async def test_a_read_ends_although_the_task_goes_on_writing(db: Database, task: Task) -> None:
    await write(db, task, plain(0, 1500))
    seen = 0
    async for page in read_logs(db, [task.task], LogFilter()):
        seen += len(page)
        await write(db, task, plain(1500, 4000))
    assert seen == 1500


FILTERED = [
    LogLine(0, 0, b"Alpha 100%\n", "INFO", 0, "stdout", "n1", "p1", "a1"),
    LogLine(1, SECOND, b"beta_x\n", "ERROR", 1, "stderr", "n1", "p2", "a1"),
    LogLine(2, 2 * SECOND, b"gamma \x00 end\n", None, None, "stdout", "n2", "p1", "a2", "master"),
    LogLine(3, 3 * SECOND, b"delta \xff end\n", "DEBUG", 2, None, None, None, None),
    LogLine(4, 4 * SECOND, "Größe 303 \\ /\n".encode(), "INFO", None, "stdout", "n2", "p1", "a2"),
]


@pytest.fixture
async def filtered(db: Database) -> Task:
    task, other = await new_task(db), await new_task(db)
    await write(db, task, FILTERED)
    await write(db, other, FILTERED)
    return task


def at(seconds: float) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (LogFilter(), [0, 1, 2, 3, 4]),
        (LogFilter(allocation_ids=("a1",)), [0, 1]),
        (LogFilter(agent_ids=("n2", "n9")), [2, 4]),
        (LogFilter(container_ids=("p1",), agent_ids=("n1",)), [0]),
        (LogFilter(stdtypes=("stderr",)), [1]),
        (LogFilter(sources=("master",)), [2]),
        (LogFilter(rank_ids=(-1,)), [2, 4]),
        (LogFilter(rank_ids=(-2,)), []),
        (LogFilter(rank_ids=(-1, 1)), [1, 2, 4]),
        (LogFilter(levels=("INFO", "DEBUG")), [0, 3, 4]),
        (LogFilter(levels=("UNSPECIFIED",)), [2]),
        (LogFilter(levels=("UNSPECIFIED", "ERROR")), [1, 2]),
        (LogFilter(timestamp_before=at(1)), [0, 1]),
        (LogFilter(timestamp_after=at(1), timestamp_before=at(3)), [2, 3]),
        (LogFilter(search_text="ALPHA"), [0]),
        (LogFilter(search_text="%"), [0]),
        (LogFilter(search_text="_"), [1]),
        (LogFilter(search_text="\\"), [4]),
        (LogFilter(search_text="/"), [4]),
        (LogFilter(search_text="größe"), [4]),
        (LogFilter(search_text="303"), [4]),
        (LogFilter(search_text="END"), [2, 3]),
        (LogFilter(search_text="gamma \0 e"), [2]),
        (LogFilter(search_text="^(Al|be).*[%x]$", search_is_regex=True), [0, 1]),
        (LogFilter(search_text="^gamma . end$", search_is_regex=True), [2]),
        (LogFilter(search_text="^$", search_is_regex=True), []),
        (LogFilter(search_text="(?i)ALPHA", search_is_regex=True), [0]),
        (LogFilter(search_text="ALPHA", search_is_regex=True), []),
        (LogFilter(search_text="a.* end", search_is_regex=True), [2, 3]),
    ],
    ids=repr,
)
async def test_filters_find_the_lines_of_one_task(
    db: Database, filtered: Task, wanted: LogFilter, found: list[int]
) -> None:
    rows = [row async for page in read_logs(db, [filtered.task], wanted) for row in page]
    assert [row.log for row in rows] == [FILTERED[index].log for index in found]
    if not wanted.search_is_regex:
        async with db.read() as connection:
            assert await count_logs(connection, filtered.task, wanted) == len(found)


@pytest.mark.parametrize("pattern", ["(", "[a", "a{2,1}", "*"])
async def test_a_regular_expression_that_is_none_is_refused(db: Database, filtered: Task, pattern: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^invalid regular expression: (?!invalid regular)"):
        await numbers(db, [filtered.task], LogFilter(search_text=pattern, search_is_regex=True))


async def test_a_hostile_regular_expression_is_stopped(
    db: Database, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.api.queries.tasks.logs.REGEX_TIME_MS", 200)
    await write(db, task, [LogLine(0, 0, b"ab" * 50_000 + b"\n")])
    with pytest.raises(InvalidRequest, match="too long"):
        await numbers(db, [task.task], LogFilter(search_text=r"^(.*)(.*)(.*)\1\2\3b$", search_is_regex=True))


async def test_hostile_regular_expressions_leave_connections_to_others(
    db: Database, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.api.queries.tasks.logs.REGEX_TIME_MS", 60_000)
    await write(db, task, [LogLine(0, 0, b"ab" * 50_000 + b"\n")])
    hostile = LogFilter(search_text=r"^(.*)(.*)(.*)\1\2\3b$", search_is_regex=True)
    searches = [asyncio.create_task(numbers(db, [task.task], hostile)) for _ in range(30)]
    try:
        await eventually(db.searches.locked)
        assert len([page async for page in read_logs(db, [task.task], LogFilter())]) == 1
        assert not any(search.done() for search in searches)
    finally:
        for search in searches:
            search.cancel()
        await asyncio.gather(*searches, return_exceptions=True)
    assert not db.searches.locked()


async def test_a_regular_expression_without_a_transaction_is_a_bug(db: Database, filtered: Task) -> None:
    async with db.read() as connection:
        span = await log_span(connection, filtered.task)
        assert span is not None
        with pytest.raises(RuntimeError):
            await log_page(connection, filtered.task, LogFilter(search_text="a", search_is_regex=True), span=span)


async def test_rows_read_as_clients_print_them(db: Database, filtered: Task) -> None:
    (rows,) = [page async for page in read_logs(db, [filtered.task], LogFilter())]
    assert rows[1].message == "[1970-01-01T00:00:01.000000Z] p2 [rank=1] || ERROR: beta_x\n"
    assert rows[2].text == "gamma \x00 end\n"
    assert rows[3].text == "delta \N{REPLACEMENT CHARACTER} end\n"


async def test_fields_are_the_values_that_occur(db: Database, filtered: Task) -> None:
    async with db.read() as connection:
        assert await log_fields(connection, [filtered.task]) == LogFields(
            allocation_ids=("a1", "a2"),
            agent_ids=("n1", "n2"),
            container_ids=("p1", "p2"),
            rank_ids=(0, 1, 2),
            stdtypes=("stderr", "stdout"),
            sources=("master", "task"),
        )


async def end(db: Database, task: Task, *, ago_s: float = 0.0) -> datetime:
    """When the task ended."""
    ended_at = datetime.now(UTC) - timedelta(seconds=ago_s)
    async with db.transaction() as connection:
        await connection.execute(update(tasks).where(tasks.c.task_id == task.task).values(end_time=ended_at))
    return ended_at


async def sealed(db: Database, task: Task) -> bool:
    async with db.read() as connection:
        return await streams_sealed(connection, task.task)


async def say(db: Database, task: Task, seq: int, *, ends: bool) -> None:
    """What the scheduler says about the allocation."""
    batch = LogBatch(
        task=task.task,
        stream=service_stream(task.allocation),
        lines=(LogLine(seq, 0, b"said\n", source="master"),),
        contiguous=False,
        end_of_stream=ends,
    )
    await store(pool_of(db), subjects.log_shard(task.task), [batch], parked_bytes=0)


async def test_a_follower_sees_every_line_and_ends_with_the_last_stream(
    db: Database, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.api.queries.tasks.log_following.END_GRACE", timedelta(seconds=60))
    news = asyncio.Event()
    followed: list[bytes] = []

    async def follow() -> None:
        async for page in follow_logs(db, task.task, LogFilter(), news=news, clock=SystemClock()):
            followed.extend(row.log for row in page)

    follower = asyncio.create_task(follow())
    for first in (0, 3, 6):
        await write(db, task, plain(first, first + 3))
        news.set()
        await eventually(lambda first=first: len(followed) == first + 3, what="followed")
    await end(db, task)
    news.set()
    await write(db, task, plain(9, 10), ends=True)
    assert not await sealed(db, task)
    await write(db, task, [], stream="pod/0/stderr", ends=True)
    news.set()
    async with asyncio.timeout(30):  # below the time after which it would end without the streams
        await follower
    assert [int(log) for log in followed] == await numbers(db, [task.task]) == list(range(10))


async def test_a_follower_ends_some_time_after_a_task_whose_pods_were_killed(db: Database, task: Task) -> None:
    await write(db, task, plain(0, 3))
    ended_at = await end(db, task, ago_s=END_GRACE.total_seconds() - 1)
    news = asyncio.Event()
    async with asyncio.timeout(30):
        pages = [page async for page in follow_logs(db, task.task, LogFilter(), news=news, clock=SystemClock())]
    assert sum(map(len, pages)) == 3
    assert timedelta(0) <= datetime.now(UTC) - (ended_at + END_GRACE) < timedelta(seconds=20)


async def test_what_services_say_about_an_allocation_is_waited_for(db: Database, task: Task) -> None:
    await write(db, task, [], ends=True)
    await write(db, task, [], stream="pod/0/stderr", ends=True)
    assert await sealed(db, task)
    await say(db, task, 5, ends=False)
    assert not await sealed(db, task)
    await say(db, task, 9, ends=True)
    assert await sealed(db, task)


async def test_a_task_that_never_ran_is_complete_with_the_last_word_about_it(db: Database) -> None:
    task = await new_task(db, started=False)
    await end(db, task)
    assert not await log_is_complete(db, task.task, now=datetime.now(UTC))
    assert await log_is_complete(db, task.task, now=datetime.now(UTC) + END_GRACE)
    await say(db, task, 1, ends=True)
    assert await log_is_complete(db, task.task, now=datetime.now(UTC))


async def test_a_task_that_was_deleted_says_nothing_more(db: Database) -> None:
    assert await log_is_complete(db, "deleted", now=datetime.now(UTC))


async def test_followers_wait_for_lines_that_wait_for_others(db: Database, task: Task) -> None:
    await end(db, task)
    ahead = LogBatch(
        task=task.task,
        stream=f"{task.allocation}/pod/0/stdout",
        allocation=task.allocation,
        lines=(LogLine(1, 1, b"1\n"),),
    )
    await store(pool_of(db), subjects.log_shard(task.task), [ahead], parked_bytes=2**20)
    now = datetime.now(UTC)
    assert not await log_is_complete(db, task.task, now=now + 2 * END_GRACE)
    assert await log_is_complete(db, task.task, now=now + WAITING_GRACE)


@pytest.mark.parametrize(
    ("ended_s_ago", "all_sealed", "some_wait", "complete"),
    [
        (None, True, False, False),
        (0, True, False, True),
        (0, False, False, False),
        (4.9, False, False, False),
        (5, False, False, True),
        (59, False, True, False),
        (60, False, True, True),
    ],
)
def test_completeness(ended_s_ago: float | None, all_sealed: bool, some_wait: bool, complete: bool) -> None:
    now = at(100)
    ended_at = None if ended_s_ago is None else now - timedelta(seconds=ended_s_ago)
    assert no_more_comes(ended_at=ended_at, sealed=all_sealed, some_wait=some_wait, now=now) == complete
