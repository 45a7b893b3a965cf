"""What becomes of a run that an action on many means: docs/reference/experiments.md 13.6, one row per situation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

VERBS: Final = ("move", "kill", "delete", "archive", "unarchive", "pause", "resume")
ARCHIVED: Final = "Run is archived."
MULTI: Final = "Cannot pause/unpause run '{run}' (part of multi-trial)."
PART: Final = "Run is part of archived Search (id: '{experiment}')."
HIDDEN: Final = {"archived": True}
DONE: Final = {"state": "COMPLETED"}


@dataclass(frozen=True)
class Situation:
    """``error`` is what the result says, with the ids in braces; "" is success.

    search                   of the experiment; a random one has several runs
    run, experiment, folder  columns that make the situation; ``folder`` is the project
    body                     beside ids and projects in the request
    """

    verb: str
    name: str
    error: str
    search: str = "single"
    run: Mapping[str, Any] = field(default_factory=dict)
    experiment: Mapping[str, Any] = field(default_factory=dict)
    folder: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.verb}: {self.name}"


SITUATIONS: Final = [
    Situation("move", "a run", ""),
    Situation("move", "one of many", "", "random"),
    Situation("move", "archived", ARCHIVED, run=HIDDEN),
    Situation("move", "of an archived experiment", ARCHIVED, experiment=HIDDEN),
    Situation(
        "move",
        "one of many, which are to be left",
        "Skipping run '{run}' (part of multi-trial).",
        "random",
        body={"skipMultitrial": True},
    ),
    Situation("move", "the only one, while others are to be left", "", body={"skipMultitrial": True}),
    Situation(
        "move",
        "of somebody else",
        "Failed to move associated experiment: only its owner or an administrator can move an experiment",
        experiment={"owner_id": 1},
    ),
    Situation("kill", "a run", ""),
    Situation("kill", "one that has ended", "", run=DONE),
    Situation("kill", "one of many", "", "random"),
    Situation("delete", "one that has ended", "", run=DONE),
    Situation("delete", "one of many", "", "random", run={"state": "ERROR"}),
    Situation("delete", "one that has not ended", "Run is not in a terminal state."),
    Situation(
        "delete",
        "of somebody else",
        "only its owner or an administrator can delete a run",
        run=DONE,
        experiment={"owner_id": 1},
    ),
    Situation("archive", "one that has ended", "", run=DONE),
    Situation("archive", "one that has not ended", "Run is not in terminal state."),
    Situation("archive", "one that is archived", "", run={**DONE, **HIDDEN}),
    Situation("archive", "of an archived experiment", PART, run=DONE, experiment=HIDDEN),
    Situation("unarchive", "one that is archived", "", run={**DONE, **HIDDEN}),
    Situation("unarchive", "one that is not", "", run=DONE),
    Situation("unarchive", "of an archived experiment", PART, run={**DONE, **HIDDEN}, experiment=HIDDEN),
    *(
        row
        for verb, done in (("pause", "pause"), ("resume", "resume"))
        for row in (
            Situation(verb, "the only one", "", experiment={"state": "ACTIVE" if verb == "pause" else "PAUSED"}),
            Situation(verb, "one of many", MULTI, "random"),
            Situation(verb, "archived", ARCHIVED, run=HIDDEN),
            Situation(verb, "of an archived experiment", ARCHIVED, experiment=HIDDEN),
            Situation(verb, "in an archived project", ARCHIVED, folder=HIDDEN),
            Situation(verb, "that has ended", f"Failed to {done} associated experiment: ", run=DONE, experiment=DONE),
        )
    ),
]
