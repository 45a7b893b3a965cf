"""Signals of allocations: readiness, preemption, addresses, devices."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from libs.db.engine import Database
from libs.db.outbox import announce
from libs.db.tables.cluster import outbox
from libs.db.tables.tasks import accelerator_data, allocations
from libs.db.tables.users import allocation_sessions
from libs.events.changes import AllocationChanged
from tests.harness import FakeClock
from tests.integration.api.tasks.service import (
    Replica,
    Run,
    announced,
    error_of,
    new_run,
    row_of,
    rows_of,
    set_allocation,
)

SINCE = datetime(2030, 1, 1, tzinfo=UTC)


def path(run: Run, rest: str) -> str:
    return f"/api/v1/allocations/{run.allocation}/{rest}"


async def done(client: httpx.AsyncClient, run: Run, rest: str) -> None:
    """A POST without any body, as the harness and its helpers send them."""
    answer = await client.post(path(run, rest))
    assert (answer.status_code, answer.text) == (200, "{}"), answer.text


async def signal(db: Database, run: Run, clock: FakeClock) -> None:
    """What the scheduler does when an allocation should leave."""
    await set_allocation(db, run.allocation, preempted_at=clock.now())
    async with db.transaction() as tx:
        await announce(tx, AllocationChanged(allocation_id=run.allocation, task_id=run.task, what="signal"))


async def lines(db: Database) -> list[bytes]:
    return [row.payload for row in await rows_of(db, outbox) if row.subject.startswith("logs.")]


async def test_ready_once(db: Database, client: httpx.AsyncClient, run: Run) -> None:
    before = len(await lines(db))
    for _ in range(2):
        await done(client, run, "ready")
    row = await row_of(db, allocations, allocation_id=run.allocation)
    assert (row.is_ready, row.state) == (True, "RUNNING")
    (line,) = (await lines(db))[before:]
    assert f"Service of Trial {run.trial} (Experiment {run.experiment}) is available\n".encode() in line
    assert len(await announced(db, ".ready")) >= 1


@pytest.mark.parametrize(
    ("state", "after_waiting", "after_ready"),
    [
        ("STARTING", "WAITING", "RUNNING"),
        ("RUNNING", "WAITING", "RUNNING"),
        ("TERMINATING", "TERMINATING", "TERMINATING"),
        ("TERMINATED", "TERMINATED", "TERMINATED"),
    ],
)
async def test_waiting_then_ready(
    db: Database, client: httpx.AsyncClient, run: Run, state: str, after_waiting: str, after_ready: str
) -> None:
    await set_allocation(db, run.allocation, state=state)
    await done(client, run, "waiting")
    assert (await row_of(db, allocations, allocation_id=run.allocation)).state == after_waiting
    await done(client, run, "ready")
    row = await row_of(db, allocations, allocation_id=run.allocation)
    assert (row.state, row.is_ready) == (after_ready, state != "TERMINATED")


async def test_preemption_is_answered_at_once_when_it_is_known(
    db: Database, client: httpx.AsyncClient, run: Run, clock: FakeClock
) -> None:
    question = path(run, "signals/preemption?timeout_seconds=0")
    assert (await client.get(question)).json() == {"preempt": False}
    await signal(db, run, clock)
    assert (await client.get(question)).json() == {"preempt": True}
    assert (await client.get(path(run, "signals/preemption?timeoutSeconds=60"))).json() == {"preempt": True}


async def test_the_long_poll_hears_of_the_signal(
    db: Database, live_api: Replica, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.api.waits.preemption.RECHECK_S", 60.0)
    run = await new_run(db)
    async with live_api.client(headers=run.headers) as client:
        polling = asyncio.create_task(client.get(path(run, "signals/preemption?timeout_seconds=60")))
        await asyncio.sleep(0.1)
        assert not polling.done()
        await signal(db, run, clock)
        async with asyncio.timeout(30):  # below the time after which it would look again by itself
            assert (await polling).json() == {"preempt": True}
        assert (await client.get(path(run, "signals/preemption?timeout_seconds=1"))).json() == {"preempt": True}


async def test_the_long_poll_ends_with_its_time(client: httpx.AsyncClient, run: Run) -> None:
    answer = await client.get(path(run, "signals/preemption?timeout_seconds=1"))
    assert (answer.status_code, answer.json()) == (200, {"preempt": False})


async def test_a_task_that_has_ended_hears_of_jobs_that_wait_for_slots(
    db: Database, client: httpx.AsyncClient, run: Run
) -> None:
    question = path(run, "signals/preemption?hasEnded=true")
    await set_allocation(db, run.allocation, assigned_at=SINCE, slots=1, pool="of its own")
    assert (await client.get(question)).json() == {"preempt": False}
    other = await new_run(db)
    await set_allocation(db, other.allocation, assigned_at=None, state="PENDING", slots=1, pool="of its own")
    assert (await client.get(question)).json() == {"preempt": True}
    assert (await client.get(path(run, "signals/preemption"))).json() == {"preempt": False}, "it has not ended"
    await set_allocation(db, other.allocation, slots=0)
    assert (await client.get(question)).json() == {"preempt": False}


async def test_preemption_of_what_cannot_be_preempted(db: Database, owner: httpx.AsyncClient, run: Run) -> None:
    await set_allocation(db, run.allocation, preemptible=False)
    answer = await owner.get(path(run, "signals/preemption?timeout_seconds=1"))
    assert (answer.status_code, error_of(answer)) == (400, "allocation is not preemptible")
    await set_allocation(db, run.allocation, state="TERMINATED")
    assert (await owner.get(path(run, "signals/preemption?timeout_seconds=9"))).json() == {"preempt": True}
    async with asyncio.timeout(30):  # at once, whatever it would wait: nobody will ever ask it to leave
        unknown = await owner.get("/api/v1/allocations/1.nobody.1/signals/preemption?timeout_seconds=60")
    assert (unknown.status_code, unknown.json()) == (200, {"preempt": False})


async def test_ack(db: Database, client: httpx.AsyncClient, run: Run) -> None:
    for _ in range(2):
        await done(client, run, "signals/ack_preemption")
    assert (await row_of(db, allocations, allocation_id=run.allocation)).preempt_acked is True


@pytest.mark.parametrize("preemptible", [True, False])
async def test_whoever_has_to_leave_tells_the_scheduler(
    db: Database, client: httpx.AsyncClient, run: Run, preemptible: bool
) -> None:
    await set_allocation(db, run.allocation, preemptible=preemptible)
    before = len(await announced(db, ".preemption_requested"))
    for _ in range(2):
        await done(client, run, "signals/pending_preemption")
    row = await row_of(db, allocations, allocation_id=run.allocation)
    # How it is ended, and what is said of that, is the scheduler's to decide.
    assert (row.preempt_reason, row.preempted_at, row.killed_at) == ("preempted by the scheduler", None, None)
    assert len(await announced(db, ".preemption_requested")) == before + 1


@pytest.mark.parametrize(
    "columns",
    [{"state": "TERMINATED"}, {"killed_at": SINCE}, {"preempted_at": SINCE, "preempt_reason": "user requested pause"}],
    ids=["is over", "was killed", "was asked already"],
)
async def test_what_is_leaving_anyway_needs_nobody(
    db: Database, client: httpx.AsyncClient, run: Run, columns: dict[str, Any]
) -> None:
    await set_allocation(db, run.allocation, **columns)
    before = len(await announced(db, ".preemption_requested"))
    await done(client, run, "signals/pending_preemption")
    row = await row_of(db, allocations, allocation_id=run.allocation)
    assert row.preempt_reason == columns.get("preempt_reason")
    assert len(await announced(db, ".preemption_requested")) == before


@pytest.mark.parametrize(
    "rest",
    ["ready", "waiting", "signals/ack_preemption", "signals/pending_preemption", "resources/x/daemon"],
)
async def test_unknown_allocations(owner: httpx.AsyncClient, rest: str) -> None:
    unknown = await owner.post(f"/api/v1/allocations/1.ab..2/{rest}")
    assert (unknown.status_code, error_of(unknown)) == (404, "allocation '1.ab..2' not found")
    assert (await owner.post(f"/api/v1/allocations/nodot/{rest}")).status_code == 400


async def test_the_allocation_itself(db: Database, owner: httpx.AsyncClient, run: Run) -> None:
    shown = (await owner.get(f"/api/v1/allocations/{run.allocation}")).json()["allocation"]
    assert shown == {
        "taskId": run.task,
        "allocationId": run.allocation,
        "state": "STATE_STARTING",
        "isReady": False,
        "slots": 1,
    }
    await set_allocation(db, run.allocation, state="PENDING", exit_reason="because", status_code=3)
    shown = (await owner.get(f"/api/v1/allocations/{run.allocation}")).json()["allocation"]
    assert (shown["state"], shown["exitReason"], shown["statusCode"]) == ("STATE_QUEUED", "because", 3)
    assert (await owner.get("/api/v1/allocations/1.a.9")).status_code == 404
    assert (await owner.get("/api/v1/allocations/a")).status_code == 400


async def test_proxy_address(db: Database, client: httpx.AsyncClient, run: Run) -> None:
    for address in ("10.0.0.1", "10.0.0.2", "10.0.0.2"):
        answer = await client.post(path(run, "proxy_address"), json={"proxyAddress": address})
        assert (answer.status_code, answer.text) == (200, "{}")
    assert (await row_of(db, allocations, allocation_id=run.allocation)).proxy_address == "10.0.0.2"
    assert (await client.post(path(run, "proxy_address"))).status_code == 400


async def test_accelerators(db: Database, owner: httpx.AsyncClient, run: Run) -> None:
    for node in ("node-1", "node-2", "node-1"):  # the last is a request that was repeated
        data = {
            "containerId": "c",
            "acceleratorType": "cuda",
            "acceleratorUuids": ["GPU-1", "GPU-2"],
            "allocationId": run.allocation,
            "nodeName": node,
            "taskId": run.task,
        }
        body = {"allocationId": run.allocation, "acceleratorData": data}
        assert (await owner.post(path(run, "acceleratorData"), json=body)).status_code == 200
    assert len(await rows_of(db, accelerator_data, task_id=run.task)) == 2
    shown = (await owner.get(f"/api/v1/tasks/{run.task}/acceleratorData")).json()["acceleratorData"]
    assert [entry["nodeName"] for entry in shown] == ["node-2", "node-1"]
    assert shown[0]["acceleratorUuids"] == ["GPU-1", "GPU-2"]
    assert shown[0]["resourcePool"] == "default"
    assert (await owner.get("/api/v1/tasks/nobody/acceleratorData")).status_code == 404


async def test_what_this_system_has_no_use_for(owner: httpx.AsyncClient, run: Run) -> None:
    await done(owner, run, f"resources/{run.allocation}/daemon")
    assert (await owner.post(path(run, "notify_container_running"), json={"data": {}})).json() == {"data": []}
    assert (await owner.get(path(run, f"resources/{run.allocation}/rendezvous"))).status_code == 404
    assert (await owner.get("/api/v1/allocations/nodot/resources/nodot/rendezvous")).status_code == 400
    stale = await owner.post(path(run, "resources/other.1/daemon"))
    assert (stale.status_code, error_of(stale)) == (404, "resources 'other.1' not found")


async def test_the_token_of_an_ended_allocation_is_worth_nothing(db: Database, api: Replica, run: Run) -> None:
    async with db.transaction() as tx:
        revoked = update(allocation_sessions).where(allocation_sessions.c.allocation_id == run.allocation)
        await tx.execute(revoked.values(revoked_at=api.app.clock.now()))
    async with api.client(headers=run.headers) as client:
        assert (await client.post(path(run, "ready"))).status_code == 401
