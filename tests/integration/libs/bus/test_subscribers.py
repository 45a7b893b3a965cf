"""Subscribers to events can read them in every usual way, and reach nothing of the control plane."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any
from uuid import uuid4

import pytest
from nats.errors import TimeoutError as NoAnswer
from nats.js.api import AckPolicy, ConsumerConfig
from nats.js.errors import APIError

from deploy.nats_configuration import SERVICES, SUBSCRIBER, subscriber_user
from libs.bus import Bus, Message, connect_bus
from libs.errors import Unavailable
from libs.events.accounts import ORIGINAL_API, ORIGINAL_DELIVERY, SUBSCRIBERS_JETSTREAM
from libs.events.permissions import SERVICES_INBOX
from libs.events.subjects import (
    ALL_EVENTS,
    EVENTS_STREAM,
    LOGS_STREAM,
    OBSERVER,
    ORDERS_BUCKET,
    PUBLIC_EVENTS_STREAM,
    event,
    kv_subject,
    observed,
    observed_by,
    order_key,
)
from tests.harness import NatsServer, eventually
from tests.harness.waiting import PATIENCE_S
from tests.integration.libs.bus.test_permissions import READS, WRITES
from tests.integration.libs.bus.users import NAMED, OURS, raw, services_settings

REFUSED_AFTER_S = 0.1


@asynccontextmanager
async def observing(services: Bus, guarded: NatsServer) -> AsyncIterator[list[bytes]]:
    """The scheduler's consumer at work, and what has come through it."""
    heard: list[bytes] = []

    async def hear(message: Message) -> None:
        heard.append(message.data)

    work = services.consume(stream=EVENTS_STREAM, durable=OBSERVER, filter=observed_by(), handler=hear)
    task = asyncio.ensure_future(work)
    try:
        await eventually(lambda: described(guarded))
        yield heard
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def described(guarded: NatsServer) -> list[dict[str, Any]]:
    """The consumers that the stream of the control plane has, as the control plane made them."""
    async with raw(guarded, SERVICES, SERVICES_INBOX) as (client, _):
        consumers = await client.jetstream().consumers_info(EVENTS_STREAM)
    ours = [info for info in consumers if not info.name.startswith("mirror")]
    return [{"name": info.name, "config": info.config, "created": info.created} for info in ours]


async def number_of_consumers(guarded: NatsServer) -> int:
    async with raw(guarded, SERVICES, SERVICES_INBOX) as (client, _):
        return len(await client.jetstream().consumers_info(EVENTS_STREAM))


async def test_subscribers_read_events_in_every_usual_way(guarded: NatsServer, services: Bus) -> None:
    subject = event("experiment", uuid4(), "state")
    await services.publish(subject, b"1")
    async with raw(guarded, SUBSCRIBER) as (client, refused), AsyncExitStack() as stack:
        jetstream = client.jetstream()
        found = []
        ordered = await jetstream.subscribe(subject, stream=PUBLIC_EVENTS_STREAM, ordered_consumer=True)
        found.append((await ordered.next_msg(timeout=PATIENCE_S)).data)
        durable = f"push-{uuid4().hex}"
        pushed = await jetstream.subscribe(subject, stream=PUBLIC_EVENTS_STREAM, durable=durable, manual_ack=True)
        message = await pushed.next_msg(timeout=PATIENCE_S)
        await message.ack_sync()
        found.append(message.data)
        pulled = await jetstream.pull_subscribe(subject, stream=PUBLIC_EVENTS_STREAM, durable=f"pull-{uuid4().hex}")
        [message] = await pulled.fetch(1, timeout=PATIENCE_S)
        await message.ack_sync()
        found.append(message.data)
        assert found == [b"1", b"1", b"1"]
        live = await client.subscribe(ALL_EVENTS)
        stack.push_async_callback(live.unsubscribe)
        await client.flush()

        async def is_heard() -> bool:
            # Without a stream a message is delivered at most once, so one that was missed is not sent again.
            await services.publish(subject, b"2")
            with suppress(NoAnswer):
                return bool((await live.next_msg(timeout=1)).data == b"2")
            return False

        await eventually(is_heard)
        await jetstream.delete_consumer(PUBLIC_EVENTS_STREAM, (await pulled.consumer_info()).name)
        assert refused == []


