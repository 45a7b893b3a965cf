"""Pools, orders and objects of a cluster for tests, one line each."""

from __future__ import annotations

import base64
import io
import tarfile
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from libs.clock import SystemClock
from libs.cluster.config import SLOT_RESOURCE, ClusterConfig
from libs.events.observations import AllocationObserved
from libs.events.orders import Order, TaskSpec
from services.launcher.backends.kubernetes.allocations.state.allocation import TrackedAllocation
from services.launcher.backends.kubernetes.allocations.state.intent import Intent, Outcome
from services.launcher.backends.kubernetes.allocations.state.lost_nodes import LostNodes
from services.launcher.backends.kubernetes.allocations.state.observation import observation as observed
from services.launcher.backends.kubernetes.allocations.state.observation import outcome_of
from services.launcher.backends.kubernetes.allocations.state.observed_state import ObservedState
from services.launcher.backends.kubernetes.allocations.state.status import NextAction
from services.launcher.backends.kubernetes.allocations.state.view import View
from services.launcher.backends.kubernetes.allocations.tracking import Tracker
from services.launcher.backends.kubernetes.capacity.node_matching import pool_requirements
from services.launcher.backends.kubernetes.capacity.node_parts import BadNodes
from services.launcher.backends.kubernetes.capacity.slots import SlotKind
from services.launcher.backends.kubernetes.capacity.tracker import CapacityTracker
from services.launcher.backends.kubernetes.client.objects import Event, Job, Node, Pod, ResourceQuota, SlimPod
from services.launcher.backends.kubernetes.manifests.names import FLUENT, INIT, MAIN
from services.launcher.backends.kubernetes.manifests.task_objects import Manifests, manifests
from services.launcher.backends.kubernetes.manifests.traits import PoolTraits
from services.launcher.container.settings import TaskSettings
from services.launcher.files import load_scripts
from services.launcher.reconcile import Existence

Json = dict[str, Any]

CLUSTER_ID = "0a1b2c3d-1111-4222-8333-444455556666"
SCRIPTS = load_scripts()
T0 = 1_700_000_000.0


def traits(**fields: Any) -> PoolTraits:
    values: dict[str, Any] = {
        "pool": "default",
        "cluster_id": CLUSTER_ID,
        "namespace": "ns1",
        "scripts": SCRIPTS,
        "tasks": TaskSettings(master_url="http://master:8080", log_intake_url="http://logs:8090"),
    }
    values["slot_resource"] = SLOT_RESOURCE[fields.get("slot_type", "cuda")]
    return PoolTraits(**{**values, **fields})


def build(spec: TaskSpec, allocation: str = "1.x.1", *, priority_class: str | None = None, **fields: Any) -> Manifests:
    order = Order(allocation=allocation, pool="default", desired="run", spec=spec)
    return manifests(order, traits(**fields), priority_class=priority_class)


def pod_of(made: Manifests) -> Json:
    spec: Json = made.job["spec"]["template"]["spec"]
    return spec


def container(made: Manifests, name: str = MAIN) -> Json:
    spec = pod_of(made)
    return next(each for each in (*spec["containers"], *spec["initContainers"]) if each["name"] == name)


def environment(made: Manifests) -> dict[str, str]:
    """Variables of the main container, wherever they come from; those that the cluster fills in are left out."""
    data = made.secrets[0]["data"]
    found = {}
    for entry in container(made)["env"]:
        source = entry.get("valueFrom", {})
        if "secretKeyRef" in source:
            found[entry["name"]] = base64.b64decode(data[source["secretKeyRef"]["key"]]).decode()
        elif "value" in entry:
            found[entry["name"]] = entry["value"]
    return found


def unpacked(encoded: str) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(encoded)), mode="r:gz") as archive:
        return {item.name: item for item in archive.getmembers()}


def with_pod(**spec: Any) -> Json:
    return {"spec": spec}


