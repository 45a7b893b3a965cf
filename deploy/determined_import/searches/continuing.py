"""Gives experiments that wait to be activated the knowledge of their searches, so that the scheduler goes on with them.

An experiment whose search cannot be told again is ended: one that began its search anew would train everything again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import ColumnElement, Row, case, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from deploy.determined_import.searches.replay import NotReplayable, PastTrial, PastValidation, Replayed, replay
from libs.db.any_of import any_of
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import connect_database
from libs.db.new_trials import Origin, insert_trials
from libs.db.tables.experiments import experiments, searcher_snapshots
from libs.db.tables.metrics import metrics
from libs.db.tables.tasks import tasks
from libs.db.tables.trials import trials
from libs.searchers.actions import Shutdown
from libs.states.trial import TrialState

_ENDED_BY_IMPORT: Final = "it had not ended when it was imported, and its search cannot go on here"
_WAITING: Final = (experiments.c.state == "PAUSED", ~experiments.c.unmanaged)


class UnfinishedExperiments(Struct, frozen=True, kw_only=True):
    """Experiments that had not ended.

    waiting  how many wait to be activated
    ended    id -> why the search of one cannot go on
    """

    waiting: int
    ended: dict[int, str]


async def continue_searches(url: str) -> UnfinishedExperiments:
    """See to all experiments in the database at ``url`` that wait and whose search nobody knows yet."""
    async with connect_database(DatabaseSettings(url=url, pool_size=1)) as db:
        known = select(searcher_snapshots.c.experiment_id)
        async with db.read() as connection:
            query = select(experiments.c.id).where(*_WAITING, experiments.c.id.not_in(known)).order_by(experiments.c.id)
            ids = (await connection.scalars(query)).all()
        for experiment_id in ids:
            async with db.transaction() as connection:
                await _continue(connection, experiment_id)
        async with db.read() as connection:
            waiting = len((await connection.scalars(select(experiments.c.id).where(*_WAITING))).all())
            ended = await connection.execute(
                select(experiments.c.id, experiments.c.error)
                .where(experiments.c.error.startswith(_ENDED_BY_IMPORT))
                .order_by(experiments.c.id)
            )
            return UnfinishedExperiments(waiting=waiting, ended={row.id: row.error for row in ended})


async def _continue(connection: AsyncConnection, experiment_id: int) -> None:
    columns = (experiments.c[name] for name in ("id", "project_id", "job_id", "owner_id", "config"))
    experiment = (await connection.execute(select(*columns).where(experiments.c.id == experiment_id))).one()
    past = await _past_trials(connection, experiment_id)
    try:
        replayed = replay(experiment.config, past, await _past_validations(connection, experiment_id))
    except NotReplayable as error:
        await _end(connection, experiment_id, "CANCELED", f"{_ENDED_BY_IMPORT}: {error}")
        return
    if replayed.shutdown is not None:
        await _end(connection, experiment_id, _ended_as(replayed.shutdown), None)
        return
    await connection.execute(insert(searcher_snapshots).values(experiment_id=experiment_id, snapshot=replayed.snapshot))
    await _follow(connection, experiment, replayed)


async def _past_trials(connection: AsyncConnection, experiment_id: int) -> Sequence[PastTrial]:
    rows = await connection.execute(
        select(trials.c.request_id, trials.c.state, _within_years(trials.c.end_time))
        .where(trials.c.experiment_id == experiment_id, trials.c.request_id.is_not(None))
        .order_by(trials.c.id)
    )
    return [PastTrial(request_id=row.request_id, state=row.state, ended=row.moment) for row in rows]


def _within_years(moment: ColumnElement[datetime]) -> ColumnElement[datetime]:
    """A moment that Python can hold; earlier imports have stored others."""
    first, last = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)
    return case((moment < first, first), (moment > last, last), else_=moment).label("moment")


async def _past_validations(connection: AsyncConnection, experiment_id: int) -> Sequence[PastValidation]:
    rows = await connection.execute(
        select(
            trials.c.request_id,
            _within_years(metrics.c.end_time),
            metrics.c.metrics["validation_metrics"].label("reported"),
        )
        .join(trials, trials.c.id == metrics.c.trial_id)
        .where(
            trials.c.experiment_id == experiment_id,
            trials.c.request_id.is_not(None),
            metrics.c.metric_group == "validation",
            ~metrics.c.archived,
        )
        .order_by(metrics.c.end_time, metrics.c.id)
    )
    return [PastValidation(request_id=row.request_id, at=row.moment, metrics=_object(row.reported)) for row in rows]


def _object(document: Any) -> dict[str, Any]:
    return document if isinstance(document, dict) else {}


async def _follow(connection: AsyncConnection, experiment: Row[Any], replayed: Replayed) -> None:
    """Do what the search asks for, as far as nothing runs."""
    origin = Origin(
        id=experiment.id,
        project_id=experiment.project_id,
        job_id=experiment.job_id,
        owner_id=experiment.owner_id,
        config=experiment.config,
    )
    warm_start = experiment.config["searcher"].get("source_checkpoint_uuid")
    await insert_trials(
        connection, origin, replayed.creates, state=TrialState.PAUSED, warm_start=warm_start, now=datetime.now(UTC)
    )
    await connection.execute(
        update(trials)
        .where(trials.c.experiment_id == experiment.id, any_of(trials.c.request_id, replayed.stops))
        .values(state=TrialState.STOPPING_COMPLETED.value, stopped_by_searcher=True)
    )


def _ended_as(shutdown: Shutdown) -> str:
    if shutdown.failure:
        return "ERROR"
    return "CANCELED" if shutdown.cancel else "COMPLETED"


async def _end(connection: AsyncConnection, experiment_id: int, state: str, error: str | None) -> None:
    now = datetime.now(UTC)
    open_trials = update(trials).where(trials.c.experiment_id == experiment_id, trials.c.end_time.is_(None))
    await connection.execute(open_trials.values(state="CANCELED", end_time=now))
    open_tasks = update(tasks).where(tasks.c.experiment_id == experiment_id, tasks.c.end_time.is_(None))
    await connection.execute(open_tasks.values(end_time=now))
    ended: dict[str, Any] = {"state": state, "end_time": now, "error": error}
    if state == "COMPLETED":
        ended["progress"] = 1.0
    await connection.execute(update(experiments).where(experiments.c.id == experiment_id).values(**ended))
