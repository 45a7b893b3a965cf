"""Placeholders on an API server that the test plays: as many as are ordered, and no others. Needs no cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from aiohttp import web
from kubernetes.aio.client.configuration import Configuration

from libs.cluster.growth import GrowthConfig
from libs.events.orders import PlaceholderOrder
from services.launcher.backends.kubernetes.client.api import KubeApi, Refused
from services.launcher.backends.kubernetes.client.objects import Node, NodeMeta
from services.launcher.backends.kubernetes.manifests.names import PLACEHOLDER_LABEL
from services.launcher.backends.kubernetes.placeholders.holding import Placeholders
from services.launcher.backends.kubernetes.placeholders.manifest import PlaceholderTraits, names
from tests.harness.clock import FakeClock
from tests.integration.launcher.backends.kubernetes.client.faulty import Json, serving

TRAITS = PlaceholderTraits(pool="gpus", cluster_id="0a1b2c3d-1", image="pause:1")
NODES = {
    "a": Node(metadata=NodeMeta(name="a", labels={"kubernetes.io/hostname": "host-a"})),
    "b": Node(metadata=NodeMeta(name="b", labels={"kubernetes.io/hostname": "b", "resolute/known-node": ""})),
}


class Server:
    def __init__(self, *, has_karpenter: bool = False, refuses: int = 0) -> None:
        self.pods: dict[str, Json] = {}
        """By path."""
        self.labelled: list[str] = []
        self.created = 0
        self.refuses = refuses
        self._has_karpenter = has_karpenter

    async def handle(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        if path == "/apis/karpenter.sh":
            return web.json_response({}, status=200 if self._has_karpenter else 404)
        if request.method == "PATCH":
            assert (await request.json()) == {"metadata": {"labels": {"resolute/known-node": ""}}}
            self.labelled.append(path)
            return web.json_response({})
        if request.method == "POST":
            return await self._create(path, await request.json())
        if request.method == "DELETE":
            return web.json_response({}, status=404 if self.pods.pop(path, None) is None else 200)
        assert request.query["labelSelector"] == f"{PLACEHOLDER_LABEL}={TRAITS.launcher}"
        found = [pod for each, pod in self.pods.items() if each.startswith(f"{path}/")]
        return web.json_response({"metadata": {}, "items": found})

    async def _create(self, path: str, pod: Json) -> web.StreamResponse:
        if self.refuses and self.created >= self.refuses:
            return web.json_response({"reason": "Forbidden", "message": "exceeded quota"}, status=403)
        name = f"{path}/{pod['metadata']['name']}"
        if name in self.pods:
            return web.json_response({"reason": "AlreadyExists"}, status=409)
        self.created += 1
        self.pods[name] = pod
        return web.json_response(pod)

    @property
    def names(self) -> list[str]:
        return sorted(path.rsplit("/", 1)[1] for path in self.pods)


@asynccontextmanager
async def holding(server: Server, clock: FakeClock, **config: Any) -> AsyncIterator[Placeholders]:
    async def class_of(configured: str) -> str | None:
        return configured or None

    async with AsyncExitStack() as stack:
        configuration = Configuration(host=await stack.enter_async_context(serving(server.handle)))

        async def credentials() -> Configuration:
            return configuration

        api = KubeApi(configuration, credentials=credentials, max_requests=4, timeout_s=30)
        stack.push_async_callback(api.close)
        yield Placeholders(
            api,
            traits=TRAITS,
            config=GrowthConfig(**config),
            namespaces=("ns1", "ns0"),
            nodes=lambda: NODES,
            priority_class=class_of,
            clock=clock,
        )


def order(clock: FakeClock, *, pods: int = 2, allocation: str = "1.a.1") -> PlaceholderOrder:
    until = clock.now() + timedelta(minutes=15)
    return PlaceholderOrder(
        pool="gpus", allocation=allocation, pods=pods, known_nodes=("a", "b", "c"), gives_up_at=until
    )


def terms(pod: Json) -> list[Json]:
    affinity = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    found: list[Json] = affinity["nodeSelectorTerms"][0]["matchExpressions"]
    return found


async def test_there_are_as_many_as_ordered_however_often_it_is_said() -> None:
    server, clock = Server(), FakeClock()
    wanted = order(clock)
    async with holding(server, clock, priority_class="low") as placeholders:
        for _ in range(3):
            await placeholders.hold(wanted)
        assert server.names == sorted(names(wanted, TRAITS))
        assert server.created == 2
        for pod in server.pods.values():
            assert pod["spec"]["priorityClassName"] == "low"
            assert {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["b", "host-a"]} in terms(pod)
        await placeholders.hold(None)
        assert server.names == []
        assert server.labelled == []


async def test_a_launcher_goes_on_where_another_one_was_killed() -> None:
    server, clock = Server(refuses=1), FakeClock()
    wanted = order(clock)
    async with holding(server, clock) as placeholders:
        with pytest.raises(Refused):
            await placeholders.hold(wanted)
    server.refuses = 0
    async with holding(server, clock) as placeholders:
        await placeholders.hold(wanted)
    assert server.names == sorted(names(wanted, TRAITS))
    assert server.created == 2


async def test_what_nobody_ordered_is_removed_in_former_namespaces_too() -> None:
    server, clock = Server(), FakeClock()
    for path in ("/api/v1/namespaces/ns1/pods/orphan", "/api/v1/namespaces/ns0/pods/older"):
        server.pods[path] = {"metadata": {"name": path.rsplit("/", 1)[1]}}
    async with holding(server, clock) as placeholders:
        await placeholders.hold(order(clock, pods=1))
        assert server.names == names(order(clock, pods=1), TRAITS)
        await placeholders.hold(order(clock, pods=1, allocation="1.b.1"))
        assert server.names == names(order(clock, pods=1, allocation="1.b.1"), TRAITS)


async def test_one_that_has_ended_is_made_anew() -> None:
    server, clock = Server(), FakeClock()
    async with holding(server, clock) as placeholders:
        await placeholders.hold(order(clock))
        next(iter(server.pods.values()))["status"] = {"phase": "Failed"}
        await placeholders.hold(order(clock))
        assert server.created == 3
        assert len(server.names) == 2


async def test_each_ends_by_itself_no_later_than_the_time_that_is_left_once_it_is_on_a_node() -> None:
    """Whoever made it may be gone for ever."""
    server, clock = Server(), FakeClock()
    wanted = order(clock)
    async with holding(server, clock) as placeholders:
        clock.advance(5 * 60)
        await placeholders.hold(wanted)
    assert [pod["spec"]["activeDeadlineSeconds"] for pod in server.pods.values()] == [600, 600]


async def test_nothing_is_held_when_time_is_over() -> None:
    server, clock = Server(), FakeClock()
    wanted = order(clock)
    async with holding(server, clock) as placeholders:
        await placeholders.hold(wanted)
        clock.advance(15 * 60)
        await placeholders.hold(wanted)
        assert server.names == []


@pytest.mark.parametrize(("config", "has_karpenter"), [({}, True), ({"autoscaler": "karpenter"}, False)])
async def test_with_karpenter_nodes_that_were_there_get_a_label(config: dict[str, Any], has_karpenter: bool) -> None:
    server, clock = Server(has_karpenter=has_karpenter), FakeClock()
    async with holding(server, clock, **config) as placeholders:
        await placeholders.hold(order(clock))
    assert server.labelled == ["/api/v1/nodes/a"]
    for pod in server.pods.values():
        assert {"key": "resolute/known-node", "operator": "DoesNotExist"} in terms(pod)


async def test_with_another_autoscaler_they_get_none() -> None:
    server, clock = Server(has_karpenter=True), FakeClock()
    async with holding(server, clock, autoscaler="cluster-autoscaler") as placeholders:
        await placeholders.hold(msgspec.structs.replace(order(clock), known_nodes=()))
    assert server.labelled == []
    assert all(len(terms(pod)) == 1 for pod in server.pods.values())
