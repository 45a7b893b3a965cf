from __future__ import annotations

from operator import attrgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from libs.events.failures import FailureType, failure_of
from services.launcher.backends.kubernetes.allocations.state.allocation import TrackedAllocation
from services.launcher.backends.kubernetes.allocations.state.lost_nodes import LostNodes
from services.launcher.backends.kubernetes.allocations.state.observation import observation as observed
from services.launcher.backends.kubernetes.allocations.state.observation import outcome_of
from services.launcher.backends.kubernetes.allocations.state.pods import Cause
from services.launcher.backends.kubernetes.allocations.state.status import NextAction
from services.launcher.backends.kubernetes.allocations.state.view import View
from services.launcher.backends.kubernetes.client.objects import Pod
from services.launcher.reconcile import Existence
from tests.unit.launcher.backends.kubernetes.builders import (
    T0,
    blind,
    existence,
    exited,
    job,
    node,
    observation,
    outcome_at,
    pod,
    reaction,
    run,
    running,
    view,
    waiting,
)

LIVE, ENDED = Existence.LIVE, Existence.ENDED
NOW = "2023-11-14T22:13:20Z"  # T0
NOBODY = LostNodes(None)


def told(found: TrackedAllocation, *, now: float = T0, lost: Any = ()) -> list[tuple[str, int | None, str, str]]:
    seen = observation(found, view(now, lost=lost))
    return [(each.state, each.exit_code, each.failure, each.message) for each in seen.pods]


def stop(found: TrackedAllocation, *, ordered: bool = True) -> None:
    found.request_stop(ordered=ordered, deadline=T0 + 15)


class Case(Struct, frozen=True, kw_only=True):
    name: str
    pods: tuple[Pod, ...]
    num_pods: int = 1
    existence: Existence
    reaction: NextAction | None = None


