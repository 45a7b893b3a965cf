"""Serves requests about the cluster: namespaces, their quotas, marks on nodes (``libs/events/cluster_admin.py``)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, Literal, Protocol

from msgspec import Struct

from libs.errors import FailedPrecondition
from libs.events import cluster_admin
from libs.events.cluster_admin import ClusterNamespaceRequest, Done, NodeMarkRequest, Quota, SlotQuotaRequest
from services.launcher.rpc import Verbs

Mark = Literal["no-execute", "no-schedule", ""]


class ClusterAdmin(Protocol):
    """Namespaces and nodes of a cluster. Everything may be asked again; all raise ``libs/errors.py`` only."""

    async def find_namespace(self, name: str) -> None:
        """Raises NotFound, and PermissionDenied where tasks could not be run."""
        ...

    async def create_namespace(self, name: str) -> None:
        """Returns also when it existed."""
        ...

    async def delete_namespace(self, name: str) -> None:
        """Returns also when it did not exist. Raises FailedPrecondition for one that was not made for a workspace."""
        ...

    async def quota_of(self, namespace: str) -> float | None:
        """The smallest limit on slots; None where there is none."""
        ...

    async def limit(self, namespace: str, slots: int) -> None:
        """Raises FailedPrecondition where that is not ours to say, or where another limit is smaller."""
        ...

    async def mark_node(self, node: str, mark: Mark) -> None: ...


class NoClusterAdmin:
    """For backends without a cluster."""

    def __init__(self, pool: str) -> None:
        self._refusal = f"resource pool {pool} does not run on Kubernetes"

    async def find_namespace(self, name: str) -> None:
        raise FailedPrecondition(self._refusal)

    async def create_namespace(self, name: str) -> None:
        raise FailedPrecondition(self._refusal)

    async def delete_namespace(self, name: str) -> None:
        raise FailedPrecondition(self._refusal)

    async def quota_of(self, namespace: str) -> float | None:
        raise FailedPrecondition(self._refusal)

    async def limit(self, namespace: str, slots: int) -> None:
        raise FailedPrecondition(self._refusal)

    async def mark_node(self, node: str, mark: Mark) -> None:
        raise FailedPrecondition(self._refusal)


def verbs_of(admin: ClusterAdmin) -> Verbs:
    """What a launcher with this administration can be asked about its cluster."""
    return {verb: (kind, partial(do, admin)) for verb, (kind, do) in _VERBS.items()}


async def _find(admin: ClusterAdmin, asked: ClusterNamespaceRequest) -> Done:
    await admin.find_namespace(asked.namespace)
    return Done()


async def _create(admin: ClusterAdmin, asked: ClusterNamespaceRequest) -> Done:
    await admin.create_namespace(asked.namespace)
    return Done()


async def _delete(admin: ClusterAdmin, asked: ClusterNamespaceRequest) -> Done:
    await admin.delete_namespace(asked.namespace)
    return Done()


async def _quota(admin: ClusterAdmin, asked: ClusterNamespaceRequest) -> Quota:
    return Quota(slots=await admin.quota_of(asked.namespace))


async def _limit(admin: ClusterAdmin, asked: SlotQuotaRequest) -> Done:
    await admin.limit(asked.namespace, asked.slots)
    return Done()


async def _mark(admin: ClusterAdmin, asked: NodeMarkRequest) -> Done:
    await admin.mark_node(asked.node, asked.mark)
    return Done()


_VERBS: Final[Mapping[str, tuple[type[Struct], Callable[[ClusterAdmin, Any], Awaitable[Struct]]]]] = {
    cluster_admin.FIND_NAMESPACE: (ClusterNamespaceRequest, _find),
    cluster_admin.CREATE_NAMESPACE: (ClusterNamespaceRequest, _create),
    cluster_admin.DELETE_NAMESPACE: (ClusterNamespaceRequest, _delete),
    cluster_admin.GET_QUOTA: (ClusterNamespaceRequest, _quota),
    cluster_admin.SET_QUOTA: (SlotQuotaRequest, _limit),
    cluster_admin.MARK_NODE: (NodeMarkRequest, _mark),
}
