"""The role that services have in the databases of tests: what it may not do, no service may need."""

from __future__ import annotations

from typing import Final

from libs.db.services_role.role import ServicesRole

ROLE: Final = ServicesRole(user="resolute_services")
"""The servers of tests trust everybody."""


def as_services(url: str) -> str:
    """The database at ``url``, of a superuser, as services connect to it."""
    return url.replace("://resolute@", f"://{ROLE.user}@")
