"""An event in a line for people, and as a CloudEvent for programs. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Struct

from deploy.terminal import in_a_line, paint
from libs.webhooks.cloud_events import envelope

_LEFT_OUT: Final = ("type", "what", "revision")


class SeenEvent(Struct, frozen=True, kw_only=True):
    """What a message of the stream of events says."""

    id: str
    source: str
    type: str
    """As in ``resolute.v1.experiment.state``, and ``allocation.observed`` for what launchers see."""
    subject: str
    """Id of the object."""
    at: datetime
    data: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """Of the object, as in ``experiment``."""
        return self.type.split(".")[-2]

    @property
    def what(self) -> str:
        """What happened to it, as in ``state``."""
        return self.type.split(".")[-1]


def as_json(event: SeenEvent) -> str:
    """A CloudEvent in structured mode, on one line."""
    cloud_event = envelope(
        id=event.id, type=event.type, subject=event.subject, source=event.source, at=event.at, data=event.data
    )
    return msgspec.json.encode(cloud_event).decode()


def as_line(event: SeenEvent, *, coloured: bool, width: int = 0) -> str:
    """``time  kind id  what  field=value ...``: the object after the change, without fields that say nothing.

    at     is shown in its own time zone
    width  the line is cut there; 0 leaves it whole
    """
    time = event.at.strftime("%Y-%m-%d %H:%M:%S")
    thing = f"{event.kind} {event.subject}"
    rest = "  ".join(filter(None, (event.what, " ".join(_fields(event)))))
    if 0 < width < len(line := f"{time}  {thing}  {rest}"):
        rest = rest[: max(width - (len(line) - len(rest)) - 1, 0)] + "…"
    return f"{paint(time, 'dim', coloured=coloured)}  {paint(thing, 'bold', coloured=coloured)}  {rest}"


def _fields(event: SeenEvent) -> list[str]:
    said = {name: value for name, value in event.data.items() if name not in _LEFT_OUT and _says_something(value)}
    shown = {name: _states(value) or in_a_line(value) for name, value in said.items()}
    return [f"{name}={text}" for name, text in shown.items() if text != event.subject]


def _says_something(value: Any) -> bool:
    return value is not None and value is not False and value not in ("", [], {})


def _states(value: Any) -> str:
    """Of pods; empty for anything else."""
    is_list = isinstance(value, list) and all(isinstance(each, dict) and "state" in each for each in value)
    return ",".join(str(each["state"]) for each in value) if is_list else ""
