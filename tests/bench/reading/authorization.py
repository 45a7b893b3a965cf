"""A list of 10,000 experiments for somebody with 50 groups and 200 roles, against the same for an administrator."""

from __future__ import annotations

from statistics import quantiles
from typing import Final

import asyncpg
import uvloop

from tests.bench.reading.reads import milliseconds
from tests.bench.reading.rows import EXPERIMENTS, insert_many
from tests.bench.result import Result
from tests.bench.system import BenchSystem, running_system
from tests.harness.raw_http import RawConnection

GROUPS: Final = 50
ROLES: Final = 200
GOAL: Final = 1.3
LISTS: Final = (("a page of 100", 100, 200), ("all", -1, 15))
"""What is asked for, the limit, and how often."""
_ADMINISTRATOR: Final = 1
_VIEWER: Final = 4
_AUTHZ: Final = "security: {authz: {type: rbac}}\n"


def measure(_: BenchSystem) -> list[Result]:
    """In a system of its own, in which roles count, and which no running loop can start."""
    with running_system(cluster=_AUTHZ) as system:
        return uvloop.run(_measure(system))


async def _measure(system: BenchSystem) -> list[Result]:
    results = []
    await insert_many(system.database_url)
    await _spread(system.database_url)
    clients = [await _client(system, name) for name in ("admin", "determined")]
    for what, limit, times in LISTS:
        results.append(await _compare(f"{what} of {EXPERIMENTS:,} experiments", clients, limit, times))
    for client in clients:
        client.close()
    return results


async def _client(system: BenchSystem, name: str) -> RawConnection:
    return await RawConnection.open(system.options.master_url, {"Authorization": f"Bearer {system.log_in(name)}"})


async def _compare(name: str, clients: list[RawConnection], limit: int, times: int) -> Result:
    """In turns; the fastest tenth is of moments in which the machine does little else."""
    admin, user = clients
    request = [client.get_request(f"/api/v1/experiments?limit={limit}") for client in clients]
    assert await _seen(admin, request[0]) == await _seen(user, request[1])
    baseline, value = [], []
    for _ in range(times):
        baseline.append(await milliseconds(lambda: admin.send(request[0])))
        value.append(await milliseconds(lambda: user.send(request[1])))
    return Result(
        name=f"{name}, {ROLES} roles, a tenth is faster",
        value=quantiles(value, n=10)[0],
        unit="ms",
        baseline=quantiles(baseline, n=10)[0],
        goal=GOAL,
        better="lower",
    )


async def _seen(client: RawConnection, request: bytes) -> bytes:
    """How many there are, in the answer's own words."""
    answer = await client.send(request)
    return answer[answer.rindex(b'"pagination"') :]


async def _spread(url: str) -> None:
    """Put all experiments into ROLES workspaces, and let ``determined`` see each through one of GROUPS groups."""
    connection = await asyncpg.connect(url)
    try:
        first = await connection.fetchval("SELECT max(id) FROM workspaces")
        for statement, *values in (
            (
                "INSERT INTO workspaces (name, owner_id) SELECT 'authz ' || n, 1 FROM generate_series(1, $1::int) n",
                ROLES,
            ),
            (
                """INSERT INTO projects (name, key, workspace_id, owner_id)
                   SELECT 'p', 'Z' || id % 10000, id, 1 FROM workspaces WHERE id > $1""",
                first,
            ),
            (
                """UPDATE experiments e SET project_id = p.id FROM projects p
                   WHERE p.workspace_id = $1::bigint + 1 + e.id % $2::bigint""",
                first,
                ROLES,
            ),
            ("UPDATE trials t SET project_id = e.project_id FROM experiments e WHERE e.id = t.experiment_id",),
            ("INSERT INTO groups (name) SELECT 'authz ' || n FROM generate_series(1, $1::int) n", GROUPS),
            (
                """INSERT INTO group_members (group_id, user_id) SELECT g.id, u.id FROM groups g, users u
                   WHERE g.name LIKE 'authz %' AND u.username = 'determined'""",
            ),
            (
                """INSERT INTO role_assignments (group_id, role_id, workspace_id)
                   SELECT g.id, $2, w.id FROM workspaces w JOIN groups g ON g.name = 'authz ' || 1 + w.id % $3::bigint
                   WHERE w.id > $1""",
                first,
                _VIEWER,
                GROUPS,
            ),
            (
                """INSERT INTO role_assignments (group_id, role_id) SELECT g.id, $1
                   FROM groups g JOIN users u ON u.id = g.user_id AND u.username = 'admin' ON CONFLICT DO NOTHING""",
                _ADMINISTRATOR,
            ),
        ):
            await connection.execute(statement, *values)
        await connection.execute("VACUUM ANALYZE")
    finally:
        await connection.close()
