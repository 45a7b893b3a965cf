"""What shares have used of pools that remember it, and what they would get of them now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.capacity import CapacityView
from libs.cluster.config import ClusterConfig
from libs.db.any_of import any_of
from libs.db.tables.cluster import share_weights
from libs.db.tables.users import group_members, groups, users
from libs.db.tables.workspaces import workspaces
from libs.slot_hours.decayed_use import UseOfPools
from libs.slot_hours.share_paths import effective_slots, used_by_share
from libs.slot_hours.teams import teams_of
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.queries.cluster.agents import is_available, load_overrides
from services.api.wire.cluster.holders import HolderScope
from services.api.wire.cluster.shares import GetSharesQuery, SharePart, UsedShare

_NEGLIGIBLE: Final = 0.0005
"""Slots that are shown as none."""


async def list_used(
    connection: AsyncConnection,
    wanted: GetSharesQuery,
    *,
    cluster: ClusterConfig,
    capacity: CapacityView,
    use: UseOfPools,
    rights: UserRights,
    now: datetime,
) -> list[UsedShare]:
    """By pool, in each by the names along the paths; of administrators all, of others what concerns them.

    use  remembers what was used, from request to request
    """
    past: dict[str, Mapping[str, float]] = {}
    for pool in cluster.resource_pools:
        scheduler = cluster.scheduler_of(pool)
        if scheduler.half_life_s is not None:
            used = await use.of(pool.pool_name, scheduler.half_life_s).read(connection, now)
            teams = await teams_of(connection, {owner for owner, _ in used}) if "group" in scheduler.share_by else {}
            past[pool.pool_name] = used_by_share(used, scheduler.share_by, teams)
    if not any(past.values()):
        return []
    names = await _names(connection, {part for paths in past.values() for path in paths for part in path.split("/")})
    rows = await connection.execute(select(share_weights.c.scope, share_weights.c.subject_id, share_weights.c.weight))
    weights = {f"{row.scope} {row.subject_id}": row.weight for row in rows}
    visible, overrides = await _visible(connection, rights), await load_overrides(connection)
    found: list[UsedShare] = []
    for name, paths in past.items():
        seen = capacity.of(name)
        slots = sum(node.slots for node in (seen.nodes if seen else ()) if is_available(node, overrides))
        gets = effective_slots(paths, weights, slots)
        for path, used_slots in paths.items():
            last, parts = path.rpartition("/")[2], _parts(path, names)
            concerns = visible is None or last in visible
            if not (parts and concerns and used_slots >= _NEGLIGIBLE and wanted.scope in (None, parts[-1].scope)):
                continue
            found.append(
                UsedShare(
                    resource_pool=name,
                    share=parts,
                    weight=weights.get(last, 1.0),
                    used_slots=round(used_slots, 3),
                    effective_slots=round(gets[path], 3),
                )
            )
    return sorted(found, key=lambda one: (one.resource_pool, [(part.scope, part.name) for part in one.share]))


async def _names(connection: AsyncConnection, parts: Iterable[str]) -> Mapping[str, str]:
    """Of users, groups and workspaces, by the parts of paths that name them."""
    ids: dict[str, list[int]] = {scope.value: [] for scope in HolderScope}
    for part in sorted(parts):
        scope, _, ident = part.partition(" ")
        ids[scope].append(int(ident))
    named = {
        HolderScope.USER: (users.c.id, users.c.username),
        HolderScope.GROUP: (groups.c.id, groups.c.name),
        HolderScope.WORKSPACE: (workspaces.c.id, workspaces.c.name),
    }
    return {
        f"{scope.value} {ident}": name
        for scope, (key, column) in named.items()
        for ident, name in await connection.execute(select(key, column).where(any_of(key, ids[scope.value])))
    }


async def _visible(connection: AsyncConnection, rights: UserRights) -> set[str] | None:
    """The last parts of the paths that concern the caller; None: all."""
    if rights.may(Action.SET_SHARES):
        return None
    user_id = rights.principal.user_id
    mine = await connection.scalars(select(group_members.c.group_id).where(group_members.c.user_id == user_id))
    seen = await connection.scalars(select(workspaces.c.id).where(rights.where(Action.VIEW_WORKSPACE, workspaces.c.id)))
    return {f"user {user_id}", *(f"group {each}" for each in mine), *(f"workspace {each}" for each in seen)}


def _parts(path: str, names: Mapping[str, str]) -> list[SharePart]:
    """None of one that leads through somebody who has been deleted."""
    parts: Iterable[str] = path.split("/")
    known = [(part.partition(" ")[0], names.get(part)) for part in parts]
    if any(name is None for _, name in known):
        return []
    return [SharePart(scope=HolderScope(scope), name=name or "") for scope, name in known]
