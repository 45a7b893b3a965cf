"""Summaries of metrics that services have put into rows since an earlier part of an import, or an import before.

Trials are imported with their summaries, as columns, and before their reports: a report that comes behind what a
summary in rows has would be added to it, though it is in there already. So these trials go back to their columns, which
are true, and the api puts them into rows anew. Source: services/api/metrics/rows/back_fill.py.
"""

from __future__ import annotations

from typing import Any, Final

from deploy.determined_import.refusal import ImportRefused
from services.api.metrics.rows.settling import settle_all

OF_BATCH: Final = (
    "UPDATE trials SET summary_in_rows = false WHERE summary_in_rows AND id > $1::bigint AND id <= $2::bigint"
)
"""All trials of a batch that is copied: they were reported here before the import of them was complete."""
BEHIND_ROWS: Final = """
UPDATE trials t SET summary_in_rows = false
 WHERE t.summary_in_rows
   AND t.id IN (
       SELECT i.trial_id
         FROM incoming i
         LEFT JOIN metric_groups g ON g.trial_id = i.trial_id AND g.metric_group = i.metric_group
        WHERE NOT i.archived AND i.kind <> 'PROFILING' AND i.total_batches > coalesce(g.folded_step, -1))
"""
"""Those of the reports that were taken in, before they are written; of most trials nothing new has come."""


async def bring_up_to_date(connection: Any) -> None:
    """Write what was reported here into the columns of trials, where services were killed before they did.

    Raises ImportRefused when that is not possible for some.
    """
    settled = await settle_all(connection)
    if settled.left:
        trials = ", ".join(map(str, settled.left))
        raise ImportRefused(
            f"the summaries of metrics of these trials could not be brought up to date: {trials}."
            " `resolute db settle-metrics` says why"
        )
