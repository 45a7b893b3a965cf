"""Random histories of reports end as the plain reference says, whatever is cut off in between.

RESOLUTE_HISTORIES sets how many there are for each form of summaries (10, unless it is set), RESOLUTE_TEST_SEED which.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Final

import asyncpg
import httpx
import pytest
import structlog
from sqlalchemy import update

from libs.bus import Bus
from libs.db.connecting.settings import DatabaseSettings, asyncpg_url
from libs.db.engine import Database, connect_database
from libs.db.tables.experiments import experiments
from libs.db.tables.trials import trials
from services.api.metrics.rows.folding import fold_trial
from services.api.metrics.rows.settling import settle
from services.api.queries.charts.time_series.kept_points import KeptPoints
from tests.builders import insert_project, insert_workspace
from tests.harness import FakeClock
from tests.harness.seeds import chance
from tests.integration.api.metrics.histories import history
from tests.integration.api.metrics.level_reading import check_levels, pack
from tests.integration.api.metrics.playing import Player
from tests.integration.api.metrics.readings import check_lists, check_ranges, check_rows, check_trial
from tests.integration.api.metrics.reference import ReferenceTrial
from tests.integration.api.tasks.service import Replica, Run, new_experiment, new_run, replica

HISTORIES: Final = int(os.environ.get("RESOLUTE_HISTORIES", "10"))
OF_AN_EXPERIMENT: Final = 10


@pytest.fixture(autouse=True)
def plain_logs() -> Iterator[None]:
    """Every lost connection is logged with its stack, which takes a second to draw for a terminal."""
    with structlog.testing.capture_logs():
        yield


@pytest.fixture
async def driver(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection that nobody ends."""
    connection = await asyncpg.connect(asyncpg_url(database_url), server_settings={"application_name": "observer"})
    yield connection
    await connection.close()


class Form:
    """Where summaries are kept: in columns as from the release before, or in rows, or now here and now there.

    driver  of whoever keeps summaries in rows; while reports are under way it folds some, settles trials, or takes them
            back to their column, and makes levels for charts
    """

    def __init__(self, name: str, driver: asyncpg.Connection) -> None:
        self.name = name
        self._driver = driver
        self._chance = chance()
        self._steps: list[Any] = {
            "column": [pack],
            "rows": [fold_trial, settle, pack],
            "changing": [fold_trial, settle, partial(settle, to_column=True), pack],
        }[name]

    def to_rows(self) -> bool:
        return self.name == "rows" or (self.name == "changing" and self._chance.random() < 0.7)

    async def meanwhile(self, trial: int) -> None:
        if self._chance.random() < 0.4:
            await asyncio.sleep(self._chance.random() * 0.01)
            await self._chance.choice(self._steps)(self._driver, trial)


@pytest.fixture(params=["column", "rows", "changing"])
async def form(request: pytest.FixtureRequest, database_url: str) -> AsyncIterator[Form]:
    connection = await asyncpg.connect(asyncpg_url(database_url), server_settings={"application_name": "owner"})
    yield Form(request.param, connection)
    await connection.close()


@pytest.fixture
async def replicas(database_url: str, bus: Bus, clock: FakeClock, form: Form) -> AsyncIterator[list[Replica]]:
    """Two replicas, each with connections of its own."""
    async with AsyncExitStack() as stack:
        settings = DatabaseSettings(url=database_url, connect_timeout_s=10, pool_size=8)
        databases = [await stack.enter_async_context(connect_database(settings)) for _ in range(2)]
        yield [
            await stack.enter_async_context(replica(database, bus, clock, to_rows=form.to_rows))
            for database in databases
        ]


async def new_runs(db: Database, name: str) -> tuple[int, list[Run]]:
    """A project with one experiment, and its trials."""
    experiment = await new_experiment(db)
    runs = [await new_run(db, experiment=experiment) for _ in range(OF_AN_EXPERIMENT)]
    async with db.transaction() as tx:
        workspace = await insert_workspace(tx, name=name)
        project = await insert_project(tx, workspace_id=workspace, name=name)
        moved = {"project_id": project}
        await tx.execute(update(experiments).where(experiments.c.id == experiment).values(moved))
        await tx.execute(update(trials).where(trials.c.experiment_id == experiment).values(moved))
    return project, runs


@pytest.mark.parametrize("batch", range(-(-HISTORIES // OF_AN_EXPERIMENT)))
@pytest.mark.timeout(300)
async def test_random_histories_end_as_the_reference_says(
    db: Database, driver: asyncpg.Connection, form: Form, replicas: list[Replica], batch: int
) -> None:
    first = chance().randrange(2**32) + batch * OF_AN_EXPERIMENT
    project, runs = await new_runs(db, f"histories-{form.name}-{batch}")
    played: dict[int, ReferenceTrial] = {}
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(replica.client()) for replica in replicas]

        async def post(place: int, path: str, body: Any, headers: dict[str, str]) -> httpx.Response:
            content = json.dumps(body).encode()
            return await clients[place].post(path, content=content, headers=headers)

        chunks = 0
        kept = KeptPoints()
        player = Player(post, driver, meanwhile=form.meanwhile)
        for seed, run in enumerate(runs, start=first):
            print(f"history({seed}) of trial {run.trial}")
            played[run.trial] = await player.play(run, history(seed))
            await check_rows(driver, run, played[run.trial])
            async with db.transaction() as tx:
                await check_levels(tx, run.trial, kept)
            await pack(driver, run.trial)  # which levels were made meanwhile is up to chance
            async with db.transaction() as tx:
                chunks += await check_levels(tx, run.trial, kept)
        assert player.interrupted
        assert chunks
        forms = "SELECT count(*) FILTER (WHERE summary_in_rows) FROM trials WHERE id = ANY($1)"
        in_rows = await driver.fetchval(forms, list(played))
        assert in_rows == {"column": 0, "rows": len(runs)}.get(form.name, in_rows)
        await driver.execute("DELETE FROM metric_levels")  # replicas have larger chunks

    async with replicas[0].client(headers=runs[0].user_headers) as client:
        for run in runs:
            print(f"trial {run.trial}")
            await check_trial(client, run, played[run.trial])
        experiment = runs[0].experiment
        await driver.execute("UPDATE experiments SET state = 'COMPLETED' WHERE id = $1", experiment)
        await check_lists(client, project=project, experiment=experiment, trials=played)
        best = await driver.fetchval("SELECT best_trial_id FROM experiments WHERE id = $1", experiment)
        await check_ranges(client, project=project, best=played[best])
