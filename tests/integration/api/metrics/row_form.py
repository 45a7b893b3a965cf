"""Trials whose summaries are rows, written by SQL as the owner of the summaries leaves them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import asyncpg

from libs.db.tables.metrics import NOTHING_FOLDED
from tests.integration.api.metrics.reference import ReferenceTrial, Row, summarise

DECOY: Final = {"avg_metrics": {"decoy": {"type": "number", "count": 1, "min": -99, "max": 99, "mean": 0, "sum": 0}}}
_TURN: Final = """
UPDATE trials SET summary_in_rows = true, summary_metrics = $2::jsonb, total_batches = 0 WHERE id = $1
"""
_GROUP: Final = """
INSERT INTO metric_groups (trial_id, metric_group, run_id, folded_step) VALUES ($1, $2, $3, $4) RETURNING summary_id
"""
_NAME: Final = """
INSERT INTO metric_summaries (summary_id, name_key, name, summary, last, last_step)
VALUES ($1, metric_name_key($2), $2, $3::jsonb, $4::jsonb, $5)
"""


async def to_row_form(
    driver: asyncpg.Connection, trial_id: int, reference: ReferenceTrial, folded: Mapping[str, int | None]
) -> None:
    """Turn a trial of the old form into a marked one, whose columns say something else.

    folded  newest step that is in the summary rows, by group; None: nothing is. Groups that are not there are folded.
    """
    async with driver.transaction():
        await driver.execute(_TURN, trial_id, json.dumps(DECOY))
        for group in sorted({row.group for row in reference.rows if row.kind != "PROFILING"}):
            rows = reference.surviving(group)
            newest = _step(rows[-1]) if rows else None
            step = folded.get(group, newest)
            in_rows = [row for row in rows if step is not None and _step(row) <= step]
            reached = _step(in_rows[-1]) if in_rows else NOTHING_FOLDED
            summary_id = await driver.fetchval(_GROUP, trial_id, group, reference.run, reached)
            for name, summary in summarise(in_rows).items():
                having = [row for row in in_rows if name in row.avg]
                value: Any = having[-1].avg[name]
                without_last = {key: part for key, part in summary.items() if key != "last"}
                last = None if value is None else json.dumps(value)
                await driver.execute(_NAME, summary_id, name, json.dumps(without_last), last, _step(having[-1]))
        await driver.execute("INSERT INTO metric_marks (trial_id) VALUES ($1)", trial_id)


def _step(row: Row) -> int:
    assert row.step is not None
    return row.step
