"""Phase of a pod, and the cause of its end, in words its owner understands.

The exit of a task is that of ``determined-container`` alone; other containers beside it neither prolong nor fail it.
Source: docs/reference/kubernetes.md 10.2 and 10.4; https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from enum import Enum
from typing import Final

from msgspec import Struct

from libs.events.observations import FailureKind, ObservedPod, PodState
from services.launcher.backends.kubernetes.client.objects import ContainerStatus, Pod, Terminated, Waiting
from services.launcher.backends.kubernetes.client.times import unix_s
from services.launcher.backends.kubernetes.manifests.names import FLUENT, MAIN

PULL_FAILED: Final = "job was stuck due to unrecoverable image pull errors"
DELETED: Final = "unable to get exit code or exit message from deleted pod"

LOG_WAIT_S: Final = 30.0
"""As long as the capture wrapper waits where nothing else is said (``DET_LOG_WAIT_TIME``)."""

_KUBERNETES_OWN: Final = ("", "default-scheduler")
_KILLED: Final = 137
_BY_SIGNAL: Final = (_KILLED, 143)
_OOM: Final = "OOMKilled"
_STUCK_IMAGE: Final = ("ImagePullBackOff",)
_PULLING_FAILED: Final = ("ErrImagePull", "RegistryUnavailable")
_HOPELESS: Final = ("InvalidImageName", "CreateContainerConfigError", "CreateContainerError", "ErrImageNeverPull")
"""What a container may wait for in vain; it gets some time, for Secrets and images may still appear."""
_NODE_WENT: Final = ("NodeLost", "Shutdown", "NodeShutdown", "Terminated")
_NEVER_ADMITTED: Final = (
    "NodeAffinity",
    "NodePorts",
    "UnexpectedAdmissionError",
    "PodFitsHost",
    "TopologyAffinityError",
)
_DISRUPTIONS: Final = {
    "PreemptionByScheduler": "the cluster's scheduler made room for a pod of higher priority",
    "DeletionByTaintManager": "the node does not tolerate the pod any more",
    "EvictionByEvictionAPI": "the pod was evicted, as when a node is drained",
    "DeletionByPodGC": "the node of the pod does not exist any more",
    "TerminationByKubelet": "the node ended the pod",
}


_UNDELIVERED: Final = re.compile(r"\n?^log not delivered, lines printed: stdout (\d{1,18}), stderr (\d{1,18})\n?", re.M)
"""What the capture wrapper adds to the termination message of its container (``tell_undelivered`` there)."""


class Cause(Struct, frozen=True, kw_only=True):
    """Why a pod has ended."""

    exit_code: int | None = None
    failure: FailureKind = ""
    message: str = ""
    is_consequence: bool = False
    """Of an order, or of the end of another pod."""
    vanished: bool = False
    """Nobody saw it end, nor that somebody deleted it."""


class Trouble(Enum):
    """What keeps a pod from ever starting, though Kubernetes goes on trying."""

    IMAGE = "image"
    STUCK = "stuck"
    """For now; after a while it counts."""


def phase_of(pod: Pod) -> PodState:
    """How far the pod has come by itself, whatever was asked of it."""
    main = _main(pod)
    if pod.status.phase in ("Succeeded", "Failed") or (main is not None and main.state.terminated is not None):
        return "TERMINATED"
    if pod.status.phase == "Running" and main is not None and main.state.running is not None:
        return "RUNNING"
    if pod.status.phase == "Running" or _has_begun(pod):
        return "STARTING"
    return "PULLING" if is_scheduled(pod) else "ASSIGNED"


def is_scheduled(pod: Pod) -> bool:
    return bool(pod.spec.node_name) or any(
        condition.type == "PodScheduled" and condition.status == "True" for condition in pod.status.conditions
    )


def are_held_back(pods: Collection[Pod]) -> bool:
    """Whether somebody in the cluster keeps all pods of a gang from being placed, until there is room for each."""
    return any(_may_be_held_back(pod) for pod in pods) and not any(is_scheduled(pod) for pod in pods)


def _may_be_held_back(pod: Pod) -> bool:
    return pod.spec.scheduler_name not in _KUBERNETES_OWN or any(
        condition.type == "PodScheduled" and condition.reason == "SchedulingGated"
        for condition in pod.status.conditions
    )


def is_over(pod: Pod) -> bool:
    """Whether nothing in the pod runs any more, sidecars included."""
    return pod.status.phase in ("Succeeded", "Failed")


def is_draining(pod: Pod) -> bool:
    """Whether every container has ended but sidecars of the native kind, which have been asked to end as well."""
    statuses = pod.status.container_statuses
    return (
        not is_over(pod)
        and pod.metadata.deletion_timestamp is None
        and bool(statuses)
        and all(status.state.terminated is not None for status in statuses)
    )


def reads_until(pod: Pod) -> float:
    """Until when fluent-bit is left to read on (Unix time, seconds); 0 where it need not, or has been asked to end.

    The capture wrapper ends the task's container when everything is stored. A container that was killed as a whole had
    nobody to wait for that. Where another container goes on, fluent-bit itself among them, nothing but us asks
    fluent-bit to end, and only until then it reads.
    """
    main = _main(pod)
    ended = main.state.terminated if main is not None else None
    if ended is None or ended.exit_code != _KILLED or is_draining(pod) or pod.metadata.deletion_timestamp is not None:
        return 0.0
    beside = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    is_reading = any(status.name == FLUENT and status.state.running is not None for status in beside)
    return (unix_s(ended.finished_at) or 0.0) + LOG_WAIT_S if is_reading else 0.0


def was_silenced(pod: Pod) -> bool:
    """Whether the output of a pod of which nothing runs any more ends without anybody having told the log so.

    Its container was killed as a whole, with the pod or its node, or could not deliver everything.
    """
    main = _main(pod)
    if main is None:
        return False
    ended = main.state.terminated
    if ended is None:
        return main.state.running is not None
    return ended.exit_code == _KILLED or undelivered_of(pod) is not None


def undelivered_of(pod: Pod) -> Mapping[str, int] | None:
    """Lines that the task printed, by output, where the capture wrapper says that not all of them were delivered."""
    main = _main(pod)
    ended = main.state.terminated if main is not None else None
    found = list(_UNDELIVERED.finditer(ended.message)) if ended is not None else []
    return {"stdout": int(found[-1][1]), "stderr": int(found[-1][2])} if found else None


def end_of(pod: Pod) -> Cause | None:
    """Why the pod has ended by itself, or None while it has not."""
    if phase_of(pod) != "TERMINATED":
        return None
    main = _main(pod)
    if main is not None and main.state.terminated is not None and pod.status.reason != "Evicted":
        return _exit_of(main.state.terminated, pod)
    for init in pod.status.init_container_statuses:
        ended = init.state.terminated
        if ended is not None and ended.exit_code and not _is_sidecar(pod, init.name):
            message = f"container {init.name}: {ended.message or ended.reason}"
            return Cause(exit_code=ended.exit_code, failure="FAILED", message=message.strip())
    return _end_of_whole(pod)


def causes_first(pod: Pod) -> bool:
    """Key to sort pods by that are learnt of at once: those that ended by themselves before those that may have been
    ended because of them."""
    return end_of(pod) is None or is_ended_by_deletion(pod)


def is_ended_by_deletion(pod: Pod) -> bool:
    """Whether somebody deleted the pod before its task was ended by a signal. Known to the second only."""
    main = _main(pod)
    ended = main.state.terminated if main is not None else None
    gone_by = unix_s(pod.metadata.deletion_timestamp)
    if ended is None or gone_by is None or ended.exit_code not in _BY_SIGNAL or ended.reason == _OOM:
        return False
    finished = unix_s(ended.finished_at)
    return finished is not None and finished >= gone_by - (pod.metadata.deletion_grace_period_seconds or 0)


def trouble_of(pod: Pod) -> tuple[Trouble, str] | None:
    """What keeps the pod from starting, with words about it; None when nothing does.

    Once the task has started, a container beside it may be as stuck as it likes; an image that cannot be had ends it.
    """
    main = _main(pod)
    has_started = main is not None and (main.state.running is not None or main.state.terminated is not None)
    for name, waiting in _waiting(pod):
        words = _words(name, waiting)
        if waiting.reason in _STUCK_IMAGE:
            return Trouble.IMAGE, f"{PULL_FAILED}: {words}"
        if waiting.reason in _HOPELESS and not has_started:
            return Trouble.STUCK, f"the pod cannot start: {words}"
    return None


def pull_error_of(pod: Pod) -> str:
    """Why an image could not be pulled, as the node says right after it has tried; later it says only that it waits."""
    for _, waiting in _waiting(pod):
        if waiting.reason in _PULLING_FAILED and waiting.message:
            return waiting.message.strip().removeprefix("rpc error: ").removeprefix("code = Unknown desc = ")
    return ""


def waits_for(pod: Pod) -> str:
    """Why a pod does not run yet, in the words of the cluster; empty when it does, or nothing is known."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            return f"{condition.reason}: {condition.message}" if condition.message else condition.reason
    waiting = [_words(name, state) for name, state in _waiting(pod) if state.message or state.reason in _HOPELESS]
    return waiting[0] if waiting else ""


