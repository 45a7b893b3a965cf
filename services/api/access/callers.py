"""Who may call a route: anybody, users, users themselves; and tasks, about what is their own. Data, without opinion."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeAlias

from services.api.http.call import Call

Ids: TypeAlias = Callable[[Call[Any, Any, Any]], Iterable[str | int]]


class Callers(Enum):
    ANYBODY = "anybody"
    USERS = "users"
    """By any token of theirs, also by the one that their task was given as DET_USER_TOKEN."""
    PERSONS = "persons"
    """By a login or an access token: what would outlast a task is not for tasks."""


class Thing(Enum):
    """What a task may have as its own."""

    ALLOCATION = "allocation"
    TASK = "task"
    TRIAL = "trial"
    EXPERIMENT = "experiment"
    CHECKPOINT = "checkpoint"
    """One that it made or, in checkpoint GC, that it is there to delete."""
    READABLE_CHECKPOINT = "readable checkpoint"
    """One of its experiment, or one that its configuration names."""


@dataclass(frozen=True, slots=True)
class Own:
    """Something in a request that has to be the task's own.

    ids  all ids of that kind in the request, read in the same way as its handler reads them
    """

    thing: Thing
    ids: Ids


@dataclass(frozen=True, slots=True)
class Access:
    """Who may call a route.

    own  for tasks, by their own token: what has to be theirs; None means not for tasks
    """

    callers: Callers
    own: tuple[Own, ...] | None = None

    @property
    def needs_token(self) -> bool:
        return self.callers is not Callers.ANYBODY


ANYBODY: Final = Access(Callers.ANYBODY)
USERS: Final = Access(Callers.USERS)
PERSONS: Final = Access(Callers.PERSONS)


def tasks_with(*own: Own) -> Access:
    """Users, and tasks of whom all of this is their own."""
    return Access(Callers.USERS, own)


def text_in_path(thing: Thing, name: str) -> Own:
    return Own(thing, lambda call: (call.path_str(name),))


def number_in_path(thing: Thing, name: str) -> Own:
    return Own(thing, lambda call: (call.path_int(name),))
