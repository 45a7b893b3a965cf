"""Which events are worth a look at what. Pure. What is not listed changes nothing that the scheduler decides about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from services.scheduler.engine.attention import Key

_EXPERIMENT: Final = frozenset({"created", "state", "edited", "searcher"})


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
    if entity == "allocation" and what not in ("requested", "ended"):
        return Hint()  # observations and the like are many, and none of these
    try:
        event = msgspec.json.decode(data)
    except msgspec.DecodeError:
        return Hint()
    if not isinstance(event, dict):
        return Hint()
    pool = event.get("pool") if entity in ("allocation", "job", "pool") and what != "submitted" else None
    return Hint(tuple(_keys(entity, what, event)), pool)


def _keys(entity: str, what: str, event: dict[str, Any]) -> Iterator[Key]:
    if entity == "experiment":
        if what in _EXPERIMENT:
            deleting = event.get("state") == "DELETING"
            yield Key("deletion" if deleting else "experiment", event["experiment_id"])
        elif what == "deleted" and event.get("project_id") is not None:
            yield Key("project", event["project_id"])
    elif entity == "trial" and what == "state":
        yield Key("experiment", event["experiment_id"])
    elif entity == "allocation" and what == "ended":
        yield Key("allocation", event["allocation_id"])
    elif entity == "workspace":
        if event.get("project_id") is not None:
            yield Key("project", event["project_id"])
        yield Key("workspace", event["workspace_id"])
