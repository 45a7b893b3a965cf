from __future__ import annotations

import pytest

from libs.db.outbox import event_message
from libs.events.changes import (
    AllocationChanged,
    CheckpointChanged,
    ExperimentChanged,
    JobChanged,
    PoolChanged,
    PublicEvent,
    TrialChanged,
    WorkspaceChanged,
)
from services.scheduler.workqueue.notifications import Hint, hint_of
from services.scheduler.workqueue.work_queue import Key

CASES: list[tuple[PublicEvent, Hint]] = [
    (ExperimentChanged(experiment_id=3, what="created"), Hint((Key("experiment", 3),))),
    (ExperimentChanged(experiment_id=3, what="searcher"), Hint((Key("experiment", 3),))),
    (ExperimentChanged(experiment_id=3, what="progress"), Hint()),
    (ExperimentChanged(experiment_id=3, what="state", state="DELETING"), Hint((Key("deletion", 3),))),
    (ExperimentChanged(experiment_id=3, what="deleted", project_id=4), Hint((Key("project", 4),))),
    (TrialChanged(trial_id=9, experiment_id=3, what="state"), Hint((Key("experiment", 3),))),
    (TrialChanged(trial_id=9, experiment_id=3, what="metrics"), Hint()),
    (AllocationChanged(allocation_id="1.x.1", task_id="1.x", what="requested", pool="p"), Hint((), "p")),
    (
        AllocationChanged(allocation_id="1.x.1", task_id="1.x", what="ended", pool="p"),
        Hint((Key("allocation", "1.x.1"),), "p"),
    ),
    (AllocationChanged(allocation_id="1.x.1", task_id="1.x", what="ready", pool="p"), Hint()),
    (AllocationChanged(allocation_id="1.x.1", task_id="1.x", what="wish", pool="p"), Hint((Key("leaving", "1.x.1"),))),
    (JobChanged(job_id="j", what="changed", pool="p"), Hint((), "p")),
    (PoolChanged(pool="p", what="queue"), Hint((), "p")),
    (PoolChanged(pool="p", what="capacity"), Hint((Key("nodes", "disabled"),), "p")),
    (WorkspaceChanged(workspace_id=2, what="changed"), Hint((Key("workspace", 2),), "")),
    (WorkspaceChanged(workspace_id=2, what="deleted"), Hint((Key("workspace", 2), Key("namespaces", 2)))),
    (WorkspaceChanged(workspace_id=2, what="project", project_id=5), Hint((Key("project", 5), Key("workspace", 2)))),
    (CheckpointChanged(uuid="c", what="reported"), Hint()),
]


@pytest.mark.parametrize(("event", "hint"), CASES, ids=lambda value: str(value)[:60])
def test_hint(event: PublicEvent, hint: Hint) -> None:
    row = event_message(event)
    assert hint_of(row["subject"], row["payload"]) == hint


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"experiment_id": "x"}'])
def test_what_cannot_be_read_hints_at_nothing(data: bytes) -> None:
    assert hint_of("resolute.v1.experiment.3.created", data) == Hint()
    assert hint_of("resolute.v1.something", data) == Hint()
