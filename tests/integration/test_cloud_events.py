"""Everything that subscribers get is a CloudEvent, and what docs/asyncapi.yaml says it is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, get_args, get_type_hints

import msgspec
import pytest
from sqlalchemy import text

from libs.bus import Bus, CoreMessage
from libs.clock import SystemClock
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import connect_database
from libs.db.outbox import announce, enqueue, message
from libs.db.relay import relay_outbox
from libs.events import subjects
from libs.events.capacity import PoolCapacity
from libs.events.changes import PoolChanged, PublicEvent
from libs.events.observations import AllocationObserved, ObservedPod
from libs.run_until_first_exits import end
from libs.tracing.context import CURRENT, TraceContext
from services.launcher.reports import Reports
from services.launcher.settings import LoopSettings
from tests.harness import eventually
from tests.harness.cloud_events import CONTRACT, check_contract, read_cloud_event

TRACE = TraceContext("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
SAMPLES: dict[Any, Any] = {int: 7, str: "x", float: 0.5}


def one_of_each() -> Iterator[PublicEvent]:
    """An event of every struct for everything that may have happened, with every field set."""
    for struct in get_args(PublicEvent):
        hints = get_type_hints(struct)
        for what in get_args(hints.pop("what")):
            fields = {name: sample(hint) for name, hint in hints.items() if name in struct.__struct_fields__}
            yield msgspec.convert({"type": struct.__struct_config__.tag, "what": what, **fields}, struct)


def sample(hint: Any) -> Any:
    kind = next((each for each in get_args(hint) if each is not type(None)), hint)
    return SAMPLES.get(kind, {"a": 1})


@pytest.fixture
def heard() -> list[CoreMessage]:
    return []


async def test_one_event_of_every_kind(database_url: str, bus: Bus, heard: list[CoreMessage]) -> None:
    events = list(one_of_each())

    async def hear(message: CoreMessage) -> None:
        heard.append(message)

    async with (
        connect_database(DatabaseSettings(url=database_url, pool_size=3)) as db,
        bus.subscribe(subjects.ALL_EVENTS, hear),
    ):
        token = CURRENT.set(TRACE)
        async with db.transaction() as connection:
            began_at = (await connection.execute(text("SELECT now()"))).scalar_one()
            await announce(connection, *events)
        CURRENT.reset(token)
        cluster_id = await _cluster_id(db)
        await asyncio.sleep(0.05)  # so that the time of the relay is another one
        relay = asyncio.ensure_future(relay_outbox(db, bus))
        await eventually(lambda: _is_published(db))
        await eventually(lambda: len(heard) >= len(events))
        await end(relay)

    for event, found in zip(events, heard, strict=True):
        read = read_cloud_event(found.headers, found.data)
        _, _, entity, ident, what = found.subject.split(".")
        assert read.get_type() == f"resolute.v1.{entity}.{what}"
        assert read.get_source() == f"/resolute/{cluster_id}"
        assert read.get_subject() == ident
        assert read.get_time() == began_at
        assert read.get_extension("traceparent") == TRACE.traceparent == found.headers["traceparent"]
        assert read.get_datacontenttype() == "application/json"
        assert read.get_data() == msgspec.to_builtins(event)
        check_contract(found.headers, read.get_data())
    assert len({read_cloud_event(each.headers, each.data).get_id() for each in heard}) == len(events)


async def test_what_launchers_see_is_a_cloud_event(bus: Bus, heard: list[CoreMessage]) -> None:
    async def hear(message: CoreMessage) -> None:
        heard.append(message)

    async def capacity() -> PoolCapacity:
        raise AssertionError("nobody asks for it here")

    reports = Reports(pool="große A100", bus=bus, capacity=capacity, clock=SystemClock(), settings=LoopSettings())
    async with bus.subscribe(subjects.observed_by(), hear):
        before = datetime.now(UTC)
        publishing = asyncio.ensure_future(reports.publish_observations())
        pods = (ObservedPod(name="p", state="RUNNING", addresses=("10.0.0.1",)),)
        reports.observed(AllocationObserved(allocation="1.a", pool="große A100", revision=0, pods=pods))
        await eventually(lambda: heard)
        await end(publishing)
    read = read_cloud_event(heard[0].headers, heard[0].data)
    assert (read.get_type(), read.get_subject()) == ("allocation.observed", "1.a")
    assert read.get_source() == "/resolute/launcher/gro%C3%9Fe%20A100"
    time = read.get_time()
    assert time is not None
    assert before <= time <= datetime.now(UTC)
    check_contract(heard[0].headers, read.get_data())


async def test_names_that_no_header_may_have_arrive_as_they_are(
    database_url: str, bus: Bus, heard: list[CoreMessage]
) -> None:
    name = 'große "100%"\r\nce-type: x'

    async def hear(message: CoreMessage) -> None:
        heard.append(message)

    async with (
        connect_database(DatabaseSettings(url=database_url, pool_size=3)) as db,
        bus.subscribe(subjects.ALL_EVENTS, hear),
    ):
        async with db.transaction() as connection:
            await announce(connection, PoolChanged(pool=name, what="queue"))
            # What is no event has no attributes of one.
            await enqueue(connection, message(subjects.event("pool", 1, "queue"), b"{}"))
        relay = asyncio.ensure_future(relay_outbox(db, bus))
        await eventually(lambda: _is_published(db))
        await eventually(lambda: len(heard) == 2)
        await end(relay)
    assert read_cloud_event(heard[0].headers, heard[0].data).get_subject() == name
    assert not [each for each in heard[1].headers if each.startswith("ce-")]


def test_the_contract_has_no_kind_that_is_not_read_here() -> None:
    named = {type(event).__name__ for event in one_of_each()} | {AllocationObserved.__name__}
    described = {
        name
        for name, about in CONTRACT["components"]["messages"].items()
        if about.get("headers") == {"$ref": "#/components/schemas/EventHeaders"}
    }
    assert described == named


async def _cluster_id(db: Any) -> str:
    async with db.read() as connection:
        return str((await connection.execute(text("SELECT cluster_id FROM cluster"))).scalar_one())


async def _is_published(db: Any) -> bool:
    async with db.read() as connection:
        return not (await connection.execute(text("SELECT count(*) FROM outbox"))).scalar_one()
