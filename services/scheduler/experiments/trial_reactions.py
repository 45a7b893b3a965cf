"""Reactions to the end of a trial's allocation. Pure; one table, the first row that matches decides.

Source: docs/reference/experiments.md 5.2, with the rows of section 15 (16) improved.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct

from libs.states.trial import END_OF_STOPPING, STOPPING, TrialState
from services.scheduler.allocations.exits import ExitKind


class TrialExit(Struct, frozen=True, kw_only=True):
    """The facts that decide."""

    state: TrialState
    """Of the trial, which is not over."""
    kind: ExitKind = ExitKind.NONE
    stopped_early: bool = False
    """The allocation ended with success, and nobody had asked it to."""
    stopped_by_searcher: bool = False
    early_exit: bool = False
    """Its code reported that it will exit, as for hyperparameters that make no sense."""
    retries_canceled: bool = False
    """A line of its log matched a policy cancel_retries."""
    time_is_up: bool = False
    """It has used up its time limit."""
    restarts: int = 0
    max_restarts: int = 0


class Next(StrEnum):
    END = "END"
    """It is over, in the state that the reaction names."""
    RUN_AGAIN = "RUN_AGAIN"
    """It gets another allocation as soon as it is ACTIVE."""


class Reaction(Struct, frozen=True, kw_only=True):
    next: Next
    state: TrialState | None = None
    counts_as_restart: bool = False
    error: str | None = None


class _Row(NamedTuple):
    applies: Callable[[TrialExit], bool]
    reaction: Callable[[TrialExit], Reaction]


NO_RETRY: Final = (
    "trial failed and not retrying due to logs matching a don't retry policy check trial logs for more info"
)
MAX_RESTARTS: Final = "trial exceeded max restarts"


def react(exit: TrialExit) -> Reaction:
    """What becomes of a trial whose allocation ended like that."""
    return next(row.reaction(exit) for row in _TABLE if row.applies(exit))


def may_depend_on_logs(exit: TrialExit) -> bool:
    """Whether the reaction could be another one with more of the log read."""
    return react(exit) != react(_with_match(exit)) or react(exit).counts_as_restart


def _with_match(exit: TrialExit) -> TrialExit:
    return TrialExit(**{name: getattr(exit, name) for name in exit.__struct_fields__} | {"retries_canceled": True})


def _end(state: TrialState, error: str | None = None) -> Callable[[TrialExit], Reaction]:
    return lambda _: Reaction(next=Next.END, state=state, error=error)


def _end_of_stopping(exit: TrialExit) -> Reaction:
    return Reaction(next=Next.END, state=END_OF_STOPPING[exit.state])


def _restart(exit: TrialExit) -> Reaction:
    if exit.restarts + 1 > exit.max_restarts:
        return Reaction(next=Next.END, state=TrialState.ERROR, counts_as_restart=True, error=MAX_RESTARTS)
    return Reaction(next=Next.RUN_AGAIN, counts_as_restart=True)


def _run_again(_: TrialExit) -> Reaction:
    return Reaction(next=Next.RUN_AGAIN)


_ERRORS: Final = frozenset(ExitKind) - {ExitKind.NONE}

_TABLE: Final = (
    _Row(lambda exit: exit.state in STOPPING and exit.kind in _ERRORS, _end(TrialState.ERROR)),
    _Row(lambda exit: exit.state in STOPPING, _end_of_stopping),
    _Row(lambda exit: exit.stopped_by_searcher and exit.kind in _ERRORS, _end(TrialState.ERROR)),
    _Row(lambda exit: exit.stopped_by_searcher, _end(TrialState.COMPLETED)),
    _Row(lambda exit: exit.kind == ExitKind.INVALID, _end(TrialState.ERROR)),
    # As when the search has stopped it early: it does not run again, and what it has reported and saved counts.
    _Row(lambda exit: exit.time_is_up and exit.kind in _ERRORS - {ExitKind.TRANSIENT}, _end(TrialState.ERROR)),
    _Row(lambda exit: exit.time_is_up, _end(TrialState.COMPLETED)),
    _Row(lambda exit: exit.kind == ExitKind.TRANSIENT, _run_again),
    _Row(lambda exit: exit.kind in _ERRORS and exit.retries_canceled, _end(TrialState.ERROR, NO_RETRY)),
    _Row(lambda exit: exit.kind in _ERRORS, _restart),
    # Also of a paused trial: what exits with success without having been asked to has nothing left to do.
    _Row(lambda exit: exit.stopped_early, _end(TrialState.COMPLETED)),
    _Row(lambda exit: exit.early_exit, _end(TrialState.COMPLETED)),
    _Row(lambda _: True, _run_again),
)
