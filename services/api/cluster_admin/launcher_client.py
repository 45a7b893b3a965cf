"""The client of the launchers for questions about their clusters, where the api itself holds no rights.

Every request is idempotent. A launcher that is away makes the answer Unavailable, which clients read as "try
again"; what a launcher refuses reaches the user in its words.
"""

from __future__ import annotations

from typing import Final, Literal, TypeVar

import msgspec
from msgspec import Struct

from libs.bus import Bus
from libs.errors import InvalidRequest, NotFound, Unavailable
from libs.events import cluster_admin, subjects
from libs.events.cluster_admin import ClusterNamespaceRequest, Done, NodeMarkRequest, Quota, SlotQuotaRequest
from services.api.cluster_admin.namespace_requests import not_found

ASK_TIMEOUT_S: Final = 15.0
"""Clients wait longer than this for any reply."""

Answer = TypeVar("Answer", Done, Quota)


async def require_namespace(bus: Bus, pool: str, namespace: str) -> None:
    """Raises InvalidRequest when the cluster of ``pool`` has no such namespace."""
    try:
        await _ask(bus, pool, cluster_admin.FIND_NAMESPACE, ClusterNamespaceRequest(namespace=namespace), Done)
    except NotFound as error:
        raise InvalidRequest(f"{not_found(namespace)}: {error}") from error


async def create_namespace(bus: Bus, pool: str, namespace: str) -> None:
    """Make it, if it is not there."""
    await _ask(bus, pool, cluster_admin.CREATE_NAMESPACE, ClusterNamespaceRequest(namespace=namespace), Done)


async def delete_namespace(bus: Bus, pool: str, namespace: str) -> None:
    """Delete it, if it is there. Raises FailedPrecondition for one that was not made for a workspace."""
    await _ask(bus, pool, cluster_admin.DELETE_NAMESPACE, ClusterNamespaceRequest(namespace=namespace), Done)


async def set_quota(bus: Bus, pool: str, namespace: str, slots: int) -> None:
    """Raises FailedPrecondition where the launcher may not, or a smaller quota makes it pointless."""
    await _ask(bus, pool, cluster_admin.SET_QUOTA, SlotQuotaRequest(namespace=namespace, slots=slots), Done)


async def get_quota(bus: Bus, pool: str, namespace: str) -> float | None:
    """The smallest limit on slots in the namespace; None when nothing limits them."""
    return (await _ask(bus, pool, cluster_admin.GET_QUOTA, ClusterNamespaceRequest(namespace=namespace), Quota)).slots


async def mark_node(bus: Bus, pool: str, node: str, mark: Literal["no-execute", "no-schedule", ""]) -> None:
    """Raises NotFound, and PermissionDenied when the launcher has no right to change nodes."""
    await _ask(bus, pool, cluster_admin.MARK_NODE, NodeMarkRequest(node=node, mark=mark), Done)


async def _ask(bus: Bus, pool: str, verb: str, question: Struct, answer: type[Answer]) -> Answer:
    subject = subjects.launcher_rpc(pool, verb)
    try:
        reply = await bus.request(subject, msgspec.json.encode(question), timeout_s=ASK_TIMEOUT_S)
    except Unavailable as error:
        raise Unavailable(f"the launcher of resource pool {pool} cannot do this now, try again: {error}") from error
    return msgspec.json.decode(reply, type=answer)
