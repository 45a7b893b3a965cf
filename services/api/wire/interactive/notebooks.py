"""REST shapes of notebooks (docs/reference/tasks-and-cli.md 2.2 and 2.7)."""

from __future__ import annotations

from typing import Any

from msgspec import field

from services.api.wire.base import Message, Pagination
from services.api.wire.experiments.experiments import LaunchWarning
from services.api.wire.interactive.common import InteractiveTask, LaunchRequest


class Notebook(InteractiveTask):
    """``service_address`` is a path with a token of the caller, unless the caller may not open it."""

    service_address: str = ""


class LaunchNotebookRequest(LaunchRequest):
    """With ``preview``, nothing is launched: the answer says with which configuration it would be."""

    preview: bool = False


class IdleReport(Message):
    """What the notebook says about itself."""

    idle: bool = False


class LaunchNotebookResponse(Message, kw_only=True):
    notebook: Notebook
    config: dict[str, Any]
    warnings: list[LaunchWarning] = []


class GetNotebookResponse(Message, kw_only=True):
    notebook: Notebook
    config: dict[str, Any]


class GetNotebooksResponse(Message):
    notebooks: list[Notebook] = []
    pagination: Pagination = field(default_factory=Pagination)


class NotebookResponse(Message, kw_only=True):
    """The answer to a kill or to a new priority."""

    notebook: Notebook
