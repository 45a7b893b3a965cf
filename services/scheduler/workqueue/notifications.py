"""Which events are worth a look at what. Pure. What is not listed changes nothing that the scheduler decides about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from services.scheduler.workqueue.work_queue import Key


class Hint(msgspec.Struct, frozen=True):
    keys: tuple[Key, ...] = ()
    pool: str | None = None
    """Whose queue to plan; "" is every pool."""


def hint_of(subject: str, data: bytes) -> Hint:
    """What to look at because of an event; nothing for events that cannot be read, as a later look finds the cause."""
    tokens = subject.split(".")
    if len(tokens) != 5:
        return Hint()
    entity, what = tokens[2], tokens[4]
    if entity == "allocation" and what not in ("requested", "wish", "ended"):
        return Hint()  # observations and the like are many, and none of these
    try:
        event = msgspec.json.decode(data)
    except msgspec.DecodeError:
        return Hint()
    if not isinstance(event, dict):
        return Hint()
    return Hint(tuple(_keys(entity, what, event)), _pool(entity, what, event))


def _pool(entity: str, what: str, event: dict[str, Any]) -> str | None:
    if entity in ("allocation", "job", "pool") and what not in ("submitted", "wish"):
        return event.get("pool")
    # Its tasks may have another namespace now, with another quota.
    return "" if (entity, what) == ("workspace", "changed") else None


def _keys(entity: str, what: str, event: dict[str, Any]) -> Iterator[Key]:
    experiment, project = event.get("experiment_id"), event.get("project_id")
    match entity, what:
        case "experiment", "deleted" if isinstance(project, int):
            yield Key("project", project)
        case "experiment", ("created" | "state" | "edited" | "searcher") if isinstance(experiment, int):
            yield Key("deletion" if event.get("state") == "DELETING" else "experiment", experiment)
        case "trial", "state" if isinstance(experiment, int):
            yield Key("experiment", experiment)
        case "allocation", "ended" if isinstance(event.get("allocation_id"), str):
            yield Key("allocation", event["allocation_id"])
        case "allocation", "wish" if isinstance(event.get("allocation_id"), str):
            yield Key("leaving", event["allocation_id"])
        case "pool", "capacity":
            yield Key("nodes", "disabled")
        case "workspace", _ if isinstance(event.get("workspace_id"), int):
            if isinstance(project, int):
                yield Key("project", project)
            yield Key("workspace", event["workspace_id"])
            if what == "deleted":
                yield Key("namespaces", event["workspace_id"])
