"""Columns that every experiment and every run has: what they are filtered and sorted by.

Source: docs/reference/platform.md 9.2. All columns that tables list can be filtered and sorted by, ``tags`` and
``archived`` included, which the reference lists as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import BigInteger, ColumnElement, Text, cast, func

from libs.db.tables.experiments import experiments, natural_experiment_name, trigrams_of_experiment_name
from libs.db.tables.trials import trials
from libs.db.tables.users import users
from libs.db.tables.workspaces import projects
from libs.natural_order.sql import natural
from services.api.queries.experiments.durations import whole_seconds
from services.api.queries.experiments.experiments import best_trials, experiment_duration, num_trials, shown_name
from services.api.queries.search.operators import ValueKind


@dataclass(frozen=True, slots=True)
class FixedColumn:
    """trigrams  of what is filtered, where an index has them"""

    filtered: ColumnElement[Any]
    kind: ValueKind
    sorted: Sequence[ColumnElement[Any]]
    trigrams: ColumnElement[Any] | None = None


def _both(expression: ColumnElement[Any], kind: ValueKind) -> FixedColumn:
    return FixedColumn(expression, kind, [expression])


def _text(expression: ColumnElement[Any]) -> FixedColumn:
    """What people wrote, in the order in which they expect it."""
    return FixedColumn(expression, ValueKind.TEXT, [natural(expression)])


def _in_config(*path: str) -> ColumnElement[Any]:
    return func.jsonb_extract_path_text(experiments.c.config, *path, type_=Text)


run_duration: Final = whole_seconds(trials.c.start_time, trials.c.end_time)
local_id: Final = projects.c.key + "-" + cast(trials.c.local_id, Text)
# Nothing is computed for a row: all runs may be sorted by it.
_local_id: Final = FixedColumn(local_id, ValueKind.TEXT, [projects.c.key.collate("C"), trials.c.local_id])
is_multitrial: Final = func.coalesce(_in_config("searcher", "name"), "single") != "single"
parent_archived: Final = experiments.c.archived
_progress: Final = func.coalesce(experiments.c.progress, 0.0)
_percent: Final = FixedColumn(cast(func.round(_progress * 100), BigInteger), ValueKind.INTEGER, [_progress])

_name: Final = FixedColumn(
    _in_config("name"), ValueKind.TEXT, [natural_experiment_name], trigrams=trigrams_of_experiment_name
)

_OF_BOTH: Final[Mapping[str, FixedColumn]] = {
    "tags": FixedColumn(_in_config("labels"), ValueKind.TEXT, [natural(func.nullif(_in_config("labels"), "[]"))]),
    "searcherType": _both(_in_config("searcher", "name"), ValueKind.TEXT),
    "searcherMetric": _text(_in_config("searcher", "metric")),
    "resourcePool": _text(_in_config("resources", "resource_pool")),
    "forkedFrom": _both(experiments.c.parent_id, ValueKind.INTEGER),
    "externalExperimentId": _text(experiments.c.external_id),
}

EXPERIMENT_COLUMNS: Final[Mapping[str, FixedColumn]] = {
    **_OF_BOTH,
    "id": _both(experiments.c.id, ValueKind.INTEGER),
    "name": _name,
    "description": _text(_in_config("description")),
    "startTime": _both(experiments.c.start_time, ValueKind.MOMENT),
    "endTime": _both(experiments.c.end_time, ValueKind.MOMENT),
    "duration": _both(experiment_duration, ValueKind.INTEGER),
    "state": _both(experiments.c.state, ValueKind.TEXT),
    "numTrials": _both(num_trials, ValueKind.INTEGER),
    "progress": _percent,
    "user": FixedColumn(experiments.c.owner_id, ValueKind.INTEGER, [natural(shown_name)]),
    "projectId": _both(experiments.c.project_id, ValueKind.INTEGER),
    "checkpointSize": _both(experiments.c.checkpoint_size, ValueKind.INTEGER),
    "checkpointCount": _both(experiments.c.checkpoint_count, ValueKind.INTEGER),
    "searcherMetricsVal": _both(best_trials.c.searcher_metric_value, ValueKind.DOUBLE),
    "externalTrialId": _text(best_trials.c.external_id),
    "archived": _both(experiments.c.archived, ValueKind.BOOLEAN),
}

RUN_COLUMNS: Final[Mapping[str, FixedColumn]] = {
    **_OF_BOTH,
    "id": _both(trials.c.id, ValueKind.INTEGER),
    "experimentId": _both(experiments.c.id, ValueKind.INTEGER),
    "experimentName": _name,
    "experimentDescription": _text(_in_config("description")),
    "startTime": _both(trials.c.start_time, ValueKind.MOMENT),
    "endTime": _both(trials.c.end_time, ValueKind.MOMENT),
    "duration": _both(run_duration, ValueKind.INTEGER),
    "state": _both(trials.c.state, ValueKind.TEXT),
    "experimentProgress": _percent,
    "user": FixedColumn(experiments.c.owner_id, ValueKind.INTEGER, [natural(users.c.username)]),
    "projectId": _both(trials.c.project_id, ValueKind.INTEGER),
    "checkpointSize": _both(trials.c.checkpoint_size, ValueKind.INTEGER),
    "checkpointCount": _both(trials.c.checkpoint_count, ValueKind.INTEGER),
    "searcherMetricsVal": _both(trials.c.searcher_metric_value, ValueKind.DOUBLE),
    "externalRunId": _text(trials.c.external_id),
    "localId": _local_id,
    "isExpMultitrial": _both(is_multitrial, ValueKind.BOOLEAN),
    "parentArchived": _both(parent_archived, ValueKind.BOOLEAN),
    "archived": _both(trials.c.archived, ValueKind.BOOLEAN),
}
