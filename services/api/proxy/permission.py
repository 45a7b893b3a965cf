"""Who may use a service: the one place that decides it, for new connections as for those that are open.

Every user may use the tasks of all others (docs/reference/tasks-and-cli.md 2.13); under RBAC those whose workspace
they may see tasks or, of trials, the artifacts of experiments in; and of a TensorBoard all that it shows. The server of
a notebook runs code as its owner: it is for those who may control the task. A task that has a narrow token may use its
own services only.
"""

from __future__ import annotations

from sqlalchemy import select

from libs.cluster.config import AuthzConfig
from libs.db.engine import Database
from libs.db.tables.tasks import tasks
from libs.errors import NotFound
from services.api.access.principal import Principal
from services.api.access.rights.actions import Action
from services.api.access.rights.loading import rights_of
from services.api.access.rights.locations import ObjectKind, places
from services.api.access.rights.rights import UserRights
from services.api.access.rights.tensorboards import sees_all_it_shows
from services.api.proxy.services import ProxiedService


async def check_use(db: Database, authz: AuthzConfig, principal: Principal, service: ProxiedService) -> None:
    """Return when the user, or the task on their behalf, may use the service now.

    Raises NotFound for who may not know of it, PermissionDenied for who may see it and no more.
    """
    if principal.is_narrow:
        if principal.task is None or principal.task.task_id != service.task_id:
            raise NotFound("service", service.task_id)
    elif authz.by_roles:
        rights = await rights_of(db, authz, principal)
        if not await _sees(db, rights, service.task_id):
            raise NotFound("service", service.task_id)
        if service.is_notebook:
            rights.require(Action.CONTROL_TASK, workspace_id=service.workspace_id)


async def _sees(db: Database, rights: UserRights, task_id: str) -> bool:
    async with db.read() as connection:
        place = (await places(connection, ObjectKind.TASK, [task_id])).get(task_id)
        shown = select(tasks.c.task_id).where(tasks.c.task_id == task_id, sees_all_it_shows(rights, tasks.c.task_id))
        if place is None or await connection.scalar(shown) is None:
            return False
    action = Action.VIEW_ARTIFACTS if place.of_experiment else Action.VIEW_TASK
    return rights.may(action, workspace_id=place.workspace_id)
