"""The POSIX identity that tasks run as, of a user or of a workspace: columns of either row."""

from __future__ import annotations

from services.api.wire.users.users import AgentUserGroup


def posix_columns(group: AgentUserGroup) -> dict[str, int | str | None]:
    """Every column of the identity; None where nothing was given, or an empty text."""
    given = {
        "agent_uid": group.agent_uid,
        "agent_user": group.agent_user,
        "agent_gid": group.agent_gid,
        "agent_group": group.agent_group,
    }
    return {column: value if isinstance(value, int | str) and value != "" else None for column, value in given.items()}
