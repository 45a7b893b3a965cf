"""Launchers that are killed, and others beside them: acceptance item A13."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest

from libs.bus import Bus
from libs.events.orders import Environment
from tests.harness.waiting import eventually
from tests.integration.launcher.backends.kubernetes.allocations.statuses import RUNNING, exited, own_node, set_status
from tests.integration.launcher.backends.kubernetes.launcher_harness import (
    CLUSTER_ID,
    POOL,
    LauncherHarness,
    Namespace,
    launcher_kubeconfig,
    open_place,
    task,
)

pytestmark = [pytest.mark.cluster, pytest.mark.oldest]

LAUNCH_RECORD = "resolute/purpose=launch-record"


async def test_running_pending_and_ended_allocations_are_found_again(harness: LauncherHarness) -> None:
    running = await harness.run(task())
    pending = await harness.run(task(notes={"start-seconds": "6"}))
    ending = await harness.run(task(notes={"run-seconds": "5", "exit-code": "7"}))
    await harness.until_running(running)
    await harness.until_begun(ending)
    await harness.kill()
    jobs = {job["metadata"]["uid"] for job in await harness.namespace.jobs()}
    await harness.namespace.until_failed(ending)
    harness.observations.clear()
    await harness.start()
    ended = await harness.until_ended(ending)
    assert [(pod.exit_code, pod.failure) for pod in ended.pods] == [(7, "FAILED")]
    await harness.until_running(running)
    await harness.until_running(pending)
    assert {job["metadata"]["uid"] for job in await harness.namespace.jobs()} == jobs


async def test_how_a_gang_ended_is_known_after_its_pods_are_gone(harness: LauncherHarness) -> None:
    allocation = await harness.run(task(slots=8, num_pods=2))
    seen = await harness.until_running(allocation, 2)
    await harness.namespace.delete_pod(seen.pods[0].name)
    await harness.until_ended(allocation)
    await harness.kill()
    harness.observations.clear()
    await harness.start()
    ended = await harness.until_ended(allocation)
    assert {pod.name: pod.failure for pod in ended.pods}[seen.pods[0].name] == "DELETED"
    await harness.withdraw(allocation)
    await harness.namespace.until_empty()


async def test_who_failed_first_is_known_from_what_is_left(harness: LauncherHarness) -> None:
    """Pods are listed by their names; the one that failed is the last here, and the one that ended of it the first."""
    async with own_node(harness.namespace, gpus="8") as node:
        environment = Environment(image="local/python:3.11", pod_spec={"spec": node.pod_spec})
        allocation = await harness.run(task(slots=8, num_pods=2, environment=environment))
        seen = await harness.until(allocation, lambda seen: [pod.state for pod in seen.pods] == ["PULLING"] * 2)
        first, last = sorted(pod.name for pod in seen.pods)
        for name in (first, last):
            await set_status(harness.namespace, name, "Running", init=exited(0), main=RUNNING)
        await harness.until_running(allocation, 2)
        await harness.kill()
        await set_status(harness.namespace, last, "Failed", main=exited(7))

        async def is_being_deleted() -> bool:
            return "deletionTimestamp" in (await harness.namespace.read(harness.namespace.paths.pod(first)))["metadata"]

        await eventually(is_being_deleted)
        harness.observations.clear()
        await harness.start()
        await harness.until(allocation, lambda seen: any(pod.state == "TERMINATED" for pod in seen.pods))
        await harness.namespace.delete_pod(first, grace_s=0)
        ended = await harness.until_ended(allocation)
        told = {pod.name: (pod.exit_code, pod.failure, pod.is_consequence) for pod in ended.pods}
        assert told == {first: (None, "DELETED", True), last: (7, "FAILED", False)}


async def test_jobs_without_an_order_are_removed(harness: LauncherHarness) -> None:
    allocation = await harness.run(task())
    await harness.until_running(allocation)
    await harness.kill()
    await harness.withdraw(allocation)
    await harness.start()
    await harness.namespace.until_empty()


async def test_what_was_deleted_while_nobody_looked_does_not_begin_anew(harness: LauncherHarness) -> None:
    allocation = await harness.run(task())
    await harness.until_running(allocation)

    async def is_written() -> bool:
        return bool(await harness.namespace.items(harness.namespace.paths.config_maps, LAUNCH_RECORD))

    await eventually(is_written)
    await harness.kill()
    (job,) = await harness.namespace.jobs()
    await harness.namespace.api.delete(
        harness.namespace.paths.job(job["metadata"]["name"]), {"propagationPolicy": "Background"}
    )
    await harness.namespace.until_empty()
    harness.observations.clear()
    await harness.start()
    ended = await harness.until_ended(allocation)
    assert (ended.failure, ended.message) == ("DELETED", "job was deleted")
    assert await harness.namespace.jobs() == []
    await harness.withdraw(allocation)

    async def is_forgotten() -> bool:
        (launch_record,) = await harness.namespace.items(harness.namespace.paths.config_maps, LAUNCH_RECORD)
        return not launch_record.get("data")

    await eventually(is_forgotten)


async def test_a_stop_is_carried_on(harness: LauncherHarness) -> None:
    allocation = await harness.run(task())
    await harness.until_running(allocation)
    await harness.kill()
    await harness.stop(allocation)
    await harness.start()
    ended = await harness.until_ended(allocation)
    assert ended.stopped is True


async def test_installations_and_pools_do_not_notice_each_other(
    harness: LauncherHarness, bus: Bus, namespace: Namespace, kubeconfig: Path, tmp_path: Path
) -> None:
    foreign = {
        "metadata": {"name": "foreign", "labels": {"determined": "5.x.1", "determined.ai/resource_pool": POOL}},
        "spec": {
            "template": {
                "metadata": {"labels": {"determined": "5.x.1"}},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
            }
        },
    }
    await namespace.create(namespace.paths.jobs, foreign)
    mine = await harness.run(task())
    await harness.until_running(mine)
    other_config = await launcher_kubeconfig(namespace, kubeconfig, tmp_path)
    async with open_place(bus, namespace, other_config) as other:
        other.pool = "others"
        other.cluster = msgspec.structs.replace(
            other.cluster,
            resource_pools=(msgspec.structs.replace(other.cluster.resource_pools[0], pool_name="others"),),
        )
        other.settings = msgspec.structs.replace(other.settings, cluster_id=str(uuid4()))
        await other.start()
        theirs = await other.run(task())
        await other.until_running(theirs)
        await asyncio.sleep(1)
        assert {job["metadata"]["labels"]["determined"] for job in await namespace.jobs()} == {mine, theirs, "5.x.1"}
        assert not other.told(mine) or all(seen.pool == POOL for seen in other.told(mine))
        await other.withdraw(theirs)

        async def is_gone() -> bool:
            return {job["metadata"]["labels"]["determined"] for job in await namespace.jobs()} == {mine, "5.x.1"}

        await eventually(is_gone)
    (pod,) = await namespace.pods(f"determined={mine}")
    assert pod["status"]["phase"] == "Running"


async def test_a_foreign_job_of_the_same_name_is_in_the_way_and_left_alone(harness: LauncherHarness) -> None:
    spec = task()
    name = f"det-{CLUSTER_ID[:8]}-cmd-{spec.task}"
    job = {
        "metadata": {"name": name},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}},
    }
    await harness.namespace.create(harness.namespace.paths.jobs, job)
    allocation = await harness.run(spec)
    ended = await harness.until_ended(allocation)
    assert "is somebody else's" in ended.message
    await harness.withdraw(allocation)
    await asyncio.sleep(0.5)
    assert [each["metadata"]["name"] for each in await harness.namespace.jobs("")] == [name]
