"""Changes of an experiment's state by its users: its row and its trials' change here, the scheduler does the rest.

Source: docs/reference/experiments.md 5.1 and 6.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.checkpoints.registered_checkpoints import registered_in
from libs.errors import FailedPrecondition, NotFound
from libs.states.experiment import DELETABLE, TERMINAL, ExperimentState, Trigger, step
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.actions.experiment_lock import change, check_live, is_live, lock_experiment, require_right
from services.api.actions.experiments.trial_states import change_trial_states


async def activate(connection: AsyncConnection, experiment_id: int) -> None:
    """Let it run; one that runs stays as it is. Raises NotFound when it has ended, FailedPrecondition when it stops."""
    row = await lock_experiment(connection, experiment_id)
    check_live(row)
    await _pull(connection, row, Trigger.ACTIVATE)


async def pause(connection: AsyncConnection, experiment_id: int) -> None:
    """Let its trials save their work and wait. Raises NotFound when archived, FailedPrecondition when it has ended."""
    row = await lock_experiment(connection, experiment_id)
    if row.archived or row.unmanaged:
        raise NotFound("experiment", experiment_id)
    if not is_live(row):
        raise FailedPrecondition("experiment in terminal state")
    await _pull(connection, row, Trigger.PAUSE)


async def cancel(connection: AsyncConnection, experiment_id: int) -> None:
    """End it, after its trials have saved their work; one that has ended stays as it is."""
    row = await lock_experiment(connection, experiment_id)
    if is_live(row):
        await _pull(connection, row, Trigger.CANCEL)


async def kill(connection: AsyncConnection, experiment_id: int) -> None:
    """End it now; one that has ended stays as it is."""
    row = await lock_experiment(connection, experiment_id)
    if is_live(row):
        await _pull(connection, row, Trigger.KILL)


async def archive(connection: AsyncConnection, experiment_id: int) -> None:
    """Put it out of sight. Raises FailedPrecondition unless it has ended and is not archived yet."""
    row = await lock_experiment(connection, experiment_id)
    if row.archived:
        raise FailedPrecondition("Experiment is already archived.")
    if row.state not in TERMINAL:
        raise FailedPrecondition("Experiment is not in terminal state.")
    await change(connection, row, "edited", archived=True)


async def unarchive(connection: AsyncConnection, experiment_id: int) -> None:
    """Bring it back into sight. Raises FailedPrecondition unless it is archived."""
    row = await lock_experiment(connection, experiment_id)
    if not row.archived:
        raise FailedPrecondition("Experiment is not archived.")
    await change(connection, row, "edited", archived=False)


async def delete(connection: AsyncConnection, experiment_id: int, rights: UserRights, *, force: bool = False) -> None:
    """Ask for its deletion, which the scheduler carries out; the experiment is gone when it is.

    force  leave the files of its checkpoints and TensorBoards where they are, as when their storage is gone; for
           administrators
    Raises FailedPrecondition unless it has ended and no version of a model comes from it, PermissionDenied.
    """
    row = await lock_experiment(connection, experiment_id)
    await require_right(connection, rights, Action.DELETE_EXPERIMENT, row)
    if force:
        rights.require(Action.LEAVE_FILES)
    if row.state not in DELETABLE:
        raise FailedPrecondition(f"cannot delete experiment in STATE_{row.state} state")
    if (reason := await registered_in(connection, experiment_id)) is not None:
        raise FailedPrecondition(reason)
    # No task has to delete anything before the rows go.
    await _pull(connection, row, Trigger.DELETE, **({"deletion_tasks": []} if force else {}))


async def _pull(connection: AsyncConnection, row: Row[Any], trigger: Trigger, **values: Any) -> None:
    """Move a locked experiment; the event is sent again also when nothing changes, so that a repeated kill works."""
    state = step(ExperimentState(row.state), trigger)
    if state is None:
        raise FailedPrecondition(f"experiment in incompatible state {row.state}")
    await change(connection, row, "state", state=state.value, **values)
    await change_trial_states(connection, row.id, state)
