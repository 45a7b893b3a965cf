"""Rows of summaries that were replaced are deleted in steps of a bounded size, whatever summaries they are of."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest

from libs.db.connecting.settings import asyncpg_url
from services.api.metrics.rows import garbage

_SUMMARIES = """INSERT INTO metric_summaries (summary_id, name_key, name, summary)
SELECT s, 'name' || n, 'name' || n, '{}' FROM generate_series($1::int, $2) s, generate_series(1, $3::int) n"""
_LEFT = "SELECT summary_id, count(*) FROM metric_summaries GROUP BY 1 ORDER BY 1"
_GARBAGE = "SELECT array_agg(summary_id ORDER BY summary_id) FROM metric_garbage"


@pytest.fixture
async def driver(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """On a database without any summaries."""
    connection = await asyncpg.connect(asyncpg_url(database_url))
    await connection.execute("DELETE FROM metric_summaries; DELETE FROM metric_garbage")
    yield connection
    await connection.execute("DELETE FROM metric_summaries; DELETE FROM metric_garbage")
    await connection.close()


async def test_many_small_summaries_go_at_once(driver: asyncpg.Connection) -> None:
    await driver.execute(_SUMMARIES, 1, 101, 2)
    await driver.execute("INSERT INTO metric_garbage (summary_id) SELECT generate_series(2, 102)")
    assert await garbage.delete_garbage(driver)
    assert [tuple(row) for row in await driver.fetch(_LEFT)] == [(1, 2)], "what is no garbage stays"
    assert await driver.fetchval(_GARBAGE) is None, "nor does one without rows stay"
    assert not await garbage.delete_garbage(driver)


async def test_a_large_one_goes_in_steps(driver: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "_AT_ONCE", 10)
    await driver.execute(_SUMMARIES, 1, 2, 4)
    await driver.execute(_SUMMARIES, 3, 3, 13)
    await driver.execute("INSERT INTO metric_garbage (summary_id) SELECT generate_series(1, 3)")
    assert await garbage.delete_garbage(driver)
    assert [tuple(row) for row in await driver.fetch(_LEFT)] == [(3, 11)]
    assert await driver.fetchval(_GARBAGE) == [3]
    assert await garbage.delete_garbage(driver)
    assert await garbage.delete_garbage(driver)
    assert await driver.fetch(_LEFT) == []
    assert not await garbage.delete_garbage(driver)
