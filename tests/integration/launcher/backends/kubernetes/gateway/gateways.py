"""A Gateway for tests, in a cluster that has none: the kinds of objects as far as launchers care, and no traffic."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import yaml

from libs.cluster.config import ClusterConfig, TaskGatewayConfig
from services.launcher.backends.kubernetes.client.paths import gateway_path
from tests.harness.waiting import eventually
from tests.integration.launcher.backends.kubernetes.launcher_harness import (
    RIGHTS,
    LauncherHarness,
    Namespace,
    cluster,
    new_namespace,
)

Json = dict[str, Any]

GROUP = "gateway.networking.k8s.io"
FIRST, LAST = 32768, 32999
MAX_LISTENERS = 64
WEB = {"name": "web", "port": FIRST + 1, "protocol": "HTTP"}
"""Somebody else's, in the middle of our range."""

_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_LISTENER = {
    "type": "object",
    "x-kubernetes-preserve-unknown-fields": True,
    "required": ["name", "port", "protocol"],
    "properties": {
        "name": {"type": "string", "maxLength": 253},
        "port": {"type": "integer", "minimum": 1, "maximum": 65535},
        "protocol": {"type": "string"},
    },
}
_LISTENERS = {
    "type": "array",
    "minItems": 1,
    "maxItems": MAX_LISTENERS,
    "items": _LISTENER,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
}
_GATEWAY = {
    "type": "object",
    "required": ["gatewayClassName", "listeners"],
    "properties": {"gatewayClassName": {"type": "string"}, "listeners": _LISTENERS},
}


def _definition(kind: str, version: str, spec: Json) -> Json:
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "required": ["spec"], "properties": {"spec": spec, "status": _ANYTHING}}
    served = {
        "name": version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{GROUP}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [served],
        },
    }


DEFINITIONS = (_definition("Gateway", "v1", _GATEWAY), _definition("TCPRoute", "v1alpha2", _ANYTHING))


async def install_definitions(namespace: Namespace) -> None:
    """Have the cluster know Gateways and TCPRoutes; they stay, for other tests may be using them."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for definition in DEFINITIONS:
        await namespace.create_cluster_wide(path, definition)
        name = definition["metadata"]["name"]

        async def is_served(name: str = name) -> bool:
            found = await namespace.read(f"{path}/{name}")
            conditions = found.get("status", {}).get("conditions") or ()
            return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)

        await eventually(is_served)


class TestGateway:
    """A Gateway in a namespace of its own, seen with the eyes of an administrator."""

    __test__ = False

    def __init__(self, home: Namespace, tasks: Namespace) -> None:
        self.home = home
        self.tasks = tasks
        self.name = "tasks"
        self.path = gateway_path(home.name, self.name)
        self.config = TaskGatewayConfig(
            gateway_name=self.name,
            gateway_namespace=home.name,
            gateway_ip="192.0.2.7",
            gateway_port_range_start=FIRST,
            gateway_port_range_end=LAST,
        )

    async def read(self) -> Json:
        return await self.home.read(self.path)

    async def listeners(self) -> list[Json]:
        found: list[Json] = (await self.read())["spec"]["listeners"]
        return found

    async def ports(self) -> list[int]:
        """Of listeners that are not those of others, as the administrator made them."""
        return sorted(listener["port"] for listener in await self.listeners() if listener["name"].startswith("det-"))

    async def notes(self) -> dict[str, str]:
        found: dict[str, str] = (await self.read())["metadata"].get("annotations") or {}
        return found

    async def routes(self) -> list[Json]:
        return await self.tasks.items(self.tasks.paths.tcp_routes)

    async def change(self, *, notes: dict[str, str | None] | None = None, listeners: list[Json] | None = None) -> None:
        body: Json = {"metadata": {"annotations": notes or {}}}
        if listeners is not None:
            body["spec"] = {"listeners": listeners}
        await self.home.api.patch(self.path, body)

    async def until_free(self, *, timeout_s: float = 40.0) -> None:
        """Wait until no task has anything of it."""

        async def is_free() -> bool:
            return not await self.ports() and not await self.routes()

        try:
            await eventually(is_free, timeout_s=timeout_s, every_s=0.1)
        except AssertionError as error:
            raise AssertionError(f"still there: {await self.ports()} {await self.routes()}") from error
        assert not [note for note in await self.notes() if "gateway-port" in note]
        assert WEB in await self.listeners()

    def use(self, harness: LauncherHarness, **fields: Any) -> None:
        """Have the launcher of a harness use it; ``fields`` are of its configuration."""
        harness.cluster = with_gateway(harness.cluster, msgspec.structs.replace(self.config, **fields))


def with_gateway(config: ClusterConfig, gateway: TaskGatewayConfig) -> ClusterConfig:
    manager = msgspec.structs.replace(config.resource_manager, internal_task_gateway=gateway)
    return msgspec.structs.replace(config, resource_manager=manager)


def two_pools(first: str, second: str) -> ClusterConfig:
    return cluster(resource_pools=[{"pool_name": first}, {"pool_name": second}])


@asynccontextmanager
async def new_gateway(kubeconfig: Path, tasks: Namespace) -> AsyncIterator[TestGateway]:
    """A Gateway with one listener of somebody else, and the rights of all launchers in a namespace to use it."""
    await install_definitions(tasks)
    async with new_namespace(kubeconfig) as home:
        gateway = TestGateway(home, tasks)
        in_gateways, in_tasks = yaml.safe_load_all((RIGHTS / "gateway-role.yaml").read_text())
        await _grant(home, in_gateways, tasks)
        await _grant(tasks, in_tasks, tasks)
        body = {
            "apiVersion": f"{GROUP}/v1",
            "kind": "Gateway",
            "metadata": {"name": gateway.name, "annotations": {"owner": "network team"}},
            "spec": {"gatewayClassName": "none", "listeners": [WEB]},
        }
        await home.create(gateway.path.rpartition("/")[0], body)
        yield gateway


async def _grant(harness: Namespace, role: Json, accounts_of: Namespace) -> None:
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{harness.name}"
    await harness.create(f"{rbac}/roles", role)
    name = role["metadata"]["name"]
    group = {
        "kind": "Group",
        "name": f"system:serviceaccounts:{accounts_of.name}",
        "apiGroup": "rbac.authorization.k8s.io",
    }
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    await harness.create(f"{rbac}/rolebindings", {"metadata": {"name": name}, "roleRef": ref, "subjects": [group]})
