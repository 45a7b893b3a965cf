"""Allocations with several Jobs: what one of them says, and what all of them do."""

from __future__ import annotations

import msgspec
import pytest

from libs.clock import SystemClock
from services.launcher.backends.kubernetes.allocations.state.allocation import TrackedAllocation
from services.launcher.backends.kubernetes.allocations.state.intent import Intent, Outcome
from services.launcher.backends.kubernetes.allocations.state.observed_state import ObservedState
from services.launcher.backends.kubernetes.allocations.state.status import NextAction
from services.launcher.backends.kubernetes.allocations.tracking import Tracker
from services.launcher.backends.kubernetes.client.objects import Job, Pod
from services.launcher.backends.kubernetes.manifests.job_parts import JobPart, written
from services.launcher.reconcile import Existence
from tests.unit.launcher.backends.kubernetes.builders import (
    Listener,
    existence,
    exited,
    job,
    observation,
    outcome_at,
    reaction,
    running,
    view,
)

PARTS = (JobPart("job-x4", 2, 4), JobPart("job-x3", 1, 3))
NOTES = {"resolute/jobs": written(PARTS)}


def several(*jobs: Job, pods: tuple[Pod, ...] = ()) -> TrackedAllocation:
    found = TrackedAllocation(
        allocation="1.x.1",
        task="1.x",
        pool="default",
        job_name="job-x4",
        namespace="",
        slots_per_pod=4,
        observed=ObservedState(num_pods=3, job_names=("job-x4", "job-x3")),
        intent=Intent(),
        view=view(),
        parts=PARTS,
    )
    for each in jobs:
        found.observed.on_job(each)
    for pod in pods:
        found.observed.on_pod(pod, intent=found.intent, view=view())
    return found


def four(condition: str = "", **fields: object) -> Job:
    return job("job-x4", pods=2, condition=condition, annotations=NOTES, **fields)


def three(condition: str = "", **fields: object) -> Job:
    return job("job-x3", pods=1, condition=condition, annotations=NOTES, **fields)


def pods_of(*, fourth: int | None = None) -> tuple[Pod, ...]:
    last = running("job-x3-c", job="job-x3") if fourth is None else exited(fourth, "job-x3-c", job="job-x3")
    return running("job-x4-a", job="job-x4"), running("job-x4-b", job="job-x4"), last


def test_it_has_finished_when_all_have() -> None:
    ended = tuple(exited(0, name, job=name[:-2]) for name in ("job-x4-a", "job-x4-b", "job-x3-c"))
    assert existence(several(four("Complete"), three(active=1), pods=pods_of()), view()) is Existence.LIVE
    over = several(four("Complete"), three("Complete"), pods=ended)
    assert existence(over, view()) is Existence.ENDED
    seen = observation(over, view())
    assert sorted((pod.job, pod.slots) for pod in seen.pods) == [("job-x3", 3), ("job-x4", 4), ("job-x4", 4)]
    assert (seen.num_pods, seen.failure) == (3, "")


def test_pods_that_nobody_saw_are_presumed_of_each_job() -> None:
    found = several(four("Complete"), three("Complete"), pods=(exited(0, "job-x4-a", job="job-x4"),))
    assert reaction(found, view()) is NextAction.LIST_PODS
    found.intent.confirm_pods_listed()
    seen = observation(found, view())
    assert sorted((pod.job, pod.slots, pod.exit_code) for pod in seen.pods) == [
        ("job-x3", 3, 0),
        ("job-x4", 4, 0),
        ("job-x4", 4, 0),
    ]


def test_a_failed_pod_ends_those_of_the_other_job() -> None:
    found = several(four(), three(), pods=pods_of(fourth=1))
    assert reaction(found, view()) is NextAction.END_REST
    assert [pod.name for pod in outcome_at(found, view()).pods] == ["job-x3-c"]


