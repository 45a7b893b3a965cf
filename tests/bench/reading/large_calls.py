"""What is asked of a small and of a large database beside commands: methods of the SDK, and requests of pages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

Request = tuple[str, Any]
"""Path, and body of a POST; None for a GET."""

METHODS: Final = {
    "list_experiments by name": "determined.list_experiments(name='shown')",
    "list_experiments by id": "determined.list_experiments(experiment_ids=[{shown}])",
    "list_experiments with a label that none has": "determined.list_experiments(labels=['none'])",
    "list_experiments by a person and a name": "determined.list_experiments(users=['determined'], name='shown')",
    "list_experiments": "len(determined.list_experiments())",
    "get_experiment": "determined.get_experiment({shown})",
    "list_trials": "determined.get_experiment({shown}).list_trials()",
    "list_trials, the wide trial": "determined.get_experiment({wide_experiment}).list_trials()",
    "iter_trials": "determined.get_experiment({shown}).iter_trials(limit=20)",
    "await_first_trial": "determined.get_experiment({shown}).await_first_trial()",
    "Experiment.wait": "determined.get_experiment({shown}).wait(interval=0.1)",
    "download_code": "determined.get_experiment({shown}).download_code('{out}')",
    "list_checkpoints": "determined.get_experiment({shown}).list_checkpoints()",
    "top_checkpoint": "determined.get_experiment({shown}).top_checkpoint()",
    "top_n_checkpoints": "determined.get_experiment({shown}).top_n_checkpoints(3)",
    "top_checkpoint, the long trial": "determined.get_experiment({long_experiment}).top_checkpoint()",
    "get_trial": "determined.get_trial({trial})",
    "get_trial, a million points": "determined.get_trial({long})",
    "get_trial, 100,000 names": "determined.get_trial({wide}).summary_metrics",
    "Trial.get_experiment": "determined.get_trial({long}).get_experiment()",
    "Trial.iter_metrics": "determined.get_trial({trial}).iter_metrics('validation')",
    "Trial.iter_metrics, the first of a million points": "next(iter(determined.get_trial({long})"
    ".iter_metrics('training')))",
    "Trial.iter_metrics, the long trial": "sum(1 for _ in determined.get_trial({long}).iter_metrics('training'))",
    "Trial.iter_metrics, the wide trial": "sum(1 for _ in determined.get_trial({wide}).iter_metrics('training'))",
    "Trial.stream_validation_metrics": "determined.get_trial({trial}).stream_validation_metrics()",
    "Trial.list_checkpoints": "determined.get_trial({trial}).list_checkpoints()",
    "Trial.list_checkpoints, the long trial": "determined.get_trial({long}).list_checkpoints()",
    "Trial.top_checkpoint": "determined.get_trial({trial}).top_checkpoint(sort_by='loss', smaller_is_better=True)",
    "Trial.top_checkpoint, the long trial": "determined.get_trial({long}).top_checkpoint(sort_by='loss', "
    "smaller_is_better=True)",
    "Trial.select_checkpoint": "determined.get_trial({long}).select_checkpoint(latest=True)",
    "Trial.iter_logs": "determined.get_trial({trial}).iter_logs()",
    "iter_trials_metrics": "determined.iter_trials_metrics([{trial}], 'validation')",
    "stream_trials_validation_metrics": "determined.stream_trials_validation_metrics([{trial}])",
    "get_checkpoint": "determined.get_checkpoint('{checkpoint}')",
    "Checkpoint.get_metrics": "determined.get_checkpoint('{checkpoint}').get_metrics('validation')",
    "list_models": "determined.list_models()",
    "get_models": "determined.get_models()",
    "get_model": "determined.get_model('model-1').list_versions()",
    "get_model_by_id": "determined.get_model_by_id(1)",
    "get_model_labels": "determined.get_model_labels()",
    "Model.get_version": "determined.get_model('model-1').get_version()",
    "ModelVersion.iter_metrics": "determined.get_model('model-1').get_version().iter_metrics()",
    "list_users": "determined.list_users()",
    "get_user_by_name": "determined.get_user_by_name('person1')",
    "get_user_by_id": "determined.get_user_by_id(2)",
    "whoami": "determined.whoami()",
    "list_workspaces": "determined.list_workspaces()",
    "Workspace.list_projects": "determined.get_workspace('Uncategorized').list_projects()",
    "Workspace.list_pools": "determined.get_workspace('Uncategorized').list_pools()",
    "Workspace.get_project": "determined.get_workspace('Uncategorized').get_project('Uncategorized')",
    "Project.list_experiments": "len(determined.get_workspace('Uncategorized').get_project('Uncategorized')"
    ".list_experiments())",
    "ResourcePool.list_workspaces": "pool('default').list_workspaces()",
}
"""Expressions by the words for them, as ``tests/harness/sdk_calls.py`` evaluates them."""

WHY_LONGER: Final = {
    "det experiment list --all --csv": "all experiments",
    "det experiment describe {long_experiment} --metrics --csv": "all reports",
    "det experiment describe {wide_experiment}": "all reports",
    "det trial describe {long} --pages 1": "a full page of reports",
    "det trial describe {wide} --pages 1": "all names",
    "det project list-experiments Uncategorized Uncategorized --all --limit 1000": "all experiments of the project",
    "SDK list_experiments": "all experiments",
    "SDK Trial.iter_metrics, the long trial": "all reports",
    "SDK Trial.iter_metrics, the wide trial": "all reports",
    "SDK list_trials, the wide trial": "all names",
    "SDK get_trial, 100,000 names": "all names",
    "SDK Project.list_experiments": "all experiments of the project",
    "det experiment list-trials {wide_experiment}": "all names, which it does not print",
    "a list with the wide trial": "all names",
    "metric names, the wide trial": "all names",
}
"""What answers have more of on the large database, be it that the client does not show it: these are not compared."""

_SERIES: Final = "metricNames=loss&group=training&maxDatapoints=1000"


def requests_of(places: Mapping[str, object]) -> dict[str, Request]:
    """What pages ask for, by the words for it. ``places``: what stands for the words in braces."""
    return {**{name: (path.format(**places), None) for name, path in _GETS.items()}, **_searches()}


_GETS: Final = {
    "20 experiments by start": "/api/v1/experiments?limit=20&sortBy=SORT_BY_START_TIME&orderBy=ORDER_BY_DESC",
    "20 experiments by name": "/api/v1/experiments?limit=20&sortBy=SORT_BY_NAME&orderBy=ORDER_BY_ASC",
    "20 experiments by id": "/api/v1/experiments?limit=20&sortBy=SORT_BY_ID&orderBy=ORDER_BY_DESC",
    "20 experiments of a project": "/api/v1/experiments?limit=20&projectId=1&sortBy=SORT_BY_ID&orderBy=ORDER_BY_DESC",
    "20 experiments of a person": "/api/v1/experiments?limit=20&users=determined&sortBy=SORT_BY_ID"
    "&orderBy=ORDER_BY_DESC",
    "20 experiments that completed": "/api/v1/experiments?limit=20&states=STATE_COMPLETED&sortBy=SORT_BY_ID"
    "&orderBy=ORDER_BY_DESC",
    "5 experiments with a label": "/api/v1/experiments?limit=5&labels=team3&sortBy=SORT_BY_ID&orderBy=ORDER_BY_DESC",
    "5 experiments with a label by start": "/api/v1/experiments?limit=5&labels=team3&sortBy=SORT_BY_START_TIME"
    "&orderBy=ORDER_BY_DESC",
    "an experiment with two labels": "/api/v1/experiments?limit=1&labels=team3&labels=l3&sortBy=SORT_BY_ID"
    "&orderBy=ORDER_BY_DESC",
    "an experiment with two labels by start": "/api/v1/experiments?limit=1&labels=team3&labels=l3"
    "&sortBy=SORT_BY_START_TIME&orderBy=ORDER_BY_DESC",
    "labels": "/api/v1/experiment/labels",
    "columns of a project": "/api/v1/projects/1/columns",
    "columns of runs of a project": "/api/v1/projects/1/columns?tableType=TABLE_TYPE_RUN",
    "metric ranges of a project": "/api/v1/projects/1/experiments/metric-ranges",
    "values of metadata in a project": "/api/v1/projects/1/metadata/note",
    "a project": "/api/v1/projects/1",
    "projects of a workspace": "/api/v1/workspaces/1/projects",
    "workspaces": "/api/v1/workspaces",
    "users": "/api/v1/users",
    "models": "/api/v1/models",
    "running tasks, counted": "/api/v1/tasks/count",
    "the queue": "/api/v1/job-queues-v2?limit=20",
    "usage of a week": "/api/v1/resources/allocation/aggregated?startDate=2020-01-01&endDate=2020-01-07"
    "&period=RESOURCE_ALLOCATION_AGGREGATION_PERIOD_DAILY",
    "an experiment": "/api/v1/experiments/{shown}",
    "20 of 100 trials": "/api/v1/experiments/{shown}/trials?limit=20",
    "a list with the wide trial": "/api/v1/experiments/{wide_experiment}/trials",
    "the validation history": "/api/v1/experiments/{shown}/validation-history",
    "metric names": "/api/v1/experiments/metrics-stream/metric-names?ids={shown}",
    "metric names, the wide trial": "/api/v1/experiments/metrics-stream/metric-names?ids={wide_experiment}",
    "a chart of a trial": "/api/v1/trials/time-series?trialIds={trial}&metricNames=loss&group=validation"
    "&maxDatapoints=1000",
    "a chart of the long trial": f"/api/v1/trials/time-series?trialIds={{long}}&{_SERIES}",
    "a window of the long trial": f"/api/v1/trials/time-series?trialIds={{long}}&{_SERIES}&startBatches=100"
    "&endBatches=900",
    "a chart of the wide trial": "/api/v1/trials/time-series?trialIds={wide}&metricNames=layer0.head1&group=training"
    "&maxDatapoints=1000",
    "workloads of the long trial": "/api/v1/trials/{long}/workloads?limit=20",
    "the last workloads of the long trial": "/api/v1/trials/{long}/workloads?limit=20&offset=-20",
    "a task": "/api/v1/tasks/{task}",
    "the log of a trial": "/api/v1/trials/{trial}/logs?limit=20",
}


def _searches() -> dict[str, Request]:
    completed = _where("state", "=", "COMPLETED", "EXPERIMENT", "TEXT")
    labelled = _where("tags", "contains", "team3", "EXPERIMENT", "TEXT")
    good = _where("validation.loss.min", "<", 0.3, "VALIDATIONS", "NUMBER")
    fast = _where("hp.lr", "<", 0.3, "HYPERPARAMETERS", "NUMBER")
    newest: dict[str, Any] = {"projectId": 1, "limit": 20, "sort": "id=desc"}
    asked: list[tuple[str, dict[str, Any]]] = [
        ("newest", newest),
        ("by start", {**newest, "sort": "startTime=desc"}),
        ("by the metric", {**newest, "sort": "searcherMetricsVal=asc"}),
        ("that completed", {**newest, "filter": completed}),
        ("with a label", {**newest, "limit": 5, "filter": labelled}),
        ("with a loss below", {**newest, "limit": 5, "filter": good}),
    ]
    requests: dict[str, Request] = {}
    for noun, path in (("experiments", "experiments-search"), ("runs", "runs")):
        for words, body in asked:
            requests[f"search of {body['limit']} {noun} {words}"] = (f"/api/v1/{path}", body)
    requests["search of 20 experiments with a rate below"] = ("/api/v1/experiments-search", {**newest, "filter": fast})
    return requests


def _where(column: str, operator: str, value: Any, location: str, kind: str) -> str:
    field = {
        "kind": "field",
        "columnName": column,
        "operator": operator,
        "value": value,
        "location": f"LOCATION_TYPE_{location}",
        "type": f"COLUMN_TYPE_{kind}",
    }
    group = {"kind": "group", "conjunction": "and", "children": [field]}
    return json.dumps({"filterGroup": group, "showArchived": False})
