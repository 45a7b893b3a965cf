"""Answers what the api asks for: namespaces of workspaces, limits on their slots, and marks on nodes.

Only namespaces that were made for a workspace, which their label ``determined`` says, are deleted or limited. All of
this needs rights in the cluster that a launcher may also do without; then it says which. Source:
docs/reference/kubernetes.md 8.2 to 8.4 and 13.3; docs/reference/platform.md 7.2.
"""

from __future__ import annotations

from collections.abc import Awaitable
from decimal import Decimal
from typing import Any, Final, TypeVar

import structlog

from libs.errors import FailedPrecondition, InvalidRequest, NotFound, PermissionDenied, Unavailable
from services.launcher.backends.kubernetes.capacity.slots import SlotKind, requested_slots
from services.launcher.backends.kubernetes.client.api import KubeApi, Refused
from services.launcher.backends.kubernetes.client.connection import find_namespace, not_found
from services.launcher.backends.kubernetes.client.objects import ListOf, Named, Namespace, ResourceQuota
from services.launcher.backends.kubernetes.client.paths import (
    NAMESPACES,
    NODES,
    may_be_namespace,
    may_be_node,
    paths_in,
)
from services.launcher.backends.kubernetes.manifests.label_values import label_value
from services.launcher.backends.kubernetes.manifests.names import ALLOCATION_LABEL, CLUSTER_LABEL, node_label
from services.launcher.cluster_admin import Mark

log = structlog.get_logger()

RIGHTS: Final = "The rights that a launcher needs for this are in deploy/helm/rights/cluster-role-workspaces.yaml"
_OURS: Final = ALLOCATION_LABEL
"""On namespaces that were made for a workspace: their own name."""
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_EXISTS: Final = 409

T = TypeVar("T")


