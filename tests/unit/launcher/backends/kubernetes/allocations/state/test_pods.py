from __future__ import annotations

from operator import attrgetter

import pytest
from msgspec import Struct

from libs.events.observations import FailureKind, PodState
from services.launcher.backends.kubernetes.allocations.state.pods import (
    LOG_WAIT_S,
    Trouble,
    end_of,
    failed_containers,
    observed_pod,
    phase_of,
    reads_until,
    trouble_of,
    waits_for,
)
from services.launcher.backends.kubernetes.client.objects import Pod
from services.launcher.backends.kubernetes.manifests.names import FLUENT, INIT, MAIN
from tests.unit.launcher.backends.kubernetes.builders import Json, exited, pod, running, waiting

DONE = {"terminated": {"exitCode": 0}}
FAILED = {"terminated": {"exitCode": 3, "message": "no space"}}
EVICTED = "The node was low on resource: memory."


class State(Struct, frozen=True):
    name: str
    pod: Pod
    state: PodState


STATES = [
    State("waits for a node", pod(), "ASSIGNED"),
    State("has a node", pod(node="n1"), "PULLING"),
    State("waits for its image", waiting("ContainerCreating"), "PULLING"),
    State("puts files in place", pod(node="n1", init={INIT: {"running": {}}}), "STARTING"),
    State("has them in place", pod(node="n1", init={INIT: DONE}, main={"waiting": {}}), "STARTING"),
    State("only its sidecar has started", pod(node="n1", init={FLUENT: {"running": {}}}), "PULLING"),
    State("a sidecar of the user has started", pod(node="n1", native=["s"], init={"s": {"running": {}}}), "PULLING"),
    State("runs without its main container", pod(phase="Running", node="n1", main={"waiting": {}}), "STARTING"),
    State("runs", running(), "RUNNING"),
    State("main has ended, a sidecar has not", exited(0, sidecar={"running": {}}), "TERMINATED"),
    State("has succeeded", exited(0), "TERMINATED"),
    State("has failed", exited(1), "TERMINATED"),
    State("was evicted", pod(phase="Failed", node="n1", reason="Evicted", message=EVICTED), "TERMINATED"),
]


@pytest.mark.parametrize("case", STATES, ids=attrgetter("name"))
def test_how_far_a_pod_has_come(case: State) -> None:
    assert phase_of(case.pod) == case.state
    assert (end_of(case.pod) is not None) == (case.state == "TERMINATED")


class End(Struct, frozen=True):
    name: str
    pod: Pod
    code: int | None
    failure: FailureKind
    message: str


ENDS = [
    End("success", exited(0), 0, "", ""),
    End("exit 1", exited(1), 1, "FAILED", ""),
    End("its own words", exited(1, message="out of data\n"), 1, "FAILED", "out of data"),
    End(
        "out of memory",
        exited(137, reason="OOMKilled"),
        137,
        "FAILED",
        "OOMKilled: the container used more memory than its limit allows",
    ),
    End("cannot start", exited(128, reason="StartError"), 128, "FAILED", "StartError"),
    End("success with a broken sidecar", exited(0, sidecar=FAILED), 0, "", ""),
    End(
        "init container",
        pod(phase="Failed", node="n1", init={INIT: FAILED}),
        3,
        "FAILED",
        f"container {INIT}: no space",
    ),
    End(
        "a sidecar that was ended is not the cause",
        pod(phase="Failed", node="n1", init={FLUENT: FAILED}, reason="Evicted", message=EVICTED),
        None,
        "DELETED",
        f"Evicted: {EVICTED}",
    ),
    End(
        "evicted while it ran",
        pod(phase="Failed", node="n1", reason="Evicted", message=EVICTED, main={"terminated": {"exitCode": 137}}),
        None,
        "DELETED",
        f"Evicted: {EVICTED}",
    ),
    End(
        "node shut down",
        pod(phase="Failed", node="n1", reason="Terminated", message="imminent node shutdown"),
        None,
        "NODE_LOST",
        "Terminated: imminent node shutdown",
    ),
    End(
        "not admitted",
        pod(phase="Failed", node="n1", reason="OutOfnvidia.com/gpu", message="Node didn't have enough resource"),
        None,
        "ABORTED",
        "OutOfnvidia.com/gpu: Node didn't have enough resource",
    ),
    End("nothing is known", pod(phase="Failed", node="n1"), None, "DELETED", "the pod failed, and nobody says why"),
    End("success, and nothing else is known", pod(phase="Succeeded", node="n1"), 0, "", ""),
]


@pytest.mark.parametrize("case", ENDS, ids=attrgetter("name"))
def test_why_a_pod_has_ended(case: End) -> None:
    cause = end_of(case.pod)
    assert cause is not None
    assert (cause.exit_code, cause.failure, cause.message) == (case.code, case.failure, case.message)


