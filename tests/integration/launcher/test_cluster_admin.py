"""A launcher of processes is asked what only a cluster has."""

from __future__ import annotations

import msgspec
import pytest

from libs.bus import Bus
from libs.errors import FailedPrecondition, InvalidRequest, Unimplemented
from libs.events import cluster_admin
from libs.events.cluster_admin import ClusterNamespaceRequest, NodeMarkRequest, SlotQuotaRequest
from libs.events.subjects import launcher_rpc
from services.launcher.cluster_admin import NoClusterAdmin, verbs_of
from services.launcher.rpc import serve_rpcs

CLUSTER_ADMIN_REQUESTS = [
    (cluster_admin.FIND_NAMESPACE, ClusterNamespaceRequest(namespace="n")),
    (cluster_admin.CREATE_NAMESPACE, ClusterNamespaceRequest(namespace="n")),
    (cluster_admin.DELETE_NAMESPACE, ClusterNamespaceRequest(namespace="n")),
    (cluster_admin.GET_QUOTA, ClusterNamespaceRequest(namespace="n")),
    (cluster_admin.SET_QUOTA, SlotQuotaRequest(namespace="n", slots=1)),
    (cluster_admin.MARK_NODE, NodeMarkRequest(node="n", mark="no-execute")),
]


async def test_it_says_that_it_has_no_cluster(bus: Bus) -> None:
    async with serve_rpcs(bus, pool="a pool", verbs=verbs_of(NoClusterAdmin("a pool"))):
        for verb, asked in CLUSTER_ADMIN_REQUESTS:
            with pytest.raises(FailedPrecondition, match=r"^resource pool a pool does not run on Kubernetes$"):
                await bus.request(launcher_rpc("a pool", verb), msgspec.json.encode(asked))


async def test_what_nobody_understands_is_refused(bus: Bus) -> None:
    async with serve_rpcs(bus, pool="p", verbs=verbs_of(NoClusterAdmin("p"))):
        with pytest.raises(InvalidRequest, match="mark-node: "):
            await bus.request(launcher_rpc("p", cluster_admin.MARK_NODE), b'{"node": "n", "mark": "other"}')
        with pytest.raises(Unimplemented):
            await bus.request(launcher_rpc("p", "dance"), b"{}")
