"""What shares have used of a pool that remembers it: what is shown of it, and to whom."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
import pytest
import pytest_asyncio
from sqlalchemy import text

from libs.capacity import CapacityView
from libs.cluster.config import ClusterConfig, PoolConfig, SchedulerConfig
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import Database, connect_database
from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from libs.ids import UserId
from libs.slot_hours.decayed_use import UseOfPools
from services.api.access.principal import Principal
from services.api.access.rights.rights import UserRights
from services.api.queries.cluster.share_use import list_used
from services.api.wire.cluster.shares import GetSharesQuery

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOW: Final = datetime(2030, 5, 15, 12, tzinfo=UTC)
DAY: Final = timedelta(days=1)
ADMIN, DETERMINED = 1, 2
_RAN: Final = text("""
    INSERT INTO allocation_usage (allocation_id, task_id, task_type, owner_id, workspace_name, workspace_id, pool,
                                  slots, requested_at, start_time, end_time)
    VALUES (:id, :id, 'TRIAL', :owner, '', 1, 'default', :slots, :start, :start, :end)
""")
_WEIGH: Final = text(
    "INSERT INTO share_weights (scope, subject_id, weight, set_by, set_at) VALUES ('user', :user, 3, 1, now())"
)


@pytest_asyncio.fixture(loop_scope="module")
async def db(database_url: str) -> AsyncIterator[Database]:
    async with connect_database(DatabaseSettings(url=database_url, pool_size=4)) as db:
        async with db.transaction() as connection:
            for table in ("allocation_usage", "share_weights"):
                await connection.execute(text(f"DELETE FROM {table}"))
        yield db


class Capacities(CapacityView):
    """Those of one pool with eight slots."""

    def of(self, pool: str) -> PoolCapacity | None:
        node = NodeCapacity(name="node0", devices=tuple(Device(id=f"{each:03}") for each in range(8)))
        return PoolCapacity(pool=pool, backend="process", nodes=(node,))


async def shown(db: Database, user: int, *share_by: str, half_life: str | None = "1d") -> dict[str, list[float]]:
    """Weight, use and what it would get, by path."""
    scheduler = msgspec.convert({"type": "fair_share", "share_by": share_by, "half_life": half_life}, SchedulerConfig)
    cluster = ClusterConfig(resource_pools=(PoolConfig(pool_name="default", scheduler=scheduler),))
    rights = UserRights(Principal(user_id=UserId(user), username="", admin=user == ADMIN))
    async with db.read() as connection:
        found = await list_used(
            connection,
            GetSharesQuery(),
            cluster=cluster,
            capacity=Capacities(),
            use=UseOfPools(),
            rights=rights,
            now=NOW,
        )
    assert {one.resource_pool for one in found} <= {"default"}
    return {
        "/".join(f"{part.scope.value} {part.name}" for part in one.share): [
            one.weight,
            one.used_slots,
            one.effective_slots,
        ]
        for one in found
    }


async def test_use_by_share_and_what_each_would_get(db: Database) -> None:
    await ran(db, ADMIN, NOW - DAY, NOW, slots=8)
    await ran(db, DETERMINED, NOW - 2 * DAY, NOW - DAY, slots=8)
    assert await shown(db, ADMIN, "user") == {"user admin": [1, 4, 3], "user determined": [1, 2, 5]}
    async with db.transaction() as connection:
        await connection.execute(_WEIGH, {"user": DETERMINED})
    weighed = {"user admin": [1, 4, 0], "user determined": [3, 2, 8]}
    assert await shown(db, ADMIN, "user") == weighed
    assert await shown(db, ADMIN, "workspace", "user") == {
        "workspace Uncategorized": [1, 6, 8],
        **{f"workspace Uncategorized/{path}": numbers for path, numbers in weighed.items()},
    }


async def test_others_are_shown_what_concerns_them(db: Database) -> None:
    await ran(db, ADMIN, NOW - DAY, NOW, slots=8)
    await ran(db, DETERMINED, NOW - DAY, NOW, slots=8)
    assert list(await shown(db, DETERMINED, "user")) == ["user determined"]


async def test_nothing_of_pools_that_remember_nothing(db: Database) -> None:
    await ran(db, ADMIN, NOW - DAY, NOW, slots=8)
    assert await shown(db, ADMIN, "user", half_life=None) == {}


async def ran(db: Database, owner: int, start: datetime, end: datetime, *, slots: int) -> None:
    async with db.transaction() as connection:
        values = {"id": f"{owner} at {start}", "owner": owner, "slots": slots, "start": start, "end": end}
        await connection.execute(_RAN, values)
