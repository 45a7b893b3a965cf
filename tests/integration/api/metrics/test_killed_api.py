"""Random histories of reports end as the plain reference says, also when one of two apis is killed again and again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from itertools import cycle
from typing import Any, Final

import asyncpg
import httpx
import pytest

from libs.db.connecting.settings import asyncpg_url
from libs.db.engine import Database
from tests.harness import eventually
from tests.harness.api import ApiProcess
from tests.harness.no_tls import NO_TLS
from tests.harness.seeds import chance
from tests.integration.api.conftest import api, world
from tests.integration.api.metrics.histories import history
from tests.integration.api.metrics.playing import Player
from tests.integration.api.metrics.readings import check_rows, check_trial
from tests.integration.api.tasks.service import new_experiment, new_run
from tests.integration.api.world import World

__all__ = ["api", "world"]

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1200)]

HISTORIES: Final = 30
IN_ROWS: Final = "SELECT summary_in_rows OR summary_metrics = '{}' FROM trials WHERE id = $1"


@pytest.fixture
def killed(world: World) -> Iterator[ApiProcess]:
    with world.api("killed") as other:
        yield other


@pytest.fixture
async def driver(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(asyncpg_url(database_url), server_settings={"application_name": "observer"})
    yield connection
    await connection.close()


async def test_random_histories_survive_kill_9(
    db: Database, driver: asyncpg.Connection, api: ApiProcess, killed: ApiProcess
) -> None:
    experiment = await new_experiment(db)
    first = chance().randrange(2**32)
    victims = cycle([killed, api])

    async def kill() -> None:
        await asyncio.to_thread(next(victims).restart)

    async with httpx.AsyncClient(timeout=60, verify=NO_TLS) as client:

        async def post(place: int, path: str, body: Any, headers: dict[str, str]) -> httpx.Response:
            url = (api, killed)[place].url
            return await client.post(f"{url}{path}", content=json.dumps(body).encode(), headers=headers)

        player = Player(post, driver, interrupt=kill)
        for seed in range(first, first + HISTORIES):
            run = await new_run(db, experiment=experiment)
            print(f"history({seed}) of trial {run.trial}")
            reference = await player.play(run, history(seed))

            async def is_in_rows(trial: int = run.trial) -> bool:
                found: bool = await driver.fetchval(IN_ROWS, trial)
                return found

            # With a report, unless all of them were taken before the api knew that no former release is there.
            await eventually(is_in_rows, timeout_s=180)
            await check_rows(driver, run, reference)
            async with httpx.AsyncClient(
                base_url=api.url, headers=run.user_headers, timeout=60, verify=NO_TLS
            ) as reader:
                await check_trial(reader, run, reference)
    assert player.interrupted >= HISTORIES
    assert player.repeated
