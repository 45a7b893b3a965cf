"""Statuses that a test gives to pods whose node nobody simulates: it plays the kubelet itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from tests.integration.launcher_kubernetes.place import Json, Namespace

MAIN, INIT = "determined-container", "determined-init-container"
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


@asynccontextmanager
async def own_node(namespace: Namespace, **allocatable: str) -> AsyncIterator[str]:
    """A node that nobody simulates, to be named in a ``nodeSelector`` (kubernetes.io/hostname); gone afterwards."""
    name = f"node-{uuid4().hex[:8]}"
    path = f"/api/v1/nodes/{name}"
    labels = {"kubernetes.io/hostname": name}
    await namespace.create("/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})
    try:
        await resize(namespace, name, **allocatable)
        # Nodes that were not ready when they came are tainted until a controller has seen that they are.
        await namespace.api.patch(path, {"spec": {"taints": None}})
        yield name
    finally:
        await namespace.api.delete(path)


async def resize(namespace: Namespace, node: str, **allocatable: str) -> None:
    amounts = {"cpu": "64", "memory": "64Gi", "pods": "10", "ephemeral-storage": "1Ti"}
    amounts |= {name.replace("gpus", "nvidia.com/gpu"): amount for name, amount in allocatable.items()}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    status = {"conditions": [ready], "allocatable": amounts, "capacity": amounts}
    await namespace.api.patch(f"/api/v1/nodes/{node}/status", {"status": status})