async def test_subscribers_list_what_their_own_account_has(guarded: NatsServer, services: Bus) -> None:
    """The first calls of the ``nats`` command and of dashboards."""
    subject = event("experiment", uuid4(), "state")
    await services.publish(subject, b"listed")
    async with raw(guarded, SUBSCRIBER) as (client, refused):
        jetstream = client.jetstream()
        durable = (await jetstream.add_consumer(PUBLIC_EVENTS_STREAM, ConsumerConfig(durable_name=uuid4().hex))).name
        await eventually(lambda: is_copied(guarded))
        assert [stream.config.name for stream in await jetstream.streams_info()] == [PUBLIC_EVENTS_STREAM]
        assert durable in [consumer.name for consumer in await jetstream.consumers_info(PUBLIC_EVENTS_STREAM)]
        for names, key, wanted in (
            ("$JS.API.STREAM.NAMES", "streams", PUBLIC_EVENTS_STREAM),
            (f"$JS.API.CONSUMER.NAMES.{PUBLIC_EVENTS_STREAM}", "consumers", durable),
        ):
            answer = json.loads((await client.request(names, b"{}", timeout=PATIENCE_S)).data)
            assert wanted in answer[key]
        assert (await jetstream.get_last_msg(PUBLIC_EVENTS_STREAM, subject)).data == b"listed"
        with pytest.raises(APIError, match="stream not found"):
            await jetstream.stream_info(EVENTS_STREAM)
        await jetstream.delete_consumer(PUBLIC_EVENTS_STREAM, durable)
        assert refused == []


async def test_subscribers_only_read(subscriber: Bus) -> None:
    for write in (*WRITES.values(), *READS.values()):
        with pytest.raises(Unavailable):
            await write(subscriber)
    with pytest.raises(Unavailable):
        await subscriber.publish(observed(OURS, "1.a.1"), b"{}")


@pytest.mark.parametrize("body", [{"durable_name": OBSERVER}, {"name": OBSERVER}, {"durable_name": "mine"}, {}])
async def test_subscribers_neither_make_nor_change_consumers_of_the_control_plane(
    guarded: NatsServer, services: Bus, body: dict[str, str]
) -> None:
    """A consumer that is created without a name in the subject may have any in the body."""
    config = {"filter_subject": event("trial", 1, "state"), "ack_policy": "explicit", "max_ack_pending": 1, **body}
    async with observing(services, guarded) as heard, raw(guarded, SUBSCRIBER) as (client, _):
        before, number = await described(guarded), await number_of_consumers(guarded)
        for subject in (
            f"$JS.API.CONSUMER.CREATE.{EVENTS_STREAM}",
            f"$JS.API.CONSUMER.CREATE.{EVENTS_STREAM}.{OBSERVER}",
            f"$JS.API.CONSUMER.CREATE.{EVENTS_STREAM}.{OBSERVER}.{ALL_EVENTS}",
            f"$JS.API.CONSUMER.DURABLE.CREATE.{EVENTS_STREAM}.{OBSERVER}",
            f"{ORIGINAL_API}.CONSUMER.CREATE.{EVENTS_STREAM}.{OBSERVER}.{ALL_EVENTS}",
            f"$JS.API.CONSUMER.DELETE.{EVENTS_STREAM}.{OBSERVER}",
            f"$JS.API.CONSUMER.MSG.NEXT.{EVENTS_STREAM}.{OBSERVER}",
            f"$JS.API.STREAM.DELETE.{EVENTS_STREAM}",
            f"$JS.API.STREAM.PURGE.{EVENTS_STREAM}",
            f"$JS.API.STREAM.DELETE.{PUBLIC_EVENTS_STREAM}",
            "$JS.API.STREAM.CREATE.mine",
            f"$JS.API.CONSUMER.CREATE.{LOGS_STREAM}",
            f"$JS.API.CONSUMER.CREATE.KV_{ORDERS_BUCKET}",
        ):
            asked = {"stream_name": EVENTS_STREAM, "config": config}
            with pytest.raises(NoAnswer):
                await client.request(subject, json.dumps(asked).encode(), timeout=REFUSED_AFTER_S)
        assert (await described(guarded), await number_of_consumers(guarded)) == (before, number)
        await services.publish(observed(OURS, "1.a.1"), b"seen")
        await eventually(lambda: b"seen" in heard)


async def test_a_consumer_of_the_same_name_is_their_own(guarded: NatsServer, services: Bus) -> None:
    async with observing(services, guarded), raw(guarded, SUBSCRIBER) as (client, _):
        before = await described(guarded)
        config = ConsumerConfig(durable_name=OBSERVER, ack_policy=AckPolicy.EXPLICIT, filter_subject=ALL_EVENTS)
        await client.jetstream().add_consumer(PUBLIC_EVENTS_STREAM, config)
        await client.jetstream().delete_consumer(PUBLIC_EVENTS_STREAM, OBSERVER)
        assert await described(guarded) == before


