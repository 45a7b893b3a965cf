"""Experiment under lock, with its trials that are not over and their allocations: what reconciling works on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final, Literal

from sqlalchemy import select, update

from libs.cluster.config import ClusterConfig
from libs.db.any_of import any_of
from libs.db.engine import Connection
from libs.db.prepared.statements import PreparedStatement
from libs.db.tables.tasks import tasks
from libs.db.tables.workspaces import projects
from libs.events.capacity import PoolCapacity
from libs.events.changes import ExperimentChanged, TaskChanged, TrialChanged
from libs.states.experiment import ExperimentState
from libs.states.trial import TERMINAL, TrialState
from services.scheduler.transactions.outbox_buffer import OutboxBuffer
from services.scheduler.transactions.rows import (
    AllocationRow,
    ExperimentRow,
    Locked,
    TrialRow,
    insert_rows,
    lock_one,
    lock_where,
)

_NEWEST_TASKS: Final = PreparedStatement("""
    SELECT DISTINCT ON (trial_id) trial_id, task_id FROM trial_tasks WHERE trial_id = ANY(:trials)
    ORDER BY trial_id, position DESC
""")

Capacity = Callable[[str], PoolCapacity | None]
"""What the pool of that name could run; None while its launcher has not said."""


class LockedExperiment:
    """Locks are taken in the order experiment, trials, allocations; ``write`` is the end of it."""

    def __init__(
        self,
        connection: Connection,
        experiment: Locked[ExperimentRow],
        *,
        cluster: ClusterConfig,
        now: datetime,
        capacity: Capacity,
    ) -> None:
        self.connection = connection
        self.cluster = cluster
        self.now = now
        self.capacity = capacity
        self.out = OutboxBuffer()
        self.experiment = experiment.rows[0]
        self.requested: list[AllocationRow] = []
        """Allocations that this transaction adds."""
        self.ended: list[TrialRow] = []
        """Trials that this transaction has ended, and of which the search has not heard yet."""
        self.failure = ""
        """How the first of the trials failed that did so in this transaction, in words for the owner."""
        self.requeue_after_s: float | None = None
        self._experiment = experiment
        self._trials: Locked[TrialRow] = Locked()
        self._allocations: Locked[AllocationRow] = Locked()
        self._open: dict[int, AllocationRow] = {}
        self._task_ids: dict[int, str] = {}
        self._states: dict[int, str] = {}
        self._was = (self.experiment.state, self.experiment.progress)
        self._ended_tasks: list[str] = []

    @property
    def state(self) -> ExperimentState:
        return ExperimentState(self.experiment.state)

    async def load(self) -> None:
        """Lock the trials that are not over, and their allocations that have not been reacted to."""
        unfinished = "experiment_id = :experiment AND end_time IS NULL"
        mine = self.experiment.id
        await self.take(await lock_where(self.connection, TrialRow, unfinished, self._trials, experiment=mine))

    async def take(self, rows: list[TrialRow]) -> None:
        """Work on these trials too."""
        if not rows:
            return
        self._states |= {row.id: row.state for row in rows}
        ids = [row.id for row in rows]
        for found in await _NEWEST_TASKS.rows(self.connection, trials=ids):
            self._task_ids[found["trial_id"]] = found["task_id"]
        by_task = {self._task_ids[trial]: trial for trial in ids if trial in self._task_ids}
        unprocessed = "task_id = ANY(:tasks) AND NOT exit_processed"
        for row in await lock_where(
            self.connection, AllocationRow, unprocessed, self._allocations, tasks=list(by_task)
        ):
            self._open[by_task[row.task_id]] = row

    async def lock_trial(self, trial_id: int) -> TrialRow:
        """Take a trial that is over, to run it again."""
        row = await lock_one(self.connection, TrialRow, trial_id, self._trials)
        assert row is not None
        await self.take([row])
        return row

    async def workspace_id(self) -> int:
        """The workspace of the experiment, which its project does not leave until the transaction ends."""
        query = select(projects.c.workspace_id).where(projects.c.id == self.experiment.project_id)
        found: int = (await self.connection.execute(query.with_for_update(read=True))).scalar_one()
        return found

    def add(self, row: TrialRow, task_id: str) -> None:
        """Work on a trial that was inserted just now."""
        self._trials.add(row)
        self._states[row.id] = ""
        self._task_ids[row.id] = task_id

    def set_task(self, trial: TrialRow, task_id: str) -> None:
        self._task_ids[trial.id] = task_id

    def task_of(self, trial: TrialRow) -> str:
        return self._task_ids[trial.id]

    @property
    def live(self) -> list[TrialRow]:
        """Trials that are not over."""
        return [row for row in self._trials.rows if row.state not in TERMINAL]

    def trial(self, trial_id: int) -> TrialRow | None:
        return next((row for row in self._trials.rows if row.id == trial_id), None)

    def open_allocation(self, trial: TrialRow) -> AllocationRow | None:
        """Its allocation, from the request until the trial has reacted to its end."""
        return self._open.get(trial.id)

    def opened(self, trial: TrialRow, row: AllocationRow) -> None:
        self._open[trial.id] = row
        self.requested.append(row)

    def mark_exit_processed(self, trial: TrialRow) -> None:
        row = self._open.pop(trial.id)
        row.exit_processed = True

    def requeue(self, *, after_s: float) -> None:
        """Have the experiment reconciled again, at the latest after ``after_s`` seconds."""
        self.requeue_after_s = min(after_s, self.requeue_after_s) if self.requeue_after_s is not None else after_s

    def end_trial(self, trial: TrialRow, state: TrialState, error: str | None = None) -> None:
        trial.state = state
        trial.end_time = self.now
        trial.early_exit_deadline = None
        trial.error = error or trial.error
        self.ended.append(trial)
        task = self.task_of(trial)
        self._ended_tasks.append(task)
        self.out.announce(TaskChanged(task_id=task, task_type="TRIAL", what="ended"))

    async def write(self) -> None:
        """Write back everything that changed, and what there is to say about it."""
        for trial in self._trials.rows:
            if trial.state != self._states[trial.id]:
                self.out.announce(self._trial_changed(trial))
        if (self.experiment.state, self.experiment.progress) != self._was:
            moved = self.experiment.state != self._was[0]
            self.out.announce(experiment_changed(self.experiment, "state" if moved else "progress"))
        await self._experiment.write(self.connection)
        await self._trials.write(self.connection)
        await self._allocations.write(self.connection)
        await insert_rows(self.connection, self.requested)
        if self._ended_tasks:
            over = update(tasks).where(any_of(tasks.c.task_id, self._ended_tasks)).values(end_time=self.now)
            await self.connection.execute(over)
        await self.out.flush(self.connection)

    def _trial_changed(self, trial: TrialRow) -> TrialChanged:
        created = not self._states[trial.id]
        return TrialChanged(
            trial_id=trial.id,
            experiment_id=trial.experiment_id,
            what="created" if created else "state",
            state=trial.state,
            task_id=self.task_of(trial),
            restarts=trial.restarts,
            hparams=trial.hparams if created else None,
        )


def experiment_changed(row: ExperimentRow, what: Literal["state", "progress", "deleted"]) -> ExperimentChanged:
    return ExperimentChanged(
        experiment_id=row.id,
        what=what,
        state=row.state,
        name=str(row.config.get("name", "")),
        job_id=row.job_id,
        project_id=row.project_id,
        progress=row.progress,
    )


async def lock_experiment(
    connection: Connection,
    experiment_id: int,
    *,
    cluster: ClusterConfig,
    now: datetime,
    capacity: Capacity = lambda _pool: None,
) -> LockedExperiment | None:
    """The experiment, locked; None when it does not exist. Its trials are not loaded yet."""
    locked: Locked[ExperimentRow] = Locked()
    if await lock_one(connection, ExperimentRow, experiment_id, locked) is None:
        return None
    return LockedExperiment(connection, locked, cluster=cluster, now=now, capacity=capacity)
