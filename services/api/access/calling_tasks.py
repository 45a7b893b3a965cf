"""Resources of a calling task: its trial, its experiment, and the checkpoints that its configuration names."""

from __future__ import annotations

from typing import Final

from libs.db.engine import DriverConnection
from libs.ids import AllocationId
from services.api.access.principal import CallingTask

_TASK: Final = """
SELECT tasks.task_id, trials.id AS trial_id, coalesce(trials.experiment_id, tasks.experiment_id) AS experiment_id,
       trials.warm_start_checkpoint_uuid, experiments.config -> 'searcher' ->> 'source_trial_id' AS source_trial_id,
       experiments.config -> 'searcher' ->> 'source_checkpoint_uuid' AS source_checkpoint_uuid
  FROM allocations
  JOIN tasks ON tasks.task_id = allocations.task_id
  LEFT JOIN trial_tasks ON trial_tasks.task_id = tasks.task_id
  LEFT JOIN trials ON trials.id = trial_tasks.trial_id
  LEFT JOIN experiments ON experiments.id = trials.experiment_id
 WHERE allocations.allocation_id = $1
"""


async def calling_task(connection: DriverConnection, allocation_id: AllocationId) -> CallingTask:
    """What is a task's own. None of it changes while the allocation lasts.

    Of an allocation that is not there, nothing is known but its id.
    """
    found = await connection.fetch(_TASK, allocation_id)
    if not found:
        return CallingTask(allocation_id=allocation_id)
    (row,) = found
    return CallingTask(
        allocation_id=allocation_id,
        task_id=row["task_id"],
        trial_id=row["trial_id"],
        experiment_id=row["experiment_id"],
        source_trial_id=None if row["source_trial_id"] is None else int(row["source_trial_id"]),
        source_checkpoints=frozenset({row["warm_start_checkpoint_uuid"], row["source_checkpoint_uuid"]} - {None}),
    )
