"""Events of the cluster as lines in the logs of tasks: acceptance item A12."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from tests.harness.waiting import eventually
from tests.integration.launcher.backends.kubernetes.launcher_harness import Json, LauncherHarness, task

pytestmark = pytest.mark.cluster

REWRITTEN = {
    "pod triggered scale-up: [{ng 1->2 (max: 3)}]": "Job requires additional resources, scaling up cluster.",
    "skip schedule deleting pod: ns/x": "Deleting unscheduled pod.",
    "10/12 nodes are available: 10 Insufficient nvidia.com/gpu.": "Waiting for resources. ",
    "something of a new release": "something of a new release",
}


async def happens(harness: LauncherHarness, kind: str, name: str, message: str) -> None:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    event: Json = {
        "metadata": {"name": f"e-{uuid4().hex}"},
        "involvedObject": {"kind": kind, "name": name, "namespace": harness.namespace.name},
        "reason": "Test",
        "message": message,
        "type": "Normal",
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": {"component": "test"},
    }
    await harness.namespace.create(harness.namespace.paths.events, event)


async def test_events_of_pods_and_jobs_are_told_in_words_for_users(harness: LauncherHarness) -> None:
    allocation = await harness.run(task(slots=4))
    seen = await harness.until_running(allocation)
    (job,) = await harness.namespace.jobs()
    pod, job_name = seen.pods[0].name, job["metadata"]["name"]
    for kind, name in (("Pod", pod), ("Job", job_name)):
        for message, words in REWRITTEN.items():
            await happens(harness, kind, name, message)

            def is_told(begin: str = f"{kind} {name}: {words}") -> bool:
                return any(text.startswith(begin) for text in harness.text(allocation))

            await eventually(is_told)
    # How many slots are free belongs to everybody in the cluster: it is a number, and not a digit of the message. On a
    # full one the scheduler may have said something like it before.
    begin = f"Pod {pod}: Waiting"
    (waits,) = [text for text in harness.text(allocation) if text.startswith(begin) and "10/12 nodes" in text]
    assert "GPUs are available, 4 GPUs required. 10/12 nodes are available" in waits

    def was_assigned() -> bool:
        return f"Pod {pod}: Pod resources allocated." in harness.text(allocation)

    await eventually(was_assigned)


async def test_events_of_others_are_not_told(harness: LauncherHarness) -> None:
    allocation = await harness.run(task())
    seen = await harness.until_running(allocation)
    pod = seen.pods[0].name
    for kind, name in (("Pod", "somebody-elses-abcde"), ("Node", "sim-0"), ("ConfigMap", pod), ("Job", "other")):
        await happens(harness, kind, name, "not for you")
    await happens(harness, "Pod", pod, "for you")
    await eventually(lambda: any("for you" in text for text in harness.text(allocation)))
    assert not [line for batch in harness.lines for line in batch.lines if b"not for you" in line.log]