def pod(name: str = "job-abcde", *, job: str = "job", phase: str = "Pending", **fields: Any) -> Pod:
    """A pod as the API server sends it.

    node, scheduler, reason, message, conditions, deleted_at, grace_s (part of deleted_at), main (state of the main
    container), init, image_id, container_id, sidecar, fluent (state of the shipper, where it is a container like any
    other)
    """
    status: Json = {"phase": phase, "reason": fields.get("reason", ""), "message": fields.get("message", "")}
    conditions = list(fields.get("conditions", ()))
    if node := fields.get("node", ""):
        conditions.append({"type": "PodScheduled", "status": "True"})
    statuses = []
    if main := fields.get("main"):
        statuses.append({"name": MAIN, "state": main, "imageID": fields.get("image_id", "")})
        statuses[0]["containerID"] = fields.get("container_id", "")
    if sidecar := fields.get("sidecar"):
        statuses.append({"name": "side", "state": sidecar})
    if fluent := fields.get("fluent"):
        statuses.append({"name": FLUENT, "state": fluent})
    status["containerStatuses"] = statuses
    status["initContainerStatuses"] = [
        {"name": key, "state": state} for key, state in dict(fields.get("init") or {}).items()
    ]
    status["conditions"] = conditions
    if address := fields.get("address"):
        status["podIP"] = address
    metadata: Json = {
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": "1",
        "labels": {"job-name": job, "determined": "1.x.1", "controller-uid": fields.get("job_uid", "")},
        "annotations": {"resolute/allocation": "1.x.1", "resolute/task": "1.x", "resolute/slots-per-pod": "1"},
    }
    if fields.get("deleted_at"):
        metadata["deletionTimestamp"] = fields["deleted_at"]
        metadata["deletionGracePeriodSeconds"] = fields.get("grace_s", 0)
    containers = [{"name": MAIN}, *({"name": each} for each in fields.get("others", ()))]
    native = [{"name": each, "restartPolicy": "Always"} for each in fields.get("native", ())]
    body = {
        "metadata": metadata,
        "spec": {
            "nodeName": node,
            "schedulerName": fields.get("scheduler", "default-scheduler"),
            "containers": containers,
            "initContainers": [{"name": INIT}, *native],
        },
        "status": status,
    }
    return msgspec.convert(body, Pod)


def running(name: str = "job-abcde", **fields: Any) -> Pod:
    return pod(name, **{"phase": "Running", "node": "n1", "main": {"running": {}}, **fields})


def exited(code: int, name: str = "job-abcde", *, reason: str = "", message: str = "", **fields: Any) -> Pod:
    """A pod whose main container has ended; the pod with it, unless a sidecar is given."""
    reason = reason or ("Error" if code else "Completed")
    times = {"finishedAt": fields["finished_at"]} if fields.get("finished_at") else {}
    state = {"terminated": {"exitCode": code, "reason": reason, "message": message, **times}}
    phase = "Running" if fields.get("sidecar") or fields.get("fluent") else "Failed" if code else "Succeeded"
    return pod(name, **{"phase": phase, "node": "n1", "main": state, **fields})


def waiting(reason: str, message: str = "", **fields: Any) -> Pod:
    return pod(**{"node": "n1", "main": {"waiting": {"reason": reason, "message": message}}, **fields})


def job(name: str = "job", *, pods: int = 1, condition: str = "", message: str = "", **fields: Any) -> Job:
    conditions = [{"type": condition, "status": "True", "message": message}] if condition else []
    body = {
        "metadata": {
            "name": name,
            "uid": "uid-job",
            "annotations": {"resolute/allocation": "1.x.1", "resolute/task": "1.x", **fields.get("annotations", {})},
            **({"deletionTimestamp": fields["deleted_at"]} if fields.get("deleted_at") else {}),
        },
        "spec": {"completions": pods, "parallelism": fields.get("parallelism", pods)},
        "status": {"conditions": conditions, "active": fields.get("active", 0)},
    }
    return msgspec.convert(body, Job)


def node(name: str, *, allocatable: Mapping[str, str] | None = None, ready: str = "True", **fields: Any) -> Node:
    body = {
        "metadata": {"name": name, "labels": fields.get("labels", {}), "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"taints": fields.get("taints", []), "unschedulable": fields.get("unschedulable", False)},
        "status": {
            "allocatable": dict(allocatable or {"cpu": "64", "nvidia.com/gpu": "8"}),
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "conditions": [{"type": "Ready", "status": ready, "message": fields.get("message", "")}],
        },
    }
    return msgspec.convert(body, Node)


def slim_pod(name: str, on: str, requests: Mapping[str, str], **labels: str) -> SlimPod:
    body = {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels},
        "spec": {"nodeName": on, "containers": [{"name": "c", "resources": {"requests": dict(requests)}}]},
        "status": {"phase": "Running"},
    }
    return msgspec.convert(body, SlimPod)


