"""Gives up trials that run elsewhere and are not heard from any more (docs/reference/experiments.md 12).

They report every minute. After an outage of the api nothing is given up until they could have reported again.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

import structlog
from sqlalchemy import ColumnElement, func, select

from libs.clock import Clock
from libs.db.any_of import any_of
from libs.db.engine import Connection, Database
from libs.db.tables.experiments import experiments
from libs.db.tables.trials import trials
from libs.db.transactions import in_transaction
from libs.db.unmanaged import move_unmanaged_trials
from libs.states.trial import TrialState
from services.scheduler.workqueue.loops import run_periodically

log = structlog.get_logger()

CHECK_S: Final = 60.0
SILENCE: Final = timedelta(minutes=5)
"""After so long without a heartbeat nobody expects another one."""
_HEARD: Final = func.coalesce(trials.c.last_activity, trials.c.start_time)


class LostTrials:
    """reports_are_heard  whether there is an api now that would note a heartbeat"""

    def __init__(self, *, db: Database, clock: Clock, reports_are_heard: Callable[[], Awaitable[bool]]) -> None:
        self._db = db
        self._clock = clock
        self._reports_are_heard = reports_are_heard
        self._heard_since: datetime | None = None

    async def run(self) -> None:
        """Now and then, until cancelled."""
        await run_periodically("lost trials", self.check, every_s=CHECK_S, wake=asyncio.Event())

    async def check(self) -> None:
        """Give up what has been silent for too long while somebody listened."""
        now = self._clock.now()
        if not await self._reports_are_heard():
            self._heard_since = None
            return
        self._heard_since = self._heard_since or now
        if now - self._heard_since < SILENCE:
            return
        for experiment_id, trial_ids in (await self._silent(now)).items():
            await in_transaction(self._db, lambda c, e=experiment_id, t=trial_ids: _give_up(c, e, t, now))  # type: ignore[misc]

    async def _silent(self, now: datetime) -> dict[int, list[int]]:
        """Experiment -> those of its trials that are to be given up."""
        query = (
            select(trials.c.experiment_id, trials.c.id)
            .join(experiments, experiments.c.id == trials.c.experiment_id)
            .where(experiments.c.unmanaged, *_is_silent(now))
            .order_by(trials.c.experiment_id, trials.c.id)
        )
        found: dict[int, list[int]] = defaultdict(list)
        async with self._db.read() as connection:
            for row in await connection.execute(query):
                found[row.experiment_id].append(row.id)
        return found


def _is_silent(now: datetime) -> tuple[ColumnElement[bool], ...]:
    return trials.c.end_time.is_(None), trials.c.state == TrialState.RUNNING, now - SILENCE > _HEARD


async def _give_up(connection: Connection, experiment_id: int, trial_ids: Sequence[int], now: datetime) -> None:
    locking = select(experiments.c.id).where(experiments.c.id == experiment_id).with_for_update(key_share=True)
    if (await connection.execute(locking)).one_or_none() is None:
        return
    # Some may have reported since they were found.
    still = (
        select(trials.c.id, _HEARD.label("heard"))
        .where(any_of(trials.c.id, trial_ids), *_is_silent(now))
        .order_by(trials.c.id)
        .with_for_update(key_share=True)
    )
    for trial in (await connection.execute(still)).all():
        values = {"end_time": trial.heard, "error": f"no heartbeat for {SILENCE.total_seconds() / 60:g} minutes"}
        await move_unmanaged_trials(connection, experiment_id, [trial.id], TrialState.ERROR, values=values, now=now)
        log.warning("trial.lost", trial=trial.id, experiment=experiment_id)
