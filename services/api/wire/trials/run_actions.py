"""REST shapes of actions on many runs (docs/reference/experiments.md 13.6)."""

from __future__ import annotations

from services.api.wire.base import Message


class RunsRequest(Message):
    """Either ids, or a filter as in searches; ``project_id`` 0 is every project."""

    run_ids: list[int] = []
    project_id: int = 0
    filter: str = ""


class MoveRunsRequest(Message):
    """As above; with ``skip_multitrial`` the runs of experiments with several stay where they are."""

    run_ids: list[int] = []
    source_project_id: int = 0
    destination_project_id: int = 0
    filter: str = ""
    skip_multitrial: bool = False


class RunActionResult(Message, kw_only=True):
    """``error`` is empty on success."""

    id: int
    error: str = ""


class RunsResponse(Message, kw_only=True):
    results: list[RunActionResult]
