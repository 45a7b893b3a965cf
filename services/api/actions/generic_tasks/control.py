"""Kills, pauses and unpauses generic tasks: writes the state that is wanted, which the scheduler brings about.

Source: docs/reference/tasks-and-cli.md 6.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.any_of import any_of
from libs.db.outbox import announce
from libs.db.tables.tasks import generic_tasks, tasks
from libs.errors import NotFound
from libs.events.changes import TaskChanged
from libs.states.generic_task import GenericTaskState
from libs.tasks.generic import TASK_TYPE
from services.api.actions.generic_tasks import tree as trees
from services.api.actions.generic_tasks.tree import Changes, Tree, TreeNode
from services.api.queries.generic_tasks.generic_tasks import not_generic


async def kill(connection: AsyncConnection, task_id: str, *, from_root: bool) -> list[str]:
    """End a task with everything below it, or the whole tree it is in.

    All functions here return the tasks that get another state. They raise NotFound, InvalidRequest for a task of
    another type, and FailedPrecondition.
    """
    return await _change(connection, task_id, lambda tree: trees.kill(tree, task_id, from_root=from_root))


async def pause(connection: AsyncConnection, task_id: str) -> list[str]:
    """Have a task end for now, with those below it that may be paused."""
    return await _change(connection, task_id, lambda tree: trees.pause(tree, task_id))


async def unpause(connection: AsyncConnection, task_id: str) -> list[str]:
    """Have a task run again, with everything below it that is paused."""
    return await _change(connection, task_id, lambda tree: trees.unpause(tree, task_id))


async def lock_tree(connection: AsyncConnection, task_id: str) -> Tree:
    """The tree of a task: nobody changes or adds to it until the transaction ends."""
    columns = generic_tasks.c
    root = await connection.scalar(select(columns.root_id).where(columns.task_id == task_id))
    if root is None:
        known = await connection.scalar(select(tasks.c.task_id).where(tasks.c.task_id == task_id))
        if known is None:
            raise NotFound("task", task_id)
        raise not_generic(task_id)
    # Rows that others insert meanwhile could not be waited for; and the root may be gone.
    await connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(root, 0))))
    query = select(columns.task_id, columns.parent_id, columns.state, columns.no_pause).where(columns.root_id == root)
    rows = await connection.execute(query.order_by(columns.task_id).with_for_update(key_share=True))
    return {
        row.task_id: TreeNode(
            task_id=row.task_id,
            parent_id=row.parent_id,
            state=GenericTaskState(row.state),
            no_pause=row.no_pause,
        )
        for row in rows
    }


async def _change(connection: AsyncConnection, task_id: str, change: Callable[[Tree], Changes]) -> list[str]:
    changes = change(await lock_tree(connection, task_id))
    for state in sorted(set(changes.values())):
        moved = [ident for ident, new in changes.items() if new == state]
        mine = any_of(generic_tasks.c.task_id, moved)
        await connection.execute(update(generic_tasks).where(mine).values(state=state))
        if state == GenericTaskState.ACTIVE:
            await connection.execute(update(tasks).where(any_of(tasks.c.task_id, moved)).values(end_time=None))
    await announce(
        connection,
        *(
            TaskChanged(task_id=ident, task_type=TASK_TYPE, what="state", state=state)
            for ident, state in changes.items()
        ),
    )
    return list(changes)
