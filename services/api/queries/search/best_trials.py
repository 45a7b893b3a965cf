"""Best trials beside the experiments that a search finds, of whose summaries the list shows a part."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec import UNSET
from sqlalchemy import Text, cast
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.trials import trials
from services.api.queries.prepared import PreparedQuery, one_of_hidden
from services.api.queries.search.summaries.bounded_summaries import summary_unless_large
from services.api.queries.search.summaries.shown_summaries import shown_summaries
from services.api.queries.summaries import present_totals
from services.api.queries.trials.trials import VALIDATION_IDS, fields_but_summary, select_trials, surroundings_of
from services.api.wire.search.searches import FoundTrial

_BY_ID: Final = PreparedQuery(
    select_trials(*VALIDATION_IDS)
    .add_columns(cast(summary_unless_large(), Text).label("summary_metrics"))
    .where(one_of_hidden(trials.c.id, "trials"))
)


async def best_trials(connection: AsyncConnection, trial_ids: Sequence[int], *, now: datetime) -> dict[int, FoundTrial]:
    """Those of the trials that exist, by id.

    now  up to when allocations that still run count for the wall clock time
    """
    if not trial_ids:
        return {}
    rows = await _BY_ID.rows(connection, trials=trial_ids)
    around = await surroundings_of(connection, rows, now=now)
    totals = await present_totals(connection, [row.id for row in rows if row.is_marked])
    summaries = await shown_summaries(connection, rows)
    return {
        row.id: FoundTrial(
            summary_metrics=summaries[row.id].document,
            summary_metrics_left_out=summaries[row.id].left_out or UNSET,
            **fields_but_summary(row, around, totals.get(row.id, row.total_batches)),
        )
        for row in rows
    }
