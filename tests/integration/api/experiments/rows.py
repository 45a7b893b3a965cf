"""Rows that a scheduler and training code would have written: one line per object in a test."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from sqlalchemy import delete, insert, select, text, update

from libs.db.engine import Database
from libs.db.tables.checkpoints import checkpoint_gc_requests, storage_backends
from libs.db.tables.cluster import outbox
from libs.db.tables.experiments import experiments
from libs.db.tables.tasks import allocations, jobs, tasks
from libs.db.tables.trials import trial_tasks, trials
from libs.db.tables.workspaces import projects
from tests.builders import (
    insert_allocation,
    insert_checkpoint,
    insert_job,
    insert_metrics,
    insert_notebook,
    insert_project,
    insert_task,
    insert_trial,
    insert_workspace,
)

START = datetime(2030, 1, 1, tzinfo=UTC)


class Rows:
    def __init__(self, db: Database) -> None:
        self._db = db

    async def experiment(self, experiment_id: int) -> Any:
        async with self._db.read() as connection:
            found = await connection.execute(select(experiments).where(experiments.c.id == experiment_id))
            return found.one()

    async def set_experiment(self, experiment_id: int, **values: Any) -> None:
        async with self._db.transaction() as connection:
            await connection.execute(update(experiments).where(experiments.c.id == experiment_id).values(**values))

    async def trial(self, experiment_id: int, **values: Any) -> int:
        """A trial with its first task."""
        experiment = await self.experiment(experiment_id)
        row: dict[str, Any] = {
            "experiment_id": experiment_id,
            "project_id": experiment.project_id,
            "request_id": str(uuid4()),
            "hparams": {"lr": 0.5},
            "start_time": START,
            **values,
        }
        async with self._db.transaction() as connection:
            trial_id = await insert_trial(connection, **row)
            await self._task(connection, trial_id, f"{experiment_id}.{row['request_id']}", experiment, 0)
        return trial_id

    async def forget_trials(self, experiment_id: int) -> None:
        async with self._db.transaction() as connection:
            await connection.execute(delete(trials).where(trials.c.experiment_id == experiment_id))
            await connection.execute(delete(tasks).where(tasks.c.experiment_id == experiment_id))

    async def set_trial(self, trial_id: int, **values: Any) -> None:
        async with self._db.transaction() as connection:
            await connection.execute(update(trials).where(trials.c.id == trial_id).values(**values))

    async def next_task(self, trial_id: int) -> None:
        """The task of a continued trial."""
        async with self._db.transaction() as connection:
            trial = (await connection.execute(select(trials).where(trials.c.id == trial_id))).one()
            experiment = await self.experiment(trial.experiment_id)
            task_id = f"{trial.experiment_id}.{trial.request_id}-1"
            await self._task(connection, trial_id, task_id, experiment, 1)

    async def _task(self, connection: Any, trial_id: int, task_id: str, experiment: Any, position: int) -> None:
        of_trial = {"trial_id": trial_id, "position": position}
        await insert_task(connection, task_id=task_id, job_id=experiment.job_id, start_time=START, **of_trial)

    async def gc_task(self, experiment_id: int) -> str:
        """A task that deletes files of an experiment; returns its job, which is its own."""
        ident = f"{experiment_id}.{uuid4()}"
        async with self._db.transaction() as connection:
            job_id = await insert_job(
                connection, job_id=f"checkpoint_gc-{ident}", job_type="CHECKPOINT_GC", submitted_at=START
            )
            of_experiment = {"job_id": job_id, "experiment_id": experiment_id, "start_time": START}
            await insert_task(connection, task_id=ident, task_type="CHECKPOINT_GC", **of_experiment)
        return job_id

    async def task_of(self, job_id: str) -> Any:
        async with self._db.read() as connection:
            return (await connection.execute(select(tasks).where(tasks.c.job_id == job_id))).one()

    async def many_trials(self, experiment_id: int, count: int) -> None:
        """Active trials, each with a task."""
        experiment = await self.experiment(experiment_id)
        numbers = f"FROM generate_series(1, {count}) n"
        named = {"e": experiment_id, "p": experiment.project_id, "j": experiment.job_id}
        statements = (
            "INSERT INTO trials (experiment_id, project_id, request_id, state, start_time)"
            f" SELECT CAST(:e AS bigint), CAST(:p AS bigint), 'r' || n, 'ACTIVE', now() {numbers}",
            "INSERT INTO tasks (task_id, task_type, job_id, experiment_id, owner_id, start_time)"
            f" SELECT CAST(:e AS bigint) || '.r' || n, 'TRIAL', :j, CAST(:e AS bigint), 1, now() {numbers}",
            "INSERT INTO trial_tasks (trial_id, position, task_id)"
            " SELECT id, 0, experiment_id || '.' || request_id FROM trials WHERE experiment_id = :e",
        )
        async with self._db.transaction() as connection:
            for statement in statements:
                await connection.execute(text(statement), {k: v for k, v in named.items() if f":{k}" in statement})

    async def allocation(self, trial_id: int, state: str, *, run: int = 1, **values: Any) -> None:
        """An allocation of the newest task of a trial."""
        async with self._db.transaction() as connection:
            task = await connection.execute(
                select(tasks.c.task_id, tasks.c.job_id)
                .join(trial_tasks, trial_tasks.c.task_id == tasks.c.task_id)
                .where(trial_tasks.c.trial_id == trial_id)
                .order_by(trial_tasks.c.position.desc())
                .limit(1)
            )
            task_id, job_id = task.one()
            row = {"job_id": job_id, "name": f"Trial {trial_id}", "state": state, "requested_at": START, **values}
            await insert_allocation(connection, task_id=task_id, run=run, **row)

    async def end_allocations(self, trial_id: int) -> None:
        async with self._db.transaction() as connection:
            of_trial = select(trial_tasks.c.task_id).where(trial_tasks.c.trial_id == trial_id)
            await connection.execute(
                update(allocations)
                .where(allocations.c.task_id.in_(of_trial))
                .values(state="TERMINATED", released_at=START, end_time=START + timedelta(seconds=30))
            )

    async def metric(self, trial_id: int, step: int, group: str, values: Mapping[str, Any], **more: Any) -> int:
        row = {"end_time": START + timedelta(seconds=step), **more}
        async with self._db.transaction() as connection:
            return await insert_metrics(connection, trial_id=trial_id, step=step, group=group, values=values, **row)

    async def checkpoint(self, experiment_id: int, trial_id: int, step: int, **values: Any) -> str:
        row: dict[str, Any] = {
            "task_id": f"{experiment_id}.task",
            "trial_id": trial_id,
            "experiment_id": experiment_id,
            "report_time": START + timedelta(seconds=step),
            "resources": {"weights.pt": 2**40},
            "metadata": {"steps_completed": step, "framework": "torch"},
            "steps_completed": step,
            **values,
        }
        async with self._db.transaction() as connection:
            return await insert_checkpoint(connection, **row)

    async def storage(self, config: Mapping[str, Any]) -> int:
        async with self._db.transaction() as connection:
            added = await connection.execute(
                insert(storage_backends)
                .values(config=dict(config), config_hash=uuid4().bytes)
                .returning(storage_backends.c.id)
            )
            return int(added.scalar_one())

    async def project(self, name: str, **workspace: Any) -> int:
        """A project in a workspace of the same name, both unarchived unless told otherwise."""
        async with self._db.transaction() as connection:
            workspace_id = await insert_workspace(connection, name=name, **workspace)
            return await insert_project(connection, workspace_id=workspace_id, name=name)

    async def set_project(self, project_id: int, **values: Any) -> None:
        async with self._db.transaction() as connection:
            await connection.execute(update(projects).where(projects.c.id == project_id).values(**values))

    async def trials_of(self, experiment_id: int) -> list[Any]:
        async with self._db.read() as connection:
            query = select(trials).where(trials.c.experiment_id == experiment_id).order_by(trials.c.id)
            return list((await connection.execute(query)).all())

    async def job(self, job_id: str) -> Any:
        async with self._db.read() as connection:
            return (await connection.execute(select(jobs).where(jobs.c.job_id == job_id))).one()

    async def other_job(self, pool: str, *, priority: int | None, submitted_at: datetime) -> None:
        """A notebook that waits in a pool."""
        job = {"pool": pool, "priority": priority, "submitted_at": submitted_at}
        async with self._db.transaction() as connection:
            await insert_notebook(connection, job=job)

    async def gc_requests(self, experiment_id: int) -> list[Any]:
        async with self._db.read() as connection:
            query = select(checkpoint_gc_requests).where(checkpoint_gc_requests.c.experiment_id == experiment_id)
            return list((await connection.execute(query.order_by(checkpoint_gc_requests.c.id))).all())

    async def announced(self) -> list[str]:
        """Subjects in the outbox, oldest first; nothing relays it here."""
        async with self._db.read() as connection:
            return list(await connection.scalars(select(outbox.c.subject).order_by(outbox.c.id)))
