"""A pool of two nodes of eight GPUs on a real control plane: its scheduler and its launcher run in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from libs.cluster.config import ClusterConfig
from libs.db.relay import relay_outbox
from libs.run_until_first_exits import end
from tests.harness import eventually
from tests.integration.launcher.backends.kubernetes.launcher_harness import (
    Json,
    LauncherHarness,
    Namespace,
    launcher_kubeconfig,
    new_namespace,
    open_place,
)
from tests.integration.scheduler.world import QUICK, World, background

POOL = "default"
LABEL = "resolute-test/pool"
GANG_GRACE_S = 60.0
"""Long enough for every gang that has room, however busy the machine is."""

Loops = list[asyncio.Task[Any]]
"""The relay of the outbox, and then the scheduler."""


def _cluster(mark: str, scheduler: Json, growth: Json | None) -> ClusterConfig:
    template = {"slots": 8, "labels": {LABEL: mark}}
    pod = {"spec": {"nodeSelector": {LABEL: mark}}}
    body: Json = {
        "resource_manager": {"type": "kubernetes", "slot_type": "cuda", "max_slots_per_pod": 4, "scheduler": scheduler},
        "resource_pools": [
            {
                "pool_name": POOL,
                "task_container_defaults": {"gpu_pod_spec": pod, "cpu_pod_spec": pod},
                "growth": None if growth is None else {"node_template": template, **growth},
            },
        ],
    }
    return msgspec.convert(body, ClusterConfig)


class ClusterPool:
    """Sixteen slots, of which a pod may have four; one scheduler plans, one launcher acts."""

    def __init__(self, world: World, harness: LauncherHarness, nodes: tuple[str, ...], mark: str, loops: Loops) -> None:
        self.world = world
        self.api = world.api
        self.launcher = harness
        self.nodes = nodes
        self._mark = mark
        self._loops = loops

    async def gang(
        self,
        slots: int,
        *,
        runs_s: float | None = 1.0,
        priority: int = 50,
        selector: dict[str, str] | None = None,
        topology: dict[str, str] | None = None,
    ) -> int:
        """Submit a trial; without ``runs_s`` its pods run until they are deleted."""
        notes = {} if runs_s is None else {"sim/run-seconds": str(runs_s)}
        # As the api merges it from the defaults of the pool, before an experiment is stored.
        pod = {"metadata": {"annotations": notes}, "spec": {"nodeSelector": {LABEL: self._mark, **(selector or {})}}}
        resources: Json = {"slots_per_trial": slots, "resource_pool": POOL, "priority": priority}
        if topology is not None:
            resources["topology"] = topology
        return await self.api.create(resources=resources, max_restarts=0, environment={"pod_spec": pod})

    async def restart_scheduler(self) -> None:
        """End the one that is there as if it was killed, and start another."""
        await end(self._loops.pop())
        self._loops.append(asyncio.ensure_future(self.world.scheduler(QUICK).run()))

    async def start_launcher_that_takes_gangs_back(self) -> None:
        """It gives a gang three seconds to find its places."""
        self.launcher.settings = msgspec.structs.replace(self.launcher.settings, gang_grace_s=3.0)
        await self.launcher.start()

    async def cordon(self, node: str, *, closed: bool = True) -> None:
        path = f"/api/v1/nodes/{node}"
        await self.launcher.namespace.api.patch(path, {"spec": {"unschedulable": closed}})

    @asynccontextmanager
    async def another_node(self) -> AsyncIterator[str]:
        """A third node, for as long as the block runs."""
        async with _marked(self.launcher.namespace, self._mark, 1) as (node,):
            yield node

    async def label(self, node: str, key: str, value: str | None) -> None:
        path = f"/api/v1/nodes/{node}"
        await self.launcher.namespace.api.patch(path, {"metadata": {"labels": {key: value}}})

    async def take(self, node: str, gpus: int) -> str:
        """A pod of somebody else, which is there at once; returns its path."""
        name = f"foreign-{uuid4().hex[:8]}"
        amount = {"nvidia.com/gpu": str(gpus)}
        container = {"name": "c", "image": "local/python:3.11", "resources": {"requests": amount, "limits": amount}}
        body = {"metadata": {"name": name}, "spec": {"nodeName": node, "containers": [container]}}
        await self.launcher.namespace.create(self.launcher.namespace.paths.pods, body)
        return self.launcher.namespace.paths.pod(name)

    async def pods(self, experiment: int) -> list[Json]:
        return await self.launcher.namespace.pods(f"determined.ai/experiment_id={experiment}")

    async def until_running(self, experiment: int, pods: int) -> None:
        async def is_so() -> bool:
            return [pod["status"]["phase"] for pod in await self.pods(experiment)] == ["Running"] * pods

        await eventually(is_so, every_s=0.1)

    async def until_waiting(self, experiment: int, reason: str) -> None:
        async def is_so() -> bool:
            rows = await self.api.allocations(experiment)
            return any(row["assigned_at"] is None and row["wait_reason"].startswith(reason) for row in rows)

        await eventually(is_so, every_s=0.1)


@pytest.fixture
async def cluster_pool(
    request: pytest.FixtureRequest, world: World, kubeconfig: Path, tmp_path: Path
) -> AsyncIterator[ClusterPool]:
    """The parameter is the scheduler of the pool, as in the cluster configuration; its ``growth`` is the pool's."""
    mark = uuid4().hex
    async with new_namespace(kubeconfig) as namespace, _marked(namespace, mark, 2) as nodes:
        account = await launcher_kubeconfig(namespace, kubeconfig, tmp_path)
        async with open_place(world.bus, namespace, account) as harness:
            said = dict(getattr(request, "param", {}))
            growth = said.pop("growth", None)
            world.cluster = harness.cluster = _cluster(mark, said, growth)
            harness.pool = POOL
            [cluster_id] = await world.api.sql("SELECT cluster_id FROM cluster")
            harness.settings = msgspec.structs.replace(
                harness.settings, cluster_id=cluster_id, gang_grace_s=GANG_GRACE_S
            )
            await harness.start()
            await harness.until_capacity(lambda capacity: capacity.slots == 16)
            async with background(relay_outbox(world.db, world.bus), world.scheduler(QUICK).run()) as loops:
                yield ClusterPool(world, harness, nodes, mark, loops)


@asynccontextmanager
async def _marked(namespace: Namespace, mark: str, count: int) -> AsyncIterator[tuple[str, ...]]:
    """Nodes that bear a label, are empty, and belong to nobody else meanwhile."""

    def bears(value: str | None) -> Any:
        return {"metadata": {"labels": {LABEL: value}}, "spec": {"unschedulable": False}}

    everything = await namespace.items("/api/v1/nodes", "sim/node=true")
    free = [item["metadata"]["name"] for item in everything if LABEL not in item["metadata"]["labels"]]
    nodes = tuple(free[-1 : -count - 1 : -1])
    for node in nodes:
        await namespace.api.patch(f"/api/v1/nodes/{node}", bears(mark))
    try:
        yield nodes
    finally:
        for node in nodes:
            await namespace.api.patch(f"/api/v1/nodes/{node}", bears(None))
