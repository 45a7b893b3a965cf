"""Statuses that a test gives to pods whose node nobody simulates: it plays the kubelet itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from libs.run_until_first_exits import end
from tests.harness.waiting import eventually
from tests.integration.launcher.backends.kubernetes.launcher_harness import Json, Namespace

MAIN, INIT = "determined-container", "determined-init-container"
OWN: Json = {"key": "test-own-node", "value": "true", "effect": "NoSchedule"}
RUNNING: Json = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}


def exited(code: int, **fields: Any) -> Json:
    return {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed", **fields}}


def waiting(reason: str, message: str = "") -> Json:
    return {"waiting": {"reason": reason, "message": message}}


def containers(states: dict[str, Json]) -> list[Json]:
    return [
        {"name": name, "image": "i", "imageID": "i", "ready": False, "restartCount": 0, "state": state}
        for name, state in states.items()
    ]


async def set_status(namespace: Namespace, pod: str, phase: str = "", **fields: Any) -> None:
    """``main``, ``init`` and ``others`` (by name) are states of containers; all else are fields of the status."""
    states = {**fields.pop("others", {}), **({MAIN: fields.pop("main")} if "main" in fields else {})}
    status: Json = {**({"phase": phase} if phase else {}), **fields}
    if states:
        status["containerStatuses"] = containers(states)
    if "init" in status:
        status["initContainerStatuses"] = containers({INIT: status.pop("init")})
    await namespace.api.patch(f"{namespace.paths.pod(pod)}/status", {"status": status})


class OwnNode:
    """A node that nobody simulates, where pods with ``pod_spec`` run, and no others."""

    def __init__(self, namespace: Namespace, **allocatable: str) -> None:
        self.name = f"node-{uuid4().hex[:8]}"
        self.path = f"/api/v1/nodes/{self.name}"
        self.pod_spec: Json = {
            "nodeSelector": {"kubernetes.io/hostname": self.name},
            "tolerations": [{"key": OWN["key"], "operator": "Exists"}],
        }
        self._namespace = namespace
        self._allocatable = allocatable
        self._beats = 0

    async def resize(self, **allocatable: str) -> None:
        self._allocatable = allocatable
        await self.beat()

    async def beat(self) -> None:
        """Say that it is ready. Its size changes a little each time: a change is what makes schedulers look again."""
        self._beats += 1
        amounts = {"cpu": "64", "memory": f"{65536 + self._beats}Mi", "pods": "10", "ephemeral-storage": "1Ti"}
        amounts |= {name.replace("gpus", "nvidia.com/gpu"): amount for name, amount in self._allocatable.items()}
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now}
        status = {"conditions": [ready], "allocatable": amounts, "capacity": amounts}
        await self._namespace.api.patch(f"{self.path}/status", {"status": status})

    async def live(self) -> None:
        """Go on beating until cancelled: a node that does not for 40 s is taken for dead."""
        while True:
            await self.beat()
            await asyncio.sleep(3)


@asynccontextmanager
async def own_node(namespace: Namespace, **allocatable: str) -> AsyncIterator[OwnNode]:
    """A node for the duration of the block."""
    node = OwnNode(namespace, **allocatable)
    labels = {"kubernetes.io/hostname": node.name}
    await namespace.create(
        "/api/v1/nodes", {"metadata": {"name": node.name, "labels": labels}, "spec": {"taints": [OWN]}}
    )
    living = asyncio.create_task(node.live())
    try:

        async def is_usable() -> bool:
            found = await namespace.read(node.path)
            if "allocatable" in found["status"] and found["spec"].get("taints") == [OWN]:
                return True
            # Nodes have other taints when they come, until a controller has seen that they are ready.
            await namespace.api.patch(node.path, {"spec": {"taints": [OWN]}})
            return False

        await eventually(is_usable, every_s=0.2)
        yield node
    finally:
        await end(living)
        await namespace.api.delete(node.path)
