"""News that is none: events about what the scheduler has been told, or has done, already.

Each event costs a look at its object. Those of a new experiment come just after the request of the api to reconcile it,
or just before, and that an allocation was requested is the scheduler's own word, who has told the queue of the pool. To
forget any of it costs a look, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

import msgspec

from services.scheduler.workqueue.notifications import Notification

MOST_KEPT: Final = 10_000

Key = TypeVar("Key")
Value = TypeVar("Value")


class OwnNews:
    """What events will say that is known by then."""

    def __init__(self) -> None:
        self._created_until: dict[int, int] = {}
        self._requested: dict[str, None] = {}
        self._heard: dict[int, int] = {}
        """First number in the outbox of an event about an experiment that was told as news."""

    def created(self, experiment: int, until: int) -> bool:
        """Whether an event has told already of this new experiment, which is to be reconciled after the commit that
        created it.

        until  last number in the outbox that its transaction took. Nobody else knew of the experiment before its
               commit, so that no event about it up to this number tells of a later change
        """
        _keep(self._created_until, experiment, until)
        first = self._heard.pop(experiment, None)
        return first is not None and first <= until

    def requested(self, allocations: Iterable[str]) -> None:
        """The queues of the pools of these allocations will be planned, after the commit that requested them."""
        for allocation in allocations:
            _keep(self._requested, allocation, None)

    def without(self, notification: Notification, number: int | None) -> Notification:
        """What is left to do about an event.

        number  of its message in the outbox; None when it does not come from there
        """
        if notification.requested in self._requested:
            del self._requested[notification.requested]
            return Notification()
        if number is None or not notification.requests:
            return notification
        left = tuple(
            request
            for request in notification.requests
            if request.kind != "experiment" or number > self._created_until.get(int(request.ident), -1)
        )
        for request in left:
            if request.kind == "experiment" and int(request.ident) not in self._heard:
                _keep(self._heard, int(request.ident), number)
        return msgspec.structs.replace(notification, requests=left)


def _keep(known: dict[Key, Value], key: Key, value: Value) -> None:
    known[key] = value
    if len(known) > MOST_KEPT:
        del known[next(iter(known))]
