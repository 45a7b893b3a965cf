"""Pods that somebody in the cluster wants to leave (docs/reference/kubernetes.md 10.5)."""

from __future__ import annotations

import pytest

from tests.integration.launcher.backends.kubernetes.place import Place, task

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("value", ["true", ""])
async def test_a_pod_that_gains_the_label_is_told_to_the_scheduler(place: Place, value: str) -> None:
    allocation = await place.run(task(slots=8, num_pods=2))
    seen = await place.until_running(allocation, 2)
    assert not any(pod.has_to_leave for pod in seen.pods)
    path = place.namespace.paths.pod(seen.pods[1].name)
    await place.namespace.api.patch(path, {"metadata": {"labels": {"determined-preemption": value}}})
    seen = await place.until(allocation, lambda told: any(pod.has_to_leave for pod in told.pods))
    assert [pod.has_to_leave for pod in seen.pods] == [False, True]
