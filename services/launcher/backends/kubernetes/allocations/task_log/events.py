"""Events of the cluster as lines in the log of the task they concern, in words its owner understands.

Source: docs/reference/kubernetes.md 11;
https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from libs.events.logs import LogBatch, LogLine
from libs.loglines.batches import launcher_stream
from services.launcher.backends.kubernetes.client.objects import Event
from services.launcher.backends.kubernetes.client.times import unix_s
from services.launcher.backends.kubernetes.manifests.names import FLUENT, INIT

CREATE_FAILED: Final = "FailedCreate"
QUOTA: Final = "exceeded quota"

_UNITS: Final = {"cuda": "GPUs", "rocm": "GPUs", "cpu": "CPU slots"}
_REWRITTEN: Final = (
    ("pod triggered scale-up", "Job requires additional resources, scaling up cluster."),
    ("Successfully assigned", "Pod resources allocated."),
    ("skip schedule deleting pod", "Deleting unscheduled pod."),
)
_UNSCHEDULABLE: Final = "nodes are available"
_NUMBER_BITS: Final = 20
_MOUNT_RACE: Final = re.compile(r'(?:configmap|secret) ".*" not found|object ".*" not registered')
"""Said in the moment between a Job and the objects it mounts; when it lasts, the pod says so itself."""
_NORMAL: Final = "Normal"
_PULLS: Final = ("Pulling", "Pulled")
_PRESENT: Final = "already present on machine"
_NO_CLASS: Final = re.compile(r"no PriorityClass with name (\S+) was found")


def text_of(event: Event, *, slots_per_pod: int, slot_type: str, free_slots: int | None) -> str | None:
    """The line without its newline; None for events that nobody needs to read.

    free_slots  of the pool, where that is known
    """
    message = event.message.strip()
    if not message or (event.reason == "FailedMount" and _MOUNT_RACE.search(message)):
        return None
    if _is_about_ours(event):
        return None
    for part, words in _REWRITTEN:
        if part in message:
            return _line(event, words)
    if _UNSCHEDULABLE in message:
        unit = _UNITS.get(slot_type, "slots")
        available = "" if free_slots is None else f" {free_slots} {unit} are available,"
        return _line(event, f"Waiting for resources.{available} {slots_per_pod} {unit} required. {message}")
    return _line(event, message)


def batch_of(event: Event, text: str, *, task: str, allocation: str) -> LogBatch:
    """The line on its way to the log writer; the same event, seen again, gives the same number and is stored once.

    The cluster repeats an event by counting it up: its time of creation and its text stay, and so does the number. A
    batch of its own for each line, because a batch stands for all numbers between its first and its last.
    """
    created_s = _created_s(event)
    return line_batch(
        text,
        task=task,
        allocation=allocation,
        at_s=created_s,
        number=line_number(created_s, f"{event.metadata.uid}/{event.message}"),
    )


def line_batch(text: str, *, task: str, allocation: str, at_s: float, number: int) -> LogBatch:
    """One line of the launcher about an allocation, in the stream in which it speaks about it."""
    line = LogLine(
        seq=number,
        timestamp_ns=int(at_s * 1e9),
        log=f"{text}\n".encode(),
        level="INFO",
        stdtype="stdout",
        allocation_id=allocation,
        source="master",
    )
    return LogBatch(
        task=task, stream=launcher_stream(allocation), lines=(line,), allocation=allocation, contiguous=False
    )


def line_number(at_s: float, identity: str) -> int:
    """A number that grows with time by the second, and tells lines of the same second apart."""
    digest = hashlib.sha256(identity.encode()).digest()
    return (int(at_s) << _NUMBER_BITS) + (int.from_bytes(digest[:4], "big") >> (32 - _NUMBER_BITS))


def is_about_quota(event: Event) -> bool:
    """Whether a pod could not be made because the namespace's quota is used up, which may change."""
    return event.reason == CREATE_FAILED and QUOTA in event.message


def missing_class(event: Event) -> str | None:
    """Name of the priority class for lack of which a pod could not be made."""
    found = _NO_CLASS.search(event.message) if event.reason == CREATE_FAILED else None
    return found[1] if found else None


def _is_about_ours(event: Event) -> bool:
    """Whether it says that a container of ours is well, which is no news for the owner of the task.

    The first container has the user's image, so that image is pulled for it.
    """
    if event.type != _NORMAL:
        return False
    container = event.involved_object.field_path.partition("{")[2].removesuffix("}")
    if container == INIT:
        return event.reason not in _PULLS or _PRESENT in event.message
    return container == FLUENT


def _created_s(event: Event) -> float:
    return unix_s(event.metadata.creation_timestamp) or unix_s(event.first_timestamp) or unix_s(event.event_time) or 0.0


def _line(event: Event, words: str) -> str:
    return f"{event.involved_object.kind} {event.involved_object.name}: {words}"
