"""Environment of one task, from its configuration: the software it runs in, and who it runs as. Pure.

Source: docs/reference/experiments.md 1.3; docs/reference/harness-protocol.md 5.1; docs/reference/platform.md 5
(effective POSIX identity).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from libs.cluster.config import AgentIdentity, TaskContainerDefaults
from libs.events.orders import BindMount, Environment, Owner, ProxyPort


def environment_of(section: Mapping[str, Any], slot_type: str) -> Environment:
    """The part of a stored ``environment`` section that holds for ``slot_type``: cpu, cuda or rocm."""
    registry_auth = {key: value for key, value in (section.get("registry_auth") or {}).items() if value is not None}
    return Environment(
        image=section["image"][slot_type],
        variables=tuple(section["environment_variables"].get(slot_type, ())),
        force_pull_image=bool(section.get("force_pull_image")),
        registry_auth=registry_auth or None,
        pod_spec=section.get("pod_spec") or None,
        add_capabilities=tuple(section.get("add_capabilities") or ()),
        drop_capabilities=tuple(section.get("drop_capabilities") or ()),
        ports=tuple((section.get("ports") or {}).values()),
    )


def bind_mounts_of(config: Mapping[str, Any]) -> tuple[BindMount, ...]:
    return tuple(msgspec.convert(mount, BindMount) for mount in config.get("bind_mounts") or ())


def proxy_ports_of(section: Mapping[str, Any], task: str) -> tuple[ProxyPort, ...]:
    """Ports of a task that the proxy reaches, by its ``environment`` section, each under ``<task>:<port>``
    (docs/reference/harness-protocol.md 8.3)."""
    return tuple(
        ProxyPort(
            service_id=task if port.get("default_service_id") else f"{task}:{port['proxy_port']}",
            port=port["proxy_port"],
            proxy_tcp=bool(port.get("proxy_tcp")),
            unauthenticated=bool(port.get("unauthenticated")),
        )
        for port in section.get("proxy_ports") or ()
    )


def shared_fs_path(storage: Mapping[str, Any] | None) -> str | None:
    """The host directory of a shared_fs storage."""
    return storage["host_path"] if storage and storage.get("type") == "shared_fs" else None


def network_variables(defaults: TaskContainerDefaults) -> tuple[tuple[str, str], ...]:
    """Variables by which distributed training finds its network (docs/reference/harness-protocol.md 4.1)."""
    named = {
        "GLOO_PORT_RANGE": defaults.gloo_port_range,
        "NCCL_PORT_RANGE": defaults.nccl_port_range,
        "DET_INTER_NODE_NETWORK_INTERFACE": defaults.dtrain_network_interface,
    }
    return tuple((name, value) for name, value in named.items() if value)


class AgentLink(Struct, frozen=True, kw_only=True):
    """POSIX identity of a user or workspace; None where it says nothing."""

    uid: int | None = None
    user: str | None = None
    gid: int | None = None
    group: str | None = None


def owner_of_task(username: str, *, default: AgentIdentity, user: AgentLink, workspace: AgentLink) -> Owner:
    """The user's link counts as a whole, the workspace's overrides it pair by pair (uid and user, gid and group)."""
    uid, name, gid, group = default.uid, default.user, default.gid, default.group
    if user.uid is not None:
        uid, name, gid, group = user.uid, user.user or name, user.gid or 0, user.group or group
    if workspace.uid is not None:
        uid, name = workspace.uid, workspace.user or name
    if workspace.gid is not None:
        gid, group = workspace.gid, workspace.group or group
    return Owner(username=username, uid=uid, user=name, gid=gid, group=group)