def test_a_failed_job_whose_pods_nobody_saw_ends_the_other() -> None:
    found = several(four(), three("Failed", message="BackoffLimitExceeded"), pods=pods_of()[:2])
    assert reaction(found, view()) is NextAction.LIST_PODS, "a pod may say more"
    found.intent.confirm_pods_listed()
    assert reaction(found, view()) is NextAction.END_REST
    outcome = outcome_at(found, view())
    assert outcome.failure == "FAILED"
    assert outcome.message.endswith("BackoffLimitExceeded")


def test_a_deleted_job_ends_the_other() -> None:
    found = several(four(), three(), pods=pods_of()[:2])
    found.observed.on_job_deleted("job-x3")
    assert reaction(found, view()) is NextAction.END_REST
    assert (outcome_at(found, view()).failure, outcome_at(found, view()).message) == ("DELETED", "job was deleted")


def test_one_that_has_finished_may_go() -> None:
    found = several(four(), three("Complete"), pods=pods_of(fourth=0))
    found.observed.on_job_deleted("job-x3")
    assert reaction(found, view()) is None


def test_one_that_was_never_seen_is_lost_once_all_were_told() -> None:
    found = several(three(), pods=pods_of()[2:])
    assert reaction(found, view()) is None, "it may be told in a moment"
    found.observed.on_all_jobs_told()
    assert reaction(found, view()) is NextAction.END_REST
    found.observed.on_job(four())
    assert reaction(found, view()) is None


@pytest.mark.parametrize("told", [("job-x4",), ("job-x4", "job-x3")])
def test_pods_are_deleted_when_every_job_knows(told: tuple[str, ...]) -> None:
    made = {"job-x4": four, "job-x3": three}
    jobs = [make(parallelism=0 if name in told else 2, active=2) for name, make in made.items()]
    found = several(*jobs, pods=pods_of())
    found.decide(Outcome(reason="because"))
    found.intent.confirm_outcome()
    expected = NextAction.DELETE_PODS if len(told) == 2 else None
    assert reaction(found, view()) is expected


@pytest.fixture
def tracker() -> Tracker:
    return Tracker(pool="default", clock=SystemClock(), stuck_grace_s=60, listener=Listener())


async def test_one_job_leads_to_all(tracker: Tracker) -> None:
    tracker.on_job(three())
    found = tracker.allocations["1.x.1"]
    assert (found.job_name, found.observed.num_pods, found.parts) == ("job-x4", 3, PARTS)
    tracker.on_job(four())
    assert list(found.observed.jobs) == ["job-x3", "job-x4"]
    assert list(tracker.allocations) == ["1.x.1"]
    assert tracker.owner_of("Job", "", "job-x4") is tracker.owner_of("Job", "", "job-x3") is found
    assert (found.slots_of("job-x4"), found.slots_of("job-x3")) == (4, 3)
    tracker.forget(found)
    assert tracker.owner_of("Job", "", "job-x4") is tracker.owner_of("Job", "", "job-x3") is None


async def test_what_a_launcher_told_one_job_is_told_the_other(tracker: Tracker) -> None:
    """It was killed between the two."""
    outcome = msgspec.json.encode(Outcome(reason="because", failure="FAILED")).decode()
    tracker.on_job(three())
    tracker.on_job(job("job-x4", pods=2, parallelism=0, annotations={**NOTES, "resolute/outcome": outcome}))
    found = tracker.allocations["1.x.1"]
    assert found.intent.outcome is not None
    assert found.status.reaction is NextAction.END_REST
    tracker.close()


async def test_a_job_that_comes_after_the_stop_is_deleted_too(tracker: Tracker) -> None:
    tracker.on_job(four())
    found = tracker.allocations["1.x.1"]
    found.request_stop(ordered=True, deadline=0.0)
    assert found.intent.stop is not None
    found.intent.confirm_stop(found.intent.stop)
    tracker.on_job(three())
    assert found.status.reaction is NextAction.STOP
    tracker.close()
