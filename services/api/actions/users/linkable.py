"""Refuses to link users with accounts whose tasks could not start anywhere.

Whoever links a user hears of it at once, instead of from the first task that fails.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UnsetType

from libs.errors import FailedPrecondition
from libs.events.capacity import PoolCapacity
from services.api.wire.users.users import AgentUserGroup


def check_linkable(group: AgentUserGroup | UnsetType, pools: Sequence[PoolCapacity]) -> None:
    """Raises FailedPrecondition when no pool could run tasks of the account; nothing is refused while none is known.

    Root may execute everything, and is never refused.
    """
    if isinstance(group, UnsetType) or not isinstance(group.agent_uid, int) or group.agent_uid == 0:
        return
    if pools and all(pool.linked_users_blocked_by for pool in pools):
        raise FailedPrecondition(
            f"agentUserGroup: tasks of linked users cannot start, because {pools[0].linked_users_blocked_by}; install "
            "Python where everybody may execute it, run Resolute with it, name it for tasks with 'resolute up --python'"
            ", and link again"
        )
