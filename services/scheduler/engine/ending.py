"""What there is to do when an experiment is over (spec/experiments.md 5.1, terminal work)."""

from __future__ import annotations

from sqlalchemy import delete

from libs.checkpoints.retention import checkpoints_to_delete, policy_of
from libs.db.tables.experiments import searcher_snapshots
from libs.events.changes import JobChanged, UserChanged
from libs.states.experiment import ExperimentState, Trigger, step
from services.scheduler.engine.gc import candidates_of, create_gc_tasks
from services.scheduler.engine.inbox import forget
from services.scheduler.engine.run import Run
from services.scheduler.engine.sessions import revoke_of_job


async def end_experiment(run: Run) -> set[str]:
    """End a stopping experiment without live trials; returns the pools that have something new in their queue."""
    experiment = run.experiment
    ended = step(run.state, Trigger.TRIALS_ENDED)
    assert ended is not None, "only stopping experiments end"
    experiment.state = ended
    experiment.end_time = run.now
    if ended == ExperimentState.COMPLETED:
        experiment.progress = 1.0
    await run.connection.execute(
        delete(searcher_snapshots).where(searcher_snapshots.c.experiment_id == experiment.id),
    )
    await forget(run)
    await revoke_of_job(run.connection, experiment.job_id, now=run.now)
    run.out.announce(JobChanged(job_id=experiment.job_id, what="ended"))
    run.out.announce(UserChanged(user_id=experiment.owner_id, what="sessions"))
    candidates = await candidates_of(run.connection, experiment)
    superfluous = checkpoints_to_delete(candidates, policy_of(experiment.config))
    gc_tasks = await create_gc_tasks(run, superfluous, delete_tensorboards=False)
    return {row.pool for row in gc_tasks}
