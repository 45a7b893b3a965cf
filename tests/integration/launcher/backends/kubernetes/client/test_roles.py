"""The rights in ``deploy/helm/rights``: each is used, none is missing, and some may be: acceptance item A18."""

from __future__ import annotations

import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest
import yaml

from libs.bus import Bus
from libs.events.orders import Owner, ProxyPort
from services.launcher.backends.kubernetes.settings import TaskNetworkSettings
from tests.harness.waiting import eventually
from tests.integration.launcher.backends.kubernetes.client.faulty import FaultyProxy, faulty_proxy
from tests.integration.launcher.backends.kubernetes.launcher_harness import (
    RBAC,
    RIGHTS,
    Json,
    LauncherHarness,
    Namespace,
    account_of,
    launcher_kubeconfig,
    open_place,
    task,
)

pytestmark = pytest.mark.cluster

Right = tuple[str, str]
"""Verb and resource."""

FOR_MISHAPS: set[Right] = {
    ("get", "jobs"),  # whose is the Job that is in the way?
    ("delete", "configmaps"),  # left over from a Job of the same name
    ("delete", "secrets"),
    ("delete", "services"),
    ("delete", "networkpolicies"),
}
FOR_OTHERS: set[Right] = {
    ("patch", "nodes"),  # when an administrator asks for it: test_places.py
    ("create", "pods"),  # placeholders, when a pool grows: tests/integration/scheduler/on_cluster/test_growing.py
}
"""Used at the request of others; their tests have the same roles."""
NOT_SERVED_EVERYWHERE: set[Right] = {("list", "resourceslices"), ("watch", "resourceslices")}
"""Used where the API server has Dynamic Resource Allocation, as it does from 1.34 on unless told otherwise."""

POLICIES = TaskNetworkSettings(policies=True)

_PATH = re.compile(
    r"/(?:api/v1|apis/[^/]+/v\w+)/(?:namespaces/[^/]+/)?(?P<resource>[a-z]+)(?:/(?P<name>[^/?]+))?(?:/(?P<sub>[a-z]+))?$"
)
_VERBS = {"POST": "create", "PATCH": "patch", "DELETE": "delete", "PUT": "update"}


def granted(*files: str) -> set[Right]:
    rules = [rule for file in files for rule in yaml.safe_load((RIGHTS / file).read_text())["rules"]]
    return {(verb, resource) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}


def used(proxy: FaultyProxy) -> set[Right]:
    found = set()
    for _, method, path_and_query in proxy.requests:
        path, _, query = path_and_query.partition("?")
        match = _PATH.match(path)
        if match is None:
            assert path in {"/version", "/apis/resource.k8s.io"}, path  # what anybody may ask
            continue
        resource = match["resource"] + (f"/{match['sub']}" if match["sub"] else "")
        reading = "watch" if "watch=1" in query else "get" if match["name"] else "list"
        found.add((_VERBS.get(method, reading), resource))
    return found


async def test_every_right_is_used_and_none_is_missing(idle: LauncherHarness, tmp_path: Path) -> None:
    async with faulty_proxy(Path(idle.settings.kubeconfig or ""), tmp_path) as (proxy, kubeconfig):
        wanted = {"kubeconfig": str(kubeconfig), "services": True, "task_network": POLICIES}
        idle.settings = msgspec.structs.replace(idle.settings, **wanted)
        # Made once in the life of a cluster; no other test has such a priority.
        priority = random.randint(70, 99)
        await idle.namespace.api.delete(f"/apis/scheduling.k8s.io/v1/priorityclasses/determined-priority-{priority}")
        await idle.start()
        failing = await idle.run(task(notes={"run-seconds": "0.2", "exit-code": "3"}, priority=priority))
        gang = await idle.run(task(slots=2, num_pods=2, proxy_ports=(ProxyPort(service_id="a", port=8000),)))
        await idle.until_running(gang, 2)

        async def is_in_the_launch_record() -> bool:
            found = await idle.namespace.items(idle.namespace.paths.config_maps, "resolute/purpose=launch-record")
            return any(gang in (launch_record.get("data") or {}) for launch_record in found)

        await eventually(is_in_the_launch_record, every_s=0.1)  # from now on it is patched
        victim = idle.told(gang)[-1].pods[0].name
        await idle.namespace.delete_pod(victim)
        stopped = await idle.run(task())
        await idle.until_running(stopped)
        await idle.stop(stopped)
        for allocation in (failing, gang, stopped):
            await idle.until_ended(allocation)
            await idle.withdraw(allocation)
        await idle.namespace.until_empty()
        may = granted("role.yaml", "cluster-role.yaml") - FOR_MISHAPS - FOR_OTHERS - NOT_SERVED_EVERYWHERE

        def have_been_used() -> bool:
            return may <= used(proxy)

        try:
            await eventually(have_been_used, every_s=0.1)
        except AssertionError as error:
            raise AssertionError(f"never used: {may - used(proxy)}") from error
        assert used(proxy) - granted("role.yaml", "cluster-role.yaml") == set()
        await idle.kill()


