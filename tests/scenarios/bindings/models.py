"""The model registry."""

from __future__ import annotations

from typing import Final

from tests.scenarios.bindings.call import Call

_M: Final = {"modelName": "{model}"}
_V: Final = {**_M, "modelVersionNum": 1}

CALLS: Final = (
    Call("post_PostModel", {"body": {"name": "{nonce}"}}),
    Call("get_GetModel", _M),
    Call("get_GetModels"),
    Call("get_GetModelLabels"),
    Call("patch_PatchModel", {**_M, "body": {"notes": "seen"}}),
    Call("post_ArchiveModel", {"modelName": "{new_model}"}),
    Call("post_UnarchiveModel", {"modelName": "{archived_model}"}),
    Call(
        "post_MoveModel",
        {"modelName": "{new_model}", "body": {"modelName": "", "destinationWorkspaceId": "{workspace_id}"}},
    ),
    Call("delete_DeleteModel", {"modelName": "{new_model}"}),
    Call("post_PostModelVersion", {**_M, "body": {"modelName": "", "checkpointUuid": "{new_checkpoint}"}}),
    Call("get_GetModelVersion", _V),
    Call("get_GetModelVersions", _M),
    Call("patch_PatchModelVersion", {**_V, "body": {"notes": "seen"}}),
    Call("delete_DeleteModelVersion", {"modelName": "{new_model}", "modelVersionNum": 1}),
    Call("get_GetTrialMetricsByModelVersion", _V),
)