class KubernetesClusterAdmin:
    """See ``services/launcher/cluster_admin.py`` for what the methods promise. ``own`` is the namespace of the pool."""

    def __init__(self, api: KubeApi, *, pool: str, own: str, cluster_id: str, kind: SlotKind) -> None:
        self._api = api
        self._pool = pool
        self._own = own
        self._cluster_id = cluster_id
        self._kind = kind

    async def find_namespace(self, name: str) -> None:
        found = await _asked(find_namespace(self._api, name))
        if found.metadata.deletion_timestamp is not None:
            raise FailedPrecondition(f"error finding namespace {name}: it is being deleted")

    async def create_namespace(self, name: str) -> None:
        _check_name(name)
        labels = {_OURS: name, CLUSTER_LABEL: label_value(self._cluster_id)}
        try:
            await self._api.create(NAMESPACES, {"metadata": {"name": name, "labels": labels}}, Named)
        except Refused as error:
            if error.code != _EXISTS:
                # Whoever grants no right to make namespaces may have made this one.
                await self._find_instead(name, error)
            else:
                await self.find_namespace(name)
            return
        log.info("kubernetes.namespace_created", namespace=name)
        try:
            await self.find_namespace(name)
        except PermissionDenied:
            # It would be of no use.
            await _asked(self._api.delete(paths_in(name).namespace))
            raise

    async def delete_namespace(self, name: str) -> None:
        try:
            found = await self._our_namespace(name, "delete namespace {}")
        except NotFound:
            return
        if name == self._own:
            raise FailedPrecondition(f"cannot delete namespace {name}: it is that of resource pool {self._pool}")
        body = {"preconditions": {"uid": found.metadata.uid}}
        if found.metadata.deletion_timestamp is None:
            await _asked(self._api.delete(paths_in(name).namespace, body))
            log.info("kubernetes.namespace_deleted", namespace=name)

    async def quota_of(self, namespace: str) -> float | None:
        limits = await self._limits(namespace)
        return float(min(limits.values())) if limits else None

    async def limit(self, namespace: str, slots: int) -> None:
        if slots < 0:
            raise InvalidRequest(f"cannot set quota on namespace {namespace}: {slots} slots are less than none")
        await self._our_namespace(namespace, "set quota on namespace {}")
        if self._kind.type == "cpu":
            raise FailedPrecondition(
                f"cannot set quota on namespace {namespace}: the slots of resource pool {self._pool} are CPU cores, "
                "and under a quota on those Kubernetes refuses every pod with a container that does not ask for any"
            )
        name = f"{namespace}-quota"
        smaller = {
            other: most for other, most in (await self._limits(namespace)).items() if other != name and most < slots
        }
        if smaller:
            other = min(smaller, key=lambda each: (smaller[each], each))
            raise FailedPrecondition(
                f"cannot set quota on namespace {namespace}: its resource quota {other} has a request limit of "
                f"{smaller[other]}, which is lower than the request limit you wish to set on this namespace"
            )
        await self._write_quota(namespace, name, slots)

    async def mark_node(self, node: str, mark: Mark) -> None:
        if not may_be_node(node):
            raise NotFound("node", node)
        patch = {"metadata": {"labels": {node_label(self._cluster_id): mark or None}}}
        try:
            await self._api.patch(f"{NODES}/{node}", patch)
        except Refused as error:
            if error.code == _NOT_FOUND:
                raise NotFound("node", node) from error
            if error.code == _FORBIDDEN:
                raise PermissionDenied(
                    f"the service account of the launcher of resource pool {self._pool} is missing permissions to "
                    "patch nodes. Enabling or disabling nodes requires this permission, however Determined will "
                    "otherwise still function correctly without these Kubernetes permissions"
                ) from error
            raise _translated(error) from error
        log.info("kubernetes.node_marked", node=node, mark=mark)

    async def _find_instead(self, name: str, refusal: Refused) -> None:
        """A namespace that may not be made. Raises what making it was refused with, unless it is there."""
        try:
            await self.find_namespace(name)
        except (NotFound, PermissionDenied):
            raise _translated(refusal) from refusal

    async def _our_namespace(self, name: str, to_do: str) -> Namespace:
        """A namespace that was made for a workspace of this installation. Raises NotFound and FailedPrecondition."""
        what = to_do.format(name)
        _check_name(name)
        try:
            found = await self._api.get(paths_in(name).namespace, Namespace)
        except Refused as error:
            if error.code == _NOT_FOUND:
                raise not_found(f"error finding namespace {name}: {error}") from error
            raise _translated(error) from error
        labels = found.metadata.labels
        if _OURS not in labels:
            raise FailedPrecondition(f"cannot {what}. Namespace needs determined label")
        # Namespaces that older masters made do not say whose they are.
        if labels.get(CLUSTER_LABEL, label_value(self._cluster_id)) != label_value(self._cluster_id):
            raise FailedPrecondition(f"cannot {what}. Namespace belongs to another installation")
        return found

    async def _limits(self, namespace: str) -> dict[str, Decimal]:
        """Slots that the quotas of a namespace allow, by name of the quota."""
        _check_name(namespace)
        found = await _asked(self._api.get(paths_in(namespace).quotas, ListOf[ResourceQuota]))
        limits = {quota.metadata.name: requested_slots(quota.spec.hard, self._kind) for quota in found.items or ()}
        return {name: most for name, most in limits.items() if most is not None}

    async def _write_quota(self, namespace: str, name: str, slots: int) -> None:
        spec: dict[str, Any] = {"hard": {f"requests.{self._kind.resource}": str(slots)}}
        body = {
            "metadata": {
                "name": name,
                "labels": {_OURS: namespace, CLUSTER_LABEL: label_value(self._cluster_id)},
            },
            "spec": spec,
        }
        try:
            await self._api.create(paths_in(namespace).quotas, body, Named)
        except Refused as error:
            if error.code != _EXISTS:
                raise _translated(error) from error
            await _asked(self._api.patch(paths_in(namespace).quota(name), {"spec": spec}))
        log.info("kubernetes.quota_set", namespace=namespace, slots=slots)


def _check_name(namespace: str) -> None:
    if not may_be_namespace(namespace):
        raise InvalidRequest(f"error finding namespace {namespace}: no namespace can have this name")


async def _asked(request: Awaitable[T]) -> T:
    try:
        return await request
    except Refused as error:
        raise _translated(error) from error


def _translated(refusal: Refused) -> FailedPrecondition | NotFound | PermissionDenied | Unavailable:
    """A refusal of the cluster in our terms: outside of this backend nobody knows its class."""
    match refusal.code:
        case 403:
            return PermissionDenied(f"{refusal}. {RIGHTS}")
        case 404:
            return not_found(str(refusal))
        case 401:
            return Unavailable(f"the Kubernetes API server does not accept the launcher's credentials: {refusal}")
        case _:
            return FailedPrecondition(str(refusal))
