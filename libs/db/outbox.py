"""The outbox: messages that are published if, and only if, the transaction that wrote them committed.

Source: the transactional outbox of docs/architecture.md 3, rule 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from libs.bus.headers import SUBJECT, TRACEPARENT, TYPE, deletion_headers
from libs.db.prepared.statements import Connection, PreparedStatement, as_document
from libs.events import subjects
from libs.events.changes import (
    AllocationChanged,
    CheckpointChanged,
    ExperimentChanged,
    GroupChanged,
    JobChanged,
    ModelChanged,
    PoolChanged,
    PublicEvent,
    TaskChanged,
    TrialChanged,
    UserChanged,
    WorkspaceChanged,
)
from libs.events.logs import LogBatch
from libs.events.orders import Order, PlaceholderOrder
from libs.tracing import current_traceparent

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

LARGEST_TRIAL_EVENT: Final = 64 * 1024
"""Bytes beyond which the event of a trial goes without those values that its user may make as large as he likes."""

_ADD: Final = PreparedStatement("""
    INSERT INTO outbox (subject, headers, payload)
    SELECT subject, headers::jsonb, payload
    FROM unnest(:subjects::text[], :headers::text[], :payloads::bytea[])
         WITH ORDINALITY AS message (subject, headers, payload, place)
    ORDER BY place
    RETURNING id
""")

_ENTITY: Mapping[type[Struct], tuple[str, str]] = {
    ExperimentChanged: ("experiment", "experiment_id"),
    TrialChanged: ("trial", "trial_id"),
    AllocationChanged: ("allocation", "allocation_id"),
    TaskChanged: ("task", "task_id"),
    JobChanged: ("job", "job_id"),
    CheckpointChanged: ("checkpoint", "uuid"),
    WorkspaceChanged: ("workspace", "workspace_id"),
    UserChanged: ("user", "user_id"),
    GroupChanged: ("group", "group_id"),
    ModelChanged: ("model", "model_id"),
    PoolChanged: ("pool", "pool"),
}


def message(subject: str, payload: bytes, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A row of the outbox, which remembers the trace that it belongs to."""
    traceparent = current_traceparent()
    trace = {} if traceparent is None else {TRACEPARENT: traceparent}
    return {"subject": subject, "payload": payload, "headers": {**trace, **(headers or {})}}


def event_message(event: PublicEvent) -> dict[str, Any]:
    """The row that publishes a public event under its subject; the relay adds the attributes that any event has."""
    entity, key = _ENTITY[type(event)]
    ident = getattr(event, key)
    headers = {TYPE: f"{subjects.EVENT_PREFIX}.{entity}.{event.what}", SUBJECT: str(ident)}
    return message(subjects.event(entity, ident, event.what), _encoded(event), headers)


def _encoded(event: PublicEvent) -> bytes:
    # PostgreSQL keeps the keys of a jsonb by length; subscribers get them in order, as clients of the API do.
    payload = msgspec.json.encode(event, order="deterministic")
    if isinstance(event, TrialChanged) and len(payload) > LARGEST_TRIAL_EVENT:
        return msgspec.json.encode(msgspec.structs.replace(event, hparams=None, metrics=None), order="deterministic")
    return payload


def order_message(order: Order) -> dict[str, Any]:
    """The row that puts an order into its bucket."""
    key = subjects.order_key(order.pool, order.allocation)
    traceparent = order.spec.traceparent if order.spec is not None else None
    headers = {} if traceparent is None else {TRACEPARENT: traceparent}
    return message(subjects.kv_subject(subjects.ORDERS_BUCKET, key), msgspec.json.encode(order), headers)


def placeholders_message(order: PlaceholderOrder) -> dict[str, Any]:
    """The row that puts the order of a pool's placeholders into its bucket."""
    key = subjects.placeholders_key(order.pool)
    return message(subjects.kv_subject(subjects.ORDERS_BUCKET, key), msgspec.json.encode(order))


def order_withdrawal(pool: str, allocation: str) -> dict[str, Any]:
    """The row that deletes an order from its bucket (a deletion marker of NATS ADR-8)."""
    return key_withdrawal(subjects.order_key(pool, allocation))


def key_withdrawal(key: str) -> dict[str, Any]:
    """The row that deletes the order under a key of the bucket."""
    return message(subjects.kv_subject(subjects.ORDERS_BUCKET, key), b"", deletion_headers())


def log_message(batch: LogBatch) -> dict[str, Any]:
    """The row that adds lines to the log of a task."""
    return message(subjects.logs(batch.task), msgspec.msgpack.encode(batch))


async def enqueue(connection: Connection, *rows: dict[str, Any]) -> int:
    """Add messages to the transaction of ``connection``, to be published in this order after its commit.

    Returns the number of the last one, as ``number_of`` of ``libs.bus.headers`` reads it; 0 when there are none.
    """
    if not rows:
        return 0
    added = await _ADD.rows(
        connection,
        subjects=[row["subject"] for row in rows],
        headers=[as_document(row["headers"]) for row in rows],
        payloads=[row["payload"] for row in rows],
    )
    return max(int(row["id"]) for row in added)


async def announce(connection: AsyncConnection, *events: PublicEvent) -> int:
    """Add public events to the transaction of ``connection``, after what they tell of was written.

    Returns what ``enqueue`` does.
    """
    # Imported here: who adds nothing but lines does without SQLAlchemy.
    from libs.db.audit.records import note  # noqa: PLC0415
    from libs.db.event_fields import completed  # noqa: PLC0415

    for event in events:
        entity, key = _ENTITY[type(event)]
        note(connection, entity, getattr(event, key), event.what)
    return await enqueue(connection, *(event_message(event) for event in await completed(connection, events)))
