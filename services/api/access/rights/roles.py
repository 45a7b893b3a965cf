"""Roles: which permissions each of them has. There are these and no others, so they are no rows of the database. Data.

Source: docs/reference/platform.md 5.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from services.api.access.rights.permissions import BY_NUMBER, Permission


@dataclass(frozen=True, slots=True)
class Role:
    id: int
    name: str
    permissions: frozenset[Permission]

    @property
    def is_local(self) -> bool:
        """May be given in one workspace: none of its permissions is about the whole cluster."""
        return not any(permission.is_global for permission in self.permissions)


def _numbered(*numbers: int | range) -> frozenset[Permission]:
    flat = (n for part in numbers for n in ((part,) if isinstance(part, int) else part))
    return frozenset(BY_NUMBER[number] for number in flat)


_EDITOR: Final = _numbered(
    range(2001, 2007),
    range(3001, 3004),
    4002,
    range(5001, 5004),
    range(7001, 7006),
    range(9001, 9005),
    11003,
    11006,
    11007,
    97001,
    97002,
)

ROLES: Final[Mapping[int, Role]] = {
    role.id: role
    for role in (
        Role(1, "ClusterAdmin", frozenset(Permission)),
        Role(
            2,
            "WorkspaceAdmin",
            _numbered(
                range(2001, 2007),
                range(3001, 3004),
                range(4002, 4005),
                4006,
                4007,
                range(5001, 5005),
                6002,
                range(7001, 7008),
                range(9001, 9005),
                11003,
                range(11005, 11008),
                97001,
                97002,
            ),
        ),
        Role(3, "WorkspaceCreator", _numbered(94001, 11006, 11007)),
        Role(4, "Viewer", _numbered(2002, 2003, 3002, 4002, 5002, 7001, 9001, 11003, 11006, 11007, 97002)),
        Role(5, "Editor", _EDITOR),
        Role(6, "ModelRegistryViewer", _numbered(7001, 11006, 11007)),
        Role(7, "EditorRestricted", _EDITOR - _numbered(3001, 3003)),
        Role(
            8,
            "GenAIUser",
            _numbered(
                range(2001, 2007),
                range(3001, 3004),
                94001,
                4002,
                range(5001, 5005),
                range(7001, 7006),
                range(9001, 9005),
                11003,
                11006,
                11007,
            ),
        ),
        Role(9, "EditorProjectRestricted", _EDITOR - _numbered(5001, 5003)),
        Role(10, "TokenCreator", _numbered(12002, 12003, 12006)),
    )
}
"""Id -> role."""

CLUSTER_ADMIN: Final = 1
"""What the first administrator of an installation is given."""


def roles_with(permissions: Iterable[Permission]) -> frozenset[int]:
    """Ids of the roles that have all of these permissions."""
    wanted = frozenset(permissions)
    return frozenset(role.id for role in ROLES.values() if wanted <= role.permissions)
