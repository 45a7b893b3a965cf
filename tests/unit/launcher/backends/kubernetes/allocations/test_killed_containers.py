"""A container killed as a whole cannot say that its output has ended; the launcher does, once the pod is over."""

from __future__ import annotations

from libs.clock import SystemClock
from services.launcher.backends.kubernetes.allocations.state import Run
from services.launcher.backends.kubernetes.allocations.tracking import Tracker
from services.launcher.backends.kubernetes.client.objects import Pod
from services.launcher.backends.kubernetes.manifests.names import FLUENT
from tests.unit.launcher.backends.kubernetes.builders import Json, exited, job, running

RUNS: Json = {"running": {}}


class Listener:
    def __init__(self) -> None:
        self.silenced: list[str] = []

    def failed_pod(self, run: Run, pod: Pod) -> None:
        return

    def silenced_pod(self, run: Run, pod: Pod) -> None:
        self.silenced.append(pod.metadata.name)

    def out_of_sight(self, run: Run) -> None:
        return

    def partly_ready(self, run: Run) -> None:
        return


def tracked() -> tuple[Tracker, Listener]:
    tracker = Tracker(pool="default", clock=SystemClock(), stuck_grace_s=60)
    listener = Listener()
    tracker.tell(react=lambda _run, _what: None, reporter=listener)
    tracker.saw_job(job())
    tracker.saw_pod(running())
    return tracker, listener


async def test_its_streams_are_ended_when_the_shipper_has_ended_too() -> None:
    tracker, listener = tracked()
    tracker.saw_pod(exited(137, phase="Running", init={FLUENT: RUNS}))
    assert listener.silenced == []
    tracker.saw_pod(exited(137))
    tracker.saw_pod(exited(137))
    tracker.lost_pod(exited(137))
    assert listener.silenced == ["job-abcde"]


async def test_its_streams_are_ended_when_the_pod_is_gone() -> None:
    tracker, listener = tracked()
    tracker.saw_pod(exited(137, fluent=RUNS))
    tracker.lost_pod(exited(137, fluent=RUNS))
    assert listener.silenced == ["job-abcde"]


async def test_a_task_that_ended_by_itself_has_said_so() -> None:
    tracker, listener = tracked()
    tracker.saw_pod(exited(1))
    tracker.lost_pod(exited(1))
    assert listener.silenced == []
