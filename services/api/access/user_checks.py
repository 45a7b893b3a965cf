"""Checks what a user may do under basic authorization: everybody may work, administrators may also administer.

Under RBAC they let everything pass: then the rows of ``rights/call_table.py`` were checked before the handler.
"""

from __future__ import annotations

from collections.abc import Container

from libs.errors import PermissionDenied
from services.api.access.principal import Principal


def require_admin(principal: Principal, what: str = "perform this action") -> None:
    """Raises PermissionDenied unless the caller is an administrator."""
    if not (principal.admin or principal.by_roles):
        raise PermissionDenied(f"only admin privileged users can {what}")


def require_self_or_admin(principal: Principal, user_id: int, what: str) -> None:
    """Raises PermissionDenied unless the caller is that user or an administrator."""
    if principal.user_id != user_id and not (principal.admin or principal.by_roles):
        raise PermissionDenied(f"only admin privileged users can {what}")


def require_owner_or_admin(principal: Principal, owner_id: int, what: str) -> None:
    """Raises PermissionDenied unless the caller owns the object or is an administrator."""
    if principal.user_id != owner_id and not (principal.admin or principal.by_roles):
        raise PermissionDenied(f"only its owner or an administrator can {what}")


def require_one_of_owners_or_admin(principal: Principal, owner_ids: Container[int], otherwise: str) -> None:
    """Raises PermissionDenied, with the text ``otherwise``, unless the caller is one of them or an administrator."""
    if principal.user_id not in owner_ids and not (principal.admin or principal.by_roles):
        raise PermissionDenied(otherwise)
