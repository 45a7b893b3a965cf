"""What one subscriber may take from the others: memory, a place, time; and what happens to it when it takes more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from aiohttp import ClientSession, ClientWebSocketResponse, WSServerHandshakeError
from sqlalchemy import TextClause, text

from libs.bus import BusSettings, Outbound, connect_bus
from libs.db.engine import Connection
from libs.events import subjects
from libs.events.changes import ModelChanged
from libs.ids import new_uuid
from tests.harness.api import ApiProcess
from tests.harness.waiting import PATIENCE_S, eventually
from tests.integration.api.updates.conftest import replica
from tests.integration.api.updates.following import following
from tests.integration.api.updates.objects import project, workspace
from tests.integration.api.updates.raw_socket import CLOSE, MORE, PING, TEXT, RawSocket, raw_socket
from tests.integration.api.world import World

MIB: Final = 1024 * 1024
MUCH: Final = 32 * MIB
"""More than the kernel holds for two ends of a connection."""


@pytest.fixture(scope="module")
def strict(world: World) -> Iterator[ApiProcess]:
    """Three subscribers, who have half a second to take a message and less than two to answer a ping."""
    limits = {"connections": 3, "send_timeout_s": 0.5, "ping_interval_s": 0.5, "look_interval_s": 600}
    with replica(world, "strict", updates=limits) as api:
        yield api


@pytest.fixture(scope="module")
def patient(world: World) -> Iterator[ApiProcess]:
    """One that waits for its subscribers."""
    limits = {"send_timeout_s": 600, "ping_interval_s": 600, "look_interval_s": 600, "recheck_interval_s": 60}
    with replica(world, "patient", updates=limits) as api:
        yield api


def large_models(world: World, workspace_id: int, *, count: int, size: int) -> list[int]:
    """Models with notes of ``size`` bytes, which nobody has announced."""
    made = text(
        "INSERT INTO models (name, notes, owner_id, workspace_id)"
        " SELECT :nonce || n, repeat('x', :size), 1, :workspace FROM generate_series(1, :count) n RETURNING id"
    )
    values = {"nonce": f"large {new_uuid()} ", "size": size, "workspace": workspace_id, "count": count}

    async def work(connection: Connection) -> list[int]:
        return list((await connection.execute(made, values)).scalars())

    found: list[int] = world.in_database(work)
    return found


def peak_memory(api: ApiProcess) -> int:
    """Bytes that the process has held at most."""
    for line in Path(f"/proc/{api.process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the kernel does not say")


def reasons(world: World, name: str) -> list[str]:
    """Why subscribers have gone, as the api has logged it."""
    lines = (world.directory / name / "api.log").read_text().splitlines()
    found = [json.loads(line) for line in lines if '"updates.gone"' in line]
    return [line["reason"] for line in found]


async def has_gone(world: World, name: str, reason: str, before: int) -> None:
    await eventually(lambda: reasons(world, name).count(reason) > before, what=f"a subscriber goes: {reason}")


async def test_who_reads_nothing_is_dropped_and_costs_no_memory(world: World, strict: ApiProcess) -> None:
    token = strict.token()
    with strict.client() as client:
        large, small = workspace(client), workspace(client)
        made = project(client, small)
    await asyncio.to_thread(large_models, world, large, count=MUCH // (MIB // 2), size=MIB // 2)
    before, held = reasons(world, "strict").count("reads too slowly"), peak_memory(strict)
    async with AsyncExitStack() as stack:
        other = await stack.enter_async_context(following(strict, token))
        lazy = await stack.enter_async_context(raw_socket(strict, token))
        await lazy.subscribe(models={"workspace_ids": [large]})
        # While it waits for this one, the api serves the others.
        await other.subscribe(projects={"workspace_ids": [small]})
        assert other.ids("projects") == {made}
        await has_gone(world, "strict", "reads too slowly", before)
        assert peak_memory(strict) - held < MUCH / 2
        await other.subscribe(projects={"workspace_ids": [small]})


async def test_who_answers_no_ping_is_dropped(world: World, strict: ApiProcess) -> None:
    before = reasons(world, "strict").count("silent")
    async with AsyncExitStack() as stack:
        polite = await stack.enter_async_context(following(strict, strict.token()))
        await polite.subscribe(projects={"project_ids": [1]})
        reading = asyncio.create_task(polite.socket.receive())  # answers pings while it waits
        silent = await stack.enter_async_context(raw_socket(strict, strict.token()))
        await silent.subscribe(projects={"project_ids": [1]})
        async with asyncio.timeout(PATIENCE_S):
            assert len(await silent.messages_until_closed()) == 4, "what it asked for, and then nothing"
        await has_gone(world, "strict", "silent", before)
        assert reasons(world, "strict").count("silent") == before + 1
        assert not reading.done()
        assert not polite.socket.closed
        reading.cancel()


async def test_who_pings_and_reads_nothing_is_dropped(world: World, strict: ApiProcess) -> None:
    """Each ping has an answer, which has to go somewhere."""
    held = peak_memory(strict)
    async with raw_socket(strict, strict.token()) as greedy:

        async def ping_on() -> None:
            for _ in range(2 * MUCH // (64 * 1024)):
                for _ in range(512):
                    greedy.write(PING, bytes(125))
                await greedy.writer.drain()
            raise AssertionError("the api takes pings without an end")

        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(ConnectionError):
                await ping_on()
    assert peak_memory(strict) - held < MUCH / 2


async def test_too_many_subscribers_are_asked_to_come_later(strict: ApiProcess) -> None:
    headers = {"Authorization": f"Bearer {strict.token()}"}

    refusals: list[WSServerHandshakeError] = []

    async def place(session: ClientSession) -> ClientWebSocketResponse | None:
        try:
            return await session.ws_connect("/stream")
        except WSServerHandshakeError as refused:
            refusals.append(refused)
            return None

    async def found_place(session: ClientSession) -> ClientWebSocketResponse:
        found: list[ClientWebSocketResponse] = []

        async def look() -> bool:
            if (socket := await place(session)) is not None:
                found.append(socket)
            return bool(found)

        await eventually(look, what="a place for a subscriber")
        return found[0]

    async with ClientSession(base_url=strict.url, headers=headers) as session:
        # Those of other tests may just be leaving.
        taken = [await found_place(session) for _ in range(3)]
        assert await place(session) is None
        await taken[0].send_str('{"sync_id": "still here"}')
        assert (await taken[0].receive_json(timeout=PATIENCE_S))["sync_id"] == "still here"
        await taken[1].close()
        again = await found_place(session)
        for each in (taken[0], taken[2], again):
            await each.close()
    assert {refused.status for refused in refusals} == {503}
    assert all(refused.headers and int(refused.headers["Retry-After"]) > 0 for refused in refusals)


async def test_a_huge_message_is_not_gathered(strict: ApiProcess) -> None:
    """In one piece, in many, and in pieces that have no end."""
    held = peak_memory(strict)

    async def whole(raw: RawSocket) -> None:
        raw.write(TEXT, b" " * MUCH)

    async def in_pieces(raw: RawSocket) -> None:
        raw.write(TEXT, b"{", is_last=False)
        for _ in range(MUCH // 65536):
            raw.write(MORE, b" " * 65536, is_last=False)
            await raw.writer.drain()

    for send in (whole, in_pieces):
        async with raw_socket(strict, strict.token()) as raw, asyncio.timeout(PATIENCE_S):
            sending = asyncio.create_task(send(raw))
            assert await raw.closed() == 1009
            sending.cancel()
    async with raw_socket(strict, strict.token()) as raw, asyncio.timeout(PATIENCE_S):
        raw.write(TEXT, b'{"sync_id": "many pieces"', is_last=False)
        for _ in range(100_000):
            raw.write(MORE, b"", is_last=False)
        raw.write(MORE, b"}")
        await raw.writer.drain()
        assert json.loads(await raw.message()) == {"sync_id": "many pieces", "complete": False}
        raw.write(CLOSE, (1000).to_bytes(2))
        assert await raw.closed() == 1000
    assert peak_memory(strict) - held < MUCH / 2


@pytest.mark.slow
async def test_ten_thousand_changes_are_told_as_what_is_left_of_them(world: World, patient: ApiProcess) -> None:
    """To one who reads at once, and to one who reads when all is over: neither makes the api keep them."""
    rounds, count, size = 20, 500, 10_000
    token = patient.token()
    with patient.client() as client:
        here = workspace(client)
    models = await asyncio.to_thread(large_models, world, here, count=count, size=size)
    async with AsyncExitStack() as stack:
        eager = await stack.enter_async_context(following(patient, token))
        lazy = await stack.enter_async_context(following(patient, token))
        for each in (eager, lazy):
            await each.subscribe(models={"workspace_ids": [here]})
            assert each.ids("models") == set(models)
        held = peak_memory(patient)
        bus = await stack.enter_async_context(connect_bus(BusSettings(url=world.bus_url, name="changes")))
        change = text("UPDATE models SET description = :round WHERE id = ANY(:ids)")
        done = asyncio.Event()

        async def read() -> None:
            await eager.until(lambda: done.is_set() and _all_say(eager.there["models"], str(rounds)), timeout_s=60)

        reading = asyncio.create_task(read())
        for number in range(1, rounds + 1):
            values = {"round": str(number), "ids": models}
            await asyncio.to_thread(world.in_database, partial(_run, change, values))
            if number == rounds:
                done.set()
            await bus.publish_ahead([_change(ident, here) for ident in models])
        await reading
        await lazy.until(lambda: _all_say(lazy.there["models"], str(rounds)), timeout_s=60)
        assert len(lazy.messages) < rounds * count / 2
        assert peak_memory(patient) - held < rounds * count * size / 4


async def _run(statement: TextClause, values: dict[str, Any], connection: Connection) -> None:
    await connection.execute(statement, values)


def _change(model_id: int, workspace_id: int) -> Outbound:
    event = ModelChanged(model_id=model_id, what="changed", workspace_id=workspace_id)
    return Outbound(subjects.event("model", model_id, "changed"), msgspec.json.encode(event))


def _all_say(models: dict[int, dict[str, Any]], description: str) -> bool:
    return all(model["description"] == description for model in models.values())