CASES = [
    Case(name="no pod yet", pods=(), existence=LIVE),
    Case(name="runs", pods=(running(),), existence=LIVE),
    Case(name="ended well", pods=(exited(0),), existence=ENDED),
    Case(name="ended badly", pods=(exited(1),), existence=ENDED),
    Case(name="ended well beside a sidecar", pods=(exited(0, sidecar={"running": {}}),), existence=ENDED),
    Case(name="half of a gang has ended well", pods=(exited(0, "a"), running("b")), num_pods=2, existence=LIVE),
    Case(
        name="one of a gang has failed",
        pods=(exited(1, "a"), running("b")),
        num_pods=2,
        existence=LIVE,
        reaction=NextAction.END_REST,
    ),
    Case(
        name="one of a gang has failed before the other was made",
        pods=(exited(1, "a"),),
        num_pods=2,
        existence=LIVE,
        reaction=NextAction.END_REST,
    ),
    Case(name="image", pods=(waiting("ImagePullBackOff"),), existence=LIVE, reaction=NextAction.END_REST),
    Case(name="image, perhaps only now", pods=(waiting("ErrImagePull"),), existence=LIVE),
    Case(name="stuck, perhaps only now", pods=(waiting("CreateContainerConfigError"),), existence=LIVE),
    Case(name="deleted by somebody", pods=(running(deleted_at=NOW),), existence=LIVE, reaction=NextAction.END_REST),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_what_follows_from_pods(case: Case) -> None:
    found = run(*case.pods, num_pods=case.num_pods)
    assert existence(found, view()) is case.existence
    assert reaction(found, view()) is case.reaction
    assert observation(found, view()).gone == (case.existence is ENDED)


def test_the_death_of_one_pod_ends_the_gang_and_is_told_as_the_cause() -> None:
    found = run(exited(3, "a"), running("b"), num_pods=2)
    found.refresh(view())
    found.decide(outcome_of(found))
    assert found.intent.outcome.reason == "ended because pod a failed"
    found.intent.confirm_outcome()
    found.intent.confirm_pods_listed()
    found.observed.on_pod_deleted(exited(143, "b"), intent=found.intent, view=blind(T0))
    assert told(found) == [
        ("TERMINATED", 3, "FAILED", ""),
        ("TERMINATED", 143, "DELETED", "ended because pod a failed"),
    ]
    assert existence(found, view()) is ENDED
    assert reaction(found, view()) is None


def test_a_pod_that_was_asked_to_end_and_never_says_that_it_has_explains_nothing() -> None:
    found = run(exited(3, "a"), running("b"), num_pods=2)
    found.refresh(view())
    found.decide(outcome_of(found))
    found.observed.on_pod(running("b", deleted_at=NOW), intent=found.intent, view=blind(T0))
    cause = found.observed.cause_of(found.observed.pods["b"], intent=found.intent, view=blind(T0 + 1000))
    assert cause == Cause(failure="DELETED", message="ended because pod a failed", is_consequence=True)


def test_how_it_ended_survives_the_launcher_when_the_pods_do_not() -> None:
    before = run(exited(3, "a"), running("b"), num_pods=2)
    outcome = outcome_at(before, view())
    after = run(num_pods=2, with_job=False)
    after.restore(outcome)
    after.observed.on_job(job(pods=2))
    assert reaction(after, view()) is NextAction.LIST_PODS
    after.intent.confirm_pods_listed()
    assert told(after) == [("TERMINATED", 3, "FAILED", "")]
    assert existence(after, view()) is ENDED
    # And while one is still there:
    again = run(num_pods=2, with_job=False)
    again.restore(outcome)
    again.observed.on_job(job(pods=2))
    again.observed.on_pod(exited(3, "a"), intent=again.intent, view=blind(T0))
    again.observed.on_pod(running("b", deleted_at=NOW), intent=again.intent, view=blind(T0))
    assert existence(again, view()) is LIVE
    again.observed.on_pod_deleted(running("b", deleted_at=NOW), intent=again.intent, view=blind(T0))
    assert told(again)[1] == ("TERMINATED", None, "DELETED", "ended because pod a failed")


def test_a_pod_that_somebody_deletes_fails_whatever_its_exit_code() -> None:
    found = run(running())
    found.observed.on_pod(running(deleted_at=NOW), intent=found.intent, view=blind(T0))
    assert told(found)[0][0] == "RUNNING"  # it still does
    found.observed.on_pod_deleted(exited(0, deleted_at=NOW), intent=found.intent, view=blind(T0))
    words = "unable to get exit code or exit message from deleted pod"
    assert told(found) == [("TERMINATED", None, "DELETED", words)]
    assert [failure_of(pod) for pod in observation(found, view()).pods] == [FailureType.RESOURCES_FAILED]


def test_a_pod_deleted_while_it_waited() -> None:
    found = run(pod())
    found.observed.on_pod_deleted(pod(), intent=found.intent, view=blind(T0))
    assert told(found) == [("TERMINATED", None, "DELETED", "pod job-abcde deleted")]
    (gone,) = observation(found, view()).pods
    assert gone.vanished
    assert failure_of(gone) == FailureType.TASK_ERROR


def test_a_pod_that_vanished_is_remembered_as_such_by_the_next_launcher() -> None:
    found = run(running())
    found.observed.on_pod_deleted(running(), intent=found.intent, view=blind(T0))
    after = run()
    after.restore(outcome_at(found, view()))
    assert [pod.vanished for pod in observation(after, view()).pods] == [True]


def test_the_failure_of_a_pod_that_is_gone_is_written_down_and_nothing_takes_its_place() -> None:
    found = run(running())
    found.observed.on_pod_deleted(running(), intent=found.intent, view=blind(T0))
    assert reaction(found, view()) is NextAction.END_REST
    found.observed.on_pod(pod("job-again"), intent=found.intent, view=blind(T0))  # as clusters before 1.23 do
    assert existence(found, view()) is LIVE
    assert reaction(found, view()) is NextAction.END_REST


def test_a_gang_is_over_when_the_job_controller_agrees() -> None:
    found = run(exited(1))
    found.refresh(view())
    found.intent.restore(outcome_of(found))
    found.observed.on_job(job(active=1))
    assert existence(found, view()) is LIVE
    found.observed.on_pod(running("another"), intent=found.intent, view=blind(T0))
    assert reaction(found, view()) is None, "whoever deletes a pod now gets another one in its place"
    found.observed.on_job(job(active=1, parallelism=0))
    assert reaction(found, view()) is NextAction.DELETE_PODS
    found.observed.on_pod_deleted(running("another", deleted_at=NOW), intent=found.intent, view=blind(T0))
    found.observed.on_job(job(active=0, parallelism=0))
    assert reaction(found, view()) is NextAction.LIST_PODS
    found.intent.confirm_pods_listed()
    assert existence(found, view()) is ENDED


def test_a_pod_that_is_drained_away_is_not_its_tasks_fault() -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "drained"}
    found = run(running())
    found.observed.on_pod(running(deleted_at=NOW, conditions=[condition]), intent=found.intent, view=blind(T0))
    found.observed.on_pod_deleted(running(deleted_at=NOW, conditions=[condition]), intent=found.intent, view=blind(T0))
    assert told(found) == [("TERMINATED", None, "NODE_LOST", "drained")]


