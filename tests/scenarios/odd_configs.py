"""Stored configurations that today's would not be: of older releases, of imports, or changed by hand; and every call
that may look into the configuration of an experiment, by any id that leads to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

PARTS: Final = (
    "bind_mounts",
    "checkpoint_policy",
    "checkpoint_storage",
    "data",
    "description",
    "entrypoint",
    "environment",
    "hyperparameters",
    "integrations",
    "labels",
    "log_policies",
    "max_restarts",
    "min_checkpoint_period",
    "name",
    "preemption_timeout",
    "profiling",
    "project",
    "reproducibility",
    "resources",
    "retention_policy",
    "searcher",
    "workspace",
)
NONSENSE: Final[dict[str, Any]] = {
    "null": None,
    "text": "nonsense",
    "a number": -1e300,
    "a flag": True,
    "an object": {"nonsense": [None]},
    "a list": [None, "nonsense", 7, ["deeper"], {"name": None}],
}


class OddConfig(NamedTuple):
    name: str
    config: Any


def odd_configs(usual: dict[str, Any]) -> Iterator[OddConfig]:
    """usual  a configuration as it is stored today"""
    for name, value in NONSENSE.items():
        yield OddConfig(f"{name} for each part", dict.fromkeys(PARTS, value))
        yield OddConfig(f"{name} for what is in each part", {part: _inside(usual[part], value) for part in usual})


def _inside(part: Any, value: Any) -> Any:
    if isinstance(part, dict):
        return {key: _inside(each, value) if isinstance(each, dict) else value for key, each in part.items()}
    return part


class Call(NamedTuple):
    """``state`` is the experiment's and its trial's before; ``path`` and texts of the body name ids in braces."""

    method: str
    path: str
    body: Any = None
    state: str = "COMPLETED"


_E: Final = "/api/v1/experiments/{experiment}"
_T: Final = "/api/v1/trials/{trial}"
_C: Final = "/api/v1/checkpoints/{checkpoint}"
_A: Final = "/api/v1/allocations/{allocation}"
_P: Final = "/api/v1/projects/1/experiments"
_METRICS: Final = {"trialId": "{trial}", "stepsCompleted": 5, "metrics": {"avgMetrics": {"loss": 0.5}}}
_EXPERIMENTS: Final = {"experimentIds": ["{experiment}"], "projectId": 1}
_RUNS: Final = {"runIds": ["{trial}"], "projectId": 1}
_UNMANAGED: Final = {"experimentId": "{experiment}", "unmanaged": True}

READS: Final = tuple(
    Call("GET", path)
    for path in (
        _E,
        f"{_E}/trials",
        f"{_E}/trials?sortBy=SORT_BY_BEST_VALIDATION_METRIC",
        f"{_E}/validation-history",
        f"{_E}/searcher/best_searcher_validation_metric",
        f"{_E}/checkpoints",
        f"{_E}/checkpoints?sortByAttr=SORT_BY_SEARCHER_METRIC",
        f"{_E}/checkpoints?sortByMetric=loss",
        f"{_E}/model_def",
        f"{_E}/file_tree",
        f"{_E}/metrics-stream/batches?metricName=loss&group=validation",
        f"{_E}/metrics-stream/trials-snapshot?metricName=loss&group=validation&batchesProcessed=3",
        f"{_E}/metrics-stream/trials-sample?metricName=loss&group=validation",
        "/api/v1/experiments/metrics-stream/metric-names?ids={experiment}",
        "/experiments/{experiment}/preview_gc?save_experiment_best=1&save_trial_best=1&save_trial_latest=1",
        "/experiments/{experiment}/model_def",
        _T,
        f"{_T}/workloads",
        f"{_T}/checkpoints",
        f"{_T}/checkpoints?sortByAttr=SORT_BY_SEARCHER_METRIC",
        f"{_T}/logs",
        f"{_T}/logs/fields",
        f"{_T}/profiler/available_series",
        "/api/v1/trials/metrics/trial_metrics?trialIds={trial}&group=validation",
        "/api/v1/trials/metrics/validation_metrics?trialIds={trial}",
        "/api/v1/trials/time-series?trialIds={trial}&metricNames=loss",
        "/api/v1/resolute/trials/{trial}/metric-names",
        "/api/v1/trials/by-external-id/{external}/{external}",
        "/api/v1/runs/{trial}/metadata",
        _C,
        f"{_C}/metrics",
        "/checkpoints/{checkpoint}",
        "/api/v1/tasks/{task}",
        "/api/v1/tasks/{task}/logs",
        "/api/v1/tasks/{task}/logs/fields",
        "/api/v1/tasks/{task}/context_directory",
        "/api/v1/tasks/{task}/config",
        "/api/v1/tasks/{task}/acceleratorData",
        _A,
        f"{_A}/signals/preemption?timeoutSeconds=0",
        f"{_A}/resources/pod-0/rendezvous",
    )
)
CHANGES: Final = (
    Call("POST", "/api/v1/experiments/continue", {"id": "{experiment}"}),
    Call("POST", "/api/v1/experiments/continue", {"id": "{experiment}", "overrideConfig": "name: more\n"}, "ERROR"),
    Call("POST", "/api/v1/experiments", {"config": "{usual_config}", "parentId": "{experiment}"}),
    Call("POST", "/api/v1/experiments", {"config": "{stored_config}", "parentId": "{experiment}"}),
    Call("POST", "/api/v1/preview-hp-search", {"config": "{stored_object}"}),
    Call("POST", f"{_E}/activate", state="PAUSED"),
    Call("POST", f"{_E}/pause", state="ACTIVE"),
    Call("POST", f"{_E}/cancel", state="ACTIVE"),
    Call("POST", f"{_E}/kill", state="ACTIVE"),
    Call("POST", f"{_E}/archive"),
    Call("PATCH", _E, {"name": "renamed", "labels": ["new"], "notes": "seen"}),
    Call("PATCH", _E, {"resources": {"maxSlots": 3, "weight": 2, "priority": 5}}, "ACTIVE"),
    Call("PATCH", _E, {"checkpointStorage": {"saveTrialBest": 2}}),
    Call("PUT", f"{_E}/labels/more"),
    Call("DELETE", f"{_E}/labels/new"),
    Call("PUT", f"{_E}/retain_logs", {"numDays": 3}),
    Call("POST", f"{_E}/move", {"experimentId": "{experiment}", "destinationProjectId": 1}),
    Call("POST", f"{_E}/file", {"experimentId": "{experiment}", "path": "train.py"}),
    Call("DELETE", f"{_E}/tensorboard-files"),
    Call("DELETE", _E),
    Call("POST", f"{_P}/activate", _EXPERIMENTS, "PAUSED"),
    Call("POST", f"{_P}/pause", _EXPERIMENTS, "ACTIVE"),
    Call("POST", f"{_P}/cancel", _EXPERIMENTS, "ACTIVE"),
    Call("POST", f"{_P}/kill", _EXPERIMENTS, "ACTIVE"),
    Call("POST", f"{_P}/archive", _EXPERIMENTS),
    Call("POST", f"{_P}/unarchive", _EXPERIMENTS),
    Call("POST", f"{_P}/move", {**_EXPERIMENTS, "destinationProjectId": 1}),
    Call("PUT", f"{_P}/retain_logs", {**_EXPERIMENTS, "numDays": 3}),
    Call("DELETE", f"{_P}/delete", _EXPERIMENTS),
    Call("POST", f"{_T}/kill", state="ACTIVE"),
    Call("PUT", f"{_T}/retain_logs", {"numDays": 3}),
    Call("POST", f"{_T}/metrics", {"metrics": _METRICS, "group": "validation"}, "ACTIVE"),
    Call("POST", f"{_T}/metrics", {"metrics": {**_METRICS, "stepsCompleted": 6}, "group": "training"}, "ACTIVE"),
    Call("POST", f"{_T}/training_metrics", {**_METRICS, "stepsCompleted": 7}, "ACTIVE"),
    Call("POST", f"{_T}/validation_metrics", {**_METRICS, "stepsCompleted": 7}, "ACTIVE"),
    Call("POST", f"{_T}/progress", {"progress": 0.5}, "ACTIVE"),
    Call("POST", f"{_T}/progress", {"progress": 0.5, "isRaw": True}, "ACTIVE"),
    Call("POST", f"{_T}/early_exit", {"reason": "EXITED_REASON_INVALID_HP"}, "ACTIVE"),
    Call("POST", f"{_T}/runner/metadata", {"state": "training"}, "ACTIVE"),
    Call("POST", "/api/v1/trials", _UNMANAGED, "ACTIVE"),
    Call("PUT", "/api/v1/trials", {"externalTrialId": "{external}", "createTrialRequest": _UNMANAGED}, "ACTIVE"),
    Call("PATCH", _T, {"state": "STATE_COMPLETED"}, "ACTIVE"),
    Call("POST", f"{_T}/start", {"resume": True}, "ACTIVE"),
    Call("POST", "/api/v1/runs/start", {"runId": "{trial}"}, "ACTIVE"),
    Call("POST", "/api/v1/runs/{trial}/metadata", {"metadata": {"seen": True}}),
    Call(
        "POST",
        "/api/v1/checkpoints",
        {
            "taskId": "{task}",
            "uuid": "{uuid}",
            "resources": {"weights.pt": "5"},
            "metadata": {"steps_completed": 5},
            "state": "STATE_COMPLETED",
        },
        "ACTIVE",
    ),
    Call("POST", f"{_C}/metadata", {"checkpoint": {"uuid": "{checkpoint}", "metadata": {"seen": True}}}),
    Call("PATCH", "/api/v1/checkpoints", {"checkpoints": [{"uuid": "{checkpoint}"}]}),
    Call("POST", "/api/v1/checkpoints/rm", {"checkpointUuids": ["{checkpoint}"], "checkpointGlobs": ["*.pt"]}),
    Call("DELETE", "/api/v1/checkpoints", {"checkpointUuids": ["{checkpoint}"]}),
    Call(
        "POST",
        "/api/v1/trial-source-info",
        {
            "trialSourceInfo": {
                "trialId": "{trial}",
                "checkpointUuid": "{checkpoint}",
                "trialSourceInfoType": "TRIAL_SOURCE_INFO_TYPE_INFERENCE",
            }
        },
    ),
    Call("POST", "/api/v1/job-queues", {"updates": [{"jobId": "{job}", "priority": 3}]}, "ACTIVE"),
    Call("POST", "/api/v1/job-queues", {"updates": [{"jobId": "{job}", "resourcePool": "other"}]}, "ACTIVE"),
    Call("POST", "/api/v1/job-queues", {"updates": [{"jobId": "{job}", "weight": 2}]}, "ACTIVE"),
    Call("POST", "/api/v1/tensorboards", {"experimentIds": ["{experiment}"]}),
    Call("POST", "/api/v1/tensorboards", {"trialIds": ["{trial}"]}),
    Call("POST", "/api/v1/runs/pause", _RUNS, "ACTIVE"),
    Call("POST", "/api/v1/runs/resume", _RUNS, "PAUSED"),
    Call("POST", "/api/v1/runs/kill", _RUNS, "ACTIVE"),
    Call("POST", "/api/v1/runs/archive", _RUNS),
    Call("POST", "/api/v1/runs/unarchive", _RUNS),
    Call("POST", "/api/v1/runs/move", {"runIds": ["{trial}"], "sourceProjectId": 1, "destinationProjectId": 1}),
    Call("POST", "/api/v1/runs/delete", _RUNS),
)


class Listing(NamedTuple):
    """A list with ids of experiments or trials in ``key``, wherever in an element ``ident`` is."""

    method: str
    path: str
    body: Any
    key: str
    ident: str


_SORTS: Final = ("", "id=desc", "searcherMetricsVal=asc", "searcherMetric=desc", "searcherType=asc", "resourcePool=asc")
LISTINGS: Final = (
    *(
        Listing("GET", f"/api/v1/experiments?limit=-1&sortBy=SORT_BY_{sort}", None, "experiments", "id")
        for sort in ("ID", "NAME", "PROGRESS", "RESOURCE_POOL", "SEARCHER_METRIC_VAL", "NUM_TRIALS", "CHECKPOINT_SIZE")
    ),
    *(
        Listing("POST", "/api/v1/experiments-search", {"limit": 2000, "sort": sort}, "experiments", "experiment.id")
        for sort in _SORTS
    ),
    *(
        Listing("POST", "/api/v1/runs", {"limit": 2000, "sort": sort}, "runs", "experiment.id")
        for sort in ("", "id=desc", "searcherMetricsVal=asc", "searcherMetric=desc", "hp.lr=asc", "resourcePool=asc")
    ),
    Listing("GET", "/api/v1/job-queues-v2?resourcePool=default&limit=2000", None, "jobs", "full.entityId"),
)
OVERVIEWS: Final = (
    "/api/v1/job-queues/stats",
    "/api/v1/resolute/waiting",
    "/api/v1/tasks",
    "/tasks",
    "/api/v1/experiment/labels",
    "/api/v1/projects/1",
    "/api/v1/projects/1/columns",
    "/api/v1/projects/1/experiments/metric-ranges",
    "/api/v1/projects/1/metadata/seen",
    "/api/v1/workspaces/1",
    "/api/v1/workspaces/1/projects",
    "/api/v1/tensorboards",
    "/api/v1/resources/allocation/raw?timestampAfter=2020-01-01T00:00:00Z&timestampBefore=2040-01-01T00:00:00Z",
    "/api/v1/resources/allocation/aggregated?startDate=2029-12-30&endDate=2030-01-03"
    "&period=RESOURCE_ALLOCATION_AGGREGATION_PERIOD_DAILY",
    "/resources/allocation/raw?timestamp_after=2020-01-01T00:00:00Z&timestamp_before=2040-01-01T00:00:00Z",
    "/resources/allocation/allocations-csv?timestamp_after=2020-01-01T00:00:00Z&timestamp_before=2040-01-01T00:00:00Z",
)
