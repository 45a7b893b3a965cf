"""``resolute doctor`` on real servers."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from deploy.operations.doctor.command import examine
from deploy.operations.settings import OperationsSettings
from libs.bus import BusSettings, CoreMessage, connect_bus
from libs.clock import SystemClock
from libs.db.engine import DatabaseSettings
from libs.errors import FailedPrecondition
from libs.events import subjects
from libs.events.capacity import NodeCapacity, PoolCapacity
from libs.events.cluster_admin import FIND_NAMESPACE


async def examined(database_url: str, bus_settings: BusSettings) -> dict[str, set[str]]:
    settings = OperationsSettings(database=DatabaseSettings(url=database_url), bus=bus_settings)
    by_part: dict[str, set[str]] = {}
    for finding in await examine(settings, SystemClock()):
        by_part.setdefault(finding.part, set()).add(finding.level)
    return by_part


async def test_nothing_is_wrong_with_a_system_that_works(database_url: str, bus_settings: BusSettings) -> None:
    async def answer(message: CoreMessage) -> bytes:
        raise FailedPrecondition("no namespaces here")

    async with connect_bus(bus_settings) as bus:
        capacity = PoolCapacity(
            pool="default", backend="process", nodes=(NodeCapacity(name="n"),), seen_at=datetime.now(UTC).isoformat()
        )
        await bus.bucket(subjects.CAPACITY_BUCKET).put("default", msgspec.json.encode(capacity))
        async with bus.serve(subjects.launcher_rpc("default", FIND_NAMESPACE), answer):
            assert await examined(database_url, bus_settings) == {
                "database": {"ok"},
                "bus": {"ok"},
                "launcher of default": {"ok"},
                "capacity of default": {"warning"},
                "checkpoint storage": {"ok"},
            }


async def test_what_is_missing_is_found_and_not_made(database_url: str, bus_settings: BusSettings) -> None:
    for _ in range(2):
        found = await examined(f"{database_url}-of-nobody", bus_settings)
        assert found["database"] == {"problem"}
        assert "problem" in found["bus"]
        assert found["launcher of default"] == {"problem"}
