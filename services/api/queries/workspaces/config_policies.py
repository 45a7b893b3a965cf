"""Config policies that hold in a workspace: its own, and the global ones above them.

What they mean is in ``libs/config/config_policies.py``. Source: docs/reference/tasks-and-cli.md 8;
docs/reference/scheduling.md 9.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.config import (
    apply_invariants,
    check_constraints,
    check_fallback_pools,
    check_max_slots_change,
    check_pool_change,
    check_priority_change,
    check_weight_change,
)
from libs.db.prepared.statements import PreparedStatement
from libs.db.tables.templates import config_policies

Object = dict[str, Any]
Workload: TypeAlias = Literal["EXPERIMENT", "NTSC"]
"""NTSC is whatever else is launched: notebooks, TensorBoards, shells, commands and generic tasks."""


class Policies(Struct, frozen=True, kw_only=True):
    """What holds for one kind of work in a workspace. Each is ``{invariant_config, constraints}``, or None."""

    workspace: Object | None = None
    global_: Object | None = None
    larger_priority_first: bool
    """Of the resource manager."""

    @property
    def invariants(self) -> list[Object]:
        """Configurations that win over what users write, the strongest last."""
        found = [(policies or {}).get("invariant_config") for policies in (self.workspace, self.global_)]
        return [invariant for invariant in found if invariant]

    @property
    def of_workspace(self) -> list[Object]:
        """The invariants that the administrators of the workspace say, who are users of the cluster, in normal form."""
        return [apply_invariants({}, [own])] if (own := (self.workspace or {}).get("invariant_config")) else []

    def check_launch(self, resources: Mapping[str, Any]) -> None:
        """Raises InvalidRequest when what a workload asks for is more than its constraints allow, or may start in
        other pools than the one that its invariants fix."""
        check_fallback_pools(resources, workspace=self.workspace, global_=self.global_)
        check_constraints(
            resources,
            workspace=(self.workspace or {}).get("constraints"),
            global_=(self.global_ or {}).get("constraints"),
            larger_priority_first=self.larger_priority_first,
        )

    def check_change(self, changed: Mapping[str, Any]) -> None:
        """Raises InvalidRequest when ``changed``, keys of resources with their new values, is not allowed."""
        scopes = {"workspace": self.workspace, "global_": self.global_}
        if "priority" in changed:
            first = self.larger_priority_first
            check_priority_change(changed["priority"], **scopes, larger_priority_first=first)
        if "weight" in changed:
            check_weight_change(changed["weight"], **scopes)
        if "max_slots" in changed:
            check_max_slots_change(changed["max_slots"], **scopes)
        if "resource_pool" in changed:
            check_pool_change(changed["resource_pool"], **scopes)


_POLICIES_IN: Final = PreparedStatement("""
    SELECT workspace_id, invariant_config, constraints FROM config_policies
    WHERE (workspace_id = :workspace_id OR workspace_id IS NULL) AND workload_type = :workload
""")


async def policies_in(
    connection: AsyncConnection, workspace_id: int, workload: Workload, *, larger_priority_first: bool
) -> Policies:
    rows = await _POLICIES_IN.rows(connection, workspace_id=workspace_id, workload=workload)
    by_scope = {row["workspace_id"]: _decoded(row) for row in rows}
    return Policies(
        workspace=by_scope.get(workspace_id),
        global_=by_scope.get(None),
        larger_priority_first=larger_priority_first,
    )


async def stored_policies(connection: AsyncConnection, workspace_id: int | None, workload: Workload) -> Object:
    """The policies of one scope (None is the cluster) as they are shown: ``{}`` when there are none."""
    query = select(config_policies).where(config_policies.c.workload_type == workload, of_scope(workspace_id))
    row = (await connection.execute(query)).one_or_none()
    return {} if row is None else as_written(row)


def of_scope(workspace_id: int | None) -> Any:
    """Condition on ``config_policies``; None is the whole cluster."""
    column = config_policies.c.workspace_id
    return column.is_(None) if workspace_id is None else column == workspace_id


def workload_of(job_type: str) -> Workload:
    return "EXPERIMENT" if job_type == "EXPERIMENT" else "NTSC"


def as_written(row: Any) -> Object:
    parts = {"invariant_config": row.invariant_config, "constraints": row.constraints}
    return {key: value for key, value in parts.items() if value is not None}


def _decoded(row: Mapping[str, Any]) -> Object:
    return {key: row[key] for key in ("invariant_config", "constraints") if row[key] is not None}
