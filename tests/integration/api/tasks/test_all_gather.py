"""Peers find each other, over several replicas and through the death of one
(docs/reference/harness-protocol.md 12.1)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from libs.bus import Bus
from libs.clock import SystemClock
from libs.db.engine import Database
from libs.db.tables.cluster import outbox
from libs.db.tables.tasks import allocations, gather_members
from tests.harness import FakeClock, eventually
from tests.integration.api.tasks.service import (
    Replica,
    Run,
    error_of,
    new_run,
    replica,
    row_of,
    rows_of,
    set_allocation,
)


@pytest.fixture
async def other_api(db: Database, bus: Bus) -> AsyncIterator[Replica]:
    async with replica(db, bus, SystemClock()) as running:
        yield running


@pytest.fixture
def only_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits looks again when it is woken, and by itself only after the test has given up."""
    monkeypatch.setattr("services.api.all_gather.wait.RECHECK_S", 60.0)


@pytest.fixture
async def pair(db: Database) -> Run:
    return await new_run(db, num_pods=2)


def body_of(run: Run, uuid: str, peers: int, ip: str = "10.0.0.1") -> dict[str, Any]:
    data = {"request_uuid": uuid, "rendezvous_ip": ip, "slots": 4}
    return {"allocationId": run.allocation, "requestUuid": uuid, "numPeers": peers, "data": data}


async def join(
    api: Replica, run: Run, *, uuid: str | None = None, peers: int = 2, ip: str = "10.0.0.1"
) -> httpx.Response:
    async with api.client(headers=run.headers) as client:
        body = body_of(run, uuid or str(uuid4()), peers, ip)
        return await client.post(f"/api/v1/allocations/{run.allocation}/all_gather", json=body)


async def members(db: Database, run: Run, count: int) -> None:
    async def there() -> bool:
        return len(await rows_of(db, gather_members, allocation_id=run.allocation)) == count

    await eventually(there, what=f"{count} members")


def ips(answer: httpx.Response) -> set[str]:
    assert answer.status_code == 200, answer.text
    return {entry["rendezvous_ip"] for entry in answer.json()["data"]}


async def test_a_single_peer_is_complete_at_once_and_ready(db: Database, live_api: Replica) -> None:
    run = await new_run(db)
    uuid = str(uuid4())
    answer = await join(live_api, run, uuid=uuid, peers=1)
    assert answer.json() == {"data": [body_of(run, uuid, 1)["data"]]}
    assert '"slots":4' in answer.text  # formatted into host files: an integer, not 4.0
    row = await row_of(db, allocations, allocation_id=run.allocation)
    assert (row.is_ready, row.state) == (True, "RUNNING")


async def test_a_repeated_request_gets_the_answer_that_was_lost(live_api: Replica, pair: Run) -> None:
    first, second = "a" * 32, "b" * 32
    waiting = asyncio.create_task(join(live_api, pair, uuid=first, ip="10.0.0.7"))
    answer = await join(live_api, pair, uuid=second, ip="10.0.0.8")
    assert ips(await waiting) == ips(answer)
    assert ips(await join(live_api, pair, uuid=second, ip="10.0.0.8")) == {"10.0.0.7", "10.0.0.8"}


async def test_whoever_gathers_again_begins_anew(db: Database, live_api: Replica) -> None:
    run = await new_run(db)
    for ip in ("10.0.0.7", "10.0.0.8"):
        answer = await join(live_api, run, uuid=str(uuid4()), peers=1, ip=ip)
        assert ips(answer) == {ip}, "nobody of an earlier group is in this one"


@pytest.mark.usefixtures("only_woken")
async def test_peers_meet_over_two_replicas(db: Database, live_api: Replica, other_api: Replica, pair: Run) -> None:
    first = asyncio.create_task(join(live_api, pair, uuid="f" * 32, ip="10.0.0.7"))
    await members(db, pair, 1)
    await asyncio.sleep(0.05)
    assert not first.done()
    assert not (await row_of(db, allocations, allocation_id=pair.allocation)).is_ready
    second = await join(other_api, pair, uuid="0" * 32, ip="10.0.0.8")
    async with asyncio.timeout(30):  # the first is woken, it does not have to look again by itself
        assert ips(await first) == ips(second) == {"10.0.0.7", "10.0.0.8"}
    row = await row_of(db, allocations, allocation_id=pair.allocation)
    assert row.is_ready
    assert row.proxy_address == "10.0.0.8"  # that of rank 0, whose uuid sorts first


@pytest.mark.usefixtures("only_woken")
async def test_many_peers_at_once(db: Database, live_api: Replica, other_api: Replica) -> None:
    run = await new_run(db, num_pods=8)
    joining = [join((live_api, other_api)[n % 2], run, peers=8, ip=f"10.0.0.{n}") for n in range(8)]
    async with asyncio.timeout(30):
        answers = await asyncio.gather(*joining)
    assert all(ips(answer) == {f"10.0.0.{n}" for n in range(8)} for answer in answers)
    said = [
        row
        for row in await rows_of(db, outbox)
        if run.allocation.encode() in row.payload and b"is available" in row.payload
    ]
    assert len(said) <= 1


async def test_a_peer_that_leaves_does_not_count(db: Database, live_api: Replica, pair: Run) -> None:
    gone = asyncio.create_task(join(live_api, pair, ip="10.0.0.1"))
    await members(db, pair, 1)
    gone.cancel()
    await members(db, pair, 0)
    second = asyncio.create_task(join(live_api, pair, ip="10.0.0.2"))
    await members(db, pair, 1)
    third = await join(live_api, pair, ip="10.0.0.3")
    assert ips(await second) == ips(third) == {"10.0.0.2", "10.0.0.3"}


