"""Nodes that an administrator has disabled: no plan begins anything there, and tasks are told."""

from __future__ import annotations

from typing import Final

from libs.db.engine import Connection
from libs.db.prepared.statements import PreparedStatement

_NODES: Final = PreparedStatement("SELECT node FROM node_overrides")


async def disabled_nodes(connection: Connection) -> set[str]:
    return {row["node"] for row in await _NODES.rows(connection)}
