"""Checkpoints of an experiment that its retention policy may delete (docs/reference/experiments.md 10.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import and_, exists, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.checkpoints.checkpoint_retention import Candidate
from libs.config.stored import part, prefers_small, text_in
from libs.db.checkpoints.registered_checkpoints import is_registered
from libs.db.tables.checkpoints import checkpoints
from libs.db.tables.experiments import experiments
from libs.db.tables.metrics import metrics
from libs.db.tables.trials import trials
from libs.searchers.reports import read_number

_DELETABLE = ("COMPLETED", "PARTIALLY_DELETED")


async def gc_candidates(
    connection: AsyncConnection, experiment_id: int, config: Mapping[str, Any], *, trial_id: int | None = None
) -> list[Candidate]:
    """The candidates of an experiment, or of one of its trials, oldest report first.

    Left out are those whose files are gone, those from which a trial started or may yet start, and versions of models.
    config  the stored configuration of the experiment, for its searcher metric
    """
    metric = text_in(part(config, "searcher"), "metric")
    sign = 1 if prefers_small(config) else -1
    validation = and_(
        metrics.c.trial_id == checkpoints.c.trial_id,
        metrics.c.total_batches == checkpoints.c.steps_completed,
        metrics.c.metric_group == "validation",
        ~metrics.c.archived,
        metrics.c.kind != "PROFILING",  # as the index has it
    )
    started_from = exists().where(trials.c.warm_start_checkpoint_uuid == checkpoints.c.uuid)
    others = experiments.alias()
    will_start_from = exists().where(
        others.c.end_time.is_(None),
        others.c.config["searcher"]["source_checkpoint_uuid"].astext == checkpoints.c.uuid,
    )
    rows = await connection.execute(
        select(
            checkpoints.c.uuid,
            checkpoints.c.trial_id,
            checkpoints.c.steps_completed,
            checkpoints.c.storage_id,
            metrics.c.id.label("validation_id"),
            metrics.c.metrics["validation_metrics"][metric].label("value"),
        )
        .select_from(checkpoints.outerjoin(metrics, validation))
        .where(
            checkpoints.c.experiment_id == experiment_id,
            checkpoints.c.trial_id.is_not(None) if trial_id is None else checkpoints.c.trial_id == trial_id,
            checkpoints.c.state.in_(_DELETABLE),
            ~started_from,
            ~will_start_from,
            ~is_registered(),
        )
        .order_by(checkpoints.c.report_time, checkpoints.c.uuid)
    )
    return [_candidate(row, sign) for row in rows]


def _candidate(row: Any, sign: int) -> Candidate:
    value = read_number(row.value)
    return Candidate(
        uuid=row.uuid,
        trial_id=row.trial_id,
        steps_completed=row.steps_completed or 0,
        signed=None if value is None else sign * value,
        validation_id=row.validation_id,
        storage_id=row.storage_id,
    )
