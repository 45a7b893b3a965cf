"""Id of a message of the bus, the same each time that it is delivered. Pure."""

from __future__ import annotations

from libs.bus import Message


def message_id(message: Message) -> str:
    """That of its CloudEvent, or its place in the stream where it has none."""
    return message.headers.get("ce-id") or f"{message.subject}/{message.sequence}"
