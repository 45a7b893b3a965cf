"""Needs of a call: which actions it is, on which objects. Data, and the check of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import structlog
from sqlalchemy import select

from libs.db.any_of import any_of
from libs.db.tables.tasks import tasks
from libs.errors import NotFound, PermissionDenied
from libs.ids import canonical_uuid
from services.api.access.rights.actions import MATRIX, Action, Basic
from services.api.access.rights.locations import ObjectKind, places
from services.api.access.rights.permissions import Permission
from services.api.access.rights.rights import UserRights
from services.api.access.rights.tensorboards import sees_all_it_shows
from services.api.access.route_permission import CallToCheck, Ids

log = structlog.get_logger(__name__)


class CallWithRights(CallToCheck, Protocol):
    @property
    def rights(self) -> UserRights: ...


@dataclass(frozen=True, slots=True)
class Need:
    """One action that a call is.

    kind, ids      the objects; without them the action is one on the whole cluster
    of_experiment  the action instead, for those of the objects that belong to an experiment
    when           whether the call is this action at all; None is always
    """

    action: Action
    kind: ObjectKind | None = None
    ids: Ids | None = None
    of_experiment: Action | None = None
    when: Callable[[CallToCheck], bool] | None = None


Needs = tuple[Need, ...]
OPEN: Final[Needs] = ()
"""For everybody who is logged in; or its handler asks ``call.rights``, as all lists do."""


async def check_needs(needs: Needs | None, call: CallWithRights) -> None:
    """Raises NotFound for what the caller may not know of, PermissionDenied for what the caller may not do.

    Under RBAC a call of which nothing is said is for those only who may do everything. Objects that are not there are
    left to the handler, which says so.
    """
    await _check_all(needs, call, call.rights)


async def _check_all(needs: Needs | None, call: CallWithRights, rights: UserRights) -> None:
    grants = rights.grants
    if grants is None:
        _check_administration(needs or OPEN, call, rights)
        return
    if needs is None:
        if not grants.everywhere.issuperset(Permission):
            raise PermissionDenied("access denied; this call is for administrators of the cluster")
        return
    for need in needs:
        if need.when is None or need.when(call):
            await _check(need, call, rights)


def _check_administration(needs: Needs, call: CallWithRights, rights: UserRights) -> None:
    """Under basic authorization: what is for administrators alone. Owners are asked for where their object is read."""
    for need in needs:
        if MATRIX[need.action].basic is Basic.ADMIN and (need.when is None or need.when(call)):
            rights.require(need.action)


async def log_refusal(needs: Needs | None, call: CallWithRights, *, endpoint: str) -> None:
    """Under ``permissive``: say what roles would have refused, and go on."""
    if call.rights.would_be is None:
        return
    try:
        await _check_all(needs, call, call.rights.as_by_roles)
    except (NotFound, PermissionDenied) as refusal:
        log.info("access.would_be_refused", user_id=call.principal.user_id, endpoint=endpoint, required=str(refusal))


async def _check(need: Need, call: CallWithRights, rights: UserRights) -> None:
    if need.kind is None or need.ids is None:
        rights.require(need.action)
        return
    if rights.may_everywhere(need.action, need.of_experiment):
        return
    idents: Iterable[str | int] = dict.fromkeys(map(_spelling(need.kind), need.ids(call)))
    async with call.app.db.read() as connection:
        found = await places(connection, need.kind, list(idents))
        if need.kind in (ObjectKind.TASK, ObjectKind.TENSORBOARD):
            hidden = select(tasks.c.task_id).where(any_of(tasks.c.task_id, idents))
            hidden = hidden.where(~sees_all_it_shows(rights, tasks.c.task_id)).limit(1)
            if (ident := await connection.scalar(hidden)) is not None:
                raise NotFound(need.kind.noun, ident)
    for ident in idents:
        place = found.get(ident)
        if place is None:
            continue
        action = need.of_experiment if need.of_experiment is not None and place.of_experiment else need.action
        rights.require_seen(action, need.kind.noun, ident, workspace_id=place.workspace_id)
        rights.require(action, workspace_id=place.workspace_id)


def _spelling(kind: ObjectKind) -> Callable[[str | int], str | int]:
    """How objects of that kind are looked up: a handler that knows several ways to write an id finds them all."""
    return (lambda ident: canonical_uuid(str(ident))) if kind is ObjectKind.CHECKPOINT else (lambda ident: ident)


def require_in(rights: UserRights, action: Action, noun: str, ident: int, *, workspace_id: int) -> None:
    """For what is made in a project or a workspace that only its configuration names.

    Raises NotFound when the caller may not know of that, PermissionDenied when nothing may be made there.
    """
    rights.require_seen(action, noun, ident, workspace_id=workspace_id)
    rights.require(action, workspace_id=workspace_id)


async def require_sources(call: CallWithRights, searcher: Mapping[str, Any]) -> None:
    """What training begins with has to be the caller's to read. Raises NotFound, PermissionDenied."""
    trial_id, uuid = searcher.get("source_trial_id"), searcher.get("source_checkpoint_uuid")
    view = Action.VIEW_ARTIFACTS
    needs = [Need(view, ObjectKind.TRIAL, lambda _: (int(trial_id),))] if trial_id is not None else []
    if uuid is not None:
        needs.append(Need(view, ObjectKind.CHECKPOINT, lambda _: (str(uuid),)))
    await check_needs(tuple(needs), call)
