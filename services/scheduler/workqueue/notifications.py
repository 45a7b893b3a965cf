"""Maps an event to the objects to reconcile. Pure. Other events change nothing that the scheduler decides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from services.scheduler.workqueue.work_queue import Request

_TERMINATION: Final = ("preemption_requested", "kill_requested")


class Notification(msgspec.Struct, frozen=True):
    requests: tuple[Request, ...] = ()
    pool: str | None = None
    """Whose queue to plan; "" is every pool."""
    requested: str = ""
    """The allocation because of whose request it is to be planned, if that is why."""


def notification_of(subject: str, data: bytes) -> Notification:
    """What to reconcile because of an event; nothing for one that cannot be read, as a resync finds the cause."""
    tokens = subject.split(".")
    if len(tokens) != 5:
        return Notification()
    entity, what = tokens[2], tokens[4]
    if entity == "allocation" and what not in ("requested", "ended", *_TERMINATION):
        return Notification()  # observations and the like are many, and none of these
    try:
        event = msgspec.json.decode(data)
    except msgspec.DecodeError:
        return Notification()
    if not isinstance(event, dict):
        return Notification()
    return Notification(tuple(_requests(entity, what, event)), _pool(entity, what, event), _requested(what, event))


def _pool(entity: str, what: str, event: dict[str, Any]) -> str | None:
    if entity in ("allocation", "job", "pool") and what not in ("submitted", *_TERMINATION):
        return event.get("pool")
    # Its tasks may have another namespace now, with another quota.
    return "" if (entity, what) == ("workspace", "changed") else None


def _requested(what: str, event: dict[str, Any]) -> str:
    return str(event.get("allocation_id", "")) if what == "requested" else ""


def _requests(entity: str, what: str, event: dict[str, Any]) -> Iterator[Request]:
    experiment, project = event.get("experiment_id"), event.get("project_id")
    match entity, what:
        case "experiment", "deleted" if isinstance(project, int):
            yield Request("project", project)
        case "experiment", ("created" | "state" | "edited" | "searcher") if isinstance(experiment, int):
            yield Request("deletion" if event.get("state") == "DELETING" else "experiment", experiment)
        case "trial", "state" if isinstance(experiment, int):
            yield Request("experiment", experiment)
        case "trial", "deleted" if isinstance(event.get("trial_id"), int):
            yield Request("deleted trial", event["trial_id"])
        case "allocation", "ended" if isinstance(event.get("allocation_id"), str):
            yield Request("allocation", event["allocation_id"])
        case "allocation", _ if what in _TERMINATION and isinstance(event.get("allocation_id"), str):
            yield Request("termination", event["allocation_id"])
        case "task", "state" if isinstance(event.get("task_id"), str):
            yield Request("generic task", event["task_id"])
        case "pool", "capacity":
            yield Request("nodes", "disabled")
        case "workspace", _ if isinstance(event.get("workspace_id"), int):
            if isinstance(project, int):
                yield Request("project", project)
            yield Request("workspace", event["workspace_id"])
            if what == "deleted":
                yield Request("namespaces", event["workspace_id"])