TROUBLES = [
    ("ImagePullBackOff", Trouble.IMAGE, "job was stuck due to unrecoverable image pull errors"),
    ("ErrImagePull", None, ""),
    ("ContainerCreating", None, ""),
    ("CreateContainerConfigError", Trouble.STUCK, "the pod cannot start"),
    ("InvalidImageName", Trouble.STUCK, "the pod cannot start"),
]


@pytest.mark.parametrize(("reason", "trouble", "words"), TROUBLES)
def test_what_keeps_a_pod_from_starting(reason: str, trouble: Trouble | None, words: str) -> None:
    found = trouble_of(waiting(reason, 'Back-off pulling image "x"'))
    if trouble is None:
        assert found is None
    else:
        assert found == (trouble, f'{words}: container {MAIN}: {reason}: Back-off pulling image "x"')


def test_an_init_container_without_its_image_is_trouble_too() -> None:
    found = trouble_of(pod(node="n1", init={INIT: {"waiting": {"reason": "ImagePullBackOff"}}}))
    assert found is not None
    assert found[0] is Trouble.IMAGE


STARTED: dict[str, Json] = {"runs": {"running": {}}, "has ended": {"terminated": {"exitCode": 0}}}


@pytest.mark.parametrize("reason", ["CreateContainerError", "CreateContainerConfigError", "InvalidImageName"])
@pytest.mark.parametrize("main", STARTED.values(), ids=STARTED)
def test_23_a_container_beside_a_task_that_has_started_may_be_stuck(main: Json, reason: str) -> None:
    stuck = {"waiting": {"reason": reason, "message": "no such Secret"}}
    assert trouble_of(pod(phase="Running", node="n1", main=main, sidecar=stuck)) is None
    waits = {"waiting": {"reason": "ContainerCreating"}}
    found = trouble_of(pod(node="n1", main=waits, sidecar=stuck))
    assert found == (Trouble.STUCK, f"the pod cannot start: container side: {reason}: no such Secret")


def test_an_image_that_cannot_be_had_is_trouble_whatever_runs() -> None:
    found = trouble_of(running(sidecar={"waiting": {"reason": "ImagePullBackOff"}}))
    assert found is not None
    assert found[0] is Trouble.IMAGE


def test_a_pod_that_waits_says_what_the_scheduler_says() -> None:
    unschedulable = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/8 nodes are available: 8 Insufficient nvidia.com/gpu.",
    }
    assert waits_for(pod(conditions=[unschedulable])) == (
        "Unschedulable: 0/8 nodes are available: 8 Insufficient nvidia.com/gpu."
    )
    assert waits_for(running()) == ""


def test_a_pod_as_others_are_told_of_it() -> None:
    told = observed_pod(running(address="10.1.2.3"), None)
    assert (told.name, told.state, told.node, told.addresses) == ("job-abcde", "RUNNING", "n1", ("10.1.2.3",))
    assert told.job == "job"
    assert told.runtime_id == ""
    assert observed_pod(running(container_id="containerd://5f2a"), None).runtime_id == "5f2a"
    ended = observed_pod(exited(7), end_of(exited(7)))
    assert (ended.state, ended.exit_code, ended.failure) == ("TERMINATED", 7, "FAILED")


def test_containers_whose_last_words_are_worth_reading() -> None:
    assert [name for name, _ in failed_containers(exited(1, init={INIT: DONE}))] == [MAIN]
    assert list(failed_containers(exited(0))) == []


ENDED_AT = "2026-01-01T00:00:00Z"
ENDED_AT_S = 1_767_225_600.0
RUNS: Json = {"running": {}}
READING = [
    ("the capture wrapper waited itself", exited(0, fluent=RUNS, finished_at=ENDED_AT), False),
    ("the task was killed as a whole", exited(137, fluent=RUNS, finished_at=ENDED_AT), True),
    ("a container of the user goes on", exited(137, sidecar=RUNS, init={FLUENT: RUNS}, finished_at=ENDED_AT), True),
    ("the node has asked it to end", exited(137, phase="Running", init={FLUENT: RUNS}, finished_at=ENDED_AT), False),
    ("it has ended too", exited(137, fluent=DONE, finished_at=ENDED_AT), False),
    ("the pod is being deleted", exited(137, fluent=RUNS, finished_at=ENDED_AT, deleted_at=ENDED_AT), False),
    ("the task runs", running(fluent=RUNS), False),
]


@pytest.mark.parametrize(("of", "reads"), [case[1:] for case in READING], ids=[case[0] for case in READING])
def test_fluent_bit_is_left_to_read_what_a_killed_task_has_printed(of: Pod, reads: bool) -> None:
    assert reads_until(of) == (ENDED_AT_S + LOG_WAIT_S if reads else 0)
