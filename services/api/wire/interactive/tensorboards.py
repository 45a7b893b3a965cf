"""REST shapes of TensorBoards (docs/reference/tasks-and-cli.md 2.2 and 2.7)."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType, field

from services.api.wire.base import Message, Pagination
from services.api.wire.experiments.actions import BulkExperimentFilters
from services.api.wire.experiments.experiments import LaunchWarning
from services.api.wire.interactive.common import InteractiveTask, LaunchRequest


class Tensorboard(InteractiveTask):
    """``experiment_ids`` and ``trial_ids`` are those that it was asked for."""

    service_address: str = ""
    experiment_ids: list[int] = []
    trial_ids: list[int] = []


class LaunchTensorboardRequest(LaunchRequest):
    """``filters`` stand in place of ``experiment_ids``."""

    experiment_ids: list[int] = []
    trial_ids: list[int] = []
    filters: BulkExperimentFilters | UnsetType = UNSET


class LaunchTensorboardResponse(Message, kw_only=True):
    tensorboard: Tensorboard
    config: dict[str, Any]
    warnings: list[LaunchWarning] = []


class GetTensorboardResponse(Message, kw_only=True):
    tensorboard: Tensorboard
    config: dict[str, Any]


class GetTensorboardsResponse(Message):
    tensorboards: list[Tensorboard] = []
    pagination: Pagination = field(default_factory=Pagination)


class TensorboardResponse(Message, kw_only=True):
    """The answer to a kill or to a new priority."""

    tensorboard: Tensorboard
