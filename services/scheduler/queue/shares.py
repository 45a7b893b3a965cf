"""Whose shares of a pool its allocations count to: paths that the planner divides the pool by (``share_by``), and what
each share weighs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from libs.cluster.config import ShareKind
from libs.db.engine import Connection
from libs.db.prepared.statements import PreparedStatement
from libs.slot_hours.decayed_use import Holder
from libs.slot_hours.share_paths import part, used_by_share
from libs.slot_hours.teams import teams_of

_WEIGHTS: Final = PreparedStatement("SELECT scope, subject_id, weight FROM share_weights")

Row = Mapping[Any, Any]
NOTHING_USED: Final[Mapping[Holder, float]] = {}


class Shares(Struct, frozen=True):
    """How a pool is divided. A row has ``owner_id``, ``workspace_id``, ``job_id`` and ``weight``."""

    share_by: Sequence[ShareKind] = ()
    """The outermost first."""
    groups: Mapping[int, int] = {}
    """The group that each user counts to."""
    weights: Mapping[str, float] = {}
    """Of users, groups and workspaces that have one, by the parts of paths that name them."""
    past_use: Mapping[str, float] = {}
    """Slots that shares have used on average, by their paths."""

    def path_of(self, row: Row) -> str:
        """The shares that an allocation counts to: those of ``share_by``, and within them that of its job."""
        return "/".join((*self._parts(row), row["job_id"]))

    def weights_of(self, rows: Iterable[Row]) -> dict[str, float]:
        """Weights of the shares that ``rows`` count to, by their paths; those that are left out weigh 1."""
        found: dict[str, float] = {}
        owned: set[str] = set()
        for row in rows:
            path = self.path_of(row)
            if row["weight"] is not None:
                found[path] = row["weight"]
            if self.weights:
                owned.add(path.rpartition("/")[0])
        for path in owned:
            found |= self._weights_within(path)
        return found

    def _parts(self, row: Row) -> list[str]:
        return [part(kind, row["owner_id"], row["workspace_id"], self.groups) for kind in self.share_by]

    def _weights_within(self, path: str) -> dict[str, float]:
        """Of the shares that a path leads through."""
        parts = path.split("/")
        return {
            "/".join(parts[: depth + 1]): self.weights[one] for depth, one in enumerate(parts) if one in self.weights
        }


async def load_shares(
    connection: Connection,
    share_by: Sequence[ShareKind],
    rows: Sequence[Row],
    *,
    weighted: bool,
    used: Mapping[Holder, float] = NOTHING_USED,
) -> Shares:
    """What is needed to divide a pool among those that have ``rows`` in it.

    weighted  users, groups or workspaces have weights, and the pool goes by them
    used      slots that owners have used in workspaces, where that is remembered
    """
    groups: dict[int, int] = {}
    weights: dict[str, float] = {}
    if "group" in share_by:
        owners = {row["owner_id"] for row in rows if row["owner_id"] is not None}
        groups = await teams_of(connection, owners | {owner for owner, _ in used})
    if weighted and share_by:
        found = await _WEIGHTS.rows(connection)
        weights = {f"{row['scope']} {row['subject_id']}": row["weight"] for row in found}
    return Shares(share_by, groups, weights, used_by_share(used, share_by, groups))
