"""REST shapes of runs as training code sees them: their storage, and metadata of their own."""

from __future__ import annotations

from typing import Any

from services.api.wire.base import Message, WireEnum


class StartRunRequest(Message):
    run_id: int = 0
    checkpoint_storage: dict[str, Any] | None = None


class StartRunResponse(Message):
    storage_id: int | None = None


class RunMetadataRequest(Message):
    metadata: dict[str, Any] | None = None


class RunMetadataResponse(Message):
    metadata: dict[str, Any] | None = None


class ProgressRequest(Message):
    """A fraction of 0 to 1; ``is_raw`` has no meaning any more."""

    progress: float = 0.0
    is_raw: bool = False


class RunnerMetadata(Message):
    state: str = ""


class RunnerMetadataRequest(Message):
    """The harness sends the metadata as the whole body; docs/reference/experiments.md 13.1 has them wrapped as well."""

    state: str = ""
    metadata: RunnerMetadata | None = None


class ExitedReason(WireEnum):
    UNSPECIFIED = "EXITED_REASON_UNSPECIFIED", 0
    INVALID_HP = "EXITED_REASON_INVALID_HP", 1
    INIT_INVALID_HP = "EXITED_REASON_INIT_INVALID_HP", 3


class EarlyExitRequest(Message):
    reason: ExitedReason = ExitedReason.UNSPECIFIED


class TrialSourceInfoType(WireEnum):
    UNSPECIFIED = "TRIAL_SOURCE_INFO_TYPE_UNSPECIFIED", 0
    INFERENCE = "TRIAL_SOURCE_INFO_TYPE_INFERENCE", 1
    FINE_TUNING = "TRIAL_SOURCE_INFO_TYPE_FINE_TUNING", 2


class TrialSourceInfo(Message):
    trial_id: int = 0
    checkpoint_uuid: str = ""
    trial_source_info_type: TrialSourceInfoType = TrialSourceInfoType.UNSPECIFIED
    model_id: int | None = None
    model_version: int | None = None


class TrialSourceInfoRequest(Message):
    trial_source_info: TrialSourceInfo | None = None


class TrialSourceInfoResponse(Message, kw_only=True):
    trial_id: int
    checkpoint_uuid: str
