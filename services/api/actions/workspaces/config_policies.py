"""Sets and removes config policies, of a workspace or of the whole cluster (docs/reference/tasks-and-cli.md 8).

They hold for what is launched or changed from then on; what runs is left alone.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

from sqlalchemy import delete, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.config import check_consistent, normalise_experiment_config, parse_experiment_policies, parse_task_policies
from libs.db.engine import Database
from libs.db.tables.templates import config_policies
from libs.db.transactions import in_transaction
from libs.errors import InvalidRequest
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.actions.workspaces.rights import require_on_workspace
from services.api.queries.workspaces.config_policies import Workload, of_scope, stored_policies
from services.api.queries.workspaces.workspaces import workspace_row

Object = dict[str, Any]


async def set_policies(
    db: Database, workspace_id: int | None, workload: Workload, submitted: str, *, rights: UserRights, now: datetime
) -> Object:
    """Replace the policies of a scope (None is the cluster) by those that were submitted, and return them.

    Raises InvalidRequest, also for policies that contradict themselves or the global ones; NotFound for the workspace,
    PermissionDenied.
    """
    async with db.read() as connection:  # nobody waits for the work of those who may not
        await _check_scope(connection, rights, workspace_id)
    policies = await asyncio.to_thread(_parsed, workload, submitted)

    async def work(connection: AsyncConnection) -> None:
        await _check_scope(connection, rights, workspace_id)
        if workspace_id is not None:
            await _check_against_global(connection, workload, policies)
        values = {
            "invariant_config": policies.get("invariant_config"),
            "constraints": policies.get("constraints"),
            "updated_by": rights.principal.user_id,
            "updated_at": now,
        }
        row = insert(config_policies).values(workspace_id=workspace_id, workload_type=workload, **values)
        one_of_scope: list[Any] = [text("coalesce(workspace_id, 0)"), "workload_type"]
        await connection.execute(row.on_conflict_do_update(index_elements=one_of_scope, set_=values))

    await in_transaction(db, work)
    return policies


async def delete_policies(db: Database, workspace_id: int | None, workload: Workload, *, rights: UserRights) -> None:
    """From here on there are none. Deleting twice changes nothing. Raises NotFound, PermissionDenied."""
    async with db.transaction() as connection:
        await _check_scope(connection, rights, workspace_id)
        mine = delete(config_policies).where(config_policies.c.workload_type == workload, of_scope(workspace_id))
        await connection.execute(mine)


async def _check_scope(connection: AsyncConnection, rights: UserRights, workspace_id: int | None) -> None:
    if workspace_id is None:
        rights.require(Action.EDIT_GLOBAL_POLICIES)
        return
    require_on_workspace(rights, Action.EDIT_WORKSPACE_POLICIES, await workspace_row(connection, workspace_id))


def _parsed(workload: Workload, submitted: str) -> Object:
    if not submitted.strip():
        raise InvalidRequest("no specified config policies")
    return parse_experiment_policies(submitted) if workload == "EXPERIMENT" else parse_task_policies(submitted)


async def _check_against_global(connection: AsyncConnection, workload: Workload, policies: Object) -> None:
    global_ = await stored_policies(connection, None, workload)
    invariant = normalise_experiment_config(policies.get("invariant_config") or {})
    check_consistent(invariant, [global_.get("constraints")])
