"""What the states of containers come to, with the kubelet played by the test: acceptance items A10 and A11."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import groupby

import pytest

from libs.events.observations import AllocationObserved, ObservedPod
from libs.events.orders import Environment
from services.scheduler.allocations.observation import state_seen
from tests.harness.waiting import eventually
from tests.integration.launcher.backends.kubernetes.allocations.statuses import (
    INIT,
    RUNNING,
    OwnNode,
    exited,
    own_node,
    set_status,
    waiting,
)
from tests.integration.launcher.backends.kubernetes.launcher_harness import LauncherHarness, task

pytestmark = [pytest.mark.cluster, pytest.mark.oldest]


@pytest.fixture
async def node(harness: LauncherHarness) -> AsyncIterator[OwnNode]:
    async with own_node(harness.namespace, gpus="4") as made:
        yield made


async def run_on(harness: LauncherHarness, node: OwnNode, *, num_pods: int = 1) -> str:
    environment = Environment(image="local/python:3.11", pod_spec={"spec": node.pod_spec})
    return await harness.run(task(slots=4 * num_pods, num_pods=num_pods, environment=environment))


async def scheduled(harness: LauncherHarness, allocation: str, count: int = 1) -> list[ObservedPod]:
    seen = await harness.until(
        allocation, lambda seen: sum(pod.state == "PULLING" for pod in seen.pods) == count, timeout_s=60
    )
    return list(seen.pods)


async def only_pod(harness: LauncherHarness, node: OwnNode) -> tuple[str, str]:
    allocation = await run_on(harness, node)
    (pod,) = await scheduled(harness, allocation)
    return allocation, pod.name


def climbed(harness: LauncherHarness, allocation: str, num_pods: int) -> list[str]:
    """The states of the allocation as its scheduler derives them, each named once for as long as it lasted."""
    return [state for state, _ in groupby(state_seen(seen, num_pods).value for seen in harness.told(allocation))]


def only(ended: AllocationObserved) -> tuple[int | None, str, str]:
    (pod,) = ended.pods
    return pod.exit_code, pod.failure, pod.message


async def test_two_pods_climb_together(harness: LauncherHarness, node: OwnNode) -> None:
    allocation = await run_on(harness, node, num_pods=2)
    await harness.until(allocation, lambda seen: sorted(pod.state for pod in seen.pods) == ["ASSIGNED", "PULLING"])
    assert climbed(harness, allocation, 2) == ["ASSIGNED"]  # which users read as QUEUED
    await node.resize(gpus="8")
    first, second = [pod.name for pod in await scheduled(harness, allocation, 2)]
    for name in (first, second):
        await set_status(harness.namespace, name, "Pending", init=RUNNING)
    await harness.until(allocation, lambda seen: all(pod.state == "STARTING" for pod in seen.pods))
    for name in (first, second):
        await set_status(harness.namespace, name, "Running", init=exited(0), main=RUNNING)
    await harness.until_running(allocation, 2)
    await set_status(harness.namespace, first, "Succeeded", main=exited(0))
    await harness.until(allocation, lambda seen: any(pod.state == "TERMINATED" for pod in seen.pods))
    assert not harness.told(allocation)[-1].gone
    await set_status(harness.namespace, second, "Succeeded", main=exited(0))
    ended = await harness.until_ended(allocation)
    assert [(pod.exit_code, pod.failure) for pod in ended.pods] == [(0, ""), (0, "")]
    assert climbed(harness, allocation, 2) == ["ASSIGNED", "PULLING", "STARTING", "RUNNING", "TERMINATING"]
    assert sum(seen.gone for seen in harness.told(allocation)) == 1


async def test_an_init_container_that_fails(harness: LauncherHarness, node: OwnNode) -> None:
    allocation, pod = await only_pod(harness, node)
    init = exited(5, message="no such archive")
    await set_status(harness.namespace, pod, "Failed", init=init, main=waiting("PodInitializing"))
    assert only(await harness.until_ended(allocation)) == (5, "FAILED", f"container {INIT}: no such archive")


async def test_the_words_of_a_container_are_told(harness: LauncherHarness, node: OwnNode) -> None:
    allocation, pod = await only_pod(harness, node)
    await set_status(harness.namespace, pod, "Failed", main=exited(3, message="disk full"))
    assert only(await harness.until_ended(allocation)) == (3, "FAILED", "disk full")


async def test_an_image_that_comes_after_all(harness: LauncherHarness, node: OwnNode) -> None:
    allocation, pod = await only_pod(harness, node)
    await set_status(harness.namespace, pod, "Pending", main=waiting("ErrImagePull", "try again"))
    await harness.until(allocation, lambda seen: "ErrImagePull" in seen.pods[0].message)
    await set_status(harness.namespace, pod, "Running", main=RUNNING)
    await harness.until_running(allocation)
    await set_status(harness.namespace, pod, "Succeeded", main=exited(0))
    assert only(await harness.until_ended(allocation)) == (0, "", "")


async def test_a_pod_that_never_ran_is_never_said_to_run(harness: LauncherHarness, node: OwnNode) -> None:
    allocation, pod = await only_pod(harness, node)
    await set_status(harness.namespace, pod, "Pending", main=waiting("ImagePullBackOff", "no such image"))

    async def is_being_deleted() -> bool:
        (found,) = await harness.namespace.pods()
        return "deletionTimestamp" in found["metadata"]

    await eventually(is_being_deleted, every_s=0.1)
    await harness.namespace.delete_pod(pod, grace_s=0)  # as its kubelet does then
    ended = await harness.until_ended(allocation)
    assert "RUNNING" not in climbed(harness, allocation, 1)
    assert [each.failure for each in ended.pods if each.name == pod] == ["IMAGE_PULL"]


async def test_a_sidecar_that_crashes_beside_success(harness: LauncherHarness, node: OwnNode) -> None:
    allocation, pod = await only_pod(harness, node)
    await set_status(harness.namespace, pod, "Running", main=RUNNING, others={"side": exited(1)})
    await harness.until_running(allocation)
    await set_status(harness.namespace, pod, "Failed", main=exited(0), others={"side": exited(1)})
    assert only(await harness.until_ended(allocation)) == (0, "", "")
    await harness.withdraw(allocation)
    await harness.namespace.until_empty()


async def test_evicted_without_a_word_about_its_containers(harness: LauncherHarness, node: OwnNode) -> None:
    allocation, pod = await only_pod(harness, node)
    words = "The node was low on resource: memory."
    await set_status(harness.namespace, pod, "Failed", reason="Evicted", message=words)
    assert only(await harness.until_ended(allocation)) == (None, "DELETED", f"Evicted: {words}")


async def test_a_job_that_failed_and_nobody_knows_why(harness: LauncherHarness, node: OwnNode) -> None:
    allocation, pod = await only_pod(harness, node)
    await harness.kill()
    (job,) = await harness.namespace.jobs()
    path = harness.namespace.paths.job(job["metadata"]["name"])
    await harness.namespace.api.patch(path, {"spec": {"parallelism": 0}})  # or the Job controller makes another pod

    async def has_no_pods() -> bool:
        left = await harness.namespace.pods()
        for each in left:
            if "deletionTimestamp" in each["metadata"]:
                await harness.namespace.delete_pod(pod, grace_s=0)
        return not left and not (await harness.namespace.read(path))["status"].get("terminating")

    await eventually(has_no_pods, every_s=0.1)
    conditions = [
        {
            "type": kind,
            "status": "True",
            "reason": "BackoffLimitExceeded",
            "message": "Job has reached the specified backoff limit",
        }
        for kind in ("FailureTarget", "Failed")  # later releases refuse the one without the other
    ]
    await harness.namespace.api.patch(f"{path}/status", {"status": {"conditions": conditions}})
    await harness.start()
    ended = await harness.until_ended(allocation)
    assert (ended.failure, ended.message) == (
        "FAILED",
        "job exited with a failure but we don't have pod-level detail: Job has reached the specified backoff limit",
    )
