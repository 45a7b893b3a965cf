"""Interactive tasks as clients see them: from a row of ``rows.py`` to a message. Pure.

Source: docs/reference/tasks-and-cli.md 2.7 (fields) and 2.10 (states and exit status).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import Row

from libs.cluster.config import ClusterConfig
from libs.events.observations import ObservedPod
from libs.states.allocation import AllocationState
from libs.tasks.environments import AgentLink, owner_of_task
from libs.tasks.interactive.kinds import InteractiveType
from libs.tasks.proxy_tokens import ProxyTokens, TokenHolder
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.queries.cluster.agents import DEVICE_TYPES
from services.api.queries.tasks.allocations import shown_state
from services.api.wire.base import timestamp_ms
from services.api.wire.cluster.agents import Container, ContainerState, Device
from services.api.wire.interactive.commands import Command
from services.api.wire.interactive.common import InteractiveTask
from services.api.wire.interactive.notebooks import Notebook
from services.api.wire.interactive.shells import Shell
from services.api.wire.interactive.tensorboards import Tensorboard

EXITED: Final = "allocation exited successfully"
"""Also of what was killed: that is no error."""
NEVER_STARTED: Final = "task was aborted before the task was started"


def message_of(row: Row[Any], *, cluster: ClusterConfig, tokens: ProxyTokens, rights: UserRights) -> InteractiveTask:
    """The task as the kind of message that its type has.

    What opens it, the key of a shell and the token of a notebook, is for callers who may control the task: whoever gets
    in acts as its owner. The token is that of the caller, so that it ends with the rights of the caller.
    """
    may_enter = rights.may(Action.CONTROL_TASK, workspace_id=row.workspace_id)
    token = tokens.issue(TokenHolder(rights.principal.user_id, row.task_id)) if may_enter else ""
    return _MESSAGES[row.task_type](row, _common(row, cluster), _Entrance(cluster, may_enter=may_enter, token=token))


class _Entrance(NamedTuple):
    """What messages say of the way into a task.

    token  the proxy token of the caller; "" for those who may not enter
    """

    cluster: ClusterConfig
    may_enter: bool
    token: str


def exit_status(row: Row[Any]) -> str:
    """'' while it lives."""
    if row.state != AllocationState.TERMINATED:
        return ""
    if row.exit_error is not None:
        return str(row.exit_error)
    return NEVER_STARTED if row.assigned_at is None else EXITED


def _common(row: Row[Any], cluster: ClusterConfig) -> dict[str, Any]:
    return {
        "id": row.task_id,
        "description": row.description,
        "state": shown_state(row.state),
        "start_time": timestamp_ms(row.task_start),
        "container": _container(row, cluster),
        "display_name": row.display_name,
        "user_id": row.owner_id,
        "username": row.username,
        "resource_pool": row.pool,
        "exit_status": exit_status(row),
        "job_id": row.job_id,
        "workspace_id": row.workspace_id,
    }


def _container(row: Row[Any], cluster: ClusterConfig) -> Container | None:
    """There is one as soon as its pod was seen; slots show it under the same id."""
    if not row.pods:
        return None
    device_type = DEVICE_TYPES[cluster.slot_type]
    return Container(
        id=row.allocation_id,
        # Of the states that containers do not have, all are those of one that runs.
        state=ContainerState.__members__.get(row.state, ContainerState.RUNNING),
        devices=[
            Device(id=int(ident) if ident.isdecimal() else 0, type=device_type)
            for pod in _pods(row)
            for ident in pod.devices
        ],
    )


def _pods(row: Row[Any]) -> tuple[ObservedPod, ...]:
    return msgspec.convert(row.pods, tuple[ObservedPod, ...])


def _command(_row: Row[Any], common: dict[str, Any], _entrance: _Entrance) -> Command:
    return Command(**common)


def _notebook(row: Row[Any], common: dict[str, Any], entrance: _Entrance) -> Notebook:
    query = f"?token={entrance.token}" if entrance.may_enter else ""
    return Notebook(service_address=f"/proxy/{row.task_id}/{query}", **common)


def _tensorboard(row: Row[Any], common: dict[str, Any], _entrance: _Entrance) -> Tensorboard:
    return Tensorboard(
        service_address=f"/proxy/{row.task_id}/",
        experiment_ids=list(row.experiment_ids),
        trial_ids=list(row.trial_ids),
        **common,
    )


def _shell(row: Row[Any], common: dict[str, Any], entrance: _Entrance) -> Shell:
    return Shell(
        private_key=(row.private_key or "") if entrance.may_enter else "",
        public_key=row.public_key or "",
        addresses=[address for pod in _pods(row) for address in _addresses(pod, row.proxy_ports or ())],
        agent_user_group=_agent_user_group(row, entrance.cluster),
        **common,
    )


def _addresses(pod: ObservedPod, ports: Any) -> list[dict[str, Any]]:
    """Where each port is reached: on the gateway, where there is one, else on the pod itself."""
    if pod.proxied:
        return [
            {
                "container_ip": each.container_ip,
                "container_port": each.container_port,
                "host_ip": each.host_ip,
                "host_port": each.host_port,
            }
            for each in pod.proxied
        ]
    return [
        {"container_ip": address, "container_port": port["port"], "host_ip": address, "host_port": port["port"]}
        for address in pod.addresses
        for port in ports
    ]


def _agent_user_group(row: Row[Any], cluster: ClusterConfig) -> dict[str, Any]:
    """Whom its users log in as: the POSIX identity that its container has."""
    owner = owner_of_task(
        row.username,
        default=cluster.security.default_task,
        user=AgentLink(uid=row.user_uid, user=row.user_user, gid=row.user_gid, group=row.user_group),
        workspace=AgentLink(
            uid=row.workspace_uid, user=row.workspace_user, gid=row.workspace_gid, group=row.workspace_group
        ),
    )
    names = {"user": owner.user, "uid": owner.uid, "group": owner.group, "gid": owner.gid}
    return {"id": 0, "user_id": 0, **names}


_Make = Callable[[Row[Any], dict[str, Any], _Entrance], InteractiveTask]
_MESSAGES: Final[Mapping[InteractiveType, _Make]] = {
    "COMMAND": _command,
    "NOTEBOOK": _notebook,
    "TENSORBOARD": _tensorboard,
    "SHELL": _shell,
}
