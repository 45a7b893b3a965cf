"""Who may use a service: the one place that decides it, for new connections as for those that are open.

Every user may use the tasks of all others (docs/reference/tasks-and-cli.md 2.13, without RBAC). A task that has a
narrow token may use its own services only.
"""

from __future__ import annotations

from services.api.access.principal import Principal
from services.api.proxy.services import ProxiedService


async def may_use(principal: Principal, service: ProxiedService) -> bool:
    """Whether the user, or the task on their behalf, may use the service now."""
    if not principal.is_narrow:
        return True
    return principal.task is not None and principal.task.task_id == service.task_id
