"""Public events as CloudEvents, and patterns of their types. Pure.

Source: CloudEvents 1.0.2, JSON event format 3 (https://github.com/cloudevents/spec).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any, Final, get_args, get_type_hints

from libs.events import changes, subjects


def _types() -> Iterator[str]:
    for each in get_args(changes.PublicEvent):
        entity = str(each.__struct_config__.tag).partition(".")[0]
        for what in get_args(get_type_hints(each)["what"]):
            yield f"{subjects.EVENT_PREFIX}.{entity}.{what}"


TYPES: Final = tuple(_types())
"""Type of every public event, as in ``resolute.v1.experiment.state``."""


def types_matching(pattern: str) -> list[str]:
    """The types that a pattern means, in which ``*`` stands for anything."""
    return [each for each in TYPES if fnmatchcase(each, pattern)]


def type_of(subject: str) -> str | None:
    """Type of the event under a subject of the bus; None for what is no public event."""
    tokens = subject.split(".")
    if len(tokens) != 5:
        return None
    found = ".".join((*tokens[:3], tokens[4]))
    return found if found in _KNOWN else None


_KNOWN: Final = frozenset(TYPES)


def matches(event_type: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(event_type, pattern) for pattern in patterns)


def envelope(*, id: str, type: str, subject: str, source: str, at: datetime, data: Any) -> dict[str, Any]:
    """A CloudEvent in structured mode."""
    return {
        "specversion": "1.0",
        "id": id,
        "source": source,
        "type": type,
        "subject": subject,
        "time": at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "datacontenttype": "application/json",
        "data": data,
    }
