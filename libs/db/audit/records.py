"""The audit log: who changed what, recorded in the transaction of the change itself.

A table and not a stream of log lines: what did not commit is not recorded, nothing that committed is missing, and it
can be searched. Whoever handles a request says so with ``recorded``; every transaction that changes something meanwhile
adds a record, with the events that were announced in it. Nobody who changes something has to think of it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, TextClause, event
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.db.prepared.statements import PreparedStatement, as_document

_CHANGES: Final = re.compile(r"\s*(INSERT|UPDATE|DELETE)\b", re.IGNORECASE)
MOST_NAMED: Final = 1000
"""Objects that one record names; of more it says how many there are."""
_ADD: Final = PreparedStatement("""
    INSERT INTO audit_records (user_id, username, allocation_id, address, request_id, action, target, details, changed)
    VALUES (:user_id, :username, :allocation_id, :address, :request_id, :action, :target, :details, :changed)
""")


class AuditedRequest(Struct, frozen=True, kw_only=True):
    """Who asked for what. Nothing in it may be secret."""

    user_id: int | None
    username: str
    allocation_id: str | None
    address: str
    request_id: str
    action: str
    target: Mapping[str, str]
    details: Mapping[str, Any]


@dataclass
class Recording:
    """What is known of one request so far."""

    request: AuditedRequest
    is_written: bool = False
    """Whether a record of it is committed, or about to be."""
    noted: defaultdict[int, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    """By the connection whose transaction changes it."""
    changing: set[int] = field(default_factory=set)
    """Connections whose transactions change anything at all."""
    told: set[tuple[str, ...]] = field(default_factory=set)
    """What records of it name already."""


_RECORDING: Final[ContextVar[Recording | None]] = ContextVar("audit_recording", default=None)


@contextmanager
def recorded(request: AuditedRequest) -> Iterator[Recording]:
    """Record what is committed in the block."""
    recording = Recording(request)
    token = _RECORDING.set(recording)
    try:
        yield recording
    finally:
        _RECORDING.reset(token)


def tell_caller(username: str, details: Mapping[str, Any]) -> None:
    """Who asks, and for what, where that is known after recording has begun."""
    recording = _RECORDING.get()
    if recording is not None:
        recording.request = replace(recording.request, username=username, details=details)


def watch_changes(engine: AsyncEngine) -> None:
    """Take notice of statements of the connections of ``engine`` that change rows."""
    event.listen(engine.sync_engine, "before_execute", _notice)


def _notice(connection: Connection, statement: Any, *_: object) -> None:
    recording = _RECORDING.get()
    if recording is None:
        return
    written_out = statement.text if isinstance(statement, TextClause) else ""
    if getattr(statement, "is_dml", False) or _CHANGES.match(written_out):
        recording.changing.add(id(connection))


def changes(connection: AsyncConnection) -> None:
    """A statement that SQLAlchemy does not see changes rows in the transaction of ``connection``."""
    recording = _RECORDING.get()
    if recording is not None:
        recording.changing.add(id(connection.sync_connection))


def note(connection: AsyncConnection, entity: str, ident: object, what: str) -> None:
    """Something changes in the transaction of ``connection``."""
    recording = _RECORDING.get()
    if recording is not None:
        noted = {"entity": entity, "id": str(ident), "what": what}
        recording.noted[id(connection.sync_connection)].append(noted)


def begin_records(connection: AsyncConnection) -> None:
    """A transaction begins; what one before it has changed was not committed."""
    recording = _RECORDING.get()
    if recording is not None:
        recording.noted.pop(id(connection.sync_connection), None)
        recording.changing.discard(id(connection.sync_connection))


async def add_record(connection: AsyncConnection) -> None:
    """The last statement of a transaction, if somebody records. One that changes nothing, or nothing new, adds none."""
    recording = _RECORDING.get()
    if recording is None:
        return
    key = id(connection.sync_connection)
    noted = recording.noted.pop(key, [])
    named = {tuple(each.values()) for each in noted}
    if key in recording.changing and not (recording.is_written and named <= recording.told):
        await write_record(connection, recording, noted)
        recording.told |= named


async def write_record(
    connection: AsyncConnection, recording: Recording, noted: Sequence[Mapping[str, str]] = ()
) -> None:
    """Add a record to the transaction of ``connection``, whatever that changes."""
    request = recording.request
    details = {**request.details, "changed": len(noted)} if len(noted) > MOST_NAMED else dict(request.details)
    await _ADD.rows(
        connection,
        user_id=request.user_id,
        username=request.username,
        allocation_id=request.allocation_id,
        address=request.address,
        request_id=request.request_id,
        action=request.action,
        target=as_document(dict(request.target)),
        details=as_document(details),
        changed=as_document(list(noted[:MOST_NAMED])),
    )
    recording.is_written = True
