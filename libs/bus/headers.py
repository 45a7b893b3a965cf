"""Headers of messages: CloudEvents attributes, the de-duplication id, and the marks of a KV bucket.

Source: CloudEvents 1.0.2, its NATS protocol binding in binary mode, and its extension for distributed tracing;
NATS ADR-4 (headers), ADR-8 (KV), ADR-43 (TTL per message).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote, unquote

MSG_ID: Final = "Nats-Msg-Id"
STATUS: Final = "Status"
SEQUENCE: Final = "Nats-Sequence"
TTL: Final = "Nats-TTL"
ROLLUP: Final = "Nats-Rollup"
KV_OPERATION: Final = "KV-Operation"
TRACEPARENT: Final = "traceparent"
TYPE: Final = "ce-type"
SUBJECT: Final = "ce-subject"
TIME: Final = "ce-time"
MARKER_REASON: Final = "Nats-Marker-Reason"

_KEPT: Final = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%') + " "


def event_headers(
    *, id: str, type: str, source: str, subject: str, time: datetime, traceparent: str | None = None
) -> dict[str, str]:
    """CloudEvents attributes of a message, and its de-duplication id.

    id           unique for ``source``. Two messages with one id within two minutes are stored once
    type         as in ``resolute.v1.experiment.state``
    source       a reference to what says it, as in ``/resolute/<cluster id>``: a URI, so that names in it are escaped
    subject      id of the object that the event is about
    time         timezone-aware
    traceparent  the trace in which it happened: an attribute, and the context of the message itself
    """
    headers = {
        "ce-specversion": "1.0",
        "ce-id": id,
        TYPE: type,
        "ce-source": source,
        SUBJECT: subject,
        TIME: time.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "ce-datacontenttype": "application/json",
        MSG_ID: id,
    }
    if traceparent is not None:
        headers[TRACEPARENT] = traceparent
        headers[f"ce-{TRACEPARENT}"] = traceparent
    # The binding wants everything outside printable ASCII percent-encoded, as header values have no encoding.
    return {name: quote(value, safe=_KEPT) for name, value in headers.items()}


def event_attribute(headers: Mapping[str, str], name: str) -> str | None:
    """An attribute of a CloudEvent by the name of its header; None for a message that lacks it."""
    value = headers.get(name)
    return None if value is None else unquote(value)


def deletion_headers() -> dict[str, str]:
    """Headers that make an empty message on a KV subject the deletion of its key, for writers that publish."""
    return {KV_OPERATION: "PURGE", ROLLUP: "sub"}


def is_deletion(headers: Mapping[str, str] | None) -> bool:
    """Whether a message of a KV bucket says that its key is gone: deleted, purged or expired."""
    return headers is not None and (headers.get(KV_OPERATION) in ("DEL", "PURGE") or MARKER_REASON in headers)


def message_id(cluster_id: str, number: int) -> str:
    """The id of a message of the outbox. Its numbers start anew with every database: the cluster tells them apart."""
    return f"{cluster_id[:8]}-{number}"


def number_of(message_id: str) -> int | None:
    """The number of a message in the outbox, which grows; None for one that was not there."""
    _, separator, number = message_id.rpartition("-")
    return int(number) if separator and number.isdecimal() else None
