"""What restricts plans beside capacity, and whether anybody has a weight, found with one statement: most clusters have
none of it, and then nothing else is read."""

from __future__ import annotations

from collections.abc import Set
from datetime import datetime
from typing import Final

from msgspec import Struct

from libs.db.engine import Connection
from libs.db.prepared.statements import PreparedStatement

_RESTRICTIONS: Final = PreparedStatement("""
    SELECT ARRAY(SELECT node FROM node_overrides) AS disabled_nodes,
           EXISTS (SELECT FROM resource_limits WHERE pool IN ('', :pool)) AS has_limits,
           EXISTS (SELECT FROM share_weights) AS has_weights,
           EXISTS (SELECT FROM maintenance_windows WHERE ends_at > :now::timestamptz) AS has_maintenance
""")


class Restrictions(Struct, frozen=True):
    disabled_nodes: Set[str]
    """That an administrator has disabled."""
    has_limits: bool
    """Of users, groups or workspaces, in this pool or in all."""
    has_weights: bool
    """Of users, groups or workspaces, where they share a pool."""
    has_maintenance: bool
    """That is announced or under way, anywhere."""


async def restrictions_of(connection: Connection, pool: str, now: datetime) -> Restrictions:
    """Those that concern the plans of ``pool``."""
    [row] = await _RESTRICTIONS.rows(connection, pool=pool, now=now)
    return Restrictions(
        disabled_nodes=frozenset(row["disabled_nodes"]),
        has_limits=row["has_limits"],
        has_weights=row["has_weights"],
        has_maintenance=row["has_maintenance"],
    )
