"""What projects and workspaces say of how much is in them, which is not counted row by row."""

from __future__ import annotations

import re
from typing import Any

import asyncpg
import pytest
import pytest_asyncio

from libs.db.connecting.settings import asyncpg_url
from libs.db.engine import Database
from libs.ids import UserId
from services.api.access.principal import Principal
from services.api.access.rights.rights import UserRights
from services.api.queries.workspaces.projects import list_projects, project_row
from services.api.queries.workspaces.workspaces import list_workspaces, workspace_row
from services.api.wire.workspaces.projects import GetProjectsQuery
from services.api.wire.workspaces.workspaces import GetWorkspacesQuery
from tests.bench.reading.statements import Statement, statements_of

MANY = 5_000
FILL = f"""
INSERT INTO workspaces (name, owner_id) VALUES ('other', 1);
INSERT INTO projects (workspace_id, name, key, owner_id)
SELECT (SELECT max(id) FROM workspaces), 'p' || n, 'P' || n, 1 FROM generate_series(1, 3) n;
INSERT INTO experiments (state, config, original_config, owner_id, project_id, job_id, start_time, end_time)
SELECT (ARRAY['COMPLETED', 'ACTIVE', 'RUNNING', 'DELETING', 'PAUSED'])[1 + n % 5], '{{}}', '', 1 + n % 2,
       (SELECT max(id) FROM projects) - n % 2, 'many' || n, now() - make_interval(secs => n), now()
FROM generate_series(1, {MANY}) n;
INSERT INTO trials (experiment_id, project_id, request_id, state, start_time)
SELECT id, project_id, 'many' || id, 'COMPLETED', now() FROM experiments WHERE id % 3 = 0;
-- Moved, changed and gone, as in a long life.
UPDATE experiments SET project_id = 1 WHERE id % 7 = 0;
UPDATE trials SET project_id = 1 WHERE experiment_id % 7 = 0;
UPDATE experiments SET state = 'ACTIVE', archived = true WHERE id % 11 = 0;
DELETE FROM experiments WHERE id % 13 = 0;
ANALYZE
"""
COUNTED = """
SELECT p.id, p.workspace_id,
       (SELECT count(*) FROM experiments e WHERE e.project_id = p.id) AS num_experiments,
       (SELECT count(*) FROM experiments e WHERE e.project_id = p.id AND e.state IN ('ACTIVE', 'RUNNING'))
           AS num_active_experiments,
       (SELECT count(*) FROM trials t WHERE t.project_id = p.id) AS num_runs,
       (SELECT max(start_time) FROM experiments e WHERE e.project_id = p.id) AS last_started_at
FROM projects p ORDER BY p.id
"""
READER = UserRights(Principal(user_id=UserId(2), username="determined"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def filled(database_url: str) -> str:
    connection = await asyncpg.connect(asyncpg_url(database_url))
    await connection.execute(FILL)
    await connection.close()
    return asyncpg_url(database_url)


async def _a_project(connection: Any) -> Any:
    return await project_row(connection, 1)


async def _projects(connection: Any) -> Any:
    return await list_projects(connection, 0, GetProjectsQuery(), rights=READER)


async def _a_workspace(connection: Any) -> Any:
    return await workspace_row(connection, 1)


async def _workspaces(connection: Any) -> Any:
    return await list_workspaces(connection, GetWorkspacesQuery(), rights=READER)


@pytest.mark.parametrize("read", [_a_project, _projects, _a_workspace, _workspaces])
async def test_no_row_of_an_experiment_or_a_run_is_counted(filled: str, read: Any) -> None:
    connection = await asyncpg.connect(filled)
    try:
        plans = [await _plan(connection, each) for each in await statements_of(filled, lambda db: _read(db, read))]
    finally:
        await connection.close()
    scans = [line for plan in plans for line in plan.splitlines() if re.search(r" on (experiments|trials)\b", line)]
    assert all("ix_experiments_last_of_project" in line for line in scans), scans
    assert any("experiment_counts" in plan for plan in plans)


async def test_the_numbers_are_those_of_the_rows(filled: str) -> None:
    connection = await asyncpg.connect(filled)
    try:
        counted = await connection.fetch(COUNTED)
    finally:
        await connection.close()
    seen: list[Any] = []

    async def read(connection: Any) -> None:
        seen.append([await project_row(connection, row["id"]) for row in counted])
        seen.append(await list_projects(connection, 0, GetProjectsQuery(), rights=READER))
        seen.append(await list_workspaces(connection, GetWorkspacesQuery(), rights=READER))

    await statements_of(filled, lambda db: _read(db, read))
    rows, listed, workspaces = seen[-3:]
    assert len(counted) == 4
    assert [{name: row[name] for name in counted[0].keys()} for row in rows] == [dict(row) for row in counted]  # noqa: SIM118
    numbers = [
        (project.id, project.num_experiments, project.num_active_experiments, project.num_runs) for project in listed
    ]
    assert numbers == [tuple(row)[0:1] + tuple(row)[2:5] for row in counted]
    of_workspaces = {each.id: each.num_experiments for each in workspaces}
    assert of_workspaces == {
        ident: sum(row["num_experiments"] for row in counted if row["workspace_id"] == ident) for ident in of_workspaces
    }


async def _read(db: Database, read: Any) -> object:
    async with db.read() as connection:
        return await read(connection)


async def _plan(connection: asyncpg.Connection, statement: Statement) -> str:
    lines = await connection.fetch(f"EXPLAIN {statement.sql}", *statement.parameters)
    return "\n".join(line for (line,) in lines)
