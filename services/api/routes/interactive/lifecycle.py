"""Notebooks, TensorBoards, shells and commands that exist: reading them, ending them, their priority
(docs/reference/tasks-and-cli.md 2.7 to 2.10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from libs.config import mask_secrets
from libs.db.transactions import in_transaction
from libs.errors import FailedPrecondition
from libs.tasks.interactive.kinds import KINDS, InteractiveType
from services.api.actions.cluster.jobs import update_queue
from services.api.actions.interactive import lifecycle as actions
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Handler, Route
from services.api.queries.interactive.messages import message_of
from services.api.queries.interactive.rows import list_rows, load_row
from services.api.waits.scheduler import wait_until_reconciled
from services.api.wire.base import Empty, Message, struct_value
from services.api.wire.cluster.jobs import QueueControl
from services.api.wire.interactive.commands import CommandResponse, GetCommandResponse, GetCommandsResponse
from services.api.wire.interactive.common import InteractiveTask, ListQuery, SetPriorityRequest
from services.api.wire.interactive.notebooks import (
    GetNotebookResponse,
    GetNotebooksResponse,
    IdleReport,
    NotebookResponse,
)
from services.api.wire.interactive.shells import GetShellResponse, GetShellsResponse, ShellResponse
from services.api.wire.interactive.tensorboards import (
    GetTensorboardResponse,
    GetTensorboardsResponse,
    TensorboardResponse,
)


class _Replies(Struct, frozen=True, kw_only=True):
    """Messages of one kind."""

    kind: InteractiveType
    one: type[Message]
    several: type[Message]
    changed: type[Message]

    @property
    def noun(self) -> str:
        """Also the field that holds one."""
        return KINDS[self.kind].noun

    @property
    def plural(self) -> str:
        """In paths, and the field that holds several."""
        return f"{self.noun}s"

    @property
    def parameter(self) -> str:
        """The name of the id in paths."""
        return f"{self.noun}Id"


def _get(replies: _Replies) -> Handler:
    async def get(call: Call[App, None, None]) -> Message:
        app, kind = call.app, replies.kind
        async with app.db.read() as connection:
            row = await load_row(connection, kind, call.path_str(replies.parameter))
        task = message_of(row, cluster=app.cluster, tokens=app.proxy_tokens, rights=call.rights)
        config = mask_secrets(row.config, to_owner=row.owner_id == call.principal.user_id)
        return replies.one(**{replies.noun: task, "config": struct_value(config)})

    return get


def _list(replies: _Replies) -> Handler:
    async def list_all(call: Call[App, ListQuery, None]) -> Message:
        app, kind = call.app, replies.kind
        async with app.db.read() as connection:
            rows, page = await list_rows(connection, kind, call.query, now=app.clock.now(), rights=call.rights)
        tasks = [message_of(row, cluster=app.cluster, tokens=app.proxy_tokens, rights=call.rights) for row in rows]
        return replies.several(**{replies.plural: tasks, "pagination": page})

    return list_all


def _kill(replies: _Replies) -> Handler:
    async def kill(call: Call[App, None, None]) -> Message:
        app, kind, task_id = call.app, replies.kind, call.path_str(replies.parameter)
        allocation = await in_transaction(app.db, lambda tx: actions.kill_task(tx, kind, task_id))
        # What waits in the queue ends at once, and clients look for it at once.
        await wait_until_reconciled(app.bus, allocations=[allocation])
        return replies.changed(**{replies.noun: await _message(call, kind, task_id)})

    return kill


def _set_priority(replies: _Replies) -> Handler:
    """It counts in the queue. What runs already keeps its place, and in a cluster its pods cannot change."""

    async def set_priority(call: Call[App, None, SetPriorityRequest]) -> Message:
        app, kind, task_id = call.app, replies.kind, call.path_str(replies.parameter)
        async with app.db.read() as connection:
            row = await load_row(connection, kind, task_id)
        if row.task_end is not None:
            raise FailedPrecondition(f"{replies.noun} '{task_id}' has ended: its priority cannot change any more")
        wanted = QueueControl(job_id=row.job_id, priority=call.body.priority)
        await update_queue(app.db, [wanted], clock=app.clock, cluster=app.cluster, capacity=app.capacity)
        return replies.changed(**{replies.noun: await _message(call, kind, task_id)})

    return set_priority


async def _message(call: Call[App, None, Any], kind: InteractiveType, task_id: str) -> InteractiveTask:
    app = call.app
    async with app.db.read() as connection:
        row = await load_row(connection, kind, task_id)
    return message_of(row, cluster=app.cluster, tokens=app.proxy_tokens, rights=call.rights)


async def put_idle(call: Call[App, None, IdleReport]) -> None:
    """Whether a notebook is used, as it says itself."""
    notebook, idle, now = call.path_str("notebookId"), call.body.idle, call.app.clock.now()
    await in_transaction(call.app.db, lambda tx: actions.report_idle(tx, notebook, idle=idle, now=now))


def _routes(replies: _Replies) -> Sequence[Route]:
    every = f"/api/v1/{replies.plural}"
    one = f"{every}/{{{replies.parameter}}}"
    return (
        Route(
            method="GET",
            path=every,
            handler=_list(replies),
            query=ListQuery,
            response=replies.several,
            summary=f"List {replies.plural}",
        ),
        Route(method="GET", path=one, handler=_get(replies), response=replies.one, summary=f"Get a {replies.noun}"),
        Route(
            method="POST",
            path=f"{one}/kill",
            handler=_kill(replies),
            response=replies.changed,
            summary=f"Kill a {replies.noun}",
        ),
        Route(
            method="POST",
            path=f"{one}/set_priority",
            handler=_set_priority(replies),
            body=SetPriorityRequest,
            response=replies.changed,
            summary=f"Set the priority of a {replies.noun} in the queue",
        ),
    )


_ALL: Final = (
    _Replies(kind="COMMAND", one=GetCommandResponse, several=GetCommandsResponse, changed=CommandResponse),
    _Replies(kind="NOTEBOOK", one=GetNotebookResponse, several=GetNotebooksResponse, changed=NotebookResponse),
    _Replies(kind="SHELL", one=GetShellResponse, several=GetShellsResponse, changed=ShellResponse),
    _Replies(
        kind="TENSORBOARD", one=GetTensorboardResponse, several=GetTensorboardsResponse, changed=TensorboardResponse
    ),
)
ROUTES: Final = (
    *(route for replies in _ALL for route in _routes(replies)),
    Route(
        method="PUT",
        path="/api/v1/notebooks/{notebookId}/report_idle",
        handler=put_idle,
        body=IdleReport,
        response=Empty,
        idempotent=True,
        summary="Report whether a notebook is used",
    ),
)
