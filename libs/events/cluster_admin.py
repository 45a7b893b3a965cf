"""Requests to a launcher about its cluster: namespaces, their quotas, and marks on nodes, which only it may touch.

The api sends them, and the scheduler when a workspace is deleted. Request and reply on ``launcher_rpc(pool, verb)``,
never needed for correctness: each can be sent again. A launcher that refuses answers with an error of
``libs/errors.py``; a pool without a cluster with FailedPrecondition. Requests are tagged, so that no other message
that somebody makes the bus deliver there is taken for one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

FIND_NAMESPACE: Final = "find-namespace"
"""``ClusterNamespaceRequest`` -> ``Done``; NotFound when it does not exist."""
CREATE_NAMESPACE: Final = "create-namespace"
"""``ClusterNamespaceRequest`` -> ``Done``, also when it existed."""
DELETE_NAMESPACE: Final = "delete-namespace"
"""``ClusterNamespaceRequest`` -> ``Done``, also when it did not exist; FailedPrecondition for one that is not ours."""
GET_QUOTA: Final = "get-quota"
"""``ClusterNamespaceRequest`` -> ``Quota``."""
SET_QUOTA: Final = "set-quota"
"""``SlotQuotaRequest`` -> ``Done``; FailedPrecondition for a namespace that is not ours, or that another quota limits
more."""
MARK_NODE: Final = "mark-node"
"""``NodeMarkRequest`` -> ``Done``; NotFound, or PermissionDenied when the launcher may not change nodes."""


class ClusterNamespaceRequest(Struct, frozen=True, kw_only=True, tag_field="type", tag="cluster_namespace.requested"):
    namespace: str


class SlotQuotaRequest(Struct, frozen=True, kw_only=True, tag_field="type", tag="slot_quota.requested"):
    namespace: str
    slots: int


class Quota(Struct, frozen=True, kw_only=True):
    """The smallest limit on slots of all quotas of a namespace; None where nothing limits them."""

    slots: float | None = None


class NodeMarkRequest(Struct, frozen=True, kw_only=True, tag_field="type", tag="node_mark.requested"):
    node: str
    mark: Literal["no-execute", "no-schedule", ""]
    """Value of the label ``determined.ai/cluster-id-<cluster id>``; empty takes it off."""


class Done(Struct, frozen=True):
    """It is as asked."""


CLUSTER_ADMIN_REQUESTS: Final[Mapping[str, type[Struct]]] = {
    FIND_NAMESPACE: ClusterNamespaceRequest,
    CREATE_NAMESPACE: ClusterNamespaceRequest,
    DELETE_NAMESPACE: ClusterNamespaceRequest,
    GET_QUOTA: ClusterNamespaceRequest,
    SET_QUOTA: SlotQuotaRequest,
    MARK_NODE: NodeMarkRequest,
}
"""What is sent with each verb."""
