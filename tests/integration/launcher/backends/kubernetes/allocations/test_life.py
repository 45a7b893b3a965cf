"""Orders become Jobs, and what happens to their pods becomes observations: acceptance items A1 to A4, A9 to A11."""

from __future__ import annotations

import asyncio
import random

import pytest

from libs.events.orders import Environment, TaskFile
from tests.harness.waiting import eventually
from tests.integration.launcher.backends.kubernetes.launcher_harness import Json, LauncherHarness, env_of, task
from tests.unit.launcher.specs import trial

pytestmark = [pytest.mark.cluster, pytest.mark.oldest]


async def until_nothing_runs(harness: LauncherHarness) -> None:
    """The Job controller of old clusters may have put a pod in the place of one that was deleted, for a moment."""

    async def is_over() -> bool:
        return not [pod for pod in await harness.namespace.pods() if pod["status"]["phase"] in ("Pending", "Running")]

    await eventually(is_over, every_s=0.1)


async def limit(harness: LauncherHarness, quota: Json) -> None:
    """Make a quota, and wait until it is in force."""
    await harness.namespace.create(harness.namespace.paths.quotas, quota)

    async def is_in_force() -> bool:
        found = await harness.namespace.read(f"{harness.namespace.paths.quotas}/{quota['metadata']['name']}")
        return "used" in found.get("status", {})

    await eventually(is_in_force, every_s=0.1)


