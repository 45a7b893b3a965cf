"""Deletes what is left of a trial that was deleted by itself: its metrics and its log, which nobody sees any more.

Each step may be repeated after a crash; the row in ``deleted_trials`` goes last. Source: docs/reference/experiments.md
13.6 (delete).
"""

from __future__ import annotations

from datetime import timedelta

import structlog
from sqlalchemy import delete, select

from libs.clock import Clock
from libs.db.any_of import any_of
from libs.db.engine import Database
from libs.db.tables.logs import log_streams
from libs.db.tables.trials import deleted_trials
from services.scheduler.deletion.many_rows import delete_lines, delete_metrics

log = structlog.get_logger()


class TrialDeletion:
    def __init__(self, *, db: Database, clock: Clock, log_wait: timedelta) -> None:
        """log_wait  longest wait for the last log lines, which would otherwise be stored after the others are gone"""
        self._db = db
        self._clock = clock
        self._log_wait = log_wait

    async def reconcile(self, trial_id: int) -> float | None:
        """Delete what is left of it; seconds until there is sense in that, or None when nothing is left."""
        mine = deleted_trials.c.trial_id == trial_id
        async with self._db.read() as connection:
            row = (await connection.execute(select(deleted_trials).where(mine))).one_or_none()
        if row is None:
            return None
        early_s: float = (row.deleted_at + self._log_wait - self._clock.now()).total_seconds()
        if early_s > 0:
            return early_s
        await delete_lines(self._db, row.task_ids)
        await delete_metrics(self._db, [trial_id])
        async with self._db.transaction() as connection:
            await connection.execute(delete(log_streams).where(any_of(log_streams.c.task_id, row.task_ids)))
            await connection.execute(delete(deleted_trials).where(mine))
        log.info("trial.deleted", trial=trial_id)
        return None
