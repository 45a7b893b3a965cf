"""Who may use a service: the one place that decides it, for new connections as for those that are open.

Every user may use the tasks of all others (docs/reference/tasks-and-cli.md 2.13); under RBAC those whose workspace
they may see tasks or, of trials, the artifacts of experiments in; and of a TensorBoard all that it shows. A task that
has a narrow token may use its own services only.
"""

from __future__ import annotations

from sqlalchemy import select

from libs.cluster.config import AuthzConfig
from libs.db.engine import Database
from libs.db.tables.tasks import tasks
from services.api.access.principal import Principal
from services.api.access.rights.actions import Action
from services.api.access.rights.loading import rights_of
from services.api.access.rights.locations import ObjectKind, places
from services.api.access.rights.tensorboards import sees_all_it_shows
from services.api.proxy.services import ProxiedService


async def may_use(db: Database, authz: AuthzConfig, principal: Principal, service: ProxiedService) -> bool:
    """Whether the user, or the task on their behalf, may use the service now."""
    if not principal.is_narrow:
        return not authz.by_roles or await _sees(db, authz, principal, service.task_id)
    return principal.task is not None and principal.task.task_id == service.task_id


async def _sees(db: Database, authz: AuthzConfig, principal: Principal, task_id: str) -> bool:
    rights = await rights_of(db, authz, principal)
    async with db.read() as connection:
        place = (await places(connection, ObjectKind.TASK, [task_id])).get(task_id)
        shown = select(tasks.c.task_id).where(tasks.c.task_id == task_id, sees_all_it_shows(rights, tasks.c.task_id))
        if place is None or await connection.scalar(shown) is None:
            return False
    action = Action.VIEW_ARTIFACTS if place.of_experiment else Action.VIEW_TASK
    return rights.may(action, workspace_id=place.workspace_id)
