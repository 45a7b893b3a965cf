"""Experiments, one and many at once; runs; their search; what charts are drawn from."""

from __future__ import annotations

from typing import Any, Final

from tests.scenarios.bindings.call import Call

_E: Final = {"experimentId": "{experiment}"}
_CHARTED: Final = {**_E, "metricName": "loss", "group": "training"}
_CONFIG: Final = "name: digits\nentrypoint: 'true'\nsearcher: {{name: single, metric: loss}}\n"
_PARSED: Final = {"name": "digits", "entrypoint": "true", "searcher": {"name": "single", "metric": "loss"}}


def _of_ids(function: str, verb: str, experiment: str, **more: Any) -> Call:
    """What is done to many experiments of a project at once."""
    body = {"experimentIds": [experiment], "projectId": 1, **more}
    return Call(f"{verb}_{function}", {"projectId": 1, "body": body})


def _of_runs(function: str, run: str) -> Call:
    return Call(f"post_{function}", {"body": {"runIds": [run], "projectId": 1}})


CALLS: Final = (
    Call("post_CreateExperiment", {"body": {"config": _CONFIG, "activate": True}}),
    Call("put_PutExperiment", {"externalExperimentId": "{nonce}", "body": {"config": _CONFIG, "unmanaged": True}}),
    Call("post_ContinueExperiment", {"body": {"id": "{new_experiment}", "overrideConfig": "name: more\n"}}),
    Call("post_ActivateExperiment", {"id": "{paused_experiment}"}),
    Call("post_PauseExperiment", {"id": "{new_live_experiment}"}),
    Call("post_CancelExperiment", {"id": "{new_live_experiment}"}),
    Call("post_KillExperiment", {"id": "{new_live_experiment}"}),
    Call("post_ArchiveExperiment", {"id": "{new_experiment}"}),
    Call("post_UnarchiveExperiment", {"id": "{archived_experiment}"}),
    Call("delete_DeleteExperiment", {"experimentId": "{new_experiment}"}),
    Call(
        "post_MoveExperiment",
        {
            "experimentId": "{new_experiment}",
            "body": {"experimentId": "{new_experiment}", "destinationProjectId": "{project_id}"},
        },
    ),
    Call("patch_PatchExperiment", {"experiment_id": "{new_experiment}", "body": {"id": 1, "notes": "seen"}}),
    Call("put_PutExperimentLabel", {**_E, "label": "new"}),
    Call("delete_DeleteExperimentLabel", {**_E, "label": "kept"}),
    Call("put_PutExperimentRetainLogs", {**_E, "body": {"experimentId": 1, "numDays": 5}}),
    Call("delete_DeleteTensorboardFiles", {"experimentId": "{new_experiment}"}),
    _of_ids("ActivateExperiments", "post", "{new_paused_experiment}"),
    _of_ids("PauseExperiments", "post", "{new_live_experiment}"),
    _of_ids("CancelExperiments", "post", "{new_live_experiment}"),
    _of_ids("KillExperiments", "post", "{new_live_experiment}"),
    _of_ids("ArchiveExperiments", "post", "{new_experiment}"),
    _of_ids("UnarchiveExperiments", "post", "{new_archived_experiment}"),
    _of_ids("DeleteExperiments", "delete", "{new_experiment}"),
    _of_ids("MoveExperiments", "post", "{new_experiment}", destinationProjectId="{project_id}"),
    _of_ids("PutExperimentsRetainLogs", "put", "{new_experiment}", numDays=5),
    Call("get_GetExperiment", _E),
    Call("get_GetExperiments"),
    Call("get_GetExperimentLabels"),
    Call("get_GetExperimentTrials", _E),
    Call("get_GetExperimentCheckpoints", {"id": "{experiment}"}),
    Call("get_GetExperimentValidationHistory", _E),
    Call("get_GetBestSearcherValidationMetric", _E),
    Call("get_GetModelDef", _E),
    Call("get_GetModelDefTree", _E),
    Call("post_GetModelDefFile", {**_E, "body": {"experimentId": 1, "path": "train.py"}}),
    Call("post_PreviewHPSearch", {"body": {"config": _PARSED, "seed": 1}}),
    Call("post_SearchExperiments", {"body": {"limit": 5}}),
    Call("post_SearchRuns", {"body": {"limit": 5}}),
    _of_runs("ArchiveRuns", "{trial}"),
    _of_runs("UnarchiveRuns", "{trial}"),
    _of_runs("DeleteRuns", "{new_trial}"),
    _of_runs("KillRuns", "{live_trial}"),
    _of_runs("PauseRuns", "{new_live_trial}"),
    _of_runs("ResumeRuns", "{new_live_trial}"),
    Call(
        "post_MoveRuns",
        {"body": {"runIds": ["{new_trial}"], "sourceProjectId": 1, "destinationProjectId": "{project_id}"}},
    ),
    Call("get_GetRunMetadata", {"runId": "{trial}"}),
    Call("post_PostRunMetadata", {"runId": "{trial}", "body": {"runId": 1, "metadata": {"seen": True}}}),
    Call("get_GetMetadataValues", {"projectId": 1, "key": "seen"}),
    Call("get_ExpMetricNames", {"ids": ["{experiment}"]}),
    Call("get_MetricBatches", _CHARTED),
    Call(
        "get_TrialsSample",
        _CHARTED,
        refused="a search of a single trial has no sample",
        because="it says so of this one",
    ),
    Call("get_TrialsSnapshot", {**_CHARTED, "batchesProcessed": 3}),
    Call("get_CompareTrials", {"trialIds": ["{trial}"], "metricNames": ["loss"]}),
)
