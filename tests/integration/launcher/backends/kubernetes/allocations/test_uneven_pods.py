"""Allocations whose pods differ in slots: several Jobs, which are one allocation to everybody."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from libs.events.orders import TaskSpec
from tests.harness.waiting import eventually
from tests.integration.launcher.backends.kubernetes.client.faulty import FaultyProxy, faulty_proxy
from tests.integration.launcher.backends.kubernetes.launcher_harness import Json, LauncherHarness, task

pytestmark = [pytest.mark.cluster, pytest.mark.oldest]

SIZES = (4, 4, 3)


async def nodes(harness: LauncherHarness) -> list[str]:
    """Simulated nodes with GPUs."""
    found = await harness.namespace.read("/api/v1/nodes")
    names = sorted(
        node["metadata"]["name"] for node in found["items"] if "nvidia.com/gpu" in node["status"].get("allocatable", {})
    )
    assert len(names) >= len(SIZES)
    return names


async def uneven(harness: LauncherHarness, **fields: str) -> TaskSpec:
    return task(
        slots=sum(SIZES),
        num_pods=len(SIZES),
        pod_slots=SIZES,
        pod_nodes=tuple((await nodes(harness))[: len(SIZES)]),
        notes={key.replace("_", "-"): value for key, value in fields.items()},
    )


def variable(pod: Json, name: str) -> str:
    (main,) = [each for each in pod["spec"]["containers"] if each["name"] == "determined-container"]
    (found,) = [entry["value"] for entry in main["env"] if entry["name"] == name]
    return str(found)


def by_slots(pods: list[Json]) -> Counter[str]:
    return Counter(variable(pod, "DET_SLOT_IDS") for pod in pods)


WHOLE = Counter({"[0,1,2,3]": 2, "[0,1,2]": 1})


async def test_each_pod_has_its_slots_and_all_of_them_end_as_one(harness: LauncherHarness) -> None:
    spec = await uneven(harness)
    allocation = await harness.run(spec)
    seen = await harness.until_running(allocation, len(SIZES))
    pods = await harness.namespace.pods()
    assert by_slots(pods) == WHOLE
    assert {variable(pod, "DET_KUBERNETES_JOB_PARALLELISM") for pod in pods} == {"3"}
    assert seen.num_pods == len(SIZES)
    # Those of one size may change places among themselves.
    assert sorted(pod.slots for pod in seen.pods) == sorted(SIZES)
    planned = set(zip(spec.pod_nodes, spec.pod_slots, strict=True))
    assert {(pod.node, pod.slots) for pod in seen.pods} <= planned
    assert sorted(job["metadata"]["name"].rpartition("-")[2] for job in await harness.namespace.jobs()) == ["x3", "x4"]
    capacity = await harness.until_capacity(
        lambda found: sum(device.allocation == allocation for node in found.nodes for device in node.devices) == 11
    )
    assert capacity.uneven_pods
    held = {
        node.name: count
        for node in capacity.nodes
        if (count := sum(device.allocation == allocation for device in node.devices))
    }
    on_nodes: Counter[str] = Counter()
    for pod in seen.pods:
        on_nodes[pod.node] += pod.slots
    assert held == on_nodes
    await harness.stop(allocation)
    ended = await harness.until_ended(allocation)
    assert (ended.stopped, ended.failure) == (True, "")
    await harness.withdraw(allocation)
    await harness.namespace.until_empty()


async def test_they_end_by_themselves(harness: LauncherHarness) -> None:
    allocation = await harness.run(await uneven(harness, run_seconds="0.5"))
    ended = await harness.until_ended(allocation)
    assert [(pod.state, pod.exit_code) for pod in ended.pods] == [("TERMINATED", 0)] * len(SIZES)
    assert ended.failure == ""
    assert len(await harness.namespace.jobs()) == 2, "none goes by itself"
    await harness.withdraw(allocation)
    await harness.namespace.until_empty()


async def test_a_pod_that_fails_ends_the_others(harness: LauncherHarness) -> None:
    allocation = await harness.run(await uneven(harness))
    seen = await harness.until_running(allocation, len(SIZES))
    (smallest,) = [pod.name for pod in seen.pods if pod.slots == 3]
    await harness.namespace.delete_pod(smallest)
    ended = await harness.until_ended(allocation)
    failures = {pod.name: (pod.failure, pod.is_consequence) for pod in ended.pods}
    assert failures.pop(smallest) == ("DELETED", False)
    assert set(failures.values()) == {("DELETED", True)}
    await harness.kill()
    harness.observations.clear()
    await harness.start()
    ended = await harness.until_ended(allocation)
    assert {pod.name: pod.is_consequence for pod in ended.pods}[smallest] is False
    await harness.withdraw(allocation)
    await harness.namespace.until_empty()


async def test_a_job_that_somebody_deletes_ends_the_other(harness: LauncherHarness) -> None:
    allocation = await harness.run(await uneven(harness))
    await harness.until_running(allocation, len(SIZES))
    smaller = sorted(job["metadata"]["name"] for job in await harness.namespace.jobs())[0]
    await harness.namespace.api.delete(harness.namespace.paths.job(smaller), {"propagationPolicy": "Background"})
    ended = await harness.until_ended(allocation)
    assert {pod.failure for pod in ended.pods if not pod.is_consequence} | {ended.failure} >= {"DELETED"}
    await harness.withdraw(allocation)
    await harness.namespace.until_empty()


async def test_running_ones_are_adopted(harness: LauncherHarness) -> None:
    allocation = await harness.run(await uneven(harness))
    await harness.until_running(allocation, len(SIZES))
    await harness.kill()
    before = {job["metadata"]["uid"] for job in await harness.namespace.jobs()}
    harness.observations.clear()
    await harness.start()
    seen = await harness.until_running(allocation, len(SIZES))
    assert sorted(pod.slots for pod in seen.pods) == sorted(SIZES)
    assert seen.num_pods == len(SIZES)
    assert {job["metadata"]["uid"] for job in await harness.namespace.jobs()} == before
    await harness.stop(allocation)
    assert (await harness.until_ended(allocation)).stopped
    await harness.withdraw(allocation)
    await harness.namespace.until_empty()


async def test_a_job_that_was_deleted_while_nobody_looked_ends_the_other(harness: LauncherHarness) -> None:
    allocation = await harness.run(await uneven(harness))
    await harness.until_running(allocation, len(SIZES))
    await harness.kill()
    smaller = sorted(job["metadata"]["name"] for job in await harness.namespace.jobs())[0]
    await harness.namespace.api.delete(harness.namespace.paths.job(smaller), {"propagationPolicy": "Background"})

    async def is_gone() -> bool:
        return len(await harness.namespace.pods()) == 2

    await eventually(is_gone)
    harness.observations.clear()
    await harness.start()
    ended = await harness.until_ended(allocation)
    assert ended.failure == "DELETED"
    await harness.withdraw(allocation)
    await harness.namespace.until_empty()


@pytest.fixture
async def proxy(idle: LauncherHarness, tmp_path: Path) -> AsyncIterator[FaultyProxy]:
    """Between the launcher and the API server; of Jobs it lets only the first be made."""
    made = 0

    async def refuse_others(request: web.Request) -> web.StreamResponse | None:
        nonlocal made
        if request.method != "POST" or not request.path.endswith("/jobs"):
            return None
        made += 1
        return web.json_response({"message": "not now"}, status=500) if made > 1 else None

    async with faulty_proxy(Path(idle.settings.kubeconfig or ""), tmp_path) as (found, kubeconfig):
        idle.settings = msgspec.structs.replace(idle.settings, kubeconfig=str(kubeconfig))
        found.fault = refuse_others
        yield found
        await idle.kill()


@pytest.fixture
async def half_made(idle: LauncherHarness, proxy: FaultyProxy) -> str:
    """An allocation whose launcher was killed between its first Job and its second."""
    await idle.start()
    # Simulated pods would start without what a killed launcher has not made; real ones wait for it.
    allocation = await idle.run(await uneven(idle, start_seconds="60"))

    async def was_refused() -> bool:
        return sum(method == "POST" and path.endswith("/jobs") for _, method, path in proxy.requests) > 1

    await eventually(was_refused)
    await idle.kill()
    assert len(await idle.namespace.jobs()) == 1
    proxy.fault = None
    return allocation


async def until_whole(harness: LauncherHarness) -> None:
    async def is_whole() -> bool:
        pods = [pod for pod in await harness.namespace.pods() if "deletionTimestamp" not in pod["metadata"]]
        made = await harness.namespace.items(harness.namespace.paths.config_maps, "determined")
        return bool(made) and by_slots(pods) == WHOLE

    await eventually(is_whole)


async def test_the_job_that_is_missing_is_made(idle: LauncherHarness, half_made: str) -> None:
    (begun,) = await idle.namespace.jobs()
    await idle.start()
    await until_whole(idle)
    jobs = await idle.namespace.jobs()
    assert len(jobs) == 2
    assert begun["metadata"]["uid"] in {job["metadata"]["uid"] for job in jobs}
    await idle.withdraw(half_made)
    await idle.namespace.until_empty()


async def test_what_is_half_made_goes_with_its_order(idle: LauncherHarness, half_made: str) -> None:
    await idle.withdraw(half_made)
    await idle.start()
    await idle.namespace.until_empty()


async def test_what_other_settings_began_is_made_anew(idle: LauncherHarness, half_made: str) -> None:
    (begun,) = await idle.namespace.jobs()
    idle.tasks = msgspec.structs.replace(idle.tasks, master_url="http://another-master:8080")
    await idle.start()
    await until_whole(idle)
    jobs = await idle.namespace.jobs()
    assert begun["metadata"]["uid"] not in {job["metadata"]["uid"] for job in jobs}
    await idle.withdraw(half_made)
    await idle.namespace.until_empty()
