"""What an order becomes, as the API server took it: acceptance items A1 to A4, A6 to A8, A19 and A20 in part."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from libs.events.orders import BindMount, Environment, Owner, ProxyPort, TaskSpec
from services.launcher.backends.kubernetes.manifests.files import archives
from services.launcher.container.files import Placed
from services.launcher.container.paths import RUN_DIR
from tests.harness.waiting import eventually
from tests.integration.launcher.backends.kubernetes.launcher_harness import (
    CLUSTER_ID,
    POOL,
    Json,
    LauncherHarness,
    cluster,
    env_of,
    task,
)
from tests.unit.launcher.specs import trial

pytestmark = [pytest.mark.cluster, pytest.mark.oldest]

GPU, ROCM = "nvidia.com/gpu", "amd.com/gpu"


async def job_of(harness: LauncherHarness, allocation: str) -> Json:
    """The Job once everything of the allocation was made, or the words with which it was refused."""

    async def look() -> Json | None:
        ended = [seen for seen in harness.told(allocation) if seen.gone]
        assert not ended, ended
        if not await harness.namespace.items(harness.namespace.paths.config_maps, f"determined={allocation}"):
            return None
        (job,) = await harness.namespace.jobs(f"determined={allocation}")
        return job

    found = await eventually(look, timeout_s=60, every_s=0.1)
    assert found is not None
    return found


async def made(harness: LauncherHarness, spec: TaskSpec) -> Json:
    return await job_of(harness, await harness.run(spec))


async def until_a_pod_is_made(harness: LauncherHarness, allocation: str) -> Json:
    """The Job controller makes pods from the template, and the server judges them."""

    async def look() -> list[Json]:
        assert not [text for text in harness.text(allocation) if "Error creating" in text], harness.text(allocation)
        return await harness.namespace.pods(f"determined={allocation}")

    return (await eventually(look, timeout_s=60, every_s=0.1))[0]


def spec_of(job: Json) -> Json:
    pod: Json = job["spec"]["template"]["spec"]
    return pod


def main_of(job: Json) -> Json:
    container: Json = spec_of(job)["containers"][-1]
    assert container["name"] == "determined-container"
    return container


SIZES = [
    ("cuda", 0, 1, {}, "[]", True),
    ("cuda", 1, 1, {GPU: "1"}, "[0]", False),
    ("cuda", 8, 2, {GPU: "4"}, "[0,1,2,3]", False),
    ("rocm", 0, 1, {}, "[]", True),
    ("rocm", 1, 1, {ROCM: "1"}, "[0]", False),
    ("rocm", 8, 2, {ROCM: "4"}, "[0,1,2,3]", False),
    ("cpu", 0, 1, {}, "[]", True),
    ("cpu", 1, 1, {"cpu": "500m"}, "[0]", True),
    ("cpu", 8, 2, {"cpu": "2"}, "[0,1,2,3]", True),
]


@pytest.mark.parametrize("slot_type", ["cuda", "rocm", "cpu"])
async def test_every_size_on_every_kind_of_slot(idle: LauncherHarness, slot_type: str) -> None:
    idle.cluster = cluster(
        resource_manager={
            "type": "kubernetes",
            "slot_type": slot_type,
            "slot_resource_requests": {"cpu": 0.5},
            "max_slots_per_pod": 4,
            "default_compute_resource_pool": POOL,
            "default_aux_resource_pool": POOL,
        }
    )
    await idle.start()
    for _, slots, pods, resources, slot_ids, hides_gpus in [size for size in SIZES if size[0] == slot_type]:
        allocation = await idle.run(task(slots=slots, num_pods=pods))
        job = await job_of(idle, allocation)
        assert (job["spec"]["parallelism"], job["spec"]["completions"], job["spec"]["backoffLimit"]) == (pods, pods, 0)
        found = main_of(job)["resources"]
        assert found.get("limits", {}) == found.get("requests", {}) == resources
        variables = env_of(job)
        assert json.loads(variables["DET_SLOT_IDS"]["value"]) == json.loads(slot_ids)
        assert variables["DET_KUBERNETES_JOB_PARALLELISM"]["value"] == str(pods)
        assert ("NVIDIA_VISIBLE_DEVICES" in variables) == hides_gpus
        if hides_gpus:
            assert variables["NVIDIA_VISIBLE_DEVICES"]["value"] == "void"
        for path in (idle.namespace.paths.config_maps, idle.namespace.paths.secrets):
            assert len(await idle.namespace.items(path, f"determined={allocation}")) == 1
        await until_a_pod_is_made(idle, allocation)


ODD_NAMES = {
    "simple-Characters.With_Other": "simple-Characters.With_Other",
    "letters contain *@ other chars -=%": "letters_contain____other_chars",
    "-%4-simpleCharacters0": "4-simpleCharacters0",
    "simple-Characters4%-.#": "simple-Characters4",
    "simpleCharactersGoesOnForWayTooLong36384042444648505254565860-_AndThenSome": (
        "simpleCharactersGoesOnForWayTooLong36384042444648505254565860"
    ),
    "name@domain.com": "name_domain.com",
}


async def test_labels_with_odd_names_are_found_by_selectors(harness: LauncherHarness) -> None:
    for name, label in ODD_NAMES.items():
        base = task(workspace=name, owner=Owner(username=name))
        spec = trial(
            **{field: getattr(base, field) for field in ("task", "description", "environment", "workspace", "owner")},
            cluster_id=CLUSTER_ID,
            submitted_at=datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC),
        )
        allocation = await harness.run(spec)
        job = await job_of(harness, allocation)
        expected = {
            "determined": allocation,
            "determined.ai/allocation_id": allocation,
            "determined.ai/container_id": allocation,
            "determined.ai/task_id": spec.task,
            "determined.ai/task_type": "TRIAL",
            "determined.ai/resource_pool": POOL,
            "determined.ai/workspace": label,
            "determined.ai/user": label,
            "determined.ai/experiment_id": "5",
            "determined.ai/trial_id": "7",
            "determined-queue-position": "17" + 44 * "0",
        }
        for labels in (job["metadata"]["labels"], job["spec"]["template"]["metadata"]["labels"]):
            assert expected.items() <= labels.items()
    paths = harness.namespace.paths
    for path in (paths.jobs, paths.config_maps, paths.pods):
        assert len(await harness.namespace.items(path, "determined")) == len(ODD_NAMES)


@pytest.mark.parametrize(
    "task_type", ["TRIAL", "NOTEBOOK", "SHELL", "COMMAND", "TENSORBOARD", "CHECKPOINT_GC", "GENERIC"]
)
async def test_the_most_that_a_task_of_each_type_may_have_is_accepted(harness: LauncherHarness, task_type: str) -> None:
    own = {"name": "determined-container", "volumeMounts": [{"name": "mine", "mountPath": "/dev/shm"}]}
    pod_spec = {"spec": {"volumes": [{"name": "mine", "emptyDir": {"medium": "Memory"}}], "containers": [own]}}
    base = task(task_type=task_type)
    fields: dict[str, Any] = {
        "environment": Environment(image="local/python:3.11", pod_spec=pod_spec, ports=(8000,)),
        "bind_mounts": (BindMount(host_path="/data", container_path="data", read_only=True),),
        "shared_fs_host_path": "/checkpoints",
        "startup_hook": "true",
        "work_dir": "/elsewhere",
        "proxy_ports": (ProxyPort(service_id="a", port=8000), ProxyPort(service_id="b", port=8001, proxy_tcp=True)),
        "priority": 62,
    }
    if task_type == "TRIAL":
        fields["ports"] = {"DTRAIN_SSH_PORT": 12350, "C10D_PORT": 29400}
        same = {name: getattr(base, name) for name in ("task", "description", "cluster_id")}
        spec = trial(**same, **fields)
    else:
        spec = msgspec.structs.replace(base, **fields)
    allocation = await harness.run(spec)
    pod = await until_a_pod_is_made(harness, allocation)
    main = pod["spec"]["containers"][-1]
    mounts = [mount["mountPath"] for mount in main["volumeMounts"]]
    assert len(mounts) == len(set(mounts))
    assert {"/dev/shm", f"{main['workingDir']}/data", "/determined_shared_fs"} <= set(mounts)
    expected = "determined-priority-62" if task_type != "CHECKPOINT_GC" else pod["spec"].get("priorityClassName")
    assert pod["spec"].get("priorityClassName") == expected
    await harness.until_running(allocation)


async def test_two_files_of_root_with_one_name_fail_the_launch_and_leave_nothing(
    harness: LauncherHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    twice = (Placed(f"{RUN_DIR}/a/hosts", 0o644, b"1", "root"), Placed(f"{RUN_DIR}/b/hosts", 0o644, b"2", "root"))
    monkeypatch.setattr(archives, "container_files", lambda *_args, **_fields: twice)
    allocation = await harness.run(task())
    ended = await harness.until_ended(allocation)
    assert ended.failure == "LAUNCH_ERROR"
    assert ended.message == f"multiple rooted files have same file name {RUN_DIR}/b/hosts"
    assert await harness.namespace.remains() == []


async def test_both_containers_run_as_the_agent_user(harness: LauncherHarness) -> None:
    wanted = {"runAsUser": 0, "runAsGroup": 0, "readOnlyRootFilesystem": True, "capabilities": {"add": ["SYS_PTRACE"]}}
    pod_spec = {
        "spec": {
            "securityContext": {"fsGroup": 7},
            "containers": [{"name": "determined-container", "securityContext": wanted}],
        }
    }
    job = await made(
        harness,
        task(
            owner=Owner(username="alice", uid=1234, gid=2345, user="al", group="als"),
            environment=Environment(image="i", pod_spec=pod_spec),
        ),
    )
    ids = {"runAsUser": 1234, "runAsGroup": 2345}
    assert main_of(job)["securityContext"] == {**wanted, **ids}
    assert spec_of(job)["initContainers"][-1]["securityContext"] == ids
    assert spec_of(job)["securityContext"] == {"fsGroup": 7}


async def test_bind_mounts_of_every_kind(harness: LauncherHarness) -> None:
    privileged = {"containers": [{"name": "determined-container", "securityContext": {"privileged": True}}]}
    kinds = ["rprivate", "private", "rslave", "rshared", "", "nonsense"]
    spec = task(
        environment=Environment(image="i", pod_spec={"spec": privileged}),
        bind_mounts=tuple(
            BindMount(host_path=f"/h{index}", container_path=f"relative/{index}", propagation=kind)
            for index, kind in enumerate(kinds)
        ),
        shared_fs_host_path="/checkpoints",
    )
    job = await made(harness, spec)
    mounts = {mount["mountPath"]: mount for mount in main_of(job)["volumeMounts"]}
    assert [mounts[f"{RUN_DIR}/workdir/relative/{index}"].get("mountPropagation") for index in range(6)] == [
        None,
        "None",
        "HostToContainer",
        "Bidirectional",
        None,
        None,
    ]
    shared = mounts["/determined_shared_fs"]
    assert shared.get("readOnly", False) is False
    volumes = {volume["name"]: volume for volume in spec_of(job)["volumes"]}
    assert volumes[shared["name"]]["hostPath"]["path"] == "/checkpoints"


async def test_a_bidirectional_mount_needs_privileges_and_the_user_is_told(harness: LauncherHarness) -> None:
    mount = BindMount(host_path="/a", container_path="/b", propagation="rshared")
    ended = await harness.until_ended(await harness.run(task(bind_mounts=(mount,))))
    assert ended.failure == "LAUNCH_ERROR"
    assert "Bidirectional mount propagation is available only to privileged containers" in ended.message
    assert await harness.namespace.remains() == []


async def test_directory_storage_is_mounted_only_by_its_user(harness: LauncherHarness) -> None:
    base = task()
    job = await made(
        harness,
        trial(
            **{name: getattr(base, name) for name in ("task", "description", "environment", "cluster_id")},
            config={
                "entrypoint": "true",
                "checkpoint_storage": {"type": "directory", "container_path": "/checkpoints"},
            },
        ),
    )
    assert not [mount for mount in main_of(job)["volumeMounts"] if "checkpoints" in mount["mountPath"]]
    assert not [volume for volume in spec_of(job)["volumes"] if "hostPath" in volume]


async def test_blocked_nodes_are_avoided_whatever_the_user_prefers(harness: LauncherHarness) -> None:
    def hostname(*names: str) -> Json:
        return {
            "matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": list(names)}],
        }

    required = {"nodeSelectorTerms": [hostname("sim-0", "sim-1"), hostname("sim-1", "sim-2")]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    spec = task(
        environment=Environment(image="i", pod_spec={"spec": {"affinity": affinity}}),
        blocked_nodes=("sim-0", "sim-1"),
    )
    allocation = await harness.run(spec)
    seen = await harness.until_running(allocation)
    assert seen.pods[0].node == "sim-2"
    job = await job_of(harness, allocation)
    terms = spec_of(job)["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    for term in terms["nodeSelectorTerms"]:
        assert term["matchFields"] == [
            {"key": "metadata.name", "operator": "NotIn", "values": [node]} for node in ("sim-0", "sim-1")
        ]
        assert {"key": f"determined.ai/cluster-id-{CLUSTER_ID}", "operator": "DoesNotExist"} in term["matchExpressions"]


async def test_the_users_priority_class_wins(harness: LauncherHarness) -> None:
    name, classes = f"test-{uuid4().hex[:8]}", "/apis/scheduling.k8s.io/v1/priorityclasses"
    body = {"metadata": {"name": name}, "value": 7, "preemptionPolicy": "Never"}
    await harness.namespace.create(classes, body)
    try:
        pod_spec = {"spec": {"priorityClassName": name}}
        allocation = await harness.run(task(priority=63, environment=Environment(image="i", pod_spec=pod_spec)))
        pod = await until_a_pod_is_made(harness, allocation)
        assert (pod["spec"]["priorityClassName"], pod["spec"]["priority"]) == (name, 7)
    finally:
        await harness.namespace.api.delete(f"{classes}/{name}")


async def test_labels_for_the_coscheduler(idle: LauncherHarness) -> None:
    idle.settings = msgspec.structs.replace(idle.settings, default_scheduler="coscheduler")
    await idle.start()
    group = "pod-group.scheduling.sigs.k8s.io"
    gang = await made(idle, task(slots=8, num_pods=2))
    assert spec_of(gang)["schedulerName"] == "coscheduler"
    for labels in (gang["metadata"]["labels"], gang["spec"]["template"]["metadata"]["labels"]):
        assert (labels[f"{group}/name"], labels[f"{group}/min-available"]) == (gang["metadata"]["name"], "2")
    without_slots = await made(idle, task())
    assert without_slots["metadata"]["labels"][f"{group}/min-available"] == "0"
    pod_spec: Json = {"spec": {"schedulerName": "default-scheduler"}}
    allocation = await idle.run(task(slots=1, environment=Environment(image="i", pod_spec=pod_spec)))
    assert f"{group}/name" not in (await job_of(idle, allocation))["metadata"]["labels"]
    await idle.until_running(allocation)
    pod_spec = {"metadata": {"labels": {f"{group}/min-available": "9", f"{group}/name": "mine"}}}
    labels = (await made(idle, task(environment=Environment(image="i", pod_spec=pod_spec))))["metadata"]["labels"]
    assert (labels[f"{group}/name"], labels[f"{group}/min-available"]) == ("mine", "9")
