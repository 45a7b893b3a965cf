"""A subscription: what its subscriber knows, and what has to be said for it to know how things are.

Nothing is kept to be sent: rows are read when the subscriber can take them, so that one that is slow costs no memory,
and never hears of what has been overtaken. What was heard on the bus is a reason to look, and the rows decide.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

from sqlalchemy import Select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.engine import Database
from services.api.access.rights.rights import UserRights
from services.api.updates.id_ranges import IdRanges
from services.api.updates.kinds import SOURCES
from services.api.updates.messages import Startup, UpdateKind, deleted_message, sync_message, upsert_message

ROWS_AT_ONCE: Final = 100
FIRST_ROWS: Final = 10
"""So many rows are read before it is known how large they are."""
BYTES_AT_ONCE: Final = 256 * 1024
"""About what rows that were read at once hold while they wait to be taken."""


class Subscription:
    """What one subscriber follows.

    reading                what limits how many subscribers of this process read at the same time
    hides_deleted_versions for a client that fails when it is told of a version that is gone, and that says of models
                           what it means to say of versions
    """

    def __init__(
        self, *, db: Database, startup: Startup, reading: asyncio.Semaphore, hides_deleted_versions: bool = False
    ) -> None:
        self._db = db
        self._startup = startup
        self._reading = reading
        self._hides_deleted_versions = hides_deleted_versions
        self._known: dict[UpdateKind, IdRanges] = {}
        self._seen: dict[UpdateKind, int] = {}

    async def synchronize(self, rights: UserRights) -> AsyncIterator[bytes]:
        """Everything from what the subscriber knows to what there is."""
        yield sync_message(self._startup.sync_id, complete=False)
        for kind, wanted in self._startup.wanted.items():
            known, since = wanted.known, wanted.since
            if kind is UpdateKind.MODEL_VERSIONS and self._hides_deleted_versions:
                known, since = IdRanges(), 0
            async for message in self._compare(kind, known, since, rights, says_none=True):
                yield message
        yield sync_message(self._startup.sync_id, complete=True)

    async def look(self, kinds: Mapping[UpdateKind, bool], rights: UserRights) -> AsyncIterator[bytes]:
        """What has changed of these kinds; with True, rows may be gone as well, or may not be seen any more."""
        for kind, may_be_gone in kinds.items():
            if kind not in self._startup.wanted:
                continue
            if may_be_gone:
                changes = self._compare(kind, self._known[kind], self._seen[kind], rights, says_none=False)
            else:
                changes = self._changes(kind, rights)
            async for message in changes:
                yield message

    async def _compare(
        self, kind: UpdateKind, known: IdRanges, since: int, rights: UserRights, *, says_none: bool
    ) -> AsyncIterator[bytes]:
        source = SOURCES[kind]
        followed = source.followed(self._startup.wanted[kind].ids, rights)
        async with self._reading, self._db.read() as connection:
            newest = await _number(connection, source.newest())
            rows = (await connection.execute(source.numbers(followed))).all()
        if since > newest:
            since = 0  # of a database that was here before
        there = IdRanges.of(row.id for row in rows)
        wanted = [row.id for row in rows if row.id not in known or row.seq > since]
        gone = known.without(there)
        self._known[kind] = known.without(gone)
        if (message := self._gone(kind, gone, says_none=says_none)) is not None:
            yield message
        async for message in self._rows(kind, wanted, rights):
            yield message
        self._seen[kind] = newest  # not before all is said: what fails half-way is done again

    async def _changes(self, kind: UpdateKind, rights: UserRights) -> AsyncIterator[bytes]:
        source, seen, known = SOURCES[kind], self._seen[kind], self._known[kind]
        followed = source.followed(self._startup.wanted[kind].ids, rights)
        async with self._reading, self._db.read() as connection:
            newest = await _number(connection, source.newest())
            if newest == seen:
                return
            rows = (await connection.execute(source.changed(followed, after=seen, until=newest))).all()
        gone = IdRanges.of(row.id for row in rows if not row.followed and row.id in known)
        self._known[kind] = known.without(gone)
        if (message := self._gone(kind, gone, says_none=False)) is not None:
            yield message
        async for message in self._rows(kind, [row.id for row in rows if row.followed], rights):
            yield message
        self._seen[kind] = newest

    def _gone(self, kind: UpdateKind, ids: IdRanges, *, says_none: bool) -> bytes | None:
        if kind is UpdateKind.MODEL_VERSIONS and self._hides_deleted_versions:
            ids = IdRanges()
        return deleted_message(kind, ids) if ids or says_none else None

    async def _rows(self, kind: UpdateKind, idents: Sequence[int], rights: UserRights) -> AsyncIterator[bytes]:
        source, known = SOURCES[kind], self._known[kind]
        followed = source.followed(self._startup.wanted[kind].ids, rights)
        start, count = 0, FIRST_ROWS
        while start < len(idents):
            query = source.whole(followed, idents[start : start + count])
            async with self._reading, self._db.read() as connection:
                rows = (await connection.execute(query)).mappings().all()
            messages = [(row["id"], upsert_message(kind, row)) for row in rows]
            del rows
            size = sum(len(message) for _, message in messages)
            for ident, message in messages:
                known.add(ident)
                yield message
            start += count
            count = max(1, min(ROWS_AT_ONCE, count * BYTES_AT_ONCE // max(size, 1)))


async def _number(connection: AsyncConnection, query: Select[int]) -> int:
    return int((await connection.execute(query)).scalar_one())
