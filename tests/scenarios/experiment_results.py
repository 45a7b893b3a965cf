"""What becomes of an experiment that an action on many means, and of one that the action on it alone means:
docs/reference/experiments.md 6 and 6.1, one row per action and situation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

SITUATIONS: Final[dict[str, dict[str, Any]]] = {
    "active": {"state": "ACTIVE"},
    "paused": {"state": "PAUSED"},
    "stopping": {"state": "STOPPING_COMPLETED"},
    "completed": {"state": "COMPLETED"},
    "failed": {"state": "ERROR"},
    "archived": {"state": "COMPLETED", "archived": True},
    "not deleted": {"state": "DELETE_FAILED"},
}
"""Columns of experiments; beside them stands one that there is not."""

_NOT_FOUND: Final = "experiment '{id}' not found"
_OVER: Final = "experiment in terminal state"


@dataclass(frozen=True)
class Action:
    """``results`` are the errors by situation; "" is success. ``body`` is beside ids and project in the request."""

    verb: str
    results: dict[str, str]
    method: str = "POST"
    body: tuple[tuple[str, Any], ...] = ()

    def said(self, ids: Mapping[str, int]) -> dict[str, str]:
        """By situation, of the experiments with these ids."""
        return {
            name: error.format(id=ids[name], state=SITUATIONS.get(name, {}).get("state"))
            for name, error in {**self.results, "missing": _NOT_FOUND}.items()
        }


def _all(**other: str) -> dict[str, str]:
    """Success in every situation but these, which are written with underscores."""
    return {**dict.fromkeys(SITUATIONS, ""), **{name.replace("_", " "): error for name, error in other.items()}}


_LIVE: Final = ("active", "paused", "stopping")
_NOT_ARCHIVED: Final = "Experiment is not archived."
_INCOMPATIBLE: Final = "experiment in incompatible state STOPPING_COMPLETED"

ACTIONS: Final = (
    Action(
        "activate",
        _all(
            stopping=_INCOMPATIBLE,
            completed=_NOT_FOUND,
            failed=_NOT_FOUND,
            archived=_NOT_FOUND,
            not_deleted=_NOT_FOUND,
        ),
    ),
    Action(
        "pause",
        _all(stopping=_INCOMPATIBLE, completed=_OVER, failed=_OVER, archived=_NOT_FOUND, not_deleted=_OVER),
    ),
    Action("cancel", _all(stopping=_INCOMPATIBLE)),
    Action("kill", _all()),
    Action(
        "archive",
        _all(
            **dict.fromkeys((*_LIVE, "not_deleted"), "Experiment is not in terminal state."),
            archived="Experiment is already archived.",
        ),
    ),
    Action("unarchive", _all(**dict.fromkeys((*_LIVE, "completed", "failed", "not_deleted"), _NOT_ARCHIVED))),
    Action("delete", _all(**dict.fromkeys(_LIVE, "cannot delete experiment in STATE_{state} state")), method="DELETE"),
    Action("move", _all(archived="experiment ({id}) is archived and cannot be moved")),
    Action(
        "retain_logs",
        _all(**dict.fromkeys((*_LIVE, "not_deleted"), "experiment in non terminal state '{state}', try again later")),
        method="PUT",
        body=(("numDays", 3),),
    ),
)
