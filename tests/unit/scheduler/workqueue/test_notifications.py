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
    TaskChanged,
    TrialChanged,
    WorkspaceChanged,
)
from services.scheduler.workqueue.notifications import Notification, notification_of
from services.scheduler.workqueue.work_queue import Request

CASES: list[tuple[PublicEvent, Notification]] = [
    (ExperimentChanged(experiment_id=3, what="created"), Notification((Request("experiment", 3),))),
    (ExperimentChanged(experiment_id=3, what="searcher"), Notification((Request("experiment", 3),))),
    (ExperimentChanged(experiment_id=3, what="progress"), Notification()),
    (ExperimentChanged(experiment_id=3, what="state", state="DELETING"), Notification((Request("deletion", 3),))),
    (ExperimentChanged(experiment_id=3, what="deleted", project_id=4), Notification((Request("project", 4),))),
    (TrialChanged(trial_id=9, experiment_id=3, what="state"), Notification((Request("experiment", 3),))),
    (TrialChanged(trial_id=9, experiment_id=3, what="metrics"), Notification()),
    (
        AllocationChanged(allocation_id="1.x.1", task_id="1.x", what="requested", pool="p"),
        Notification((), "p", "1.x.1"),
    ),
    (
        AllocationChanged(allocation_id="1.x.1", task_id="1.x", what="ended", pool="p"),
        Notification((Request("allocation", "1.x.1"),), "p"),
    ),
    (AllocationChanged(allocation_id="1.x.1", task_id="1.x", what="ready", pool="p"), Notification()),
    (
        AllocationChanged(allocation_id="1.x.1", task_id="1.x", what="preemption_requested", pool="p"),
        Notification((Request("termination", "1.x.1"),)),
    ),
    (
        AllocationChanged(allocation_id="1.x.1", task_id="1.x", what="kill_requested", pool="p"),
        Notification((Request("termination", "1.x.1"),)),
    ),
    (JobChanged(job_id="j", what="changed", pool="p"), Notification((), "p")),
    (PoolChanged(pool="p", what="queue"), Notification((), "p")),
    (PoolChanged(pool="p", what="capacity"), Notification((Request("nodes", "disabled"),), "p")),
    (WorkspaceChanged(workspace_id=2, what="changed"), Notification((Request("workspace", 2),), "")),
    (
        WorkspaceChanged(workspace_id=2, what="deleted"),
        Notification((Request("workspace", 2), Request("namespaces", 2))),
    ),
    (
        WorkspaceChanged(workspace_id=2, what="project", project_id=5),
        Notification((Request("project", 5), Request("workspace", 2))),
    ),
    (CheckpointChanged(uuid="c", what="reported"), Notification()),
    (
        TaskChanged(task_id="t", task_type="GENERIC", what="state", state="STOPPING_PAUSED"),
        Notification((Request("generic task", "t"),)),
    ),
    (TaskChanged(task_id="t", task_type="NOTEBOOK", what="ended"), Notification()),
]


@pytest.mark.parametrize(("event", "notification"), CASES, ids=lambda value: str(value)[:60])
def test_notification(event: PublicEvent, notification: Notification) -> None:
    row = event_message(event)
    assert notification_of(row["subject"], row["payload"]) == notification


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"experiment_id": "x"}'])
def test_what_cannot_be_read_notifies_of_nothing(data: bytes) -> None:
    assert notification_of("resolute.v1.experiment.3.created", data) == Notification()
    assert notification_of("resolute.v1.something", data) == Notification()
