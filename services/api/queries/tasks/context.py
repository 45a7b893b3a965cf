"""The files a task starts with, in pieces: they may be large, and every pod of a gang asks at the same moment."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from typing import Final

from sqlalchemy import ColumnElement, func, select

from libs.db.engine import Database
from libs.db.tables.experiments import model_definitions
from libs.db.tables.tasks import tasks
from libs.errors import NotFound
from services.api.queries.tasks.trial_tasks import trial_of_task

PIECE_BYTES: Final = 3 * 512 * 1024
"""A multiple of 3, so that the base64 of the pieces is the base64 of the whole."""


async def context_json(db: Database, task_id: str) -> AsyncIterator[bytes]:
    """``{"b64Tgz": ...}`` in pieces: the model definition for trials, else what was uploaded with the task.

    Raises NotFound before the first piece.
    """
    async with db.read() as connection:
        experiment_id = (await trial_of_task(connection, task_id)).experiment_id
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


def _content(task_id: str, experiment_id: int | None) -> ColumnElement[bytes]:
    if experiment_id is None:
        return select(tasks.c.context_tgz).where(tasks.c.task_id == task_id).scalar_subquery()
    of_experiment = model_definitions.c.experiment_id == experiment_id
    return select(model_definitions.c.tgz).where(of_experiment).scalar_subquery()