def test_a_lost_node_is_noticed_when_the_cluster_gives_its_pods_up() -> None:
    found = run(running())
    assert told(found, lost=["n1"])[0][0] == "RUNNING"  # it may come back
    lost = LostNodes({"n1": node("n1", ready="Unknown", message="Kubelet stopped posting node status.")})
    found.observed.on_pod(running(deleted_at=NOW), intent=found.intent, view=View(now=T0, lost=lost, stuck_grace_s=60))
    words = "node n1 is lost: Kubelet stopped posting node status."
    assert told(found, lost=["n1"]) == [("TERMINATED", None, "NODE_LOST", words)]
    assert existence(found, view(lost=["n1"])) is ENDED


def test_without_sight_of_nodes_a_pod_that_overstays_its_deletion_is_lost() -> None:
    found = run(running())
    found.observed.on_pod(running(deleted_at=NOW), intent=found.intent, view=blind(T0))
    found.observed.known_causes.clear()
    assert existence(found, view(T0 + 29)) is LIVE
    assert told(found, now=T0 + 31)[0][2] == "NODE_LOST"
    looked = found.refresh(view()).next_change
    assert looked is not None
    assert T0 + 30 < looked < T0 + 32


def test_a_job_that_somebody_deletes() -> None:
    found = run(running())
    found.observed.on_job_deleted("job")
    assert existence(found, view()) is LIVE
    found.observed.on_pod(running(deleted_at=NOW), intent=found.intent, view=blind(T0))
    found.observed.on_pod_deleted(exited(143, deleted_at=NOW), intent=found.intent, view=blind(T0))
    assert told(found) == [("TERMINATED", None, "DELETED", "job was deleted")]
    before_any_pod = run()
    before_any_pod.observed.on_job_deleted("job")
    seen = observation(before_any_pod, view())
    assert (seen.gone, seen.failure, seen.message) == (True, "DELETED", "job was deleted")


def test_a_job_that_the_cluster_cleans_up_after_its_end_has_not_failed() -> None:
    found = run(exited(0))
    found.observed.on_job(job(condition="Complete"))
    found.observed.on_job_deleted("job")
    found.observed.on_pod_deleted(exited(0, deleted_at=NOW), intent=found.intent, view=blind(T0))
    seen = observation(found, view())
    assert (seen.gone, seen.failure, told(found)) == (True, "", [("TERMINATED", 0, "", "")])


def test_a_job_that_is_complete_succeeded_even_if_its_pods_are_gone() -> None:
    found = run(num_pods=2)
    found.observed.on_job(job(pods=2, condition="Complete"))
    assert reaction(found, view()) is NextAction.LIST_PODS
    found.intent.confirm_pods_listed()
    assert told(found) == [("TERMINATED", 0, "", "")] * 2
    assert existence(found, view()) is ENDED


def test_a_job_that_failed_without_any_detail() -> None:
    found = run()
    found.observed.on_job(job(condition="Failed", message="Job has reached the specified backoff limit"))
    assert reaction(found, view()) is NextAction.LIST_PODS
    found.intent.confirm_pods_listed()
    seen = observation(found, view())
    assert (seen.failure, seen.message) == (
        "FAILED",
        "job exited with a failure but we don't have pod-level detail: Job has reached the specified backoff limit",
    )


def test_a_finished_job_waits_for_the_pods_it_is_ahead_of() -> None:
    found = run(running())
    found.observed.on_job(job(condition="Failed"))
    assert existence(found, view()) is LIVE
    assert reaction(found, view()) is NextAction.LIST_PODS
    found.observed.on_pod(exited(9), intent=found.intent, view=blind(T0))
    found.intent.confirm_pods_listed()
    assert told(found) == [("TERMINATED", 9, "FAILED", "")]


