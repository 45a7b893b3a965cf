"""A preview of what a retention policy would delete, before anybody decides on it.

Source: docs/reference/experiments.md 6 (set gc-policy).
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.checkpoints.checkpoint_retention import Policy, checkpoints_to_delete
from libs.config.stored import part, text_in
from libs.db.any_of import any_of
from libs.db.checkpoints.gc_candidates import gc_candidates
from libs.db.tables.checkpoints import checkpoints
from libs.db.tables.metrics import metrics
from services.api.queries.experiments.experiments import load_config
from services.api.queries.metric_values import report_at_step
from services.api.wire.base import struct_value, timestamp


async def preview_gc(connection: AsyncConnection, experiment_id: int, policy: Policy) -> dict[str, Any]:
    """``checkpoints`` that would be deleted, a list of objects with capitalised keys, and ``metric_name``.

    Raises NotFound.
    """
    config = await load_config(connection, experiment_id)
    unwanted = checkpoints_to_delete(await gc_candidates(connection, experiment_id, config), policy)
    rows = await connection.execute(
        select(*checkpoints.c, metrics.c.metrics.label("validation"))
        .select_from(checkpoints.outerjoin(metrics, report_at_step(metrics, checkpoints, "validation")))
        .where(any_of(checkpoints.c.uuid, (candidate.uuid for candidate in unwanted)))
        .order_by(checkpoints.c.trial_id, checkpoints.c.report_time)
    )
    return {"checkpoints": [_entry(row) for row in rows], "metric_name": text_in(part(config, "searcher"), "metric")}


def _entry(row: Any) -> dict[str, Any]:
    return {
        "TrialID": row.trial_id,
        "ExperimentID": row.experiment_id,
        "StepsCompleted": row.steps_completed or 0,
        "State": row.state,
        "ValidationMetrics": struct_value((row.validation or {}).get("validation_metrics") or {}),
        "UUID": row.uuid,
        "Resources": row.resources,
        "ReportTime": timestamp(row.report_time),
        "TaskID": row.task_id,
        "AllocationID": row.allocation_id,
        "Metadata": struct_value(row.metadata),
        "Size": row.size_bytes,
        "StorageID": row.storage_id,
    }