async def test_without_the_right_to_make_policies_tasks_are_refused_with_the_way_out(
    idle: LauncherHarness, namespace: Namespace
) -> None:
    """They would run without the protection that the settings promise."""
    path = f"{RBAC}/namespaces/{namespace.name}/roles/resolute-launcher"
    role = await namespace.read(path)
    rules = [rule for rule in role["rules"] if "networkpolicies" not in rule["resources"]]
    await namespace.api.patch(path, {"rules": rules})
    idle.settings = msgspec.structs.replace(idle.settings, task_network=POLICIES)
    await idle.start()
    allocation = await idle.run(task())
    ended = await idle.until_ended(allocation)
    assert ended.failure == "LAUNCH_ERROR"
    assert "may not make the network policy" in ended.message
    assert "deploy/helm/rights/role.yaml" in ended.message
    await idle.withdraw(allocation)
    await namespace.until_empty()


@asynccontextmanager
async def with_rights_in_cluster(
    bus: Bus, namespace: Namespace, kubeconfig: Path, directory: Path, resources: set[str]
) -> AsyncIterator[LauncherHarness]:
    """A harness whose launcher has the Role, and of the ClusterRole only what is about these resources."""
    config = await launcher_kubeconfig(namespace, kubeconfig, directory, sees_cluster=False)
    role = yaml.safe_load((RIGHTS / "cluster-role.yaml").read_text())
    name = f"test-{uuid4().hex[:8]}"
    rules = [rule for rule in role["rules"] if set(rule["resources"]) <= resources]
    await namespace.create(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules})
    try:
        async with open_place(bus, namespace, config) as harness:
            binding: Json = {
                "metadata": {"name": name, "labels": {"test": namespace.name}},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
                "subjects": [account_of(harness)],
            }
            await namespace.create(f"{RBAC}/clusterrolebindings", binding)
            await harness.start()
            yield harness
    finally:
        await namespace.api.delete(f"{RBAC}/clusterroles/{name}")


@pytest.mark.parametrize("resource", ["nodes", "pods", "priorityclasses"])
async def test_each_right_in_the_cluster_may_be_missing_by_itself(
    bus: Bus, namespace: Namespace, kubeconfig: Path, tmp_path: Path, resource: str
) -> None:
    left = {"nodes", "pods", "priorityclasses"} - {resource}
    async with with_rights_in_cluster(bus, namespace, kubeconfig, tmp_path, left) as harness:
        owner = Owner(username="alice", uid=1000, gid=1000)
        allocation = await harness.run(task(slots=1, priority=64, owner=owner, notes={"run-seconds": "1"}))
        await harness.until_running(allocation)
        (pod,) = await namespace.pods()
        has_class = resource != "priorityclasses"
        assert pod["spec"].get("priorityClassName") == ("determined-priority-64" if has_class else None)

        async def knows_nodes() -> bool:
            found = await harness.capacity()
            return found is not None and ("sim-0" in {node.name for node in found.nodes}) == (resource != "nodes")

        await eventually(knows_nodes, every_s=0.1)
        ended = await harness.until_ended(allocation)
        assert [each.exit_code for each in ended.pods] == [0]
        await harness.withdraw(allocation)
        await namespace.until_empty()