def test_stopped_by_order_before_anything_had_ended() -> None:
    found = run(running())
    stop(found)
    assert reaction(found, view()) is NextAction.STOP
    assert found.intent.stop is not None
    found.intent.confirm_stop(found.intent.stop)
    assert reaction(found, view()) is None
    found.observed.on_job_deleted("job")
    found.observed.on_pod(running(deleted_at=NOW), intent=found.intent, view=blind(T0))
    assert existence(found, view()) is LIVE
    found.observed.on_pod_deleted(exited(143, deleted_at=NOW), intent=found.intent, view=blind(T0))
    seen = observation(found, view())
    assert (seen.gone, seen.stopped, seen.failure) == (True, True, "")
    assert told(found) == [("TERMINATED", 143, "DELETED", "stopped by order")]


def test_pods_whose_job_was_taken_away_from_them_are_stopped_too() -> None:
    found = run(running(), with_job=False)
    assert existence(found, view()) is LIVE
    stop(found, ordered=False)
    assert reaction(found, view()) is NextAction.STOP


def test_a_task_that_ends_well_when_it_is_asked_to_has_ended_well() -> None:
    found = run(running())
    stop(found)
    found.observed.on_job_deleted("job")
    found.observed.on_pod_deleted(exited(0, deleted_at=NOW), intent=found.intent, view=blind(T0))
    assert told(found) == [("TERMINATED", 0, "", "")]


def test_a_stop_after_a_failure_is_not_the_reason() -> None:
    found = run(exited(1, "a"), running("b"), num_pods=2)
    stop(found)
    found.observed.on_job_deleted("job")
    for name, code in (("a", 1), ("b", 143)):
        found.observed.on_pod_deleted(exited(code, name, deleted_at=NOW), intent=found.intent, view=blind(T0))
    assert observation(found, view()).stopped is False
    assert told(found)[0] == ("TERMINATED", 1, "FAILED", "")


def test_what_was_refused_is_over_and_says_why() -> None:
    found = run(with_job=False)
    found.intent.refuse("exceeded quota: count/jobs.batch")
    seen = observation(found, view())
    assert (seen.gone, seen.failure, seen.message) == (
        True,
        "LAUNCH_ERROR",
        "exceeded quota: count/jobs.batch",
    )


def test_what_was_withdrawn_before_its_turn_has_not_failed() -> None:
    found = run(with_job=False)
    found.intent.enqueue()
    assert existence(found, view()) is LIVE
    stop(found)
    found.intent.refuse("", withdrawn=True)
    seen = observation(found, view())
    assert (seen.gone, seen.stopped, seen.failure, seen.pods) == (True, True, "", ())


def test_stuck_pods_get_some_time() -> None:
    found = run(waiting("CreateContainerConfigError", 'secret "s" not found'))
    assert found.refresh(view()).next_change == T0 + 60
    assert reaction(found, view(T0 + 61)) is NextAction.END_REST
    outcome = outcome_at(found, view(T0 + 61))
    assert outcome.pods[0].failure == "LAUNCH_ERROR"
    assert 'secret "s" not found' in outcome.pods[0].message


def test_23_a_stuck_container_beside_it_does_not_end_a_task_that_runs() -> None:
    stuck = {"waiting": {"reason": "CreateContainerConfigError", "message": 'secret "s" not found'}}
    found = run(pod(node="n1", main={"waiting": {"reason": "ContainerCreating"}}, sidecar=stuck))
    found.observed.on_pod(running(sidecar=stuck), intent=found.intent, view=blind(T0 + 5))
    assert (reaction(found, view(T0 + 1000)), found.refresh(view(T0 + 5)).next_change) == (None, None)
    assert told(found) == [("RUNNING", None, "", "")]
    found.observed.on_pod(exited(0, sidecar=stuck), intent=found.intent, view=blind(T0 + 1000))
    assert told(found) == [("TERMINATED", 0, "", "")]


def test_an_image_that_comes_after_all() -> None:
    found = run(waiting("ErrImagePull"))
    found.observed.on_pod(running(), intent=found.intent, view=blind(T0 + 1))
    assert reaction(found, view(T0 + 1000)) is None


