"""What users ask of generic tasks, and how their allocations end (docs/reference/tasks-and-cli.md 6): every state
with every trigger."""

from __future__ import annotations

import pytest

from libs.states.generic_task import TERMINAL, GenericTaskState, TaskTrigger, step

REFUSED = None
# state               PAUSE               UNPAUSE   KILL
ASKED = """
ACTIVE                STOPPING_PAUSED     -         STOPPING_CANCELED
PAUSED                -                   ACTIVE    STOPPING_CANCELED
STOPPING_PAUSED       -                   ACTIVE    STOPPING_CANCELED
STOPPING_CANCELED     -                   -         STOPPING_CANCELED
COMPLETED             -                   -         -
CANCELED              -                   -         -
ERROR                 -                   -         ERROR
"""
# state               EXITED      FAILED     LEFT       KILLED
ENDED = """
ACTIVE                COMPLETED   ERROR      ACTIVE     CANCELED
PAUSED                -           -          -          -
STOPPING_PAUSED       COMPLETED   ERROR      PAUSED     PAUSED
STOPPING_CANCELED     CANCELED    ERROR      CANCELED   CANCELED
COMPLETED             -           -          -          -
CANCELED              -           -          -          -
ERROR                 -           -          -          -
"""


def _cases(table: str, *triggers: TaskTrigger) -> list[tuple[str, TaskTrigger, str | None]]:
    rows = [line.split() for line in table.strip().splitlines()]
    return [
        (state, trigger, REFUSED if to == "-" else to)
        for state, *cells in rows
        for trigger, to in zip(triggers, cells, strict=True)
    ]


CASES = [
    *_cases(ASKED, TaskTrigger.PAUSE, TaskTrigger.UNPAUSE, TaskTrigger.KILL),
    *_cases(ENDED, TaskTrigger.EXITED, TaskTrigger.FAILED, TaskTrigger.LEFT, TaskTrigger.KILLED),
]


@pytest.mark.parametrize(("state", "trigger", "to"), CASES)
def test_transition(state: str, trigger: TaskTrigger, to: str | None) -> None:
    assert step(GenericTaskState(state), trigger) == to


def test_table_has_every_state_and_every_trigger() -> None:
    assert {(state, trigger) for state, trigger, _ in CASES} == {(s, t) for s in GenericTaskState for t in TaskTrigger}


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_what_is_over_stays_so(state: GenericTaskState) -> None:
    assert {step(state, trigger) for trigger in TaskTrigger} <= {None, state}
