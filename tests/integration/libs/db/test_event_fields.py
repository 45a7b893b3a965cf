"""Public events show the whole object, whatever their announcers knew of it."""

from __future__ import annotations

from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import connect_database
from libs.db.event_fields import completed
from libs.events.changes import (
    ExperimentChanged,
    JobChanged,
    PublicEvent,
    TaskChanged,
    TrialChanged,
    UserChanged,
    WorkspaceChanged,
)
from tests.builders import OWNER, insert_experiment, insert_job, insert_project, insert_task, insert_trial


async def test_what_an_event_lacks_comes_from_the_rows_of_its_object(database_url: str) -> None:
    async with connect_database(DatabaseSettings(url=database_url)) as db, db.transaction() as connection:
        project = await insert_project(connection, workspace_id=1, name="shown")
        columns = {"config": {"name": "mnist"}, "state": "PAUSED", "progress": 0.5, "job_id": "job-of-events"}
        experiment = await insert_experiment(connection, project_id=project, **columns)
        await insert_job(connection, job_id="job-of-events", pool="gpus", priority=7, owner_id=OWNER)
        trial = await insert_trial(connection, experiment_id=experiment, state="PAUSED", restarts=3)
        _, newest = [await insert_task(connection, trial_id=trial, position=position) for position in (0, 1)]
        lacking: list[PublicEvent] = [
            TaskChanged(task_id="t", task_type="COMMAND", what="ended"),
            ExperimentChanged(experiment_id=experiment, what="state", state="CANCELED"),
            TrialChanged(trial_id=trial, experiment_id=experiment, what="deleted"),
            JobChanged(job_id="job-of-events", what="ended"),
            WorkspaceChanged(workspace_id=1, what="project", project_id=project),
            WorkspaceChanged(workspace_id=1, what="changed"),
            UserChanged(user_id=OWNER, what="sessions"),
            ExperimentChanged(experiment_id=2**40, what="deleted", state="COMPLETED"),
        ]
        task, ended, of_trial, job, of_project, workspace, user, gone = await completed(connection, lacking)
    assert (task, gone) == (lacking[0], lacking[-1])
    assert ended == ExperimentChanged(
        experiment_id=experiment,
        what="state",
        state="CANCELED",
        name="mnist",
        job_id="job-of-events",
        owner="admin",
        project_id=project,
        progress=0.5,
    ), "what the announcer said stays"
    assert isinstance(of_trial, TrialChanged)
    assert (of_trial.state, of_trial.restarts, of_trial.task_id) == ("PAUSED", 3, newest)
    assert job == JobChanged(job_id="job-of-events", what="ended", pool="gpus", priority=7, weight=1.0)
    assert [each.name for each in (of_project, workspace) if isinstance(each, WorkspaceChanged)] == [
        "shown",
        "Uncategorized",
    ]
    assert isinstance(user, UserChanged)
    assert user.username == "admin"