def disruption_of(pod: Pod) -> str:
    """Why the cluster deletes a pod, if it says so (Kubernetes 1.26 and newer)."""
    for condition in pod.status.conditions:
        if condition.type == "DisruptionTarget" and condition.status == "True":
            return condition.message or _DISRUPTIONS.get(condition.reason, condition.reason)
    return ""


def observed_pod(pod: Pod, cause: Cause | None) -> ObservedPod:
    """The pod as others are told of it; ``cause`` is why it has ended, None while it has not."""
    state = phase_of(pod)
    return ObservedPod(
        name=pod.metadata.name,
        runtime_id=_runtime_id(pod),
        job=pod.job,
        state="TERMINATED" if cause is not None else state,
        node=pod.spec.node_name,
        addresses=addresses_of(pod),
        has_to_leave=pod.metadata.labels.preemption is not None,
        exit_code=cause.exit_code if cause is not None else None,
        failure=cause.failure if cause is not None else "",
        message=cause.message if cause is not None else ("" if state == "RUNNING" else waits_for(pod)),
        is_consequence=cause is not None and cause.is_consequence,
        vanished=cause is not None and cause.vanished,
    )


def addresses_of(pod: Pod) -> tuple[str, ...]:
    found = [pod.status.pod_ip, *(each.ip for each in pod.status.pod_ips)]
    return tuple(dict.fromkeys(address for address in found if address))


