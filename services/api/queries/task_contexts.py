"""The files a task starts with, in pieces: they may be large, and every pod of a gang asks at the same moment."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from typing import Final

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.engine import Database
from libs.db.tables.experiments import model_definitions
from libs.db.tables.tasks import tasks
from libs.db.tables.trials import trial_tasks, trials
from libs.errors import NotFound

PIECE_BYTES: Final = 3 * 512 * 1024
"""A multiple of 3, so that the base64 of the pieces is the base64 of the whole."""


async def context_json(db: Database, task_id: str) -> AsyncIterator[bytes]:
    """``{"b64Tgz": ...}`` in pieces: the model definition for trials, else what was uploaded with the task.

    Raises NotFound before the first piece.
    """
    async with db.read() as connection:
        experiment_id = await _experiment_of(connection, task_id)
        content = _content(task_id, experiment_id)
        size = await connection.scalar(select(func.octet_length(content))) or 0
    yield b'{"b64Tgz":"'
    for start in range(0, size, PIECE_BYTES):
        async with db.read() as connection:
            piece: bytes | None = await connection.scalar(select(func.substring(content, start + 1, PIECE_BYTES)))
        if piece is None:
            raise NotFound("task", task_id)  # deleted meanwhile; half of it must not look like all of it
        yield base64.b64encode(piece)
    yield b'"}'


async def _experiment_of(connection: AsyncConnection, task_id: str) -> int | None:
    """The experiment of a trial's task, None for other tasks. Raises NotFound."""
    row = (
        await connection.execute(
            select(tasks.c.task_id, trials.c.experiment_id)
            .outerjoin(trial_tasks, trial_tasks.c.task_id == tasks.c.task_id)
            .outerjoin(trials, trials.c.id == trial_tasks.c.trial_id)
            .where(tasks.c.task_id == task_id)
        )
    ).one_or_none()
    if row is None:
        raise NotFound("task", task_id)
    experiment_id: int | None = row.experiment_id
    return experiment_id


def _content(task_id: str, experiment_id: int | None) -> ColumnElement[bytes]:
    if experiment_id is None:
        return select(tasks.c.context_tgz).where(tasks.c.task_id == task_id).scalar_subquery()
    of_experiment = model_definitions.c.experiment_id == experiment_id
    return select(model_definitions.c.tgz).where(of_experiment).scalar_subquery()
