"""What limits of slot-hours cost whoever looks at them: what has settled is read once, and nobody waits meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
import pytest_asyncio
from sqlalchemy import text

from libs.cluster.config import ClusterConfig
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import Database, connect_database
from libs.ids import UserId
from libs.slot_hours.period_use import PeriodUse
from libs.slot_hours.use import UseSince
from services.api.access.principal import Principal
from services.api.access.rights.rights import UserRights
from services.api.actions.cluster.limits import set_limit
from services.api.queries.cluster.limits import list_limits
from services.api.wire.cluster.holders import HolderScope
from services.api.wire.cluster.limits import GetLimitsQuery, LimitPeriod, SetLimitRequest
from tests.harness import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOON: Final = datetime(2030, 5, 15, 12, tzinfo=UTC)
USER: Final = 2
READER: Final = UserRights(Principal(user_id=UserId(USER), username="determined"))
DAILY: Final = SetLimitRequest(scope=HolderScope.USER, name="determined", slot_hours=100, period=LimitPeriod.DAY)
_RAN: Final = text("""
    INSERT INTO allocation_usage (allocation_id, task_id, task_type, owner_id, workspace_name, pool, slots,
                                  requested_at, start_time, end_time)
    VALUES (:id, :id, 'TRIAL', :owner, '', 'default', 2, :start, :start, :end)
""")
_WAITING: Final = text("""
    SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'allocation_usage'::regclass
""")


@pytest_asyncio.fixture(loop_scope="module")
async def db(database_url: str) -> AsyncIterator[Database]:
    async with connect_database(DatabaseSettings(url=database_url, pool_size=8)) as db:
        async with db.transaction() as connection:
            for table in ("allocation_usage", "resource_limits"):
                await connection.execute(text(f"DELETE FROM {table}"))
        yield db


async def run(db: Database, ident: str, end: datetime, *, hours: float) -> None:
    """Two slots, until ``end``."""
    values = {"id": ident, "owner": USER, "start": end - timedelta(hours=hours), "end": end}
    async with db.transaction() as connection:
        await connection.execute(_RAN, values)


async def limit(db: Database, use: PeriodUse, now: datetime = NOON) -> float | None:
    """Sets it, and returns what is used of it."""
    made = await set_limit(db, ClusterConfig(), DAILY, user_id=1, use=use, now=now)
    return made.used


async def used(db: Database, use: PeriodUse, now: datetime) -> float | None:
    async with db.read() as connection:
        [found] = await list_limits(connection, GetLimitsQuery(), rights=READER, use=use, now=now)
    return found.used


async def test_what_has_settled_is_read_once_in_a_period(db: Database) -> None:
    use = PeriodUse()
    await run(db, "long ago", NOON - timedelta(hours=3), hours=1)
    await run(db, "just now", NOON - timedelta(minutes=1), hours=0.5)
    assert await limit(db, use) == 3
    async with db.transaction() as connection:
        # It is kept for ever. Here it tells who reads it again.
        await connection.execute(text("DELETE FROM allocation_usage WHERE allocation_id = 'long ago'"))
    assert await used(db, use, NOON) == 3
    later = NOON + timedelta(hours=1)
    await run(db, "since then", later - timedelta(minutes=20), hours=0.25)
    assert await asyncio.gather(*(used(db, use, later) for _ in range(5))) == [3.5] * 5
    assert await used(db, use, later + timedelta(minutes=1)) == 3.5
    assert await used(db, use, NOON + timedelta(days=1)) == 0


async def test_those_who_read_at_the_same_time_do_not_count_twice(db: Database) -> None:
    use = UseSince(NOON - timedelta(hours=12))
    await run(db, "long ago", NOON - timedelta(hours=3), hours=1)
    async with db.read() as one, db.read() as other:
        found = await asyncio.gather(use.read(one, NOON), use.read(other, NOON))
        found.append(await use.read(one, NOON))
    assert [sum(each.spent_s for each in of_all.values()) for of_all in found] == [7200] * 3


async def test_nobody_waits_for_a_limit_while_it_is_found_out_what_is_used_of_it(db: Database) -> None:
    async with db.transaction() as blocking:
        await blocking.execute(text("LOCK TABLE allocation_usage"))
        setting = asyncio.create_task(limit(db, PeriodUse()))

        async def is_reading() -> bool:
            async with db.read() as connection:
                return await connection.scalar(_WAITING) == 1

        await eventually(is_reading)
        async with db.read() as connection:
            assert await connection.scalar(text("SELECT amount FROM resource_limits FOR UPDATE SKIP LOCKED")) == 100
        assert not setting.done()
    assert await setting == 0
