"""What users do to a trial does not read its summaries, of which a wide one has megabytes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from libs.db.connecting.settings import asyncpg_url
from libs.db.engine import Connection, Database
from services.api.actions.trials.trials import kill_trial, retain_trial_logs
from tests.bench.reading.statements import statements_of
from tests.builders import insert_experiment, insert_trial

Act = Callable[[Connection, int], Awaitable[Any]]


async def _retain(connection: Connection, trial_id: int) -> None:
    await retain_trial_logs(connection, trial_id, 5)


@pytest.mark.parametrize("act", [kill_trial, _retain])
async def test_a_trial_is_changed_without_a_look_at_its_summaries(db: Database, database_url: str, act: Act) -> None:
    async with db.transaction() as connection:
        experiment = await insert_experiment(connection)
        trial = await insert_trial(connection, experiment_id=experiment)

    async def change(db: Database) -> None:
        async with db.transaction() as connection:
            await act(connection, trial)

    asked = [each.sql for each in await statements_of(asyncpg_url(database_url), change)]
    assert any("FOR UPDATE" in sql and "FROM trials" in sql for sql in asked), asked
    assert [sql for sql in asked if "summary_metrics" in sql] == []
