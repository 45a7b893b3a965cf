"""Ends an experiment whose search is over (docs/reference/experiments.md 5.1, terminal work)."""

from __future__ import annotations

from sqlalchemy import delete

from libs.db.tables.experiments import searcher_snapshots
from libs.events.changes import JobChanged
from libs.states.experiment import ExperimentState, Trigger, step
from services.scheduler.deletion.checkpoint_gc import create_gc_tasks, deletion_of, superfluous_checkpoints
from services.scheduler.experiments.searcher_events import discard
from services.scheduler.transactions.locked_experiment import LockedExperiment


async def end_experiment(locked: LockedExperiment) -> None:
    """End a stopping experiment without live trials."""
    experiment = locked.experiment
    ended = step(locked.state, Trigger.TRIALS_ENDED)
    assert ended is not None, "only stopping experiments end"
    experiment.state = ended
    experiment.end_time = locked.now
    if ended == ExperimentState.COMPLETED:
        experiment.progress = 1.0
    await locked.connection.execute(
        delete(searcher_snapshots).where(searcher_snapshots.c.experiment_id == experiment.id),
    )
    await discard(locked)
    locked.out.announce(JobChanged(job_id=experiment.job_id, what="ended"))
    await create_gc_tasks(locked, deletion_of(await superfluous_checkpoints(locked), delete_tensorboards=False))