async def test_what_they_have_delivered_stays_with_them(guarded: NatsServer, services: Bus) -> None:
    """A push consumer publishes for whoever made it, on any subject that he likes."""
    key = order_key(OURS, "9.z.1")
    await services.publish(event("trial", 9, "state"), b'{"config": {"durable_name": "mine"}}')
    number = await number_of_consumers(guarded)
    async with raw(guarded, SUBSCRIBER) as (client, _):
        for target in (
            kv_subject(ORDERS_BUCKET, key),
            f"{ORIGINAL_API}.CONSUMER.CREATE.{EVENTS_STREAM}.mine.{ALL_EVENTS}",
            f"{ORIGINAL_DELIVERY}.x",
        ):
            config = ConsumerConfig(deliver_subject=target, ack_policy=AckPolicy.NONE)
            with suppress(APIError):  # some the server refuses by itself
                await client.jetstream().add_consumer(PUBLIC_EVENTS_STREAM, config)
    # Whatever was under way has arrived when the copy has what was published later.
    await services.publish(event("trial", 9, "state"), b"{}")
    await eventually(lambda: is_copied(guarded))
    assert await services.bucket(ORDERS_BUCKET).get(key) is None
    assert await number_of_consumers(guarded) == number


async def is_copied(guarded: NatsServer) -> bool:
    async with raw(guarded, SERVICES, SERVICES_INBOX) as (client, _):
        original = (await client.jetstream().stream_info(EVENTS_STREAM)).state
    async with raw(guarded, SUBSCRIBER) as (client, _):
        copy = (await client.jetstream().stream_info(PUBLIC_EVENTS_STREAM)).state
    return bool(original.last_seq == copy.last_seq)


async def test_all_their_consumers_together_are_limited(guarded: NatsServer, services: Bus) -> None:
    config = ConsumerConfig(ack_policy=AckPolicy.NONE, filter_subject=ALL_EVENTS)
    made: list[str] = []
    async with raw(guarded, SUBSCRIBER) as (client, _):
        jetstream = client.jetstream()
        present = (await jetstream.stream_info(PUBLIC_EVENTS_STREAM)).state.consumer_count
        while len(made) + present < SUBSCRIBERS_JETSTREAM["max_consumers"]:
            made.append((await jetstream.add_consumer(PUBLIC_EVENTS_STREAM, config)).name)
        with pytest.raises(APIError, match="maximum consumers limit reached"):
            await jetstream.add_consumer(PUBLIC_EVENTS_STREAM, config)
        async with observing(services, guarded) as heard:
            await services.publish(observed(OURS, "1.b.1"), b"the scheduler has its own")
            await eventually(lambda: b"the scheduler has its own" in heard)
        for name in made:
            await jetstream.delete_consumer(PUBLIC_EVENTS_STREAM, name)


async def test_a_subscriber_with_a_name_is_refused_at_its_own_limit_alone(guarded: NatsServer, services: Bus) -> None:
    subject = event("experiment", uuid4(), "state")
    config = ConsumerConfig(ack_policy=AckPolicy.NONE, filter_subject=subject)
    first, second = map(subscriber_user, NAMED)
    async with raw(guarded, first) as (greedy, _):
        for _ in range(SUBSCRIBERS_JETSTREAM["max_consumers"]):
            await greedy.jetstream().add_consumer(PUBLIC_EVENTS_STREAM, config)
        with pytest.raises(APIError, match="maximum consumers limit reached"):
            await greedy.jetstream().add_consumer(PUBLIC_EVENTS_STREAM, config)
        await services.publish(subject, b"for everybody")
        for user in (second, SUBSCRIBER):
            async with raw(guarded, user) as (other, refused):
                found = await other.jetstream().subscribe(subject, stream=PUBLIC_EVENTS_STREAM, ordered_consumer=True)
                assert (await found.next_msg(timeout=PATIENCE_S)).data == b"for everybody"
                names = [info.name for info in await other.jetstream().consumers_info(PUBLIC_EVENTS_STREAM)]
                # Each sees its own account.
                assert len(names) < SUBSCRIBERS_JETSTREAM["max_consumers"]
                assert refused == []


async def test_a_name_that_the_server_does_not_know_stops_nobody(guarded: NatsServer, services: Bus) -> None:
    unknown = services_settings(guarded, subscribers=(*NAMED, "new"))
    async with connect_bus(unknown) as bus:
        await bus.ensure_streams()
        await bus.publish(event("experiment", uuid4(), "state"), b"{}")


async def test_the_copy_goes_on_after_a_restart(guarded: NatsServer, services: Bus) -> None:
    subject = event("trial", uuid4(), "state")
    await services.publish(subject, b"1")
    await asyncio.to_thread(guarded.restart)

    async def is_stored() -> bool:
        """Not where the client finds out only now that its connection is gone."""
        with suppress(Unavailable):
            return bool(await services.publish(subject, b"2", msg_id="once"))
        return False

    await eventually(is_stored)
    async with raw(guarded, SUBSCRIBER) as (client, _):
        found = await client.jetstream().pull_subscribe(subject, stream=PUBLIC_EVENTS_STREAM, durable="restarted")
        read = []
        for _ in range(2):
            [message] = await found.fetch(1, timeout=PATIENCE_S)
            # Servers look only every ten seconds whether a copy has stopped: without it, 1 comes again before 2.
            await message.ack_sync()
            read.append(message.data)
        assert read == [b"1", b"2"]