@pytest.mark.parametrize("says_both", [False, True], ids=["Kubernetes 1.20", "Kubernetes 1.34"])
def test_why_an_image_cannot_be_pulled_is_told_with_its_name(says_both: bool) -> None:
    reason = 'Error response from daemon: Head "http://r/v2/x/manifests/1": no basic auth credentials'
    error = f"rpc error: code = Unknown desc = {reason}"
    found = run(waiting("ErrImagePull", error))
    backs_off = 'Back-off pulling image "r/x:1"' + (f": ErrImagePull: {error}" if says_both else "")
    found.observed.on_pod(waiting("ImagePullBackOff", backs_off), intent=found.intent, view=blind(T0 + 15))
    (failed,) = outcome_at(found, view(T0 + 15)).pods
    assert failed.failure == "IMAGE_PULL"
    assert failed.message.startswith("job was stuck due to unrecoverable image pull errors: container determined-c")
    assert '"r/x:1"' in failed.message
    assert failed.message.count(reason) == 1


def test_pods_that_the_cluster_refuses_to_make() -> None:
    found = run()
    found.observed.on_create_failure('pods "x" is forbidden: violates PodSecurity', now=T0)
    assert existence(found, view()) is LIVE
    assert found.refresh(view()).next_change == T0 + 60
    later = view(T0 + 60)
    assert reaction(found, later) is NextAction.END_REST
    found.intent.decide(outcome_of(found), pods=())
    assert existence(found, later) is LIVE
    found.intent.confirm_outcome()
    found.intent.confirm_pods_listed()
    seen = observation(found, later)
    assert (seen.gone, seen.failure) == (True, "LAUNCH_ERROR")
    assert "violates PodSecurity" in seen.message


def test_a_quota_that_is_used_up_is_waited_for() -> None:
    found = run()
    found.observed.on_quota_exceeded()
    assert reaction(found, view(T0 + 10_000)) is None
    assert observation(found, view()).quota_blocked is True
    found.observed.on_pod(pod(), intent=found.intent, view=blind(T0))
    assert observation(found, view()).quota_blocked is False


def test_gangs_of_which_only_some_have_a_place() -> None:
    assert run(running("a"), pod("b"), num_pods=2).is_partly_scheduled
    assert not run(running("a"), running("b"), num_pods=2).is_partly_scheduled
    assert not run(pod("a"), num_pods=2).is_partly_scheduled


STEPS = {
    "waits": pod,
    "runs": running,
    "succeeds": lambda name: exited(0, name),
    "fails": lambda name: exited(1, name),
    "is deleted": lambda name: running(name, deleted_at=NOW),
}


@given(st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.sampled_from(["a", "b"])), max_size=8), st.booleans())
def test_whatever_happens_each_pod_is_told_once_and_an_end_is_whole(
    steps: list[tuple[str, str]], stopped: bool
) -> None:
    found = run(num_pods=2)
    if stopped:
        stop(found)
    for what, name in steps:
        found.observed.on_pod(STEPS[what](name), intent=found.intent, view=blind(T0))
        if reaction(found, view()) is NextAction.END_REST:
            found.decide(outcome_of(found))
            found.intent.confirm_outcome()
        seen = observation(found, view())
        assert len({each.name for each in seen.pods}) == len(seen.pods)
        assert seen.gone == (existence(found, view()) is ENDED)
        if seen.gone:
            assert all(each.state == "TERMINATED" for each in seen.pods)


@given(st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.sampled_from(["a", "b"])), max_size=8))
def test_when_everything_is_gone_it_is_over(steps: list[tuple[str, str]]) -> None:
    found = run(num_pods=2)
    for what, name in steps:
        found.observed.on_pod(STEPS[what](name), intent=found.intent, view=blind(T0))
    found.observed.on_job_deleted("job")
    for each in list(found.observed.pods.values()):
        found.observed.on_pod_deleted(each, intent=found.intent, view=blind(T0))
    seen = observation(found, view())
    assert seen.gone
    assert all(each.state == "TERMINATED" for each in seen.pods)


def test_an_observation_names_the_nodes_of_its_pods_that_take_no_new_ones() -> None:
    found = run(running("a", node="n1"), exited(0, "b", node="n2"), running("c", node="n3"), num_pods=3)
    seen = observed(found, takes_pods=lambda name: name == "n1")
    assert seen.closed_nodes == ("n2", "n3")
    assert observation(found, view()).closed_nodes == ()
