"""Pods that somebody in the cluster wants to leave (docs/reference/kubernetes.md 10.5)."""

from __future__ import annotations

import pytest

from tests.integration.launcher.backends.kubernetes.launcher_harness import LauncherHarness, task

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("value", ["true", ""])
async def test_a_pod_that_gains_the_label_is_told_to_the_scheduler(harness: LauncherHarness, value: str) -> None:
    allocation = await harness.run(task(slots=8, num_pods=2))
    seen = await harness.until_running(allocation, 2)
    assert not any(pod.has_to_leave for pod in seen.pods)
    path = harness.namespace.paths.pod(seen.pods[1].name)
    await harness.namespace.api.patch(path, {"metadata": {"labels": {"determined-preemption": value}}})
    seen = await harness.until(allocation, lambda told: any(pod.has_to_leave for pod in told.pods))
    assert [pod.has_to_leave for pod in seen.pods] == [False, True]