async def test_objects_of_an_order_are_there_and_go_with_their_job(harness: LauncherHarness) -> None:
    spec = task(slots=8, num_pods=2, workspace="My Team: 1")
    allocation = await harness.run(spec)
    seen = await harness.until_running(allocation, 2)
    assert {pod.node for pod in seen.pods} <= {f"sim-{index}" for index in range(8)}
    assert all(pod.addresses for pod in seen.pods)
    (job,) = await harness.namespace.jobs(f"determined={allocation}")
    assert job["metadata"]["name"] == f"det-0a1b2c3d-cmd-{spec.task}"
    assert job["spec"]["parallelism"] == 2
    assert env_of(job)["DET_KUBERNETES_JOB_PARALLELISM"]["value"] == "2"
    main = job["spec"]["template"]["spec"]["containers"][-1]
    assert main["resources"]["limits"] == {"nvidia.com/gpu": "4"}
    (config_map,) = await harness.namespace.items(harness.namespace.paths.config_maps, f"determined={allocation}")
    (secret,) = await harness.namespace.items(harness.namespace.paths.secrets, f"determined={allocation}")
    for owned in (config_map, secret):
        assert owned["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]
    await harness.kill()
    await harness.namespace.api.delete(
        harness.namespace.paths.job(job["metadata"]["name"]), {"propagationPolicy": "Background"}
    )
    await harness.namespace.until_empty()


@pytest.mark.parametrize(
    "task_type", ["TRIAL", "NOTEBOOK", "SHELL", "COMMAND", "TENSORBOARD", "CHECKPOINT_GC", "GENERIC"]
)
async def test_pods_of_every_task_type_are_accepted(harness: LauncherHarness, task_type: str) -> None:
    base = task(task_type=task_type)
    spec = (
        trial(**{name: getattr(base, name) for name in ("task", "description", "environment", "cluster_id")})
        if (task_type == "TRIAL")
        else base
    )
    allocation = await harness.run(spec)
    await harness.until_running(allocation)
    assert not [text for text in harness.text(allocation) if "Error creating" in text]


async def test_states_of_a_gang_in_their_order(harness: LauncherHarness) -> None:
    spec = task(slots=8, num_pods=2, notes={"run-seconds": "8"})  # long enough to be seen to run
    allocation = await harness.run(spec)
    ended = await harness.until_ended(allocation)
    assert [(pod.state, pod.exit_code) for pod in ended.pods] == [("TERMINATED", 0)] * 2
    rank = {state: index for index, state in enumerate(("ASSIGNED", "PULLING", "STARTING", "RUNNING", "TERMINATED"))}
    for name in {pod.name for pod in ended.pods}:
        states = [rank[pod.state] for seen in harness.told(allocation) for pod in seen.pods if pod.name == name]
        assert states == sorted(states)
        assert rank["RUNNING"] in states
    assert sum(seen.gone for seen in harness.told(allocation)) == 1
    await harness.withdraw(allocation)
    await harness.namespace.until_empty()


ENDINGS = [
    ({"run-seconds": "0.1", "exit-code": "3"}, 3, "FAILED", ""),
    ({"run-seconds": "0.1", "fail": "OOMKilled"}, 137, "FAILED", "OOMKilled"),
    ({"run-seconds": "0.1", "fail": "Evicted"}, None, "DELETED", "Evicted: The node was low on resource: memory."),
    ({"fail": "ImagePullBackOff"}, None, "IMAGE_PULL", "job was stuck due to unrecoverable image pull errors"),
    ({"fail": "CreateContainerConfigError"}, None, "LAUNCH_ERROR", "simulated CreateContainerConfigError"),
]


@pytest.mark.parametrize(("notes", "code", "failure", "words"), ENDINGS, ids=lambda value: str(value)[:40])
async def test_failures_and_their_words(
    harness: LauncherHarness, notes: dict[str, str], code: int | None, failure: str, words: str
) -> None:
    allocation = await harness.run(task(notes=notes))
    ended = await harness.until_ended(allocation)
    (pod,) = ended.pods
    assert (pod.exit_code, pod.failure) == (code, failure)
    assert words in pod.message
    await harness.withdraw(allocation)
    await harness.namespace.until_empty()


async def test_an_image_that_cannot_be_pulled_now_may_come(harness: LauncherHarness) -> None:
    allocation = await harness.run(task(notes={"fail": "ErrImagePull"}))
    await harness.until(allocation, lambda seen: any("ErrImagePull" in pod.message for pod in seen.pods))
    await asyncio.sleep(1.5)  # longer than stuck pods get
    assert not harness.told(allocation)[-1].gone


@pytest.mark.parametrize("moment", ["pending", "running"])
async def test_a_pod_that_somebody_deletes_is_not_replaced(harness: LauncherHarness, moment: str) -> None:
    notes = {} if moment == "running" else {"start-seconds": "60"}
    allocation = await harness.run(task(notes=notes))
    wanted = "RUNNING" if moment == "running" else "PULLING"
    seen = await harness.until(allocation, lambda seen: any(pod.state == wanted for pod in seen.pods))
    await harness.namespace.delete_pod(seen.pods[0].name)
    ended = await harness.until_ended(allocation)
    assert "DELETED" in {pod.failure for pod in ended.pods}
    assert any("deleted pod" in pod.message for pod in ended.pods)
    await until_nothing_runs(harness)


async def test_the_documented_way_to_delete_all_pods(harness: LauncherHarness) -> None:
    allocations = [await harness.run(task()) for _ in range(5)]
    for allocation in allocations:
        await harness.until_running(allocation)
    for pod in await harness.namespace.pods("determined"):
        await harness.namespace.delete_pod(pod["metadata"]["name"])
    for allocation in allocations:
        await harness.until_ended(allocation)
    await until_nothing_runs(harness)


async def test_a_job_that_somebody_deletes(harness: LauncherHarness) -> None:
    allocation = await harness.run(task())
    await harness.until_running(allocation)
    (job,) = await harness.namespace.jobs()
    await harness.namespace.api.delete(
        harness.namespace.paths.job(job["metadata"]["name"]), {"propagationPolicy": "Background"}
    )
    ended = await harness.until_ended(allocation)
    assert "job was deleted" in {ended.message, *(pod.message for pod in ended.pods)}
    await asyncio.sleep(0.5)
    assert await harness.namespace.jobs() == []


async def test_a_job_that_is_deleted_without_its_pods(harness: LauncherHarness) -> None:
    allocation = await harness.run(task())
    await harness.until_running(allocation)
    (job,) = await harness.namespace.jobs()
    path = harness.namespace.paths.job(job["metadata"]["name"])
    await harness.namespace.api.delete(path, {"propagationPolicy": "Orphan"})

    async def is_deleted() -> bool:
        return not await harness.namespace.jobs()

    await eventually(is_deleted)
    await harness.stop(allocation)
    await harness.until_ended(allocation)
    await harness.withdraw(allocation)

    async def has_no_pods() -> bool:
        return not await harness.namespace.pods()

    await eventually(has_no_pods)


async def test_the_death_of_one_pod_ends_the_gang(harness: LauncherHarness) -> None:
    allocation = await harness.run(task(slots=12, num_pods=3))
    seen = await harness.until_running(allocation, 3)
    victim = seen.pods[1].name
    status = {
        "phase": "Failed",
        "containerStatuses": [
            {
                "name": "determined-container",
                "image": "i",
                "imageID": "i",
                "ready": False,
                "restartCount": 0,
                "state": {"terminated": {"exitCode": 9, "reason": "Error"}},
            }
        ],
    }
    await harness.namespace.api.patch(f"{harness.namespace.paths.pod(victim)}/status", {"status": status})
    ended = await harness.until_ended(allocation)
    by_name = {pod.name: pod for pod in ended.pods}
    assert (by_name[victim].exit_code, by_name[victim].failure) == (9, "FAILED")
    others = [pod for name, pod in by_name.items() if name != victim]
    assert len(others) == 2
    assert all(pod.failure == "DELETED" for pod in others)
    assert any("failed" in pod.message for pod in others)


async def test_a_sidecar_neither_prolongs_nor_fails_a_task(harness: LauncherHarness) -> None:
    allocation = await harness.run(task())
    seen = await harness.until_running(allocation)
    name = seen.pods[0].name
    states = {
        "determined-container": {"terminated": {"exitCode": 0}},
        "determined-fluent-container": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
    }
    statuses = [
        {"name": each, "image": "i", "imageID": "i", "ready": False, "restartCount": 0, "state": state}
        for each, state in states.items()
    ]
    await harness.namespace.api.patch(
        f"{harness.namespace.paths.pod(name)}/status", {"status": {"containerStatuses": statuses}}
    )
    ended = await harness.until_ended(allocation)
    assert [(pod.exit_code, pod.failure) for pod in ended.pods] == [(0, "")]
    await harness.withdraw(allocation)
    await harness.namespace.until_empty()


async def test_stopped_by_order(harness: LauncherHarness) -> None:
    allocation = await harness.run(task())
    await harness.until_running(allocation)
    await harness.stop(allocation)
    ended = await harness.until_ended(allocation)
    assert (ended.stopped, ended.failure) == (True, "")
    await harness.withdraw(allocation)
    await harness.namespace.until_empty()


async def test_withdrawn_orders_leave_nothing(harness: LauncherHarness) -> None:
    allocations = [await harness.run(task()) for _ in range(3)]
    await harness.until_running(allocations[0])
    for allocation in allocations:
        await harness.withdraw(allocation)
    await harness.namespace.until_empty()


async def test_what_is_killed_before_its_turn_is_never_made(idle: LauncherHarness) -> None:
    harness = idle
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"count/jobs.batch": "1000"}}}
    await harness.namespace.create(harness.namespace.paths.quotas, quota)
    await harness.start()
    assert harness.backend is not None
    harness.backend._creation._queue = asyncio.Queue()  # nobody takes anything out of it: the workers are stalled
    allocations = [await harness.run(task()) for _ in range(50)]
    for allocation in allocations:
        await harness.until(allocation, lambda seen: not seen.gone)
    for allocation in allocations:
        await harness.stop(allocation)
    for allocation in allocations:
        ended = await harness.until_ended(allocation)
        assert (ended.stopped, ended.failure, ended.pods) == (True, "", ())
    assert await harness.namespace.remains() == []


