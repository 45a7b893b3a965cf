"""Whose shares of a pool its allocations count to: paths that the planner divides the pool by (``share_by``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from libs.cluster.config import ShareKind
from libs.db.engine import Connection
from libs.db.prepared.statements import PreparedStatement

# The groups that stand for one user are nobody's team.
_GROUPS: Final = PreparedStatement("""
    SELECT DISTINCT ON (m.user_id) m.user_id, m.group_id
    FROM group_members m JOIN groups g ON g.id = m.group_id
    WHERE m.user_id = ANY(:users) AND g.user_id IS NULL
    ORDER BY m.user_id, natural_sort_key(g.name COLLATE "C"), g.id
""")

Row = Mapping[Any, Any]


class Shares(Struct, frozen=True):
    """How a pool is divided. A row has ``owner_id``, ``workspace_id``, ``job_id`` and ``weight``."""

    share_by: Sequence[ShareKind] = ()
    """The outermost first."""
    groups: Mapping[int, int] = {}
    """The group that each user counts to."""

    def path_of(self, row: Row) -> str:
        """The shares that an allocation counts to: those of ``share_by``, and within them that of its job."""
        return "/".join((*(self._part(kind, row) for kind in self.share_by), row["job_id"]))

    def weights_of(self, rows: Iterable[Row]) -> dict[str, float]:
        """Weights of jobs, by their paths; users, groups and workspaces all weigh the same."""
        return {self.path_of(row): row["weight"] for row in rows if row["weight"] is not None}

    def _part(self, kind: ShareKind, row: Row) -> str:
        if kind == "workspace":
            return f"workspace {row['workspace_id']}"
        owner = row["owner_id"]
        if kind == "group" and owner in self.groups:
            return f"group {self.groups[owner]}"
        return f"user {owner}"  # who is in no group has a share beside those of the groups


async def load_shares(connection: Connection, share_by: Sequence[ShareKind], rows: Sequence[Row]) -> Shares:
    """What is needed to divide a pool among those that have ``rows`` in it."""
    if "group" not in share_by:
        return Shares(share_by)
    users = sorted({row["owner_id"] for row in rows if row["owner_id"] is not None})
    found = await _GROUPS.rows(connection, users=users)
    return Shares(share_by, {row["user_id"]: row["group_id"] for row in found})
