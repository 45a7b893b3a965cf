"""Two releases side by side leave the same summaries as either alone: in an update, and when it is taken back."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import asyncpg
import httpx
import pytest

from libs.bus import Bus
from libs.db.connecting.settings import FORMER_APPLICATION, asyncpg_url
from libs.db.engine import Database
from services.api.metrics.rows.former_release import FormerRelease
from services.api.metrics.rows.owner import keep_summaries, settle_all
from tests.harness import FakeClock, eventually
from tests.harness.seeds import chance
from tests.integration.api.metrics.former_writer import FormerWriter
from tests.integration.api.metrics.histories import START
from tests.integration.api.metrics.readings import check_rows, check_trial
from tests.integration.api.metrics.reference import ReferenceTrial, Report
from tests.integration.api.metrics.test_histories import driver, plain_logs
from tests.integration.api.tasks.service import Run, new_run, replica

__all__ = ["driver", "plain_logs"]

IN_ROWS = "SELECT summary_in_rows FROM trials WHERE id = $1"
REPORTS = 24


class Training:
    """Reports of one trial, of numbers whose sums are exact, nearly all beyond those before; no step twice."""

    def __init__(self, seed: int, run: Run, client: httpx.AsyncClient) -> None:
        self.chance = random.Random(seed)
        self.reference = ReferenceTrial()
        self._run = run
        self._client = client
        self._step = 10

    def next(self) -> Report:
        self._step += 2
        step = self._step if self.chance.random() < 0.85 else self._step - 7
        names = self.chance.sample(["loss", "accuracy", "of.layer"], self.chance.choice([0, 1, 2]))
        report = Report(
            run=1,
            group=self.chance.choice(["training", "training", "custom"]),
            step=step,
            time=START + timedelta(seconds=self._step),
            avg={name: self.chance.randint(-80, 80) / 8 for name in names},
        )
        assert self.reference.report(report) is None
        return report

    async def to_new_release(self, report: Report) -> None:
        body = {
            "trialRunId": 1,
            "stepsCompleted": report.step,
            "reportTime": report.time.isoformat(),
            "metrics": {"avgMetrics": report.avg},
        }
        content = json.dumps({"group": report.group, "metrics": body}).encode()
        answer = await self._client.post(
            f"/api/v1/trials/{self._run.trial}/metrics", content=content, headers=self._run.headers
        )
        assert answer.status_code == 200, answer.text

    async def for_a_while(self, former: FormerWriter | None) -> None:
        """Reports to both releases, one after the other or at once; to the new one where the other is not there."""
        for _ in range(REPORTS):
            if former is None:
                await self.to_new_release(self.next())
            elif self.chance.random() < 0.3:
                await asyncio.gather(self.to_new_release(self.next()), former.store(self.next()))
            else:
                store: Any = self.chance.choice([self.to_new_release, former.store])
                await store(self.next())


@asynccontextmanager
async def of_former_release(database_url: str, trial_id: int) -> AsyncIterator[FormerWriter]:
    settings = {"application_name": FORMER_APPLICATION}
    connection = await asyncpg.connect(asyncpg_url(database_url), server_settings=settings)
    try:
        yield FormerWriter(connection, trial_id)
    finally:
        await connection.close()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("batch", range(2))
async def test_update_and_roll_back_end_in_the_same_summaries(
    db: Database, bus: Bus, clock: FakeClock, database_url: str, driver: asyncpg.Connection, batch: int
) -> None:
    run, seed = await new_run(db), chance().randrange(2**32) + batch
    print(f"seed {seed}")
    of_owner, of_writer = FormerRelease(), FormerRelease()
    keeping = [asyncio.create_task(keep_summaries(db, of_owner)), asyncio.create_task(of_writer.follow(db))]
    try:
        async with (
            replica(db, bus, clock, to_rows=of_writer.is_gone) as api,
            api.client(headers=run.user_headers) as client,
        ):
            training = Training(seed, run, client)
            async with of_former_release(database_url, run.trial) as former:
                await training.for_a_while(former)  # an update has begun
            await eventually(of_writer.is_gone)
            await training.for_a_while(None)
            await training.to_new_release(training.next())
            assert await driver.fetchval(IN_ROWS, run.trial)
            await check_trial(client, run, training.reference)
            async with of_former_release(database_url, run.trial) as former:
                await training.for_a_while(former)  # it is taken back
                assert former.took_fast_path or former.refused
                await check_trial(client, run, training.reference)
            await check_rows(driver, run, training.reference)
    finally:
        for task in keeping:
            task.cancel()
        await asyncio.gather(*keeping, return_exceptions=True)
    await settle_all(driver)
    stored = await driver.fetchrow("SELECT summary_metrics::text, total_batches FROM trials WHERE id = $1", run.trial)
    assert json.loads(stored[0]) == training.reference.summary
    assert stored[1] == training.reference.total_batches
