"""What a list shows of a run, with what it shares with its experiment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypedDict

import msgspec
from msgspec import UNSET
from sqlalchemy import Text, cast, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.config.stored import labels_of, part, text_in
from libs.db.engine import DriverConnection
from libs.db.tables.experiments import experiments
from libs.db.tables.trials import trials
from libs.db.tables.workspaces import projects, workspaces
from services.api.queries.search.fixed_columns import local_id, run_duration
from services.api.queries.search.summaries.bounded_summaries import BoundedSummary, summary_unless_large
from services.api.queries.search.summaries.shown_summaries import shown_summaries
from services.api.queries.summaries import is_marked
from services.api.wire.base import double, int64, struct_text, struct_value, timestamp
from services.api.wire.search.runs import FlatRun, FlatRunExperiment
from services.api.wire.trials.trials import TrialState

SHOWN: Final = select(
    trials.c.id,
    trials.c.experiment_id,
    trials.c.project_id,
    trials.c.state,
    trials.c.start_time,
    trials.c.end_time,
    trials.c.checkpoint_size,
    trials.c.checkpoint_count,
    trials.c.searcher_metric_value,
    trials.c.external_id,
    trials.c.archived,
    trials.c.log_policy_matched,
    trials.c.metadata,
    cast(trials.c.hparams, Text).label("hparams"),
    cast(summary_unless_large(), Text).label("summary_metrics"),
    is_marked().label("is_marked"),
    local_id.label("shown_local_id"),
    run_duration.label("duration"),
    cast(experiments.c.config, Text).label("config"),
    experiments.c.parent_id,
    experiments.c.progress,
    experiments.c.unmanaged,
    experiments.c.owner_id,
    experiments.c.archived.label("parent_archived"),
    experiments.c.external_id.label("external_experiment_id"),
    projects.c.name.label("project_name"),
    workspaces.c.id.label("workspace_id"),
    workspaces.c.name.label("workspace_name"),
).select_from(
    trials.join(experiments, experiments.c.id == trials.c.experiment_id)
    .join(projects, projects.c.id == trials.c.project_id)
    .join(workspaces, workspaces.c.id == projects.c.workspace_id)
)
"""What is shown of a run, but for the place on its page; built once, not for each request. Documents are texts: most go
out as they are, and of a configuration a part is looked at."""


class _Config(TypedDict, total=False):
    """What is shown of a configuration, as it was stored: all else is passed over without being made."""

    name: Any
    description: Any
    labels: Any
    searcher: Any
    resources: Any


_config_decoder: Final = msgspec.json.Decoder(_Config)


async def shown_runs(connection: AsyncConnection | DriverConnection, rows: Sequence[Any]) -> list[FlatRun]:
    """Rows of ``SHOWN`` as clients see them."""
    summaries = await shown_summaries(connection, rows)
    return [_flat_run(row, summaries[row.id]) for row in rows]


def _flat_run(row: Any, summary: BoundedSummary) -> FlatRun:
    config: Any = _config_decoder.decode(row.config)
    return FlatRun(
        id=row.id,
        local_id=row.shown_local_id,
        start_time=timestamp(row.start_time),
        end_time=timestamp(row.end_time),
        state=TrialState[row.state],
        labels=labels_of(config),
        checkpoint_size=int64(row.checkpoint_size),
        checkpoint_count=row.checkpoint_count,
        searcher_metric_value=UNSET if row.searcher_metric_value is None else double(row.searcher_metric_value),
        external_run_id=UNSET if row.external_id is None else row.external_id,
        hyperparameters=struct_text(row.hparams),
        summary_metrics=summary.document,
        summary_metrics_left_out=summary.left_out or UNSET,
        user_id=row.owner_id,
        duration=row.duration,
        project_id=row.project_id,
        project_name=row.project_name,
        workspace_id=row.workspace_id,
        workspace_name=row.workspace_name,
        parent_archived=row.parent_archived,
        experiment=_experiment(row, config),
        metadata=UNSET if row.metadata is None else struct_value(row.metadata),
        archived=row.archived,
        log_policy_matched=UNSET if row.log_policy_matched is None else row.log_policy_matched,
    )


def _experiment(row: Any, config: Any) -> FlatRunExperiment:
    searcher = part(config, "searcher")
    return FlatRunExperiment(
        id=row.experiment_id,
        name=text_in(config, "name"),
        description=text_in(config, "description"),
        searcher_type=text_in(searcher, "name"),
        searcher_metric=text_in(searcher, "metric"),
        resource_pool=text_in(part(config, "resources"), "resource_pool"),
        progress=double(row.progress or 0.0),
        is_multitrial=searcher.get("name", "single") not in (None, "single"),
        unmanaged=row.unmanaged,
        forked_from=row.parent_id,
        external_experiment_id=UNSET if row.external_experiment_id is None else row.external_experiment_id,
    )
