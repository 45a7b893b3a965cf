"""What a launcher finds that begins when another was killed: half made, ended meanwhile, or without a trace."""

from __future__ import annotations

from typing import Any

import pytest

from services.launcher.backends.kubernetes.allocations.state.allocation import TrackedAllocation
from services.launcher.reconcile import Existence
from tests.unit.launcher.backends.kubernetes.builders import (
    T0,
    build,
    existence,
    exited,
    job,
    observation,
    pod,
    reaction,
    run,
    running,
    view,
)
from tests.unit.launcher.specs import task

ASKED, GONE_BY = "2023-11-14T22:13:20Z", "2023-11-14T22:13:50Z"
SIBLING = "ended because another pod of the allocation failed"
DELETED = "unable to get exit code or exit message from deleted pod"


def told(found: TrackedAllocation) -> list[tuple[str, int | None, str, str]]:
    return [(each.state, each.exit_code, each.failure, each.message) for each in observation(found, view()).pods]


def killed(code: int = 137, name: str = "a", **fields: Any) -> Any:
    return exited(code, name, **{"finished_at": ASKED, "deleted_at": GONE_BY, "grace_s": 30, **fields})


def test_what_was_left_half_made_waits_for_its_order() -> None:
    found = run(pod())
    found.intent.mark_abandoned()
    assert existence(found, view()) is Existence.ABANDONED
    assert reaction(found, view()) is None
    assert not observation(found, view()).gone


def test_what_is_gone_without_a_trace_was_stopped_if_that_was_ordered() -> None:
    found = run(with_job=False)
    found.intent.end_creation()
    assert (observation(found, view()).failure, observation(found, view()).message) == ("DELETED", "job was deleted")
    found.request_stop(ordered=True, deadline=T0)
    seen = observation(found, view())
    assert (seen.gone, seen.stopped, seen.failure) == (True, True, "")


def test_a_pod_that_was_killed_after_its_sibling_had_failed_is_not_the_cause() -> None:
    for pods in ((killed(), exited(143, "b")), (exited(143, "b"), killed())):
        found = run(*pods, num_pods=2)
        assert told(found) == [("TERMINATED", 137, "DELETED", SIBLING), ("TERMINATED", 143, "FAILED", "")]


def test_a_pod_that_was_deleted_while_nobody_looked_did_not_fail_by_itself() -> None:
    assert told(run(killed())) == [("TERMINATED", 137, "DELETED", DELETED)]


BY_ITSELF = {
    "ended before somebody deleted it": killed(finished_at="2023-11-14T22:13:19Z"),
    "no signal": killed(3),
    "out of memory": killed(reason="OOMKilled"),
    "nobody says when": exited(137, "a", deleted_at=GONE_BY),
    "not deleted": exited(137, "a", finished_at=ASKED),
}


@pytest.mark.parametrize("name", BY_ITSELF)
def test_what_ended_by_itself_failed(name: str) -> None:
    ((state, _, failure, _),) = told(run(BY_ITSELF[name]))
    assert (state, failure) == ("TERMINATED", "FAILED")


def test_what_was_seen_to_end_by_itself_stays_so() -> None:
    found = run(running("a"), exited(137, "a", finished_at=ASKED), killed())
    assert told(found) == [("TERMINATED", 137, "FAILED", "")]


def test_one_pod_that_explains_a_failure_is_detail_enough() -> None:
    found = run(exited(2, "a"), num_pods=2)
    found.observed.on_job(job(pods=2, condition="Failed", message="Job has reached the specified backoff limit"))
    found.intent.confirm_pods_listed()
    seen = observation(found, view())
    assert (seen.gone, seen.failure, told(found)) == (True, "", [("TERMINATED", 2, "FAILED", "")])


def test_jobs_tell_what_they_are_made_of() -> None:
    made = build(task())
    assert made.made_of == build(task()).made_of
    assert made.made_of != build(task(slots=1)).made_of
    assert made.made_of != build(task(), namespace="elsewhere").made_of
    assert "resolute/made-of" not in made.job["spec"]["template"]["metadata"]["annotations"]
