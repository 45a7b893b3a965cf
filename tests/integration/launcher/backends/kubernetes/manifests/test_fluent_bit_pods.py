"""fluent-bit as a real sidecar of real pods. RESOLUTE_TEST_FLUENT_IMAGE is an image of it that the nodes have."""

from __future__ import annotations

import os

import msgspec
import pytest

from libs.loglines.batches import container_key, is_end_of_writer
from services.launcher.backends.kubernetes import wiring
from services.launcher.backends.kubernetes.settings import ShipperSettings
from tests.harness.waiting import eventually
from tests.integration.launcher.backends.kubernetes.manifests.test_real_pods import RealHarness, image, real

__all__ = ["image", "real"]

FLUENT_IMAGE = os.environ.get("RESOLUTE_TEST_FLUENT_IMAGE")
LINES = 100_000
PODS = 3

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.kubelet,
    pytest.mark.skipif(not FLUENT_IMAGE, reason="set RESOLUTE_TEST_FLUENT_IMAGE to a fluent-bit that the nodes have"),
]


@pytest.fixture(params=["native sidecar", "container like any other"])
async def beside(real: RealHarness, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> RealHarness:
    """Pods have fluent-bit beside the task, as on clusters from 1.29 on and as on older ones."""
    if request.param != "native sidecar":
        monkeypatch.setattr(wiring, "NATIVE_SIDECARS", (99, 0))
    harness = real.harness
    await harness.kill()
    harness.settings = msgspec.structs.replace(harness.settings, shipper=ShipperSettings(image=FLUENT_IMAGE or ""))
    await harness.start()
    return real


async def test_the_end_of_a_burst_is_not_lost(beside: RealHarness) -> None:
    allocations = [await beside.run(f"seq {LINES}") for _ in range(PODS)]
    for allocation in allocations:
        ended = await beside.harness.until_ended(allocation, timeout_s=180)
        assert [pod.exit_code for pod in ended.pods] == [0]
        await beside.harness.withdraw(allocation)
    pods = {pod for pod, _ in beside.intake.lines}
    assert len(pods) == PODS
    for pod in pods:
        printed = beside.intake.lines[pod, "stdout"]
        assert [printed.get(seq) for seq in range(LINES)] == [b"%d" % number for number in range(1, LINES + 1)]
    await beside.harness.namespace.until_empty()


async def test_the_last_words_of_a_task_that_is_stopped_are_not_lost(beside: RealHarness) -> None:
    words = f"trap 'seq {LINES}; exit 5' TERM; echo begun; while :; do sleep 0.1; done"
    allocation = await beside.run(words)

    async def has_begun() -> bool:
        return b"begun" in beside.intake.printed()

    await eventually(has_begun, timeout_s=60)
    await beside.harness.stop(allocation, grace_s=30)
    await beside.harness.until_ended(allocation, timeout_s=90)
    assert beside.intake.printed() == [b"begun", *(b"%d" % number for number in range(1, LINES + 1))]
    await beside.harness.withdraw(allocation)
    await beside.harness.namespace.until_empty()


async def test_the_output_of_a_container_that_is_killed_as_a_whole_is_ended(beside: RealHarness) -> None:
    limits = {"resources": {"limits": {"memory": "64Mi"}}}
    spec = {"spec": {"containers": [{"name": "determined-container", **limits}]}}
    eats = "echo before; sleep 3; exec python3 -c 'held = [bytearray(1 << 20) for _ in range(1000)]'"
    allocation = await beside.run(eats, environment={"pod_spec": spec})
    ended = await beside.harness.until_ended(allocation, timeout_s=90)
    (pod,) = ended.pods
    assert pod.exit_code == 137
    keys = {f"{container_key(allocation, pod.name)}/{stream}" for stream in ("stdout", "stderr")}
    if not beside.intake.ends:  # as old kernels do it, only the task was killed, and the wrapper wrote the end

        async def is_told() -> bool:
            return keys <= {batch.stream for batch in beside.harness.lines if is_end_of_writer(batch)}

        await eventually(is_told)
    assert beside.intake.printed() == [b"before"]
    await beside.harness.withdraw(allocation)
    await beside.harness.namespace.until_empty()
