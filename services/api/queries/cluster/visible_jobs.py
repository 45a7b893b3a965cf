"""Which jobs of the queue a caller may see whole; of others there is only that they are there, and what they take
(docs/reference/platform.md 6)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.any_of import any_of
from libs.db.tables.tasks import tasks
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.access.rights.tensorboards import sees_all_it_shows
from services.api.queries.cluster.jobs import QueuedJob

_EXPERIMENT: Final = "EXPERIMENT"
_TENSORBOARD: Final = "TENSORBOARD"


async def visible_jobs(
    connection: AsyncConnection, rights: UserRights, queued: Collection[QueuedJob]
) -> frozenset[str]:
    """Ids of those that the caller may see whole."""
    if rights.may(Action.VIEW_ALL_JOBS):
        return frozenset(job.job_id for job in queued)
    seen = [job for job in queued if rights.may(_view(job), workspace_id=job.workspace_id)]
    hidden = await _hidden_boards(connection, rights, [job.job_id for job in seen if job.job_type == _TENSORBOARD])
    return frozenset(job.job_id for job in seen) - hidden


def _view(job: QueuedJob) -> Action:
    return Action.VIEW_EXPERIMENT if job.job_type == _EXPERIMENT else Action.VIEW_TASK


async def _hidden_boards(connection: AsyncConnection, rights: UserRights, job_ids: Collection[str]) -> frozenset[str]:
    """Of these TensorBoards those that show what the caller may not see."""
    if not job_ids:
        return frozenset()
    hidden = select(tasks.c.job_id).where(any_of(tasks.c.job_id, job_ids), ~sees_all_it_shows(rights, tasks.c.task_id))
    return frozenset((await connection.execute(hidden)).scalars())
