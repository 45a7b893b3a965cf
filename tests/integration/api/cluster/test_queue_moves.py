"""Jobs that are moved ahead of and behind each other (docs/reference/scheduling.md 5.2 and 16, B11)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from sqlalchemy import select, update

from libs.db.engine import Connection
from libs.db.tables.tasks import allocations, jobs
from tests.harness.api import ApiProcess
from tests.harness.det import Det
from tests.integration.api.world import CLUSTER, NOW, Rows, World


class Queue:
    """The pool ``gpus``, emptied by whoever had it before."""

    def __init__(self, admin: httpx.Client, rows: Rows, world: World) -> None:
        self._admin = admin
        self._rows = rows
        self._world = world
        self.ids: dict[str, str] = {}
        self.experiments: dict[str, int] = {}
        world.in_database(lambda tx: tx.execute(update(allocations).values(released_at=NOW)))

    def add(self, name: str, *, minutes: int = 0, priority: int = 42, pool: str = "gpus", waits: bool = True) -> None:
        self.experiments[name], job = self._rows.experiment(name=name, minutes=minutes, priority=priority, pool=pool)
        self._rows.allocation(job_id=job, assigned=not waits)
        self.ids[name] = job

    def move(self, name: str, **where: Any) -> httpx.Response:
        to = {key: self.ids.get(value, value) for key, value in where.items()}
        # As the client writes it, which sends what is not meant as null.
        body = {"jobId": self.ids[name], "priority": None, "weight": None, "resourcePool": None, **to}
        return self._admin.post("/api/v1/job-queues", json={"updates": [body]})

    def refused(self, name: str, **where: Any) -> str:
        reply = self.move(name, **where)
        assert reply.status_code in (400, 404), reply.text
        return str(reply.json()["error"]["error"])

    def order(self, **query: str) -> str:
        names = {job: name for name, job in self.ids.items()}
        shown = self._admin.get("/api/v1/job-queues-v2", params=query).json()["jobs"]
        assert [job["full"]["summary"]["jobsAhead"] for job in shown] == list(range(len(shown)))
        return " ".join(names[job["full"]["jobId"]] for job in shown)

    def stored(self, name: str) -> Any:
        async def read(connection: Connection) -> Any:
            return await connection.scalar(select(jobs.c.queue_position).where(jobs.c.job_id == self.ids[name]))

        return self._world.in_database(read)


@pytest.fixture
def queue(admin: httpx.Client, rows: Rows, world: World) -> Queue:
    found = Queue(admin, rows, world)
    for minute, name in enumerate("abcd"):
        found.add(name, minutes=minute)
    return found


def test_a_job_is_moved_ahead_of_another_and_behind_it(queue: Queue, admin: httpx.Client, det: Det) -> None:
    assert queue.order() == "a b c d"
    assert queue.move("d", aheadOf="b", behindOf=None).json() == {}
    assert queue.order() == "a d b c"
    queue.move("a", behindOf="d")
    assert queue.order() == "d a b c"
    queue.move("c", aheadOf="d")
    assert queue.order() == "c d a b"
    queue.move("c", behindOf="b")
    assert queue.order() == "d a b c"
    shown = det("job", "list", "--json").json()["jobs"]
    assert [job["jobId"] for job in shown] == [queue.ids[name] for name in "dabc"]
    for place, name in enumerate("dabc"):
        summary = admin.get(f"/api/v1/experiments/{queue.experiments[name]}").json()["jobSummary"]
        assert summary["jobsAhead"] == place


def test_many_moves_to_one_place_keep_the_order(queue: Queue) -> None:
    for _ in range(60):
        queue.move("d", aheadOf="b")
        queue.move("c", aheadOf="b")
        assert queue.order() == "a d c b"
        queue.move("d", aheadOf="b")
        assert queue.order() == "a c d b"


def test_another_api_and_jobs_that_come_later_see_the_same_order(queue: Queue, world: World) -> None:
    queue.move("a", behindOf="d")
    queue.add("e", minutes=60 * 24 * 365 * 50)
    with world.api("second") as other, other.client() as client:
        reply = client.post(
            "/api/v1/job-queues", json={"updates": [{"jobId": queue.ids["e"], "aheadOf": queue.ids["b"]}]}
        )
        assert reply.json() == {}
    assert queue.order() == "e b c d a"


def test_a_job_that_is_moved_to_another_priority_takes_it_over(queue: Queue, admin: httpx.Client) -> None:
    queue.add("urgent", minutes=9, priority=10)
    assert queue.order() == "urgent a b c d"
    queue.move("c", behindOf="urgent")
    assert queue.order() == "urgent c a b d"
    config = admin.get(f"/api/v1/experiments/{queue.experiments['c']}").json()["experiment"]["config"]
    assert config["resources"]["priority"] == 10
    queue.move("c", priority=42)
    assert queue.order() == "urgent a b c d", "another priority is another line, in which it was moved nowhere"


def test_the_same_priority_once_more_leaves_it_where_it_is(queue: Queue, admin: httpx.Client) -> None:
    queue.move("d", aheadOf="a")
    queue.move("d", priority=42)
    queue.move("d", weight=2)
    resources = {"resources": {"priority": 42, "weight": 3}}
    admin.patch(f"/api/v1/experiments/{queue.experiments['d']}", json=resources)
    assert queue.order() == "d a b c"
    admin.patch(f"/api/v1/experiments/{queue.experiments['d']}", json={"resources": {"priority": 43}})
    assert (queue.order(), queue.stored("d")) == ("a b c d", None)


def test_moves_that_mean_nothing_are_refused(queue: Queue) -> None:
    queue.add("elsewhere", pool="cpus")
    assert "moved ahead of or behind itself" in queue.refused("a", aheadOf="a")
    assert queue.refused("a", aheadOf="nothing") == "job nothing not found"
    assert queue.refused("a", behindOf="elsewhere").endswith(
        "only jobs of one resource pool stand ahead of or behind each other"
    )
    both = queue.refused("a", aheadOf="b", behindOf="c")
    assert both == "updates: each changes exactly one of priority, weight, resourcePool, aheadOf and behindOf"
    assert queue.order() == "a b c d"


def test_a_paused_job_is_not_in_line(queue: Queue, world: World) -> None:
    gone = update(allocations).where(allocations.c.job_id == queue.ids["b"]).values(released_at=NOW)
    world.in_database(lambda tx: tx.execute(gone))
    assert "it neither waits nor runs" in queue.refused("a", behindOf="b")
    queue.move("b", behindOf="c")
    assert queue.order() == "a c d", "but it may be moved, and stands there when it comes back"


def test_another_pool_has_a_line_of_its_own(queue: Queue) -> None:
    queue.move("d", aheadOf="a")
    queue.move("d", resourcePool="cpus")
    assert queue.stored("d") is None


@pytest.fixture(scope="module")
def sharing(world: World) -> Iterator[httpx.Client]:
    """The administrator of a cluster that shares its slots out; the database is the same."""
    path = world.directory / "sharing.yaml"
    path.write_text(CLUSTER.replace("type: priority, default_priority: 42", "type: fair_share"))
    settings = {"cluster_config": str(path)}
    directory = world.directory / "sharing"
    with (
        ApiProcess(directory, database_url=world.database_url, bus_url=world.bus_url, settings=settings) as api,
        api.client() as client,
    ):
        yield client


def test_where_slots_are_shared_out_there_is_no_line(queue: Queue, sharing: httpx.Client) -> None:
    body = {"updates": [{"jobId": queue.ids["a"], "behindOf": queue.ids["b"]}]}
    reply = sharing.post("/api/v1/job-queues", json=body)
    assert reply.status_code == 400
    assert reply.json()["error"]["error"] == (
        "jobs cannot be moved ahead of or behind each other in resource pool gpus: "
        "its scheduler is fair_share, under which there is no line; change their weight instead"
    )
