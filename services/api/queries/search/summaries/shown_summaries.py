"""The summaries that a list shows, of rows with ``summary_unless_large()`` as a text and with ``is_marked()``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.engine import DriverConnection
from services.api.queries.search.summaries.bounded_summaries import BoundedSummary, bounded, large_summaries
from services.api.queries.search.summaries.marked_summaries import marked_summaries


async def shown_summaries(
    connection: AsyncConnection | DriverConnection, rows: Sequence[Any]
) -> dict[int, BoundedSummary]:
    """Of each row, by its ``id``, which is that of a trial; ``summary_metrics`` and ``is_marked`` say where it is."""
    found = await marked_summaries(connection, [row.id for row in rows if row.is_marked])
    for row in rows:
        if not row.is_marked and row.summary_metrics is not None:
            found[row.id] = bounded(row.summary_metrics)
    missing = [row.id for row in rows if row.id not in found]
    large = await large_summaries(connection, missing)
    return found | {ident: large.get(ident, BoundedSummary({})) for ident in missing}  # one may be deleted meanwhile
