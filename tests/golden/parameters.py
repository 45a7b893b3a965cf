"""Values for the parameters of paths and queries: what the database has, by the name of the parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import asyncpg

_EXPERIMENTS: Final = "SELECT id FROM experiments ORDER BY id"
_TRIALS: Final = "SELECT id FROM trials ORDER BY id"
_USERS: Final = "SELECT id FROM users ORDER BY id"
_WORKSPACES: Final = "SELECT id FROM workspaces ORDER BY id"
_CHECKPOINTS: Final = "SELECT uuid FROM checkpoints ORDER BY report_time"

IN_PATHS: Final[Mapping[str, str]] = {
    "agents": "SELECT 'none'",
    "allocations": "SELECT allocation_id FROM allocations ORDER BY allocation_id",
    "by-external-id": "SELECT 'outside'",
    "by-group": "SELECT id FROM groups ORDER BY id",
    "by-user": _USERS,
    "checkpoints": _CHECKPOINTS,
    "commands": "SELECT task_id FROM tasks WHERE task_type = 'COMMAND' ORDER BY 1",
    "experiments": _EXPERIMENTS,
    "externalTrialId": "SELECT 'first'",
    "global": "VALUES ('EXPERIMENT'), ('NTSC'), ('OTHER')",
    "groups": "SELECT id FROM groups ORDER BY id",
    "key": "SELECT key FROM projects ORDER BY id",
    "metadata": "VALUES ('made_by'), ('nested.lr'), ('nothing')",
    "models": "SELECT name FROM models UNION SELECT id::text FROM models WHERE id = 2 ORDER BY 1",
    "notebooks": "SELECT task_id FROM tasks WHERE task_type = 'NOTEBOOK'",
    "projects": "SELECT id FROM projects ORDER BY id",
    "resource-pools": "VALUES ('default'), ('none')",
    "resourcesId": "SELECT 'none'",
    "runs": _TRIALS,
    "shells": "SELECT task_id FROM tasks WHERE task_type = 'SHELL'",
    "slots": "SELECT '0'",
    "tasks": "SELECT task_id FROM tasks ORDER BY 1",
    "templates": "SELECT name FROM templates ORDER BY 1",
    "tensorboards": "SELECT task_id FROM tasks WHERE task_type = 'TENSORBOARD'",
    "trials": _TRIALS,
    "username": "SELECT username FROM users ORDER BY id",
    "users": _USERS,
    "versions": "VALUES ('1'), ('2'), ('9')",
    "workloadType": "VALUES ('EXPERIMENT'), ('NTSC')",
    "workspace": _WORKSPACES,
    "workspaces": _WORKSPACES,
}
"""By the name of the parameter, or else by the segment before it."""

IN_QUERIES: Final[Mapping[str, tuple[str, ...]]] = {
    "action": ("POST", "nothing"),
    "batchesMargin": ("1", "100"),
    "batchesProcessed": ("2", "6"),
    "description": ("one", "TRIAL", "%"),
    "endBatches": ("3", "8"),
    "endDate": ("2020-01-02", "2100-01"),
    "entity": ("experiment", "none"),
    "entityId": ("1",),
    "gt": ("2",),
    "gte": ("2",),
    "group": ("training", "validation", "inference", "a/b c", "none"),
    "id": ("1", "99"),
    "ids": ("1", "3"),
    "incl": ("1", "5"),
    "experimentId": ("1",),
    "jobId": ("none",),
    "labels": ("both", "kept", "l"),
    "limit": ("1", "2", "7", "-1", "-2", "1000", "-3"),
    "lt": ("5",),
    "lte": ("5",),
    "maxDatapoints": ("1", "3", "1000"),
    "maxTrials": ("1", "2"),
    "metricGroup": ("validation", "inference"),
    "metricIds": ("training.loss", "validation.accuracy", "inference.latency.p99", "loss"),
    "metricName": ("loss", "accuracy", "word", "none"),
    "metricNames": ("loss", "epochs", "word", "infinite", "latency.p99", "none"),
    "name": ("e", "RES", "one", "%", "single"),
    "nameCaseSensitive": ("Team B", "team b"),
    "notIn": ("1", "2"),
    "offset": ("1", "3", "-1", "-100", "100000"),
    "path": ("reporting.py", "none"),
    "prefix": ("l", "latency.", "none"),
    "projectId": ("1", "2", "99"),
    "regex": ("^lo", "p9+$", "("),
    "resourcePool": ("default", "none"),
    "resourcePools": ("default",),
    "roleIdAssignedDirectlyToUser": ("2", "4"),
    "saveExperimentBest": ("0", "2"),
    "saveTrialBest": ("0", "1"),
    "saveTrialLatest": ("0", "2"),
    "searchText": ("step", "STEP 1", "s.e"),
    "separator": (".", "/"),
    "size": ("1", "3"),
    "sortByMetric": ("loss", "accuracy", "none"),
    "sortKey": ("loss", "batches", "none"),
    "sources": ("task", "none"),
    "startBatches": ("2", "7"),
    "startDate": ("2020-01-01", "2025-01"),
    "stdtypes": ("stdout", "stderr"),
    "text": ("o", "LOSS"),
    "tokenIds": ("1", "2"),
    "trialIds": ("1", "2", "3"),
    "userIds": ("1", "2", "3"),
    "username": ("admin", "zoe"),
    "users": ("admin", "determined", "nobody"),
    "workspaceId": ("1", "2"),
    "workspaceIds": ("1", "2"),
    "workspaceNames": ("team a", "Uncategorized"),
}
"""By the name of the parameter; those of enumerations and truth values are known from their types."""

LEFT_OUT: Final = frozenset(
    {
        *("follow", "periodSeconds", "timeoutSeconds"),
        *("timestampBefore", "timestampAfter", "before", "since", "requestId"),
        *("agentId", "agentIds", "allocationIds", "containerIds", "gpuUuid", "rankIds", "taskId", "trialId"),
        *("code", "error", "errorDescription", "relayState", "state"),
    }
)
"""Streams would not end; and there is no moment, machine or login that every filled database has."""

_WINDOW: Final = "timestampAfter=2020-01-01T00:00:00Z&timestampBefore=2100-01-01T00:00:00Z"
_DAYS: Final = "startDate=2025-01-01&endDate=2025-01-03&period=RESOURCE_ALLOCATION_AGGREGATION_PERIOD_DAILY"
_VALIDATION: Final = "metricName=loss&metricType=METRIC_TYPE_VALIDATION"
ALWAYS: Final[Mapping[str, str]] = {
    "/api/v1/allocations/{allocationId}/signals/preemption": "timeoutSeconds=0",
    "/api/v1/checkpoints/{checkpointUuid}/metrics": "metricGroup=validation",
    "/api/v1/experiments/metrics-stream/metric-names": "ids=1&ids=3",
    "/api/v1/experiments/{experimentId}/metrics-stream/batches": _VALIDATION,
    "/api/v1/experiments/{experimentId}/metrics-stream/trials-sample": _VALIDATION,
    "/api/v1/experiments/{experimentId}/metrics-stream/trials-snapshot": f"{_VALIDATION}&batchesProcessed=4",
    "/api/v1/models/{modelName}/versions/{modelVersionNum}/metrics": "metricGroup=training",
    "/api/v1/resources/allocation/aggregated": _DAYS,
    "/api/v1/resources/allocation/raw": _WINDOW,
    "/api/v1/trials/metrics/training_metrics": "trialIds=1&trialIds=2",
    "/api/v1/trials/metrics/trial_metrics": "trialIds=1&trialIds=2&group=inference",
    "/api/v1/trials/metrics/validation_metrics": "trialIds=1&trialIds=3",
    "/api/v1/trials/time-series": "trialIds=1&trialIds=2&trialIds=3&metricNames=loss&maxDatapoints=5",
    "/experiments/{experimentId}/file/download": "path=reporting.py",
    "/resources/allocation/aggregated": _DAYS,
    "/resources/allocation/allocations-csv": _WINDOW,
    "/resources/allocation/raw": _WINDOW,
}
"""Without which a path answers nothing."""


async def values_in_paths(url: str) -> dict[str, Sequence[str]]:
    """What ``IN_PATHS`` finds in the database at ``url``, as text."""
    connection = await asyncpg.connect(url)
    try:
        return {name: [str(row[0]) for row in await connection.fetch(query)] for name, query in IN_PATHS.items()}
    finally:
        await connection.close()
