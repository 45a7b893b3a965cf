"""Receivers that fail, hang, redirect or refuse; a sender that is killed (docs/reference/platform.md 11)."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from sqlalchemy import func, select, text

from libs.bus import BusSettings
from libs.cluster.config import WebhooksConfig
from libs.db.tables.webhooks import webhook_deliveries
from libs.outbound.addresses import networks
from libs.webhooks.posting import DeliveryFailed, open_poster
from libs.webhooks.signatures import SIGNATURE, TIMESTAMP, signature
from services.scheduler.webhooks.receiver import SETTLED_TOGETHER
from tests.harness import ServiceProcess, eventually
from tests.harness.webhook_receiver import Received, hang, webhook_receiver
from tests.integration.scheduler.webhooks.conftest import Hooks

LOOPBACK = networks(("127.0.0.0/8",))


async def test_receiver_that_fails_twice_gets_the_event_again(hooks: Hooks) -> None:
    async def answer(_: Received) -> web.Response:
        return web.Response(status=503 if len(receiver.received) <= 2 else 200)

    async with webhook_receiver(answer) as receiver:
        [event] = await hooks.enqueue(await hooks.add(receiver.url))
        async with hooks.sending():
            await eventually(lambda: len(receiver.received) == 3)
            await eventually(hooks_empty(hooks))
        assert receiver.times() == {event: 3}
        assert len({each.body for each in receiver.received}) == 1
        for each in receiver.received:
            assert each.headers[SIGNATURE] == signature(each.body, key="k", timestamp=each.headers[TIMESTAMP])
            assert each.headers["Content-Type"] == "application/json; charset=UTF-8"


@pytest.mark.parametrize("status", [400, 404, 410])
async def test_receiver_that_refuses_is_not_asked_again(hooks: Hooks, status: int) -> None:
    async def answer(_: Received) -> web.Response:
        return web.Response(status=status)

    async with webhook_receiver(answer) as receiver:
        await hooks.enqueue(await hooks.add(receiver.url))
        async with hooks.sending():
            await eventually(hooks_empty(hooks))
        assert len(receiver.received) == 1


async def test_event_that_is_always_refused_for_now_holds_up_no_other(hooks: Hooks) -> None:
    async def answer(received: Received) -> web.Response:
        return web.Response(status=500 if received.json["event_id"] == poison else 200)

    async with webhook_receiver(answer) as receiver:
        webhook = await hooks.add(receiver.url)
        [poison] = await hooks.enqueue(webhook)
        others = await hooks.enqueue(webhook, 20)
        async with hooks.sending():
            await eventually(lambda: set(others) <= set(receiver.times()))
            await eventually(lambda: receiver.times()[poison] >= 2)
        assert await hooks.waiting() == 1


async def test_many_events_come_once_each_and_are_forgotten_on_the_way(hooks: Hooks) -> None:
    """Before all are sent: what a killed scheduler has sent comes again only as far as it was not forgotten yet."""
    may_end = asyncio.Event()

    async def answer(received: Received) -> web.Response:
        if received.json["event_id"] == last:
            await may_end.wait()
        return web.Response()

    async with webhook_receiver(answer) as receiver:
        events = await hooks.enqueue(await hooks.add(receiver.url), 200)
        last = events[-1]
        async with hooks.sending():
            await eventually(lambda: len(receiver.received) == 200)
            await eventually(hooks_have_at_most(hooks, SETTLED_TOGETHER))
            may_end.set()
            await eventually(hooks_empty(hooks))
        assert receiver.times() == dict.fromkeys(events, 1)


async def test_a_database_that_is_lost_on_the_way_has_nothing_sent_twice(hooks: Hooks) -> None:
    forgetting = text("SELECT pid FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'")
    async with webhook_receiver() as receiver, AsyncExitStack() as held:
        events = await hooks.enqueue(await hooks.add(receiver.url), 150)
        blocker = await held.enter_async_context(hooks.db.transaction())
        await blocker.execute(select(webhook_deliveries.c.id).with_for_update())

        async def who_forgets() -> int | None:
            return (await blocker.execute(forgetting)).scalar()

        async with hooks.sending():
            cut = await eventually(who_forgets)
            await blocker.execute(select(func.pg_terminate_backend(cut)))
            await held.aclose()
            await eventually(hooks_empty(hooks))
        assert receiver.times() == dict.fromkeys(events, 1)


async def test_old_event_is_given_up(hooks: Hooks) -> None:
    async def answer(_: Received) -> web.Response:
        return web.Response(status=500)

    async with webhook_receiver(answer) as receiver:
        await hooks.enqueue(await hooks.add(receiver.url))
        async with hooks.sending(kept_s=0):
            await eventually(hooks_empty(hooks))
        assert len(receiver.received) == 1


async def test_receiver_that_hangs_delays_nobody_else(hooks: Hooks) -> None:
    async with webhook_receiver(hang) as hanging, webhook_receiver() as good:
        await hooks.enqueue(await hooks.add(hanging.url), 50)
        events = await hooks.enqueue(await hooks.add(good.url), 200)
        async with hooks.sending(timeout_s=300):
            await eventually(lambda: len(hanging.received) == 8)  # all its connections are taken
            await eventually(lambda: len(good.received) == 200)
            assert good.times() == dict.fromkeys(events, 1)
            more = await hooks.enqueue(await hooks.add(good.url), 10)
            await eventually(lambda: set(more) <= set(good.times()))
            assert len(hanging.received) == 8


async def test_pending_events_outlive_a_sender_that_is_killed(
    hooks: Hooks, bus_settings: BusSettings, tmp_path: Path
) -> None:
    async def slow(_: Received) -> web.Response:
        await asyncio.sleep(0.05)
        return web.Response()

    async with webhook_receiver(slow) as receiver:
        events = await hooks.enqueue(await hooks.add(receiver.url), 100)
        process = scheduler(hooks, bus_settings, tmp_path)
        with process:
            await eventually(lambda: len(receiver.received) >= 20)
            await asyncio.to_thread(process.kill)
            assert len(receiver.times()) < 100
            await asyncio.to_thread(process.start)
            await eventually(lambda: set(receiver.times()) == set(events))
            await eventually(hooks_empty(hooks))
            assert await asyncio.to_thread(process.stop) == 0


def scheduler(hooks: Hooks, bus_settings: BusSettings, tmp_path: Path) -> ServiceProcess:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(json.dumps({"webhooks": {"allowed_networks": ["127.0.0.0/8"]}}))
    settings = tmp_path / "scheduler.yaml"
    settings.write_text(
        json.dumps(
            {
                "database": {"url": hooks.db.url, "pool_size": 5},
                "bus": {"url": bus_settings.url},
                "cluster_config": str(cluster),
                "lease": {"retry_s": 0.1},
            }
        )
    )
    return ServiceProcess("services.scheduler.main", "--settings", str(settings), log_path=tmp_path / "log")


async def test_private_addresses_are_refused_unless_they_are_allowed(hooks: Hooks) -> None:
    async with webhook_receiver() as receiver:
        await hooks.enqueue(await hooks.add(receiver.url))
        async with hooks.sending(config=WebhooksConfig()):
            await eventually(has_failed(hooks))
        assert receiver.received == []
        async with hooks.sending():
            await eventually(lambda: len(receiver.received) == 1)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", "private address"),
        ("localhost", "private address"),
        ("[::ffff:127.0.0.1]", "private address"),
        ("[::ffff:7f00:1]", "private address"),
        # Some resolvers take these for 127.0.0.1, others for nothing.
        ("2130706433", None),
        ("0177.0.0.1", None),
        ("0x7f.0.0.1", None),
        ("0x7f000001", None),
        ("127.1", None),
    ],
)
async def test_every_name_of_a_private_address_is_refused(host: str, expected: str | None) -> None:
    async with webhook_receiver() as receiver, open_poster(allowed=(), timeout_s=30) as poster:
        with pytest.raises(DeliveryFailed, match=expected):
            await poster.post(f"http://{host}:{receiver.port}/", b"{}", {})
        assert receiver.received == []


Addresses = list[tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[str, int]]]


def resolving(monkeypatch: pytest.MonkeyPatch, name: str, *answers: list[str]) -> list[str]:
    """A name server whose answers for a name follow each other, the last one for ever; returns who was asked for."""
    asked: list[str] = []
    real = socket.getaddrinfo

    def answer(host: str, port: int, *rest: Any, **more: Any) -> Any:
        if host != name:
            return real(host, port, *rest, **more)
        asked.append(host)
        found: Addresses = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in answers[min(len(asked), len(answers)) - 1]
        ]
        return found

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    return asked


async def test_what_was_checked_is_what_is_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that leads elsewhere when it is looked up again: nobody looks it up again between check and connection."""
    asked = resolving(monkeypatch, "rebinding.example.com", ["127.0.0.2"], ["127.0.0.1"])
    public = networks(("127.0.0.2/32",))
    async with webhook_receiver() as inner, webhook_receiver(host="127.0.0.2", port=inner.port) as outer:
        url = f"http://rebinding.example.com:{inner.port}/"
        async with open_poster(allowed=public, timeout_s=30) as poster:
            await poster.post(url, b"{}", {})
        assert (len(asked), len(outer.received)) == (1, 1)
        async with open_poster(allowed=public, timeout_s=30) as poster:
            with pytest.raises(DeliveryFailed, match=r"127\.0\.0\.1 is a private address"):
                await poster.post(url, b"{}", {})
        assert inner.received == []


