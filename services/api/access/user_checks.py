"""Checks who owns what, under basic authorization, where only a handler knows the owners.

Under RBAC they let everything pass: then the rows of ``rights/call_table.py`` were checked before the handler.
"""

from __future__ import annotations

from collections.abc import Container

from libs.errors import PermissionDenied
from services.api.access.principal import Principal


def require_one_of_owners_or_admin(principal: Principal, owner_ids: Container[int], otherwise: str) -> None:
    """Raises PermissionDenied, with the text ``otherwise``, unless the caller is one of them or an administrator."""
    if principal.user_id not in owner_ids and not (principal.admin or principal.by_roles):
        raise PermissionDenied(otherwise)
