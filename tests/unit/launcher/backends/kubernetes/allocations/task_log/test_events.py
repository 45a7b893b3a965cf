from __future__ import annotations

import pytest

from services.launcher.backends.kubernetes.allocations.task_log.events import (
    batch_of,
    is_about_quota,
    missing_class,
    text_of,
)
from services.launcher.backends.kubernetes.manifests.priority import class_name, priority_of
from services.logs.lines.arrival import StreamPosition, advance_service
from tests.unit.launcher.backends.kubernetes.builders import event

TEXTS = [
    (
        "pod triggered scale-up: [{ng 1->2 (max: 3)}]",
        "Pod job-abcde: Job requires additional resources, scaling up cluster.",
    ),
    ("Successfully assigned ns1/job-abcde to n1", "Pod job-abcde: Pod resources allocated."),
    ("skip schedule deleting pod: ns1/job-abcde", "Pod job-abcde: Deleting unscheduled pod."),
    ('Pulling image "x"', 'Pod job-abcde: Pulling image "x"'),
    (
        "10/12 nodes are available: 10 Insufficient nvidia.com/gpu.",
        "Pod job-abcde: Waiting for resources. 3 GPUs are available, 4 GPUs required. "
        "10/12 nodes are available: 10 Insufficient nvidia.com/gpu.",
    ),
]


@pytest.mark.parametrize(("message", "text"), TEXTS)
def test_events_in_words_their_owner_understands(message: str, text: str) -> None:
    assert text_of(event(message), slots_per_pod=4, slot_type="cuda", free_slots=3) == text


def test_cores_are_cpu_slots_and_what_is_not_known_is_not_said() -> None:
    found = text_of(event("0/1 nodes are available"), slots_per_pod=2, slot_type="cpu", free_slots=None)
    assert found == "Pod job-abcde: Waiting for resources. 2 CPU slots required. 0/1 nodes are available"


SILENT = [
    event(""),
    event('MountVolume.SetUp failed for volume "a" : configmap "det-x" not found', reason="FailedMount"),
]


@pytest.mark.parametrize("silent", SILENT)
def test_events_that_nobody_needs(silent: object) -> None:
    assert text_of(silent, slots_per_pod=1, slot_type="cuda", free_slots=0) is None  # type: ignore[arg-type]


MAIN = "spec.containers{determined-container}"
INIT = "spec.initContainers{determined-init-container}"
SHIPPER = "spec.containers{determined-fluent-container}"
SIDECAR = "spec.initContainers{determined-fluent-container}"
PRESENT = 'Container image "x" already present on machine'
CONTAINERS = [
    (MAIN, "Normal", "Pulled", PRESENT, True),
    (MAIN, "Normal", "Killing", "Stopping container determined-container", True),
    ("spec.containers{mine}", "Normal", "Started", "Started container mine", True),
    (INIT, "Normal", "Pulling", 'Pulling image "x"', True),
    (INIT, "Normal", "Pulled", 'Successfully pulled image "x" in 3m', True),
    (INIT, "Normal", "Pulled", PRESENT, False),
    (INIT, "Normal", "Started", "Started container determined-init-container", False),
    (INIT, "Warning", "Failed", 'Failed to pull image "x"', True),
    (SHIPPER, "Normal", "Killing", "Stopping container determined-fluent-container", False),
    (SIDECAR, "Normal", "Pulled", PRESENT, False),
    (SHIPPER, "Warning", "Failed", "Error: ErrImagePull", True),
]


@pytest.mark.parametrize(("of", "kind", "reason", "message", "is_told"), CONTAINERS)
def test_containers_that_are_not_the_users_are_told_of_when_they_fail(
    of: str, kind: str, reason: str, message: str, *, is_told: bool
) -> None:
    found = text_of(event(message, of=of, type_=kind, reason=reason), slots_per_pod=1, slot_type="cpu", free_slots=0)
    assert (found is not None) == is_told


def test_a_priority_class_that_is_missing_is_named() -> None:
    words = 'Error creating: pods "det-x-" is forbidden: no PriorityClass with name determined-priority-50 was found'
    assert missing_class(event(words, kind="Job", reason="FailedCreate")) == "determined-priority-50"
    assert missing_class(event(words, kind="Job", reason="Other")) is None
    assert missing_class(event('Error creating: pods "det-x-" is forbidden', reason="FailedCreate")) is None


@pytest.mark.parametrize(
    ("name", "priority"),
    [(class_name(50), 50), ("determined-medium-priority", None), ("determined-priority-", None), ("x", None)],
)
def test_which_priority_a_class_is_for(name: str, priority: int | None) -> None:
    assert priority_of(name) == priority


def test_a_mount_that_fails_for_another_reason_is_told() -> None:
    found = event("MountVolume.SetUp failed for volume nfs: timed out", reason="FailedMount")
    assert text_of(found, slots_per_pod=1, slot_type="cuda", free_slots=0) is not None


def test_an_event_is_stored_once_however_often_it_is_seen() -> None:
    first = event("0/1 nodes are available", uid="u1", creationTimestamp="2026-01-01T00:00:00Z")
    repeated = event("0/1 nodes are available", uid="u1", creationTimestamp="2026-01-01T00:00:00Z", resourceVersion="9")
    others = [event(f"m{index}", uid=f"u{index}", creationTimestamp="2026-01-01T00:00:00Z") for index in range(20)]
    later = event("later", uid="u9", creationTimestamp="2026-01-01T00:00:05Z")
    batches = [
        batch_of(each, each.message, task="t", allocation="t.1") for each in [*others, first, later, repeated, first]
    ]
    position, stored = StreamPosition(), []
    for batch in batches:  # each may come by itself, in any order
        arrival = advance_service(position, [batch])
        position = arrival.position
        stored += [line.log for line in arrival.lines]
    assert len(stored) == len(set(stored)) == 22
    assert batches[0].stream == "k8s/t.1"
    assert batches[0].contiguous is False
    assert batches[0].lines[0].source == "master"


def test_free_slots_in_the_text_do_not_make_it_another_line() -> None:
    found = event("0/1 nodes are available")
    numbers = {batch_of(found, text, task="t", allocation="t.1").lines[0].seq for text in ("3 free", "4 free")}
    assert len(numbers) == 1


def test_quota_is_told_apart_from_other_refusals() -> None:
    assert is_about_quota(event("exceeded quota: q, requested: pods=1", kind="Job", reason="FailedCreate"))
    assert not is_about_quota(event("violates PodSecurity", kind="Job", reason="FailedCreate"))