@pytest.mark.usefixtures("only_woken")
async def test_a_later_request_with_the_same_uuid_takes_over(
    db: Database, live_api: Replica, other_api: Replica, pair: Run
) -> None:
    uuid = str(uuid4())
    first = asyncio.create_task(join(live_api, pair, uuid=uuid, ip="10.0.0.1"))
    await members(db, pair, 1)
    again = asyncio.create_task(join(other_api, pair, uuid=uuid, ip="10.0.0.2"))
    async with asyncio.timeout(30):
        refused = await first
    assert (refused.status_code, error_of(refused)) == (400, "another watcher with the same ID connected")
    await members(db, pair, 1)
    assert not again.done()
    assert ips(await join(live_api, pair, ip="10.0.0.3")) == ips(await again) == {"10.0.0.2", "10.0.0.3"}


async def test_a_group_survives_the_replica_a_peer_has_reached(
    db: Database, bus: Bus, live_api: Replica, pair: Run
) -> None:
    uuid = str(uuid4())
    async with replica(db, bus, SystemClock()) as dying:
        lost = asyncio.create_task(join(dying, pair, uuid=uuid))
        await members(db, pair, 1)
        waiting = asyncio.create_task(join(live_api, pair, ip="10.0.0.2"))
        answers = await asyncio.gather(join(live_api, pair, uuid=uuid), waiting)
        assert ips(answers[0]) == ips(answers[1]) == {"10.0.0.1", "10.0.0.2"}
        lost.cancel()
    # Repeated after the answer was lost with the connection: everything is still there.
    assert ips(await join(live_api, pair, uuid=uuid)) == {"10.0.0.1", "10.0.0.2"}


async def test_members_of_a_dead_replica_are_forgotten(db: Database, bus: Bus, clock: FakeClock, pair: Run) -> None:
    async with replica(db, bus, clock, relay=True) as api:
        async with db.transaction() as tx:  # as a replica leaves it that was killed
            dead = {"request_uuid": "d" * 32, "holder": "nobody", "num_peers": 2, "data": {"rendezvous_ip": "dead"}}
            await tx.execute(
                gather_members.insert().values(
                    allocation_id=pair.allocation, **dead, joined_at=clock.now(), seen_at=clock.now()
                )
            )
        clock.advance(40)
        first = asyncio.create_task(join(api, pair, ip="10.0.0.1"))
        await members(db, pair, 1)
        assert not first.done()
        assert ips(await join(api, pair, ip="10.0.0.2")) == ips(await first) == {"10.0.0.1", "10.0.0.2"}


async def test_owners_are_told_once_when_it_takes_long(db: Database, bus: Bus, clock: FakeClock) -> None:
    run = await new_run(db, num_pods=3)
    async with replica(db, bus, clock) as api:
        waiting = [asyncio.create_task(join(api, run, peers=3)) for _ in range(2)]
        await members(db, run, 2)

        async def all_have_looked() -> bool:
            seen = [row.seen_at for row in await rows_of(db, gather_members, allocation_id=run.allocation)]
            return seen == [clock.now()] * 2

        for seconds in (601, 1, 1):
            clock.advance(seconds)
            api.app.notifier.notify_all()
            await eventually(all_have_looked)
        said = [
            row
            for row in await rows_of(db, outbox)
            if run.allocation.encode() in row.payload and b"a long time to connect" in row.payload
        ]
        assert len(said) == 1
        assert (
            b"some ranks are taking a long time to connect to master during all gather; when running on kubernetes "
            b"this may happen because only some of the pods have been scheduled; it is possible that some pods will "
            b"never be scheduled without adding compute resources or pausing / killing other experiments in the "
            b"cluster\n"
        ) in said[0].payload
        await join(api, run, peers=3)
        api.app.notifier.notify_all()
        assert [answer.status_code for answer in await asyncio.gather(*waiting)] == [200, 200]


async def test_whoever_was_taken_for_dead_joins_again(db: Database, bus: Bus, clock: FakeClock, pair: Run) -> None:
    async with replica(db, bus, clock) as api:
        waiting = asyncio.create_task(join(api, pair, ip="10.0.0.1"))
        await members(db, pair, 1)
        async with db.transaction() as tx:
            await tx.execute(gather_members.delete().where(gather_members.c.allocation_id == pair.allocation))
        api.app.notifier.notify_all()
        await members(db, pair, 1)
        await join(api, pair, ip="10.0.0.2")
        api.app.notifier.notify_all()
        assert ips(await waiting) == {"10.0.0.1", "10.0.0.2"}


async def test_the_end_of_the_allocation_ends_the_wait(db: Database, api: Replica, pair: Run) -> None:
    waiting = asyncio.create_task(join(api, pair))
    await members(db, pair, 1)
    await set_allocation(db, pair.allocation, state="TERMINATED")
    api.app.notifier.notify_all()
    assert (await waiting).status_code == 400
    assert (await join(api, pair)).status_code == 400


async def test_requests_that_are_refused(api: Replica, owner: httpx.AsyncClient, run: Run) -> None:
    uuid = str(uuid4())
    path = f"/api/v1/allocations/{run.allocation}/all_gather"
    assert (await owner.post(path, json=body_of(run, "x", 1))).status_code == 400
    assert (await owner.post(path, json=body_of(run, uuid, 0))).status_code == 400
    assert (await owner.post(path)).status_code == 400
    unknown = await owner.post("/api/v1/allocations/1.a.7/all_gather", json=body_of(run, uuid, 1))
    assert (unknown.status_code, error_of(unknown)) == (404, "allocation '1.a.7' not found")
    assert (await owner.post("/api/v1/allocations/a/all_gather", json=body_of(run, uuid, 1))).status_code == 400
