"""Intent for an allocation, and steps taken: how far it is made, an ordered stop, a refusal, the end that was decided.

Only the methods here write, each for one step that the launcher takes, so that the history of an allocation can be read
from its calls. What the cluster says about the same allocation is in ``observed_state``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from libs.events.observations import Address, FailureKind, ObservedPod

Stage = Literal["abandoned", "queued", "creating", "created"]
"""``abandoned``: a launcher before us was killed while it made it; its order tells what is to become of it."""


class Outcome(Struct, frozen=True, kw_only=True):
    """Why an allocation was ended before all of its pods had ended by themselves."""

    reason: str
    """What the other pods are told to have ended of."""
    pods: tuple[ObservedPod, ...] = ()
    """Those that ended by themselves and badly."""
    failure: FailureKind = ""
    """Of the allocation as a whole."""
    message: str = ""


class StopRequest(Struct, frozen=True, kw_only=True):
    """An end that was asked for."""

    ordered: bool
    """By an order that says so; otherwise the order was withdrawn."""
    was_whole: bool
    """No pod had ended by itself then."""
    deadline: float
    """Unix time after which what is left may be killed."""


class CreationRefusal(Struct, frozen=True, kw_only=True):
    """Why nothing was created, or nothing of it is left."""

    message: str
    withdrawn: bool = False
    """It was not needed any more, before its turn had come."""


class Intent:
    def __init__(self, *, stage: Stage = "created", stop: StopRequest | None = None) -> None:
        self.stage = stage
        self.refusal: CreationRefusal | None = None
        self.stop = stop
        self.is_stop_sent = False
        """The cluster was asked to delete everything, with the present deadline."""
        self.outcome: Outcome | None = None
        self.is_outcome_saved = False
        self.are_pods_listed = False
        """Since the Job has finished, so nothing about the ends of its pods is still on its way."""
        self.end_requested: dict[str, str] = {}
        """Pods that had not ended when their end was requested, and why it was."""
        self.delete_requested: set[str] = set()
        """Pods that we have asked the cluster to delete one by one."""
        self.replaced_jobs: set[str] = set()
        """Uids of Jobs that we delete to make them anew: how their pods end is no matter of this allocation."""
        self.proxied: tuple[Address, ...] = ()
        """Where its ports are reached through the gateway, as claimed there for it."""

    @property
    def is_abandoned(self) -> bool:
        return self.stage == "abandoned"

    @property
    def is_in_creation(self) -> bool:
        return self.stage in ("queued", "creating")

    @property
    def is_end_requested(self) -> bool:
        return self.stop is not None or self.outcome is not None

    @property
    def end_reason(self) -> str:
        """Why we have asked what is left to end; empty while we have not."""
        if self.stop is not None:
            return "stopped by order" if self.stop.ordered else "order withdrawn"
        return self.outcome.reason if self.outcome is not None else ""

    def mark_abandoned(self) -> None:
        self.stage = "abandoned"

    def enqueue(self) -> None:
        self.stage = "queued"

    def begin_creation(self) -> None:
        self.stage = "creating"

    def end_creation(self) -> None:
        """Everything was made, or all that ever will be."""
        self.stage = "created"

    def refuse(self, message: str, *, withdrawn: bool = False) -> None:
        self.refusal = CreationRefusal(message=message, withdrawn=withdrawn)

    def request_stop(self, stop: StopRequest, *, pods: Iterable[str]) -> None:
        """``pods`` are those of which nothing else explains that they will end."""
        self.stop = stop
        self.is_stop_sent = False
        self._request_end(pods)

    def repeat_stop(self) -> None:
        """There is more to delete than there was."""
        self.is_stop_sent = False

    def confirm_stop(self, stop: StopRequest) -> None:
        """The cluster was asked for ``stop``; a shorter one may have been requested meanwhile."""
        self.is_stop_sent = self.stop is stop

    def decide(self, outcome: Outcome, *, pods: Iterable[str]) -> None:
        """End what is left. ``pods`` are those of which nothing else explains that they will end."""
        self.outcome = outcome
        self.are_pods_listed = False
        self._request_end(pods)

    def confirm_outcome(self) -> None:
        """It is written down where it outlives the pods."""
        self.is_outcome_saved = True

    def restore(self, outcome: Outcome, *, is_saved: bool = True) -> None:
        """A launcher before us has decided, and written it down: wherever it has to be, if it ``is_saved``."""
        self.outcome = outcome
        self.is_outcome_saved = is_saved

    def confirm_pods_listed(self) -> None:
        self.are_pods_listed = True

    def request_delete(self, pod: str) -> None:
        self.delete_requested.add(pod)

    def replace_job(self, uid: str) -> None:
        self.replaced_jobs.add(uid)

    def confirm_proxied(self, addresses: tuple[Address, ...]) -> None:
        self.proxied = addresses

    def _request_end(self, pods: Iterable[str]) -> None:
        for name in pods:
            self.end_requested.setdefault(name, self.end_reason)
