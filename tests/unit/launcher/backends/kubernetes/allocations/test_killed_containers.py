"""A container killed as a whole cannot say that its output has ended; the launcher does, once the pod is over."""

from __future__ import annotations

from libs.clock import SystemClock
from services.launcher.backends.kubernetes.allocations.state.pods import end_of, undelivered_of
from services.launcher.backends.kubernetes.allocations.tracking import Tracker
from services.launcher.backends.kubernetes.manifests.names import FLUENT
from tests.unit.launcher.backends.kubernetes.builders import Json, Listener, exited, job, running

RUNS: Json = {"running": {}}


def tracked() -> tuple[Tracker, Listener]:
    listener = Listener()
    tracker = Tracker(pool="default", clock=SystemClock(), stuck_grace_s=60, listener=listener)
    tracker.on_job(job())
    tracker.on_pod(running())
    return tracker, listener


async def test_its_streams_are_ended_when_the_shipper_has_ended_too() -> None:
    tracker, listener = tracked()
    tracker.on_pod(exited(137, phase="Running", init={FLUENT: RUNS}))
    assert listener.silenced == []
    tracker.on_pod(exited(137))
    tracker.on_pod(exited(137))
    tracker.on_pod_deleted(exited(137))
    assert listener.silenced == ["job-abcde"]


async def test_its_streams_are_ended_when_the_pod_is_gone() -> None:
    tracker, listener = tracked()
    tracker.on_pod(exited(137, fluent=RUNS))
    tracker.on_pod_deleted(exited(137, fluent=RUNS))
    assert listener.silenced == ["job-abcde"]


async def test_a_task_that_ended_by_itself_has_said_so() -> None:
    tracker, listener = tracked()
    tracker.on_pod(exited(1))
    tracker.on_pod_deleted(exited(1))
    assert listener.silenced == []


async def test_a_task_that_could_not_deliver_everything_has_said_how_much_there_was() -> None:
    tracker, listener = tracked()
    message = "out of coffee\nlog not delivered, lines printed: stdout 12, stderr 0\n"
    pod = exited(1, message=message)
    assert undelivered_of(pod) == {"stdout": 12, "stderr": 0}
    cause = end_of(pod)
    assert cause is not None
    assert cause.message == "out of coffee"
    tracker.on_pod(pod)
    assert listener.silenced == ["job-abcde"]


async def test_a_pod_that_is_gone_while_it_runs_says_nothing_any_more() -> None:
    tracker, listener = tracked()
    tracker.on_pod_deleted(running())
    assert listener.silenced == ["job-abcde"]
