"""REST shapes of commands (docs/reference/tasks-and-cli.md 2.2 and 2.7)."""

from __future__ import annotations

from typing import Any

from msgspec import field

from services.api.wire.base import Message, Pagination
from services.api.wire.experiments.experiments import LaunchWarning
from services.api.wire.interactive.common import InteractiveTask, LaunchRequest


class Command(InteractiveTask):
    """Nothing beyond what all have."""


class LaunchCommandRequest(LaunchRequest):
    """Nothing beyond what all have."""


class LaunchCommandResponse(Message, kw_only=True):
    command: Command
    config: dict[str, Any]
    warnings: list[LaunchWarning] = []


class GetCommandResponse(Message, kw_only=True):
    command: Command
    config: dict[str, Any]


class GetCommandsResponse(Message):
    commands: list[Command] = []
    pagination: Pagination = field(default_factory=Pagination)


class CommandResponse(Message, kw_only=True):
    """The answer to a kill or to a new priority."""

    command: Command