async def test_kill_while_being_made(harness: LauncherHarness) -> None:
    allocations = [await harness.run(task()) for _ in range(20)]
    for allocation in allocations:
        await harness.stop(allocation, grace_s=1)
    for allocation in allocations:
        await harness.until_ended(allocation)
        await harness.withdraw(allocation)
    await harness.namespace.until_empty()


async def test_a_refused_config_map_leaves_nothing_and_says_why(harness: LauncherHarness) -> None:
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"count/configmaps": "0"}}}
    await limit(harness, quota)
    allocation = await harness.run(task())
    ended = await harness.until_ended(allocation)
    assert (ended.failure, ended.pods) == ("LAUNCH_ERROR", ())
    assert "exceeded quota: q" in ended.message
    await harness.namespace.until_empty()


async def test_a_pod_that_is_none_for_kubernetes(harness: LauncherHarness) -> None:
    pod_spec = {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/a"}, "emptyDir": {}}]}}
    allocation = await harness.run(task(environment=Environment(image="i", pod_spec=pod_spec)))
    ended = await harness.until_ended(allocation)
    assert ended.failure == "LAUNCH_ERROR"
    assert "may not specify more than 1 volume type" in ended.message
    assert await harness.namespace.remains() == []


async def test_a_task_that_is_too_large_is_refused_before_anything_is_made(harness: LauncherHarness) -> None:
    files = (TaskFile(path="big", content=random.Random(1).randbytes(700_000)),) * 1
    noise = tuple((f"N{index}", random.Random(index).randbytes(40_000).hex()) for index in range(6))
    allocation = await harness.run(task(files=files, extra_environment=noise))
    ended = await harness.until_ended(allocation)
    assert "Kubernetes allows 1048576" in ended.message
    assert await harness.namespace.remains() == []


async def test_quota_of_slots_is_waited_for_and_told(harness: LauncherHarness) -> None:
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"requests.nvidia.com/gpu": "1"}}}
    await limit(harness, quota)
    allocation = await harness.run(task(slots=2))
    await harness.until(allocation, lambda seen: seen.quota_blocked)
    assert any("exceeded quota" in text for text in harness.text(allocation))
    await harness.namespace.api.patch(
        f"{harness.namespace.paths.quotas}/q", {"spec": {"hard": {"requests.nvidia.com/gpu": "2"}}}
    )
    running = await harness.until(
        allocation, lambda seen: bool(seen.pods) and seen.pods[0].state == "RUNNING", timeout_s=90
    )
    assert running.quota_blocked is False


