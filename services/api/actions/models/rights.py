"""Rights over what is in the model registry (docs/reference/platform.md 6): everybody may work with it, and delete
what is their own."""

from __future__ import annotations

from collections.abc import Iterable

from services.api.access.principal import Principal
from services.api.access.user_checks import require_one_of_owners_or_admin


def check_may_delete(principal: Principal, owner_ids: Iterable[int | None]) -> None:
    """Raises PermissionDenied unless the caller is one of the owners, or an administrator."""
    owners = [owner for owner in owner_ids if owner is not None]
    require_one_of_owners_or_admin(principal, owners, "non-admin users may not delete other users' models")
