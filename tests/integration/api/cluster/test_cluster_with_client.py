"""The cluster, its nodes and its queue, as the unmodified client sees them."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta
from functools import partial

import httpx
import pytest
from sqlalchemy import delete, insert, select, update

from libs.db.engine import Connection
from libs.db.tables.tasks import allocations, start_estimates, wait_notes
from libs.events.observations import ObservedPod
from tests.harness.det import Det
from tests.harness.waiting import wait_until
from tests.integration.api.world import Rows, World, two_nodes


@pytest.fixture(scope="module")
def running(world: World, rows: Rows, det: Det) -> dict[str, str]:
    """An experiment that runs on node ``a``, one that waits, and a notebook that waits before it."""
    _, job = rows.experiment(name="first")
    pod = ObservedPod(name="pod-0", state="RUNNING", node="a", addresses=("10.0.0.1",), devices=("000", "001"))
    allocation = rows.allocation(job_id=job, pods=(pod,))
    _, waiting = rows.experiment(name="second", priority=50, minutes=1)
    rows.allocation(job_id=waiting, assigned=False, name="Trial 2 (Experiment 2)")
    task, notebook = rows.task(priority=10)
    rows.allocation(job_id=notebook, task_id=task, assigned=False, slots=1, name="Notebook (calm-cat)")
    world.publish(two_nodes(pod="pod-0", allocation=allocation))
    wait_until(lambda: table(det, "agent", "list"), what="the capacity is seen")
    return {"allocation": allocation, "job": job, "waiting": waiting, "notebook": notebook, "task": task}


def table(det: Det, *arguments: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(det(*arguments, "--csv").out)))


def test_info_says_which_release_it_stands_in_for(det: Det) -> None:
    info = det("master", "info", "--json").json()
    assert info["version"] == "0.38.1"
    assert info["clusterName"] == "testing"
    assert "version" not in det("user", "whoami").err, "no warning about differing versions"


def test_config_is_shown_without_secrets(det: Det) -> None:
    text = det("master", "config", "show", "--json").out
    assert "testing" in text
    assert "very-secret" not in text
    assert "hidden-too" not in text


def test_the_log_is_the_one_thing_to_set(det: Det, admin: httpx.Client) -> None:
    def shown() -> object:
        return det("master", "config", "show", "--json").json()["log"]

    assert shown() == {"level": "info", "color": True}
    det("master", "config", "set", "--log.level=DEBUG")
    assert shown() == {"level": "debug", "color": True}
    det("master", "config", "set", "--log.color=off")
    assert shown() == {"level": "debug", "color": False}
    det("master", "config", "set", "--log.level=INFO", "--log.color=on")
    assert shown() == {"level": "info", "color": True}
    for paths in ([], ["log.color", "cluster_name"], ["log.level"]):
        body = {"config": {"log": {"color": False}}, "fieldMask": {"paths": paths}}
        assert admin.patch("/api/v1/master/config", json=body).status_code == 400
    assert shown() == {"level": "info", "color": True}, "what is refused changes nothing"


def test_logs_are_shown_from_the_end(det: Det) -> None:
    (line,) = det("master", "logs", "--tail", "1").out.splitlines()
    assert "[INFO]: " in line
    assert "http.listening" in det("master", "logs").out


def test_agents_are_the_nodes(det: Det, running: dict[str, str]) -> None:
    a, b = table(det, "agent", "list")
    assert (a["Agent ID"], a["Slots"], a["Containers"], a["Resource Pool"]) == ("a", "4", "2", "gpus")
    assert (b["Agent ID"], b["Slots"], b["Addresses"]) == ("b", "2", "10.0.0.2")


def test_slots_show_who_holds_them(det: Det, running: dict[str, str]) -> None:
    slots = {(slot["Agent ID"], slot["Slot ID"]): slot for slot in table(det, "slot", "list")}
    assert len(slots) == 6
    assert slots["a", "000"]["Allocation ID"] == running["allocation"]
    assert slots["a", "001"]["Task Name"] == "Trial 1 (Experiment 1)"
    assert slots["a", "002"]["Allocation ID"] == "FREE"
    assert slots["b", "001"]["Task Name"] == "Non-Determined Task: stranger"
    assert slots["a", "000"]["Type"] == "cuda"


def test_slots_go_out_of_service_together(det: Det, user: httpx.Client, running: dict[str, str]) -> None:
    for verb in ("enable", "disable"):
        ended = det.fails("slot", verb, "a", "1")
        assert "slot 001 of agent a: slots are not enabled or disabled one by one" in ended.err
        assert "slot '9' not found" in det.fails("slot", verb, "a", "9").err
        assert "agent 'z' not found" in det.fails("slot", verb, "z", "1").err
        assert user.post(f"/api/v1/agents/a/slots/001/{verb}").status_code == 403
    assert all(slot["Enabled"] == "True" for slot in table(det, "slot", "list"))


def test_tasks_show_where_they_run(det: Det, running: dict[str, str]) -> None:
    tasks = {task["Allocation ID"]: task for task in table(det, "task", "list")}
    assert tasks[running["allocation"]]["Agent"] == "a"
    notebook = next(task for task in tasks.values() if task["Task ID"] == running["task"])
    assert (notebook["Agent"], notebook["Priority"], notebook["Ports"]) == ("[]", "10", "8888")


def test_tasks_that_have_no_place_have_an_empty_list_of_resources(admin: httpx.Client, running: dict[str, str]) -> None:
    waiting = [task for task in admin.get("/tasks").json().values() if task["taskId"] == running["task"]]
    assert [task["resources"] for task in waiting] == [[]]


def test_checkpoint_gc_is_a_task_like_others(admin: httpx.Client, det: Det, rows: Rows) -> None:
    task, job = rows.task(task_type="CHECKPOINT_GC")
    ident = rows.allocation(job_id=job, task_id=task, slots=0, name="Checkpoint GC (Experiment 9)")
    assert admin.get("/tasks").json()[ident]["name"] == "Checkpoint GC (Experiment 9)"
    assert {row["Name"] for row in table(det, "task", "list") if row["Task ID"] == task} == {
        "Checkpoint GC (Experiment 9)"
    }


def test_tasks_are_also_one_plain_map(admin: httpx.Client, running: dict[str, str]) -> None:
    plain = admin.get("/tasks").json()
    assert plain[running["allocation"]]["name"] == "Trial 1 (Experiment 1)"
    assert plain == admin.get("/api/v1/tasks").json()["allocationIdToSummary"]
    refused = admin.get("/tasks", headers={"Authorization": "Bearer x"})
    assert (refused.status_code, refused.json()) == (401, {"message": "invalid credentials"})


def test_jobs_stand_in_the_order_of_the_queue(det: Det, running: dict[str, str]) -> None:
    jobs = table(det, "job", "list")
    assert [job["ID"] for job in jobs] == [running["notebook"], running["job"], running["waiting"]]
    assert [job["#"] for job in jobs] == ["0", "1", "2"]
    assert [job["Slots (acquired/needed)"] for job in jobs] == ["0/1", "2/2", "0/2"]
    assert [job["State"] for job in jobs] == ["STATE_QUEUED", "STATE_SCHEDULED", "STATE_QUEUED"]
    assert jobs[1]["Job Name"].startswith("first (")
    assert table(det, "job", "list", "-p", "cpus") == []
    shown = det("job", "list", "--json").json()["jobs"]
    assert not any(job["isPreemptible"] for job in shown), "the scheduler of this pool does not preempt"
    backwards = table(det, "job", "list", "--reverse", "--limit", "1", "--pages", "1")
    assert [job["ID"] for job in backwards] == [running["waiting"]]


def test_priorities_change_the_queue(det: Det, running: dict[str, str]) -> None:
    det("job", "update", running["waiting"], "--priority", "1")
    first = table(det, "job", "list")[0]
    assert (first["ID"], first["Priority"]) == (running["waiting"], "1")
    det("job", "update-batch", f"{running['waiting']}.priority=50", f"{running['notebook']}.priority=10")
    assert "priority must be between 1 and 99" in det.fails("job", "update", running["job"], "--priority", "100").err
    assert "job nothing not found" in det.fails("job", "update", "nothing", "--priority", "5").err


def test_experiments_change_their_pool_and_other_tasks_do_not(det: Det, running: dict[str, str]) -> None:
    ended = det.fails("job", "update", running["notebook"], "--resource-pool", "cpus")
    assert "setting resource pool for job type NOTEBOOK is not supported" in ended.err
    assert "resource pool is unchanged" in det.fails("job", "update", running["job"], "--resource-pool", "gpus").err
    assert "invalid resource pool name" in det.fails("job", "update", running["job"], "--resource-pool", "no").err


def test_nodes_are_taken_out_of_service(det: Det, running: dict[str, str]) -> None:
    drained = det("agent", "disable", "a", "--drain")
    assert "Tasks still in progress on draining nodes." in drained.out
    assert running["allocation"] in drained.out
    a, b = table(det, "agent", "list")
    assert (a["Enabled"], a["Draining"], b["Enabled"]) == ("False", "True", "True")
    det("agent", "enable", "a")
    det("agent", "disable", "b")
    a, b = table(det, "agent", "list")
    assert (a["Enabled"], b["Enabled"], b["Draining"]) == ("True", "False", "False")
    det("agent", "enable", "--all")
    assert "agent 'c' not found" in det.fails("agent", "disable", "c").err


def test_what_waits_says_why(world: World, admin: httpx.Client, running: dict[str, str], user: httpx.Client) -> None:
    async def note(connection: Connection) -> None:
        where = allocations.c.job_id == running["waiting"]
        await connection.execute(update(allocations).where(where).values(wait_reason="waiting for slots"))

    world.in_database(note)
    found = user.get("/api/v1/resolute/waiting").json()
    assert [each["jobId"] for each in found["waiting"]].count(running["waiting"]) == 1
    assert running["job"] not in {each["jobId"] for each in found["waiting"]}, "that one runs"
    (mine,) = user.get("/api/v1/resolute/waiting", params={"jobId": running["waiting"]}).json()["waiting"]
    assert (mine["name"], mine["reason"]) == ("Trial 2 (Experiment 2)", "waiting for slots")
    assert (mine["reasonCode"], mine["since"]) == ("", None), "nobody has noted a code"
    world.in_database(partial(_note_code, allocation=mine["allocationId"], reason="waiting for slots"))
    (mine,) = user.get("/api/v1/resolute/waiting", params={"jobId": running["waiting"]}).json()["waiting"]
    assert (mine["reasonCode"], mine["since"]) == ("no_room", "2030-01-01T00:00:00Z")
    world.in_database(partial(_note_code, allocation=mine["allocationId"], reason="another reason"))
    (mine,) = user.get("/api/v1/resolute/waiting", params={"jobId": running["waiting"]}).json()["waiting"]
    assert (mine["reasonCode"], mine["since"]) == ("", None), "the code is that of another reason"
    assert (mine["ahead"], mine["slotsAhead"], mine["estimatedStart"], mine["basis"]) == (None, None, None, "")
    world.in_database(partial(_estimate, allocation=mine["allocationId"], at=datetime(2099, 1, 1, tzinfo=UTC)))
    (mine,) = user.get("/api/v1/resolute/waiting", params={"jobId": running["waiting"]}).json()["waiting"]
    assert (mine["ahead"], mine["slotsAhead"], mine["basis"]) == (3, 24, "by what its user ran before")
    assert (mine["estimatedStart"], mine["estimateMadeAt"]) == ("2099-01-01T00:00:00Z", "2030-01-01T00:00:00Z")
    world.in_database(partial(_estimate, allocation=mine["allocationId"], at=datetime(2020, 1, 1, tzinfo=UTC)))
    asked_at = datetime.now(UTC)
    (mine,) = user.get("/api/v1/resolute/waiting", params={"jobId": running["waiting"]}).json()["waiting"]
    assert datetime.fromisoformat(mine["estimatedStart"]) >= asked_at - timedelta(minutes=1), "not in the past"
    assert user.get("/api/v1/resolute/waiting", params={"resourcePool": "none"}).json()["waiting"] == []
    assert user.get("/api/v1/resolute/waiting", params={"limit": -9}).status_code == 400


async def _note_code(connection: Connection, *, allocation: str, reason: str) -> None:
    noted = {"code": "no_room", "reason": reason, "since": datetime(2030, 1, 1, tzinfo=UTC)}
    where = wait_notes.c.allocation_id == allocation
    await connection.execute(delete(wait_notes).where(where))
    task = select(allocations.c.task_id).where(allocations.c.allocation_id == allocation).scalar_subquery()
    await connection.execute(insert(wait_notes).values(task_id=task, allocation_id=allocation, **noted))


async def _estimate(connection: Connection, *, allocation: str, at: datetime) -> None:
    made_at = datetime(2030, 1, 1, tzinfo=UTC)
    ahead = {"jobs_ahead": 3, "slots_ahead": 24, "basis": "by what its user ran before"}
    await connection.execute(delete(start_estimates).where(start_estimates.c.allocation_id == allocation))
    pool = select(allocations.c.pool).where(allocations.c.allocation_id == allocation).scalar_subquery()
    values = {"allocation_id": allocation, "pool": pool, "estimated_at": at, "made_at": made_at, **ahead}
    await connection.execute(insert(start_estimates).values(**values))
