"""What users and tasks do to interactive tasks that exist: kill them, give them another priority, say they are in use.

Source: docs/reference/tasks-and-cli.md 2.9 and 2.10.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from libs.tasks.interactive.kinds import InteractiveType
from services.api.actions.tasks.activity import touch
from services.api.actions.tasks.allocations import request_kill
from services.api.queries.interactive.rows import load_row

KILLED_BY_USER: Final = "user requested kill"


async def kill_task(connection: AsyncConnection, kind: InteractiveType, task_id: str) -> str:
    """Have the task ended, whether it runs or waits; one that has ended stays as it is. Returns its allocation.

    Raises NotFound.
    """
    allocation_id: str = (await load_row(connection, kind, task_id)).allocation_id
    await request_kill(connection, allocation_id, reason=KILLED_BY_USER)
    # It may have been preempted, and have got another one before the first was locked.
    newest: str = (await load_row(connection, kind, task_id)).allocation_id
    if newest != allocation_id:
        await request_kill(connection, newest, reason=KILLED_BY_USER)
    return newest


async def report_idle(connection: AsyncConnection, task_id: str, *, idle: bool, now: datetime) -> None:
    """What a notebook says about itself: that it is in use keeps it alive, anything else changes nothing.

    Raises NotFound.
    """
    await load_row(connection, "NOTEBOOK", task_id)
    if not idle:
        await touch(connection, task_id, now)
