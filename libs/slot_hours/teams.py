"""The group that each user counts to where groups share something: of several the first by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from libs.db.engine import Connection
from libs.db.prepared.statements import PreparedStatement

# The groups that stand for one user are nobody's team.
_GROUPS: Final = PreparedStatement("""
    SELECT DISTINCT ON (m.user_id) m.user_id, m.group_id
    FROM group_members m JOIN groups g ON g.id = m.group_id
    WHERE m.user_id = ANY(:users) AND g.user_id IS NULL
    ORDER BY m.user_id, natural_sort_key(g.name COLLATE "C"), g.id
""")


async def teams_of(connection: Connection, users: Iterable[int]) -> dict[int, int]:
    """Groups by user; those in none are left out."""
    return {row["user_id"]: row["group_id"] for row in await _GROUPS.rows(connection, users=sorted(set(users)))}
