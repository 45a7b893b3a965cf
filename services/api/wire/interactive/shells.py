"""REST shapes of shells (docs/reference/tasks-and-cli.md 2.2 and 2.7)."""

from __future__ import annotations

from typing import Any

from msgspec import field

from services.api.wire.base import Message, Pagination
from services.api.wire.experiments.experiments import LaunchWarning
from services.api.wire.interactive.common import InteractiveTask, LaunchRequest


class Shell(InteractiveTask):
    """The keys are those that its users log in with, ``agent_user_group`` is whom they log in as."""

    private_key: str = ""
    public_key: str = ""
    addresses: list[dict[str, Any]] = []
    agent_user_group: dict[str, Any] | None = None


class LaunchShellRequest(LaunchRequest):
    """Nothing beyond what all have."""


class LaunchShellResponse(Message, kw_only=True):
    shell: Shell
    config: dict[str, Any]
    warnings: list[LaunchWarning] = []


class GetShellResponse(Message, kw_only=True):
    shell: Shell
    config: dict[str, Any]


class GetShellsResponse(Message):
    shells: list[Shell] = []
    pagination: Pagination = field(default_factory=Pagination)


class ShellResponse(Message, kw_only=True):
    """The answer to a kill or to a new priority."""

    shell: Shell
