"""Reports of the trials that said that they work with a checkpoint, or with a version of a model
(docs/reference/harness-protocol.md 11)."""

from __future__ import annotations

from typing import Final

from sqlalchemy import ColumnElement, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.checkpoints import checkpoints, trial_sources
from libs.db.tables.metrics import metrics
from libs.db.tables.trials import trials
from libs.errors import InvalidRequest, NotFound
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.queries.models.models import model_row
from services.api.queries.models.versions import version_row
from services.api.queries.trials.metrics import REPORT_COLUMNS, as_report
from services.api.wire.charts.by_source import MetricsBySourceQuery
from services.api.wire.trials.metrics import MetricsReport
from services.api.wire.trials.runs import TrialSourceInfoType

MOST_REPORTS: Final = 20_000
"""The answer is one message, which is in memory as a whole."""


async def metrics_by_checkpoint(
    connection: AsyncConnection, uuid: str, query: MetricsBySourceQuery, rights: UserRights
) -> list[MetricsReport]:
    """By trial, run and step. Raises NotFound; InvalidRequest for more than an answer can hold."""
    if await connection.scalar(select(checkpoints.c.uuid).where(checkpoints.c.uuid == uuid)) is None:
        raise NotFound("checkpoint", uuid)
    return await _metrics(connection, [trial_sources.c.checkpoint_uuid == uuid], query, rights)


async def metrics_by_model_version(
    connection: AsyncConnection, name_or_id: str, number: int, query: MetricsBySourceQuery, rights: UserRights
) -> list[MetricsReport]:
    """By trial, run and step. Raises NotFound; InvalidRequest for more than an answer can hold."""
    model = await model_row(connection, name_or_id, rights)
    version = await version_row(connection, model, number)
    mine = [trial_sources.c.model_id == model["id"], trial_sources.c.model_version == version["version"]]
    return await _metrics(connection, mine, query, rights)


async def _metrics(
    connection: AsyncConnection, sources: list[ColumnElement[bool]], query: MetricsBySourceQuery, rights: UserRights
) -> list[MetricsReport]:
    trial_ids = select(trial_sources.c.trial_id).where(*sources)
    if not rights.may_everywhere(Action.VIEW_EXPERIMENT):
        seen = select(trials.c.id).where(rights.where_project(Action.VIEW_EXPERIMENT, trials.c.project_id))
        trial_ids = trial_ids.where(trial_sources.c.trial_id.in_(seen))
    if query.trial_source_info_type is not TrialSourceInfoType.UNSPECIFIED:
        kind = query.trial_source_info_type.name
        trial_ids = trial_ids.where(trial_sources.c.trial_source_info_type == kind)
    statement = (
        select(*REPORT_COLUMNS)
        .where(metrics.c.trial_id.in_(trial_ids), ~metrics.c.archived)
        .order_by(metrics.c.trial_id, metrics.c.trial_run_id, metrics.c.total_batches, metrics.c.id)
    )
    if query.metric_group:
        statement = statement.where(metrics.c.metric_group == query.metric_group)
    rows = (await connection.execute(statement.limit(MOST_REPORTS + 1))).mappings().all()
    if len(rows) > MOST_REPORTS:
        raise InvalidRequest(
            f"more than {MOST_REPORTS} reports: name a metricGroup, "
            "or read them by trial at trials/metrics/trial_metrics"
        )
    return [as_report(row) for row in rows]
