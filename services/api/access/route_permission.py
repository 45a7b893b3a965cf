"""Permission of a route: which kinds of callers may call it, and with which resources of their own tasks may. Data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Protocol, TypeAlias

from libs.db.engine import Database
from services.api.access.principal import Principal


class HasDatabase(Protocol):
    @property
    def db(self) -> Database: ...


class CallToCheck(Protocol):
    """What is looked at in a call before its handler runs: who makes it, and what its path, query and body name."""

    @property
    def app(self) -> HasDatabase: ...
    @property
    def principal(self) -> Principal: ...
    @property
    def query(self) -> Any: ...
    @property
    def body(self) -> Any: ...
    def path_int(self, name: str) -> int: ...
    def path_str(self, name: str) -> str: ...


Ids: TypeAlias = Callable[[CallToCheck], Iterable[str | int]]


class CallerKind(Enum):
    ANYBODY = "anybody"
    USERS = "users"
    """By any token of theirs, also by the one that their task was given as DET_USER_TOKEN."""
    PERSONS = "persons"
    """By a login or an access token: what would outlast a task is not for tasks."""


class ResourceKind(Enum):
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
class OwnResource:
    """Something in a request that has to be the task's own.

    ids  all ids of that kind in the request, read in the same way as its handler reads them
    """

    kind: ResourceKind
    ids: Ids


@dataclass(frozen=True, slots=True)
class RoutePermission:
    """Who may call a route.

    own  for tasks, by their own token: what has to be theirs; None means not for tasks
    """

    callers: CallerKind
    own: tuple[OwnResource, ...] | None = None

    @property
    def needs_token(self) -> bool:
        return self.callers is not CallerKind.ANYBODY


ANYBODY: Final = RoutePermission(CallerKind.ANYBODY)
USERS: Final = RoutePermission(CallerKind.USERS)
PERSONS: Final = RoutePermission(CallerKind.PERSONS)


def tasks_with(*own: OwnResource) -> RoutePermission:
    """Users, and tasks of whom all of this is their own."""
    return RoutePermission(CallerKind.USERS, own)


def text_in_path(kind: ResourceKind, name: str) -> OwnResource:
    return OwnResource(kind, lambda call: (call.path_str(name),))


def number_in_path(kind: ResourceKind, name: str) -> OwnResource:
    return OwnResource(kind, lambda call: (call.path_int(name),))
