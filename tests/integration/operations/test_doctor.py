"""``resolute doctor`` on real servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import asyncpg
import msgspec

from deploy.nats_configuration import SERVICES, SUBSCRIBER, SUPERVISOR, authorization, launcher_user
from deploy.operations.doctor.bus_users import check_users
from deploy.operations.doctor.command import examine
from deploy.operations.settings import OperationsSettings
from libs.bus import BusSettings, CoreMessage, connect_bus
from libs.clock import SystemClock
from libs.db.connecting.settings import DatabaseSettings, asyncpg_url
from libs.db.relay import RELAY_LOCK
from libs.errors import FailedPrecondition
from libs.events import subjects
from libs.events.capacity import NodeCapacity, PoolCapacity
from libs.events.cluster_admin import FIND_NAMESPACE
from libs.events.permissions import SERVICES_INBOX
from services.scheduler.scheduler_lease import SCHEDULER_LOCK
from tests.harness import NatsServer


async def examined(database_url: str, bus_settings: BusSettings) -> dict[str, set[str]]:
    settings = OperationsSettings(database=DatabaseSettings(url=database_url), bus=bus_settings)
    by_part: dict[str, set[str]] = {}
    for finding in await examine(settings, SystemClock()):
        by_part.setdefault(finding.part, set()).add(finding.level)
    return by_part


@asynccontextmanager
async def locked(database_url: str, *keys: int) -> AsyncIterator[None]:
    """What the services that act hold."""
    connection = await asyncpg.connect(asyncpg_url(database_url))
    try:
        for key in keys:
            assert await connection.fetchval("SELECT pg_try_advisory_lock($1)", key)
        yield
    finally:
        await connection.close()


async def test_a_system_in_which_nobody_acts_says_so(database_url: str, bus_settings: BusSettings) -> None:
    found = await examined(database_url, bus_settings)
    assert (found["scheduler"], found["outbox"]) == ({"problem"}, {"problem"})


async def test_nothing_is_wrong_with_a_system_that_works(database_url: str, bus_settings: BusSettings) -> None:
    async def answer(message: CoreMessage) -> bytes:
        raise FailedPrecondition("no namespaces here")

    async with connect_bus(bus_settings) as bus, locked(database_url, SCHEDULER_LOCK, RELAY_LOCK):
        capacity = PoolCapacity(
            pool="default", backend="process", nodes=(NodeCapacity(name="n"),), seen_at=datetime.now(UTC).isoformat()
        )
        await bus.bucket(subjects.CAPACITY_BUCKET).put("default", msgspec.json.encode(capacity))
        async with bus.serve(subjects.launcher_rpc("default", FIND_NAMESPACE), answer):
            assert await examined(database_url, bus_settings) == {
                "database": {"ok"},
                "scheduler": {"ok"},
                "outbox": {"ok"},
                "summaries of metrics": {"ok"},
                "bus": {"ok"},
                "launcher of default": {"ok"},
                "capacity of default": {"warning"},
                "task pages": {"warning"},
                "checkpoint storage": {"warning"},
            }


async def test_what_is_missing_is_found_and_not_made(database_url: str, bus_settings: BusSettings) -> None:
    for _ in range(2):
        found = await examined(f"{database_url}-of-nobody", bus_settings)
        assert found["database"] == {"problem"}
        assert "problem" in found["bus"]
        assert found["launcher of default"] == {"problem"}


async def test_users_of_the_bus_may_do_what_the_code_says(tmp_path: Path) -> None:
    """One may do more than that: what happens where somebody configures users by hand."""
    users = [SERVICES, SUPERVISOR, SUBSCRIBER, launcher_user("a"), launcher_user("b")]
    passwords = {user: f"of {user}" for user in users}
    told = authorization(passwords, ["a", "b"])
    server = NatsServer(
        tmp_path, extra_config=told.replace(subjects.observed_by("a"), "resolute.v1.>"), dies_with_parent=True
    )
    server.start()
    try:
        settings = BusSettings(url=server.url, user=SERVICES, password=passwords[SERVICES], inbox_prefix=SERVICES_INBOX)
        findings = {
            each.part: each for each in await check_users(settings, passwords | {SUBSCRIBER: "wrong"}, ["a", "b"])
        }
    finally:
        server.stop()
    levels = {part.split()[1]: each.level for part, each in findings.items()}
    assert levels == {
        SERVICES: "ok",
        SUPERVISOR: "ok",
        SUBSCRIBER: "warning",
        "launcher-a": "problem",
        "launcher-b": "ok",
    }
    said = findings["user launcher-a of the bus"].says
    assert said == f"may not publish {subjects.observed_by('a')}; may publish resolute.v1.> too"
