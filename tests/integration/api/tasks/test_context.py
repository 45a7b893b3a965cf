"""The files a task starts with."""

from __future__ import annotations

import base64
import os

import httpx
import pytest
from sqlalchemy import update

from libs.db.engine import Database
from libs.db.tables.experiments import model_definitions
from services.api.queries.tasks.context import PIECE_BYTES
from tests.builders import insert_task
from tests.integration.api.tasks.service import Run, error_of


def path(task: str) -> str:
    return f"/api/v1/tasks/{task}/context_directory"


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, 2 * PIECE_BYTES + 1])
async def test_trials_get_the_model_definition(db: Database, client: httpx.AsyncClient, run: Run, size: int) -> None:
    content = os.urandom(size)
    async with db.transaction() as tx:
        mine = model_definitions.c.experiment_id == run.experiment
        await tx.execute(update(model_definitions).where(mine).values(tgz=content))
    answer = await client.get(path(run.task))
    assert answer.status_code == 200
    assert base64.b64decode(answer.json()["b64Tgz"], validate=True) == content


@pytest.mark.parametrize("content", [None, b"context"])
async def test_other_tasks_get_what_was_uploaded(db: Database, owner: httpx.AsyncClient, content: bytes | None) -> None:
    async with db.transaction() as tx:
        task = await insert_task(tx, task_type="COMMAND", context_tgz=content)
    assert (await owner.get(path(task))).json() == {"b64Tgz": base64.b64encode(content or b"").decode()}


async def test_unknown_tasks(owner: httpx.AsyncClient) -> None:
    answer = await owner.get(path("nobody"))
    assert (answer.status_code, error_of(answer)) == (404, "task 'nobody' not found")