async def test_a_pod_that_the_cluster_refuses_to_make(harness: LauncherHarness) -> None:
    pod_spec = {"spec": {"serviceAccountName": "nobody"}}
    allocation = await harness.run(task(environment=Environment(image="i", pod_spec=pod_spec)))
    ended = await harness.until_ended(allocation)
    assert ended.failure == "LAUNCH_ERROR"
    assert 'serviceaccount "nobody" not found' in ended.message
    await harness.withdraw(allocation)
    await harness.namespace.until_empty()


async def test_events_are_in_the_tasks_log(harness: LauncherHarness) -> None:
    spec = task(slots=4)
    allocation = await harness.run(spec)
    seen = await harness.until_running(allocation)
    name = seen.pods[0].name

    async def is_told() -> bool:
        return f"Pod {name}: Pod resources allocated." in harness.text(allocation)

    await eventually(is_told)
    assert all(batch.task == spec.task and batch.stream == f"k8s/{allocation}" for batch in harness.lines)


async def test_what_finds_no_node_says_why(harness: LauncherHarness) -> None:
    pod_spec = {"spec": {"nodeSelector": {"no": "where"}}}
    allocation = await harness.run(task(slots=1, environment=Environment(image="i", pod_spec=pod_spec)))
    seen = await harness.until(allocation, lambda seen: any("nodes are available" in pod.message for pod in seen.pods))
    assert seen.pods[0].state == "ASSIGNED"
    assert seen.pods[0].message.startswith("Unschedulable: 0/")