def failed_containers(pod: Pod) -> Iterator[tuple[str, str]]:
    """Name and time of end of containers of ours that ended badly: what they printed themselves may explain it."""
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        ended = status.state.terminated
        if ended is not None and ended.exit_code:
            yield status.name, ended.finished_at or ""


def _main(pod: Pod) -> ContainerStatus | None:
    return next((status for status in pod.status.container_statuses if status.name == MAIN), None)


def _runtime_id(pod: Pod) -> str:
    main = _main(pod)
    return main.container_id.rpartition("://")[2] if main is not None else ""


def _has_begun(pod: Pod) -> bool:
    """Whether anything of the pod has run, apart from a sidecar: images are there then, or on their way."""
    ran = any(
        (status.state.running is not None or status.state.terminated is not None) and not _is_sidecar(pod, status.name)
        for status in pod.status.init_container_statuses
    )
    main = _main(pod)
    return ran or (main is not None and bool(main.image_id))


def _is_sidecar(pod: Pod, name: str) -> bool:
    return name == FLUENT or any(
        container.name == name and container.restart_policy == "Always" for container in pod.spec.init_containers
    )


def _exit_of(ended: Terminated, pod: Pod) -> Cause:
    if ended.exit_code == 0:
        return Cause(exit_code=0)
    if pod.status.reason in _NODE_WENT:
        return Cause(exit_code=ended.exit_code, failure="NODE_LOST", message=_reason_and_message(pod))
    said = _UNDELIVERED.sub("", ended.message).strip()
    words = [said] if said else []
    if ended.reason == _OOM:
        words.append("OOMKilled: the container used more memory than its limit allows")
    elif ended.reason not in ("", "Error", "Completed") and not words:
        words.append(ended.reason)
    return Cause(exit_code=ended.exit_code, failure="FAILED", message="; ".join(words))


def _end_of_whole(pod: Pod) -> Cause:
    """Of a pod that says nothing about its main container."""
    if pod.status.phase == "Succeeded":
        return Cause(exit_code=0)
    reason = pod.status.reason
    words = _reason_and_message(pod) or disruption_of(pod)
    if reason in _NODE_WENT:
        return Cause(failure="NODE_LOST", message=words)
    if reason in _NEVER_ADMITTED or reason.startswith("OutOf"):
        return Cause(failure="ABORTED", message=words)
    return Cause(failure="DELETED", message=words or "the pod failed, and nobody says why")


def _reason_and_message(pod: Pod) -> str:
    parts = [pod.status.reason, pod.status.message.strip()]
    return ": ".join(part for part in parts if part)


def _waiting(pod: Pod) -> Iterator[tuple[str, Waiting]]:
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        if status.state.waiting is not None:
            yield status.name, status.state.waiting


def _words(name: str, waiting: Waiting) -> str:
    text = ": ".join(part for part in (waiting.reason, waiting.message.strip()) if part)
    return f"container {name}: {text}"