async def test_each_address_of_a_name_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that are tried because nobody answers at the first."""
    asked = resolving(monkeypatch, "both.example.com", ["127.0.0.2", "127.0.0.1"])
    async with webhook_receiver() as inner, open_poster(allowed=networks(("127.0.0.2",)), timeout_s=30) as poster:
        with pytest.raises(DeliveryFailed):
            await poster.post(f"http://both.example.com:{inner.port}/", b"{}", {})
        assert (asked, inner.received) == (["both.example.com"], [])


@pytest.mark.parametrize("host", ["127.0.0.2", "[::ffff:127.0.0.2]"])
async def test_redirect_to_a_private_address_is_refused(host: str) -> None:
    async def redirect(_: Received) -> web.Response:
        return web.Response(status=307, headers={"Location": f"http://{host}:{inner.port}/secret"})

    only_outer = networks(("127.0.0.1/32",))
    async with webhook_receiver(redirect) as outer, webhook_receiver(host="127.0.0.2") as inner:
        async with open_poster(allowed=only_outer, timeout_s=30) as poster:
            with pytest.raises(DeliveryFailed, match="2 is a private address"):
                await poster.post(outer.url, b"{}", {})
        assert len(outer.received) == 1
        assert inner.received == []


async def test_redirect_that_keeps_the_request_is_followed_a_few_times() -> None:
    async def redirect(received: Received) -> web.Response:
        hops = int(received.path.strip("/") or 0) if received.path != "/hook" else 3
        return web.Response(status=308, headers={"Location": f"/{hops - 1}"}) if hops else web.Response()

    async def loop(_: Received) -> web.Response:
        return web.Response(status=308, headers={"Location": "/again"})

    async with open_poster(allowed=LOOPBACK, timeout_s=30) as poster:
        async with webhook_receiver(redirect) as receiver:
            await poster.post(receiver.url, b'{"a":1}', {"X-A": "b"})
            assert [each.body for each in receiver.received] == [b'{"a":1}'] * 4
            assert receiver.received[-1].headers["X-A"] == "b"
        async with webhook_receiver(loop) as receiver:
            with pytest.raises(DeliveryFailed, match="redirects"):
                await poster.post(receiver.url, b"{}", {})


async def test_redirect_that_would_lose_the_body_is_final() -> None:
    async def redirect(_: Received) -> web.Response:
        return web.Response(status=302, headers={"Location": "/elsewhere"})

    async with webhook_receiver(redirect) as receiver, open_poster(allowed=LOOPBACK, timeout_s=30) as poster:
        with pytest.raises(DeliveryFailed, match="answered 302") as caught:
            await poster.post(receiver.url, b"{}", {})
        assert caught.value.is_final
        assert len(receiver.received) == 1


async def test_wish_of_a_receiver_to_wait_is_respected(hooks: Hooks) -> None:
    async def answer(_: Received) -> web.Response:
        came_at.append(time.monotonic())
        return web.Response(status=200 if len(came_at) > 1 else 429, headers={"Retry-After": "3"})

    came_at: list[float] = []
    async with webhook_receiver(answer) as receiver:
        await hooks.enqueue(await hooks.add(receiver.url))
        async with hooks.sending():
            await eventually(lambda: len(came_at) == 2)
    assert came_at[1] - came_at[0] >= 2.9


async def test_too_many_events_for_one_webhook_lose_the_oldest(hooks: Hooks) -> None:
    async with webhook_receiver(hang) as receiver:
        events = await hooks.enqueue(await hooks.add(receiver.url), 30)
        async with hooks.sending(most_waiting=10):
            await eventually(lambda: waits(hooks, 10))
        assert await waiting_events(hooks) == events[-10:]


async def waits(hooks: Hooks, count: int) -> bool:
    return await hooks.waiting() == count


async def waiting_events(hooks: Hooks) -> list[str]:
    """Ids of the events that are to be sent yet, oldest first."""
    async with hooks.db.read() as connection:
        query = select(webhook_deliveries.c.event_id).order_by(webhook_deliveries.c.id)
        return list(await connection.scalars(query))


def hooks_empty(hooks: Hooks):  # type: ignore[no-untyped-def]
    async def look() -> bool:
        return await hooks.waiting() == 0

    return look


def hooks_have_at_most(hooks: Hooks, most: int):  # type: ignore[no-untyped-def]
    async def look() -> bool:
        return await hooks.waiting() <= most

    return look


def has_failed(hooks: Hooks):  # type: ignore[no-untyped-def]
    async def look() -> bool:
        async with hooks.db.read() as connection:
            rows = await connection.exec_driver_sql("SELECT 1 FROM webhook_deliveries WHERE attempts > 0")
            return rows.first() is not None

    return look
