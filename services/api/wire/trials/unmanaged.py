"""REST shapes of trials that run elsewhere (docs/reference/experiments.md 12)."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from services.api.wire.base import Message
from services.api.wire.trials.trials import Trial, TrialState


class CreateTrialRequest(Message):
    """``unmanaged`` has to be true: other trials come from searches."""

    experiment_id: int = 0
    hparams: dict[str, Any] | None = None
    unmanaged: bool = False


class PutTrialRequest(Message):
    create_trial_request: CreateTrialRequest | None = None
    external_trial_id: str = ""


class TrialResponse(Message, kw_only=True):
    trial: Trial


class StartTrialRequest(Message):
    """``resume`` allows a trial that was started before."""

    resume: bool = False


class StartTrialResponse(Message, kw_only=True):
    trial_run_id: int
    latest_checkpoint: str | UnsetType = UNSET
    steps_completed: int = 0


class PatchTrialRequest(Message):
    """Without a state it says no more than that the trial lives."""

    state: TrialState | UnsetType = UNSET
