"""Trials, what training code reports of them, its allocations, checkpoints."""

from __future__ import annotations

from typing import Any, Final

from tests.scenarios.bindings.call import Call

_T: Final = {"trialId": "{trial}"}
_RUN: Final = {"trialId": "{running_trial}"}
_A: Final = {"allocationId": "{allocation}"}
_C: Final = {"checkpointUuid": "{checkpoint}"}
_LABELS: Final = {"trialId": "{running_trial}", "name": "gpu_util", "agentId": "a", "gpuUuid": "g"}
_ACCELERATORS: Final = {
    "allocationId": "{allocation}",
    "containerId": "c",
    "nodeName": "a",
    "acceleratorType": "T4",
    "acceleratorUuids": ["g"],
}


def _reported(step: int) -> dict[str, Any]:
    return {
        "trialId": "{running_trial}",
        "trialRunId": 0,
        "stepsCompleted": step,
        "metrics": {"avgMetrics": {"loss": 0.5}},
    }


CALLS: Final = (
    Call("post_CreateTrial", {"body": {"experimentId": "{unmanaged_experiment}", "unmanaged": True}}),
    Call(
        "put_PutTrial",
        {
            "body": {
                "externalTrialId": "{nonce}",
                "createTrialRequest": {"experimentId": "{unmanaged_experiment}", "unmanaged": True},
            }
        },
    ),
    Call("get_GetTrialByExternalID", {"externalExperimentId": "{external_id}", "externalTrialId": "outside"}),
    Call("patch_PatchTrial", {"trialId": "{unmanaged_trial}", "body": {"trialId": 1, "state": "STATE_COMPLETED"}}),
    Call("post_StartTrial", {"trialId": "{unmanaged_trial}", "body": {"trialId": 1, "resume": True}}),
    Call("post_KillTrial", {"id": "{live_trial}"}),
    Call("get_GetTrial", _T),
    Call("get_GetTrialCheckpoints", {"id": "{trial}"}),
    Call("get_GetTrialWorkloads", _T),
    Call("get_GetTrialRemainingLogRetentionDays", {"id": "{trial}"}),
    Call("put_PutTrialRetainLogs", {**_T, "body": {"trialId": 1, "numDays": 5}}),
    Call("get_TrialLogs", _T),
    Call("get_TrialLogsFields", _T),
    Call("get_GetMetrics", {"trialIds": ["{trial}"], "group": "training"}),
    Call("get_GetTrainingMetrics", {"trialIds": ["{trial}"]}),
    Call("get_GetValidationMetrics", {"trialIds": ["{trial}"]}),
    Call("post_RunPrepareForReporting", {"body": {"runId": "{running_trial}", "checkpointStorage": None}}),
    Call(
        "post_ReportTrialMetrics",
        {"metrics_trialId": "{running_trial}", "body": {"metrics": _reported(1), "group": "training"}},
    ),
    Call("post_ReportTrialTrainingMetrics", {"trainingMetrics_trialId": "{running_trial}", "body": _reported(2)}),
    Call("post_ReportTrialValidationMetrics", {"validationMetrics_trialId": "{running_trial}", "body": _reported(2)}),
    Call("post_ReportTrialProgress", {**_RUN, "body": {"trialId": 1, "progress": 0.5, "isRaw": False}}),
    Call("post_ReportTrialSearcherEarlyExit", {**_RUN, "body": {"reason": "EXITED_REASON_INVALID_HP"}}),
    Call("post_PostTrialRunnerMetadata", {**_RUN, "body": {"state": "training"}}),
    Call(
        "post_PostTrialProfilerMetricsBatch",
        {
            "body": {
                "batches": [
                    {"values": [0.5], "batches": [1], "timestamps": ["2030-01-01T00:00:00Z"], "labels": _LABELS}
                ]
            }
        },
    ),
    Call("get_GetTrialProfilerAvailableSeries", {"trialId": "{trial}"}),
    Call("get_GetTrialProfilerMetrics", {"labels_trialId": "{trial}", "labels_name": "gpu_util"}),
    Call(
        "post_ReportTrialSourceInfo",
        {
            "body": {
                "trialSourceInfo": {
                    "trialId": "{running_trial}",
                    "checkpointUuid": "{checkpoint}",
                    "trialSourceInfoType": "TRIAL_SOURCE_INFO_TYPE_INFERENCE",
                }
            }
        },
    ),
    Call("get_GetTrialMetricsByCheckpoint", _C),
    Call(
        "post_ReportCheckpoint",
        {
            "body": {
                "taskId": "{running_task}",
                "allocationId": "{allocation}",
                "uuid": "{uuid}",
                "reportTime": "2030-01-01T00:00:00Z",
                "resources": {"weights.pt": "5"},
                "metadata": {"steps_completed": 1},
                "state": "STATE_COMPLETED",
                "training": {},
            }
        },
    ),
    Call("get_GetCheckpoint", _C),
    Call(
        "post_PostCheckpointMetadata",
        {
            "checkpoint_uuid": "{checkpoint}",
            "body": {
                "checkpoint": {
                    "uuid": "{checkpoint}",
                    "metadata": {"steps_completed": 3, "seen": True},
                    "resources": {},
                    "state": "STATE_COMPLETED",
                    "training": {},
                }
            },
        },
    ),
    Call("patch_PatchCheckpoints", {"body": {"checkpoints": [{"uuid": "{new_checkpoint}"}]}}),
    Call(
        "post_CheckpointsRemoveFiles", {"body": {"checkpointUuids": ["{new_checkpoint}"], "checkpointGlobs": ["*.pt"]}}
    ),
    Call("delete_DeleteCheckpoints", {"body": {"checkpointUuids": ["{new_checkpoint}"]}}),
    Call("get_GetAllocation", _A),
    Call("post_AllocationReady", {**_A, "body": {"allocationId": ""}}),
    Call("post_AllocationWaiting", {"allocationId": "{new_allocation}", "body": {"allocationId": ""}}),
    Call(
        "post_AllocationAllGather",
        {**_A, "body": {"allocationId": "", "requestUuid": "{uuid}", "numPeers": 1, "data": {"rank": 0}}},
    ),
    Call(
        "post_NotifyContainerRunning",
        {
            **_A,
            "body": {
                "allocationId": "",
                "requestUuid": "{uuid}",
                "numPeers": 1,
                "rank": 0,
                "nodeName": "a",
                "data": {"rank": 0},
            },
        },
    ),
    Call("get_AllocationPreemptionSignal", {**_A, "timeoutSeconds": 1}),
    Call("post_AllocationPendingPreemptionSignal", {"allocationId": "{new_allocation}", "body": {"allocationId": ""}}),
    Call("post_AckAllocationPreemptionSignal", {**_A, "body": {"allocationId": ""}}),
    Call(
        "get_AllocationRendezvousInfo",
        {**_A, "resourcesId": "pod-0"},
        refused="resources 'pod-0' not found",
        because="pods rendezvous with an all-gather instead",
    ),
    Call(
        "post_MarkAllocationResourcesDaemon",
        {
            "allocationId": "{daemon_allocation}",
            "resourcesId": "{daemon_allocation}",
            "body": {"allocationId": "", "resourcesId": ""},
        },
    ),
    Call("post_PostAllocationProxyAddress", {**_A, "body": {"proxyAddress": "10.0.0.1"}}),
    Call(
        "post_PostAllocationAcceleratorData",
        {**_A, "body": {"allocationId": "{allocation}", "acceleratorData": _ACCELERATORS}},
    ),
)
