"""Checks that a caller may make a call: one place for every route of access/permission_table.py.

A person or a token that acts for one may reach whatever the handler lets its user reach. A narrow token of a task
reaches what is the task's own. Nearly all of that is known with the token, so that reports of training code cost
nothing more; only the owners of checkpoints are looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Final

from sqlalchemy import select

from libs.db.any_of import any_of
from libs.db.engine import Database
from libs.db.tables.checkpoints import checkpoints
from libs.errors import PermissionDenied
from libs.ids import canonical_uuid
from services.api.access.principal import CallingTask, Principal
from services.api.access.route_permission import CallerKind, CallToCheck, ResourceKind, RoutePermission


def check_caller(permission: RoutePermission, principal: Principal) -> None:
    """Raises PermissionDenied for a token of a kind that the call does not take, whatever the request says."""
    if principal.task is None:
        return
    if permission.callers is CallerKind.PERSONS:
        raise PermissionDenied("not with the token of a task: log in to do this")
    if principal.is_narrow and permission.own is None:
        raise PermissionDenied("the token of a task may not do this")


async def check_own(permission: RoutePermission, call: CallToCheck) -> None:
    """Raises PermissionDenied when a narrow token is used for something that is not its task's own.

    Checkpoints that nobody has are left to the handler, which says that they do not exist.
    """
    principal = call.principal
    task = principal.task
    if task is None or not principal.is_narrow:
        return
    for own in permission.own or ():
        ids = own.ids(call)
        if (known := _OWN.get(own.kind)) is not None:
            the_one = known(task)
            mine = the_one is not None and all(ident == the_one for ident in ids)
        else:
            mine = await _are_own_checkpoints(call.app.db, own.kind, task, [str(ident) for ident in ids])
        if not mine:
            raise PermissionDenied(f"the token of a task may do this with its own {own.kind.value} only")


_OWN: Final[Mapping[ResourceKind, Callable[[CallingTask], str | int | None]]] = {
    ResourceKind.ALLOCATION: attrgetter("allocation_id"),
    ResourceKind.TASK: attrgetter("task_id"),
    ResourceKind.TRIAL: attrgetter("trial_id"),
    ResourceKind.EXPERIMENT: attrgetter("experiment_id"),
}
"""What a task has one of; it is known with its token."""


async def _are_own_checkpoints(db: Database, kind: ResourceKind, task: CallingTask, uuids: Iterable[str]) -> bool:
    wanted = {spelling for uuid in uuids for spelling in (uuid, canonical_uuid(uuid))}
    query = select(checkpoints.c.uuid, checkpoints.c.trial_id, checkpoints.c.experiment_id)
    async with db.read() as connection:
        rows = (await connection.execute(query.where(any_of(checkpoints.c.uuid, wanted)))).all()
    return all(
        is_own_checkpoint(kind, task, uuid=row.uuid, trial_id=row.trial_id, experiment_id=row.experiment_id)
        for row in rows
    )


def is_own_checkpoint(
    kind: ResourceKind, task: CallingTask, *, uuid: str, trial_id: int | None, experiment_id: int | None
) -> bool:
    """May the task write this checkpoint or, for a READABLE_CHECKPOINT, read it?"""
    of_experiment = experiment_id is not None and experiment_id == task.experiment_id
    if kind is ResourceKind.CHECKPOINT:
        return of_experiment if task.trial_id is None else trial_id == task.trial_id
    of_source = trial_id is not None and trial_id == task.source_trial_id
    return of_experiment or of_source or uuid in task.source_checkpoints
