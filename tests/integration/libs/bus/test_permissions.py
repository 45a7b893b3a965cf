"""Launchers can do what they need, and nothing else, with the permissions that ``resolute up`` hands out."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from nats.errors import TimeoutError as NoAnswer

from deploy import nats_configuration
from deploy.nats_configuration import SERVICES, SUBSCRIBER, launcher_user
from libs.bus import Bus, BusSettings, CoreMessage, KvChange, Outbound, SnapshotEnd, connect_bus
from libs.errors import NotFound, Unavailable
from libs.events.cluster_admin import FIND_NAMESPACE
from libs.events.permissions import SERVICES_INBOX, launcher_inbox
from libs.events.subjects import (
    ALL_EVENTS,
    CAPACITY_BUCKET,
    EVENTS_STREAM,
    LOGS_STREAM,
    OBSERVER,
    ORDERS_BUCKET,
    capacity_key,
    event,
    kv_subject,
    launcher_rpc,
    launcher_rpcs,
    logs,
    logs_of_launcher,
    observed,
    observed_by,
    order_key,
    orders_of,
    placeholders_key,
)
from tests.harness import NatsServer, eventually
from tests.harness.waiting import PATIENCE_S
from tests.integration.libs.bus.users import OURS, PASSWORDS, THEIRS, launcher_settings, raw, services_settings


@asynccontextmanager
async def hearing(bus: Bus, subject: str) -> AsyncIterator[list[CoreMessage]]:
    heard: list[CoreMessage] = []

    async def note(message: CoreMessage) -> None:
        heard.append(message)

    async with bus.subscribe(subject, note):
        yield heard


def allocation() -> str:
    return f"1.{uuid4()}.1"


async def test_a_launcher_watches_the_orders_of_its_pool(services: Bus, launcher: Bus) -> None:
    ours, theirs = order_key(OURS, allocation()), order_key(THEIRS, allocation())
    orders = services.bucket(ORDERS_BUCKET)
    async with aclosing(launcher.bucket(ORDERS_BUCKET).watch(orders_of(OURS))) as changes:
        while not isinstance(await anext(changes), SnapshotEnd):
            pass
        await orders.put(theirs, b"run")
        await orders.put(ours, b"run")
        change = await anext(changes)
        assert isinstance(change, KvChange)
        assert (change.key, change.value) == (ours, b"run")
        await orders.delete(ours)
        change = await anext(changes)
        assert isinstance(change, KvChange)
        assert (change.key, change.value) == (ours, None)


async def test_a_launcher_watches_the_placeholders_of_its_pool(services: Bus, launcher: Bus) -> None:
    orders = services.bucket(ORDERS_BUCKET)
    async with (
        aclosing(launcher.bucket(ORDERS_BUCKET).watch(orders_of(OURS))) as others,
        aclosing(launcher.bucket(ORDERS_BUCKET).watch(placeholders_key(OURS))) as changes,
    ):
        for watched in (others, changes):
            while not isinstance(await anext(watched), SnapshotEnd):
                pass
        await orders.put(placeholders_key(THEIRS), b"hold")
        await orders.put(placeholders_key(OURS), b"hold")
        change = await anext(changes)
        assert isinstance(change, KvChange)
        assert change.key == placeholders_key(OURS)
        last = order_key(OURS, allocation())
        await orders.put(last, b"run")
        change = await anext(others)
        assert isinstance(change, KvChange)
        assert change.key == last, "launchers that know of no placeholders do not see them"


async def test_a_launcher_reports_and_speaks_for_its_pool(services: Bus, launcher: Bus) -> None:
    seen = allocation()
    async with hearing(services, observed_by()) as observations:
        await launcher.publish(observed(OURS, seen), b"{}", msg_id=f"{seen}/1")
        await eventually(lambda: [message.subject for message in observations] == [observed(OURS, seen)])
    await launcher.bucket(CAPACITY_BUCKET).put(capacity_key(OURS), b"{}")
    entry = await services.bucket(CAPACITY_BUCKET).get(capacity_key(OURS))
    assert entry is not None
    await launcher.publish(logs_of_launcher(OURS, "1.a"), b"batch", msg_id=uuid4().hex)


async def test_a_launcher_answers_what_it_is_asked(services: Bus, launcher: Bus) -> None:
    async def answer(message: CoreMessage) -> bytes:
        if message.data == b"gone":
            raise NotFound("namespace", "gone")
        return b"yes"

    async with launcher.serve(launcher_rpcs(OURS), answer, queue="launcher"):
        asked = launcher_rpc(OURS, FIND_NAMESPACE)
        for _ in range(3):
            assert await services.request(asked, b"there") == b"yes"
        with pytest.raises(NotFound):
            await services.request(asked, b"gone")


WRITES: dict[str, Callable[[Bus], Any]] = {
    "its own order": lambda bus: bus.bucket(ORDERS_BUCKET).put(order_key(OURS, "1.a.1"), b"mine"),
    "the order of another": lambda bus: bus.bucket(ORDERS_BUCKET).put(order_key(THEIRS, "1.a.1"), b"mine"),
    "the capacity of another": lambda bus: bus.bucket(CAPACITY_BUCKET).put(capacity_key(THEIRS), b"{}"),
    "an observation of another": lambda bus: bus.publish(observed(THEIRS, "1.a.1"), b"{}"),
    "the end of an allocation": lambda bus: bus.publish(event("allocation", "1.a.1", "ended"), b"{}"),
    "any other event": lambda bus: bus.publish(event("trial", 1, "state"), b"{}"),
    "lines of pods": lambda bus: bus.publish(logs("1.a"), b"batch"),
    "lines of another launcher": lambda bus: bus.publish(logs_of_launcher(THEIRS, "1.a"), b"batch"),
    "several at once": lambda bus: sent_ahead(bus, Outbound(event("trial", 1, "state"), b"{}", "1")),
}
READS: dict[str, Callable[[Bus], Any]] = {
    "the order of another": lambda bus: bus.bucket(ORDERS_BUCKET).get(order_key(THEIRS, "1.a.1")),
    "which orders there are": lambda bus: bus.bucket(ORDERS_BUCKET).keys(),
    "the placeholders of another": lambda bus: bus.bucket(ORDERS_BUCKET).keys(placeholders_key(THEIRS)),
    "which orders another has": lambda bus: bus.bucket(ORDERS_BUCKET).keys(orders_of(THEIRS)),
    "capacities": lambda bus: bus.bucket(CAPACITY_BUCKET).keys(),
}


async def sent_ahead(bus: Bus, message: Outbound) -> None:
    if await bus.publish_ahead([message]) == 0:
        raise Unavailable("it was not stored")


@pytest.mark.parametrize("what", WRITES)
async def test_a_launcher_writes_nothing_else(refused: Bus, what: str) -> None:
    with pytest.raises(Unavailable):
        await WRITES[what](refused)


@pytest.mark.parametrize("what", READS)
async def test_a_launcher_reads_nothing_else(services: Bus, refused: Bus, what: str) -> None:
    await services.bucket(ORDERS_BUCKET).put(order_key(THEIRS, "1.a.1"), b"run")
    with pytest.raises(Unavailable):
        await READS[what](refused)


@pytest.mark.parametrize(
    "subject",
    [
        ALL_EVENTS,
        kv_subject(ORDERS_BUCKET, orders_of(THEIRS)),
        kv_subject(ORDERS_BUCKET, ">"),
        f"{launcher_inbox(THEIRS)}.>",
        f"{SERVICES_INBOX}.>",
        "_INBOX.>",
        launcher_rpcs(THEIRS),
        "$JS.>",
        ">",
    ],
)
@pytest.mark.parametrize("user", [launcher_user(OURS), SUBSCRIBER])
async def test_nobody_listens_to_what_is_not_his(guarded: NatsServer, user: str, subject: str) -> None:
    allowed = {(SUBSCRIBER, ALL_EVENTS), (SUBSCRIBER, "_INBOX.>")}
    async with raw(guarded, user, launcher_inbox(OURS) if user != SUBSCRIBER else "_INBOX") as (client, refused):
        await client.subscribe(subject)
        await client.flush()
        await eventually(lambda: bool(refused) != ((user, subject) in allowed))


async def test_a_launcher_manages_no_streams(guarded: NatsServer, services: Bus) -> None:
    async with raw(guarded, launcher_user(OURS), launcher_inbox(OURS)) as (client, refused):
        for asked in (
            f"STREAM.INFO.{EVENTS_STREAM}",
            f"STREAM.DELETE.{LOGS_STREAM}",
            f"STREAM.PURGE.KV_{ORDERS_BUCKET}",
            f"STREAM.MSG.GET.KV_{ORDERS_BUCKET}",
            f"CONSUMER.NAMES.KV_{ORDERS_BUCKET}",
            f"CONSUMER.CREATE.KV_{ORDERS_BUCKET}",
            f"CONSUMER.CREATE.KV_{ORDERS_BUCKET}.x",
            f"CONSUMER.CREATE.KV_{ORDERS_BUCKET}.x.{kv_subject(ORDERS_BUCKET, '>')}",
            f"CONSUMER.CREATE.{EVENTS_STREAM}.x",
            f"CONSUMER.DELETE.{EVENTS_STREAM}.{OBSERVER}",
            "STREAM.NAMES",
        ):
            with pytest.raises(NoAnswer):
                await client.request(f"$JS.API.{asked}", b"{}", timeout=0.1)
        await eventually(lambda: len(refused) == 11)


async def test_the_filter_of_a_watch_is_what_its_subject_says(guarded: NatsServer, services: Bus) -> None:
    """Else the permission on the subject would be worth nothing."""
    own = kv_subject(ORDERS_BUCKET, orders_of(OURS))
    async with raw(guarded, launcher_user(OURS), launcher_inbox(OURS)) as (client, _):
        for filters in ({"filter_subject": kv_subject(ORDERS_BUCKET, ">")}, {"filter_subjects": ["$KV.ORDERS.>"]}):
            config = {"name": "x", "ack_policy": "none", **filters}
            body = {"stream_name": f"KV_{ORDERS_BUCKET}", "config": config}
            subject = f"$JS.API.CONSUMER.CREATE.KV_{ORDERS_BUCKET}.x.{own}"
            reply = await client.request(subject, json.dumps(body).encode(), timeout=PATIENCE_S)
            assert json.loads(reply.data)["error"]["code"] == 400


@pytest.mark.parametrize("credentials", [{}, {"user": SERVICES}, {"user": SERVICES, "password": "wrong"}])
async def test_nobody_else_gets_in(guarded: NatsServer, credentials: dict[str, str]) -> None:
    """Not even to do nothing: making streams is refused to all but the services anyhow."""
    settings = BusSettings(url=guarded.url, connect_timeout_s=1.0, manage_streams=False, **credentials)
    with pytest.raises(Unavailable):
        async with connect_bus(settings):
            pass


async def test_launchers_of_a_server_without_streams_wait_for_them(server_directory: Path) -> None:
    config = nats_configuration.authorization(PASSWORDS, (OURS,))
    server = NatsServer(server_directory / uuid4().hex[:8], extra_config=config, dies_with_parent=True)
    await asyncio.to_thread(server.start)
    try:
        async with (
            connect_bus(launcher_settings(server, OURS)) as below,
            aclosing(below.bucket(ORDERS_BUCKET).watch(orders_of(OURS))) as changes,
        ):
            first = asyncio.ensure_future(anext(changes))
            with pytest.raises(Unavailable):
                await below.bucket(CAPACITY_BUCKET).put(capacity_key(OURS), b"{}")
            assert not first.done()
            async with connect_bus(services_settings(server)):
                assert await first == SnapshotEnd(frozenset())
                await below.bucket(CAPACITY_BUCKET).put(capacity_key(OURS), b"{}")
    finally:
        server.stop()


def test_the_configuration_of_the_server_is_for_its_owner_only(guarded: NatsServer) -> None:
    path = guarded.directory / "nats.conf"
    assert path.stat().st_mode & 0o077 == 0
    assert re.search(r"password", path.read_text())
