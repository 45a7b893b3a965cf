"""The table of statuses: which row applies, whether the allocation is over, and what is done about it."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from services.launcher.backends.kubernetes.allocations.state.status import (
    TABLE,
    Facts,
    NextAction,
    decide,
)
from services.launcher.backends.kubernetes.allocations.state.status import AllocationPhase as Phase
from services.launcher.reconcile import Existence

LIVE, ENDED, ABANDONED = Existence.LIVE, Existence.ENDED, Existence.ABANDONED

RUNNING = Facts(
    is_refused=False,
    is_out_of_sight=False,
    is_abandoned=False,
    is_created=True,
    is_stopping=False,
    is_stop_sent=False,
    has_job=True,
    is_job_finished=False,
    has_outcome=False,
    is_outcome_saved=False,
    has_pods_to_delete=False,
    is_job_told=False,
    has_lost_job=False,
    has_failed_job=False,
    makes_no_pods=False,
    are_pods_listed=False,
    are_pods_refused=False,
    has_live_pods=True,
    has_enough_pods=True,
    has_failure=False,
    has_forgotten_failure=False,
)


def but(**changes: Any) -> Facts:
    """A running allocation, with these differences."""
    return msgspec.structs.replace(RUNNING, **changes)


class Case(Struct, frozen=True):
    phase: Phase
    facts: Facts
    existence: Existence
    reaction: NextAction | None = None

    @property
    def name(self) -> str:
        return f"{self.phase.value}: {self.existence.value}"


FAILED = {"has_failure": True, "has_outcome": True, "has_live_pods": False}

CASES = [
    Case(Phase.REFUSED, but(is_refused=True, is_out_of_sight=True), ENDED),
    Case(Phase.OUT_OF_SIGHT, but(is_out_of_sight=True, is_abandoned=True, has_live_pods=False), LIVE),
    Case(Phase.ABANDONED, but(is_abandoned=True, is_created=False), ABANDONED),
    Case(Phase.CREATING, but(is_created=False, has_job=False, has_live_pods=False), LIVE),
    Case(Phase.STOP_REQUESTED, but(is_stopping=True, is_job_finished=True), LIVE, NextAction.STOP),
    Case(Phase.STOP_REQUESTED, but(is_stopping=True, has_job=False, has_live_pods=False), ENDED, NextAction.STOP),
    Case(Phase.STOPPING, but(is_stopping=True, is_stop_sent=True, has_live_pods=False), LIVE),
    Case(Phase.STOPPING, but(is_stopping=True, is_stop_sent=True, has_job=False, has_live_pods=False), ENDED),
    Case(Phase.JOB_GONE, but(has_job=False), LIVE),
    Case(Phase.JOB_GONE, but(has_job=False, has_live_pods=False), ENDED),
    Case(Phase.END_DECIDED, but(**FAILED), LIVE, NextAction.END_REST),
    Case(Phase.ENDING, but(**FAILED, is_outcome_saved=True, has_pods_to_delete=True), LIVE),
    Case(
        Phase.DELETING_PODS,
        but(**FAILED, is_outcome_saved=True, has_pods_to_delete=True, is_job_told=True),
        LIVE,
        NextAction.DELETE_PODS,
    ),
    Case(Phase.ENDING_UNLISTED, but(**FAILED, is_outcome_saved=True, makes_no_pods=True), LIVE, NextAction.LIST_PODS),
    Case(Phase.ENDING, but(**FAILED, is_outcome_saved=True), LIVE),
    Case(Phase.ENDING, but(**FAILED, is_outcome_saved=True, makes_no_pods=True, are_pods_listed=True), ENDED),
    Case(
        Phase.PODS_REFUSED,
        but(are_pods_refused=True, has_live_pods=False, has_enough_pods=False),
        LIVE,
        NextAction.END_REST,
    ),
    Case(Phase.JOB_LOST, but(has_lost_job=True), LIVE, NextAction.END_REST),
    Case(Phase.RUNNING, but(has_lost_job=True, has_live_pods=False), ENDED),
    Case(Phase.JOB_FAILED_UNLISTED, but(has_failed_job=True), LIVE, NextAction.LIST_PODS),
    Case(Phase.FAILED, but(has_failed_job=True, are_pods_listed=True), LIVE, NextAction.END_REST),
    Case(Phase.FINISHED_UNLISTED, but(is_job_finished=True, makes_no_pods=True), LIVE, NextAction.LIST_PODS),
    Case(Phase.FINISHED, but(is_job_finished=True, makes_no_pods=True, has_live_pods=False), ENDED),
    Case(
        Phase.FINISHED,
        but(
            is_job_finished=True,
            makes_no_pods=True,
            are_pods_listed=True,
            has_live_pods=False,
            has_enough_pods=False,
        ),
        ENDED,
    ),
    Case(Phase.FAILED, but(has_failure=True), LIVE, NextAction.END_REST),
    Case(
        Phase.FAILED,
        but(has_failure=True, has_forgotten_failure=True, has_live_pods=False),
        ENDED,
        NextAction.END_REST,
    ),
    Case(Phase.RUNNING, RUNNING, LIVE),
    Case(Phase.RUNNING, but(has_live_pods=False, has_enough_pods=False), LIVE),
    Case(Phase.RUNNING, but(has_failure=True, has_live_pods=False), ENDED),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_the_first_row_that_applies_decides(case: Case) -> None:
    decided = decide(case.facts)
    assert (decided.phase, decided.existence, decided.reaction) == (case.phase, case.existence, case.reaction)


def test_every_phase_has_a_case() -> None:
    assert {case.phase for case in CASES} == set(Phase)


FACTS = st.fixed_dictionaries({name: st.booleans() for name in Facts.__struct_fields__}).map(lambda it: Facts(**it))


@given(FACTS)
def test_nothing_that_lives_is_over(facts: Facts) -> None:
    decided = decide(facts)
    if facts.has_live_pods and not facts.is_refused:
        assert decided.existence is not ENDED


@given(FACTS)
def test_what_is_refused_unseen_or_not_all_made_is_left_alone(facts: Facts) -> None:
    if facts.is_refused or facts.is_out_of_sight or not facts.is_created or facts.is_abandoned:
        assert decide(facts).reaction is None


def test_each_phase_is_one_row() -> None:
    assert [row.phase for row in TABLE] == list(Phase)
