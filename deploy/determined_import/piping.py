"""Passes rows from one database to another: what COPY reads here is what COPY writes there, in constant memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

CHUNKS_AHEAD: Final = 16
"""Pieces that wait between the two databases: enough to keep both busy, and no memory to speak of."""


async def pipe(source: Any, query: str, target: Any, table: str, columns: Sequence[str]) -> int:
    """Write the result of ``query`` to ``columns`` of ``table``, which have the same types; returns how many rows.

    source, target  connections of asyncpg; whether anything is written is up to the transaction of ``target``
    """
    chunks: asyncio.Queue[bytes | None] = asyncio.Queue(CHUNKS_AHEAD)

    async def read() -> None:
        await source.copy_from_query(query, output=chunks.put, format="binary")
        await chunks.put(None)

    async def arriving() -> AsyncIterator[bytes]:
        while (chunk := await chunks.get()) is not None:
            yield chunk

    try:
        async with asyncio.TaskGroup() as tasks:  # whichever of the two fails, the other one does not wait for it
            tasks.create_task(read(), name="import.read")
            done: str = await target.copy_to_table(table, source=arriving(), columns=columns, format="binary")
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from failed
    return int(done.removeprefix("COPY "))