def quota(hard: Mapping[str, str], used: Mapping[str, str] | None = None, name: str = "q") -> ResourceQuota:
    return msgspec.convert({"metadata": {"name": name}, "status": {"hard": hard, "used": used or {}}}, ResourceQuota)


def event(
    message: str,
    *,
    kind: str = "Pod",
    name: str = "job-abcde",
    reason: str = "",
    type_: str = "Normal",
    of: str = "",
    **fields: Any,
) -> Event:
    """``of`` is the path of the container that it is about."""
    body = {
        "metadata": {"name": "e", "uid": "uid-e", "creationTimestamp": "2026-01-01T00:00:00Z", **fields},
        "involvedObject": {"kind": kind, "name": name, "fieldPath": of},
        "reason": reason,
        "message": message,
        "type": type_,
    }
    return msgspec.convert(body, Event)


def run(*pods: Pod, num_pods: int = 1, with_job: bool = True) -> TrackedAllocation:
    """An allocation of which these pods were seen, in this order, one second after the other."""
    made = TrackedAllocation(
        allocation="1.x.1",
        task="1.x",
        pool="default",
        job_name="job",
        namespace="",
        slots_per_pod=1,
        observed=ObservedState(num_pods=num_pods),
        intent=Intent(),
        view=view(),
    )
    if with_job:
        made.observed.on_job(job(pods=num_pods))
    for index, each in enumerate(pods):
        lost = LostNodes({}) if each.spec.node_name == "gone" else LostNodes(None)
        seen_at = View(now=T0 + index, lost=lost, stuck_grace_s=60.0)
        made.observed.on_pod(each, intent=made.intent, view=seen_at)
    return made


def existence(found: TrackedAllocation, at: View) -> Existence:
    return found.refresh(at).existence


def reaction(found: TrackedAllocation, at: View) -> NextAction | None:
    return found.refresh(at).reaction


def observation(found: TrackedAllocation, at: View) -> AllocationObserved:
    found.refresh(at)
    return observed(found)


def outcome_at(found: TrackedAllocation, at: View) -> Outcome:
    found.refresh(at)
    return outcome_of(found)


def blind(now: float) -> View:
    """For a launcher that may not see nodes."""
    return View(now=now, lost=LostNodes(None), stuck_grace_s=60.0)


class Listener:
    """Hears what has to be told to people, and keeps the names of silenced pods."""

    def __init__(self) -> None:
        self.silenced: list[str] = []

    def failed_pod(self, tracked: TrackedAllocation, pod: Pod) -> None:
        return

    def silenced_pod(self, tracked: TrackedAllocation, pod: Pod) -> None:
        self.silenced.append(pod.metadata.name)

    def out_of_sight(self, tracked: TrackedAllocation) -> None:
        return

    def partly_ready(self, tracked: TrackedAllocation) -> None:
        return


def view(now: float = T0, *, lost: Sequence[str] = (), grace_s: float = 60.0) -> View:
    """``lost`` are names of nodes that are not ready; all others are."""
    nodes = {name: node(name, ready="Unknown", message="Kubelet stopped posting node status.") for name in lost}
    known = {name: node(name) for name in ("n1", "n2")} | nodes
    return View(now=now, lost=LostNodes(known), stuck_grace_s=grace_s)


def capacity_tracker_of(tracker: Tracker, *, bad_taints: tuple[str, ...] = ()) -> CapacityTracker:
    config = msgspec.convert({"resource_pools": [{"pool_name": "default"}]}, ClusterConfig)
    return CapacityTracker(
        pool="default",
        namespace="a",
        cluster_id="c",
        kind=SlotKind(type="cuda", resource="nvidia.com/gpu"),
        requirements=pool_requirements(config, "default"),
        max_slots_per_pod=4,
        max_aux_per_node=100,
        assumed_slots=None,
        launcher_requests={"cpu": 10},
        bad_nodes=BadNodes(taints=bad_taints),
        tracker=tracker,
        clock=SystemClock(),
    )
