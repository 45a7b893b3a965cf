"""What ``resolute check`` and ``resolute why`` print."""

from __future__ import annotations

from typing import Any

import pytest

from deploy.operations import check, limits, why
from services.scheduler.plan.reasons import WaitReason

START: dict[str, Any] = {
    "resourcePool": "gpus",
    "slots": 16,
    "pods": 2,
    "slotsPerPod": 8,
    "startsNow": False,
    "possible": True,
    "nodes": [],
    "reasonCode": "no_room",
    "reason": "waiting for slots to become free",
    "ahead": 0,
    "slotsAhead": 0,
    "estimatedStart": "2030-01-01T00:00:00Z",
    "basis": "there is room for it then",
}
FOUND: dict[str, Any] = {
    "start": START,
    "trials": 4,
    "username": "ann",
    "workspaceId": 3,
    "projectId": 5,
    "priority": 42,
    "sooner": [{"change": "resources.slots_per_trial: 8", "start": {**START, "startsNow": True, "nodes": ["n", "n"]}}],
}
WAITING: dict[str, Any] = {
    "name": "Trial 1 (Experiment 1)",
    "slots": 1,
    "resourcePool": "gpus",
    "requestedAt": "2030-01-01T00:00:00Z",
    "reason": "",
    "reasonCode": "",
    "ahead": None,
    "slotsAhead": None,
    "estimatedStart": None,
    "basis": "",
}


@pytest.fixture(autouse=True)
def _in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deploy.operations.check.in_this_zone", lambda moment: f"<{moment}>")
    monkeypatch.setattr("deploy.operations.why.in_this_zone", lambda moment: f"<{moment}>")


def test_slots_that_the_plan_divides_are_not_said_to_be_in_so_many_pods() -> None:
    divided = {**FOUND, "start": {**START, "slots": 12}}
    first = next(iter(check.as_lines(divided)))
    assert first.endswith("asks for 12 slots, in pods of at most 8, with priority 42.")


def test_what_would_wait_says_until_when_and_what_would_be_sooner() -> None:
    assert list(check.as_lines(FOUND)) == [
        "It is valid. In pool gpus, each of its first 4 trials asks for 16 slots, in 2 pods of 8, with priority 42.",
        "It would wait: waiting for slots to become free.",
        "Expected start: <2030-01-01T00:00:00Z> (there is room for it then).",
        "It counts against the limits and shares of ann and of workspace 3 (project 5).",
        "Sooner with:",
        "  resources.slots_per_trial: 8: now, on n",
    ]


@pytest.mark.parametrize(
    ("found", "code"),
    [
        ({"start": {**START, "startsNow": True}}, 0),
        ({"refused": "no"}, 2),
        ({"start": START}, 3),
        ({"start": {**START, "possible": False}}, 4),
    ],
)
def test_exit_codes_say_what_would_happen(found: dict[str, Any], code: int) -> None:
    assert check.exit_code(found) == code


def test_what_cannot_run_has_no_expected_start() -> None:
    lines = list(check.as_lines({**FOUND, "start": {**START, "possible": False}, "sooner": []}))
    assert lines[1] == "It cannot run there: waiting for slots to become free."
    assert not any("Expected" in line for line in lines)


def test_what_waits_is_explained_as_far_as_it_is_known() -> None:
    assert list(why.as_lines([WAITING])) == [
        "Trial 1 (Experiment 1): 1 slot of pool gpus, since <2030-01-01T00:00:00Z>",
        "  Why: the queue has not been planned yet",
        "  Expected start: nobody can say now; it is very far behind, or no scheduler answers",
    ]
    known = {"reason": "r", "reasonCode": "behind_priority", "ahead": 1, "slotsAhead": 8, "basis": "b"}
    assert list(why.as_lines([WAITING | known | {"estimatedStart": "2031-01-01T00:00:00Z"}]))[1:] == [
        "  Why: r",
        "  Ahead of it: 1 job, which wants 8 slots",
        "  Expected start: <2031-01-01T00:00:00Z>, b",
        "  What helps: a better priority (`det job update JOB --priority N`)",
    ]
    assert "nobody can say" in list(why.as_lines([WAITING | known]))[3]


def test_each_reason_says_what_helps() -> None:
    assert set(why.HELPS) == {reason.code for reason in WaitReason}
    limited = {**WAITING, "reasonCode": "hour_limit"}
    assert any("resources.time_limit" in line for line in why.as_lines([limited]) if "What helps" in line)


def test_limits_say_how_much_of_what_they_allow() -> None:
    usual = {"scope": "user", "resourcePool": "", "used": 1.5, "left": None, "enforce": "wait", "setBy": ""}
    of_slots = {**usual, "name": "ann", "period": None, "slots": 8, "slotHours": None}
    of_hours = {**usual, "name": "", "period": "week", "slots": None, "slotHours": 20.5}
    assert limits.as_lines([of_slots, of_hours]) == [
        "FOR                    POOL  LIMIT                   USED  LEFT  ENFORCE  SET BY",
        "user ann               all   8 slots                 1.5   -     wait     -",
        "each user without one  all   20.5 slot-hours a week  1.5   -     wait     -",
    ]


def test_of_many_that_wait_the_first_are_explained() -> None:
    lines = list(why.as_lines([WAITING] * 30))
    assert sum(line.startswith("Trial") for line in lines) == 20
    assert lines[-1] == "\n10 more wait; --json has all of them."
