"""What is said of each experiment or run that an action on many means, by what the caller may do with it
(docs/reference/experiments.md 6.1 and 13.6): rows as data.

Under ``rbac`` the caller may change what is in one workspace, look at a second one, and knows nothing of a third;
under ``basic`` one is the caller's own, and one somebody else's in a workspace of the caller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

MINE, SHOWN, HIDDEN, MISSING = "mine", "shown", "hidden", "missing"
_DENIED: Final = "access denied; required permissions: PERMISSION_TYPE_{}"


@dataclass(frozen=True)
class OfMany:
    """``done`` is what is said of one that has ended and that the caller may change; "" is success.

    for_owners  what is said under ``basic`` of somebody else's; None where that is as good as one's own
    """

    verb: str
    permission: str
    done: str = ""
    runs: bool = False
    method: str = "POST"
    body: tuple[tuple[str, Any], ...] = ()
    for_owners: str | None = None

    def __str__(self) -> str:
        return f"{self.verb} {'runs' if self.runs else 'experiments'}"

    @property
    def path(self) -> str:
        return f"/api/v1/runs/{self.verb}" if self.runs else f"/api/v1/projects/-1/experiments/{self.verb}"

    @property
    def ids(self) -> str:
        return "runIds" if self.runs else "experimentIds"

    def said(self, where: str, ident: int) -> str:
        if where == MINE:
            return self.done
        if where == SHOWN:
            return _DENIED.format(self.permission)
        return f"Run with id '{ident}' not found" if self.runs else f"experiment '{ident}' not found"


_OWNERS: Final = "only its owner or an administrator can {}"
_ENDED: Final = "experiment in terminal state"

ACTIONS: Final = (
    OfMany("kill", "UPDATE_EXPERIMENT"),
    OfMany("cancel", "UPDATE_EXPERIMENT"),
    OfMany("pause", "UPDATE_EXPERIMENT", _ENDED),
    OfMany("archive", "UPDATE_EXPERIMENT_METADATA"),
    OfMany("unarchive", "UPDATE_EXPERIMENT_METADATA", "Experiment is not archived."),
    OfMany("retain_logs", "UPDATE_EXPERIMENT", method="PUT", body=(("numDays", 3),)),
    OfMany("move", "DELETE_EXPERIMENT", for_owners=_OWNERS.format("move an experiment")),
    OfMany("delete", "DELETE_EXPERIMENT", method="DELETE", for_owners=_OWNERS.format("delete an experiment")),
    OfMany("kill", "UPDATE_EXPERIMENT", runs=True),
    OfMany("pause", "UPDATE_EXPERIMENT", f"Failed to pause associated experiment: {_ENDED}", runs=True),
    OfMany("archive", "UPDATE_EXPERIMENT_METADATA", runs=True),
    OfMany("unarchive", "UPDATE_EXPERIMENT_METADATA", runs=True),
    OfMany("delete", "DELETE_EXPERIMENT", runs=True, for_owners=_OWNERS.format("delete a run")),
)
