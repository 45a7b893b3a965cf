"""Logs of tasks and trials: posting lines, reading and following them (docs/reference/logs.md 4)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any, Final

from msgspec import UNSET, Struct
from sqlalchemy import select

from libs.db.tables.tasks import tasks
from libs.db.tables.trials import trial_tasks, trials
from libs.errors import InvalidRequest, NotFound
from libs.loglines.message import wire_time
from libs.waiting import wait_until_set
from services.api.actions.tasks.logs import post_legacy_lines, post_lines
from services.api.app import App
from services.api.http.call import Call
from services.api.http.replies.reply import RawResponse
from services.api.http.replies.streams import StreamResult
from services.api.http.routing import Route
from services.api.queries.tasks.log_following import follow_logs, log_is_complete, read_logs
from services.api.queries.tasks.logs import LogFields, LogFilter, LogRow, log_fields
from services.api.waits.notifier import log_topic, task_topic
from services.api.wire.base import Empty
from services.api.wire.log_level import LogLevel
from services.api.wire.ordering import OrderBy
from services.api.wire.tasks.logs import (
    LogFieldsQuery,
    LogsQuery,
    PostTaskLogsRequest,
    TaskLog,
    TaskLogFields,
    TrialLog,
    TrialLogFields,
)

FIELDS_INTERVAL_S: Final = 5.0


async def post_task_logs(call: Call[App, None, PostTaskLogsRequest]) -> None:
    await post_lines(call.app.db, call.app.bus, call.app.master_id, call.body.logs)


async def post_legacy_task_logs(call: Call[App, None, bytes]) -> RawResponse:
    await post_legacy_lines(call.app.db, call.app.bus, call.app.master_id, call.body)
    return RawResponse(b'""', media_type="application/json")


async def get_task_logs(call: Call[App, LogsQuery, None]) -> StreamResult:
    task_id = call.path_str("taskId")
    await _require_task(call.app, task_id)
    return StreamResult(_lines(_pages(call.app, [task_id], call.query), _task_log))


async def get_trial_logs(call: Call[App, LogsQuery, None]) -> StreamResult:
    trial_id = call.path_int("trialId")
    call.query.allocation_ids = []
    pages = _pages(call.app, await _tasks_of_trial(call.app, trial_id), call.query)
    return StreamResult(_lines(pages, lambda row: _trial_log(row, trial_id)))


async def get_task_log_fields(call: Call[App, LogFieldsQuery, None]) -> StreamResult:
    task_id = call.path_str("taskId")
    await _require_task(call.app, task_id)
    return StreamResult(_fields(call.app, [task_id], _task_fields, follow=call.query.follow))


async def get_trial_log_fields(call: Call[App, LogFieldsQuery, None]) -> StreamResult:
    task_ids = await _tasks_of_trial(call.app, call.path_int("trialId"))
    return StreamResult(_fields(call.app, task_ids, _trial_fields, follow=call.query.follow))


async def _require_task(app: App, task_id: str) -> None:
    async with app.db.read() as connection:
        if await connection.scalar(select(tasks.c.task_id).where(tasks.c.task_id == task_id)) is None:
            raise NotFound("task", task_id)


async def _tasks_of_trial(app: App, trial_id: int) -> Sequence[str]:
    """The tasks of a trial in the order in which they ran."""
    async with app.db.read() as connection:
        if await connection.scalar(select(trials.c.id).where(trials.c.id == trial_id)) is None:
            raise NotFound("trial", trial_id)
        mine = select(trial_tasks.c.task_id).where(trial_tasks.c.trial_id == trial_id)
        return (await connection.execute(mine.order_by(trial_tasks.c.position))).scalars().all()


async def _lines(
    pages: AsyncGenerator[list[LogRow]], as_line: Callable[[LogRow], Struct]
) -> AsyncIterator[Sequence[Struct]]:
    async with aclosing(pages):  # a follower that goes away must not be left listening
        async for page in pages:
            yield [as_line(row) for row in page]


def _pages(app: App, task_ids: Sequence[str], query: LogsQuery) -> AsyncGenerator[list[LogRow]]:
    if query.limit < 0:
        raise InvalidRequest("Limit must be >= 0")
    if query.follow and query.limit:
        raise InvalidRequest("Limit cannot be specified when following")
    return _read(app, task_ids, query) if not query.follow or not task_ids else _follow(app, task_ids, query)


async def _read(app: App, task_ids: Sequence[str], query: LogsQuery) -> AsyncGenerator[list[LogRow]]:
    descending = query.order_by is OrderBy.DESC
    async for page in read_logs(app.db, task_ids, _filter(query), limit=query.limit, descending=descending):
        yield page


async def _follow(app: App, task_ids: Sequence[str], query: LogsQuery) -> AsyncGenerator[list[LogRow]]:
    """All there is of the earlier tasks, then the last one until it ends."""
    *earlier, last = task_ids
    wanted = _filter(query)
    async for page in read_logs(app.db, earlier, wanted):
        yield page
    with app.notifier.watch(log_topic(last), task_topic(last)) as news:
        async for page in follow_logs(app.db, last, wanted, news=news, clock=app.clock):
            yield page


async def _fields(
    app: App, task_ids: Sequence[str], as_message: Callable[[LogFields], Struct], *, follow: bool
) -> AsyncIterator[Sequence[Struct]]:
    while True:
        # Looked at first: what is stored by then is in the answer.
        ended = not follow or not task_ids or await log_is_complete(app.db, task_ids[-1], now=app.clock.now())
        async with app.db.read() as connection:
            fields = await log_fields(connection, task_ids) if task_ids else LogFields()
        yield [as_message(fields)]
        if ended:
            return
        with app.notifier.watch(task_topic(task_ids[-1])) as news:
            await wait_until_set(news, timeout_s=FIELDS_INTERVAL_S)


def _filter(query: LogsQuery) -> LogFilter:
    return LogFilter(
        allocation_ids=tuple(query.allocation_ids),
        agent_ids=tuple(query.agent_ids),
        container_ids=tuple(query.container_ids),
        rank_ids=tuple(query.rank_ids),
        stdtypes=tuple(query.stdtypes),
        sources=tuple(query.sources),
        levels=tuple(level.name for level in query.levels),
        timestamp_before=query.timestamp_before,
        timestamp_after=query.timestamp_after,
        search_text=query.search_text,
        search_is_regex=query.enable_regex,
    )


def _task_log(row: LogRow) -> TaskLog:
    return TaskLog(
        id=str(row.id),
        task_id=row.task_id,
        allocation_id=UNSET if row.allocation_id is None else row.allocation_id,
        agent_id=UNSET if row.agent_id is None else row.agent_id,
        container_id=UNSET if row.container_id is None else row.container_id,
        rank_id=UNSET if row.rank_id is None else row.rank_id,
        timestamp=None if row.timestamp is None else wire_time(row.timestamp),
        level=_level(row.level),
        log=row.text,
        source=UNSET if row.source is None else row.source,
        stdtype=UNSET if row.stdtype is None else row.stdtype,
        message=row.message,
    )


def _trial_log(row: LogRow, trial_id: int) -> TrialLog:
    return TrialLog(
        id=str(row.id),
        trial_id=trial_id,
        agent_id=UNSET if row.agent_id is None else row.agent_id,
        container_id=UNSET if row.container_id is None else row.container_id,
        rank_id=UNSET if row.rank_id is None else row.rank_id,
        timestamp=None if row.timestamp is None else wire_time(row.timestamp),
        level=_level(row.level),
        log=row.text,
        source=UNSET if row.source is None else row.source,
        stdtype=UNSET if row.stdtype is None else row.stdtype,
        message=row.message,
    )


def _level(stored: str | None) -> LogLevel:
    return LogLevel.__members__.get(stored or "", LogLevel.UNSPECIFIED)


def _task_fields(found: LogFields) -> TaskLogFields:
    return TaskLogFields(
        allocation_ids=list(found.allocation_ids),
        agent_ids=list(found.agent_ids),
        container_ids=list(found.container_ids),
        rank_ids=list(found.rank_ids),
        stdtypes=list(found.stdtypes),
        sources=list(found.sources),
    )


def _trial_fields(found: LogFields) -> TrialLogFields:
    return TrialLogFields(
        agent_ids=list(found.agent_ids),
        container_ids=list(found.container_ids),
        rank_ids=list(found.rank_ids),
        stdtypes=list(found.stdtypes),
        sources=list(found.sources),
    )


_TASK: Final = "/api/v1/tasks/{taskId}/logs"
_TRIAL: Final = "/api/v1/trials/{trialId}/logs"

ROUTES: Final = (
    Route(
        method="POST",
        path="/api/v1/task/logs",
        handler=post_task_logs,
        body=PostTaskLogsRequest,
        response=Empty,
        allow_nul=True,
        idempotent=True,
        summary="Store log lines of a task",
    ),
    Route(
        method="POST",
        path="/task-logs",
        handler=post_legacy_task_logs,
        body=bytes,
        described_body=list[dict[str, Any]],
        raw=True,
        idempotent=True,
        summary="Store log lines of tasks in the former format",
    ),
    Route(
        method="GET",
        path=_TASK,
        handler=get_task_logs,
        query=LogsQuery,
        response=TaskLog,
        stream=True,
        summary="Read or follow the log of a task",
    ),
    Route(
        method="GET",
        path=_TRIAL,
        handler=get_trial_logs,
        query=LogsQuery,
        response=TrialLog,
        stream=True,
        summary="Read or follow the log of a trial",
    ),
    Route(
        method="GET",
        path=f"{_TASK}/fields",
        handler=get_task_log_fields,
        query=LogFieldsQuery,
        response=TaskLogFields,
        stream=True,
        summary="List the values that log lines of a task can be filtered by",
    ),
    Route(
        method="GET",
        path=f"{_TRIAL}/fields",
        handler=get_trial_log_fields,
        query=LogFieldsQuery,
        response=TrialLogFields,
        stream=True,
        summary="List the values that log lines of a trial can be filtered by",
    ),
)
