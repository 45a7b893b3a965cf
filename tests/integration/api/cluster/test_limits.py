"""Limits of what users, groups and workspaces may hold: who sets them, who sees which, and what is used of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from libs.db.engine import Connection
from tests.builders import insert_allocation, insert_job, insert_task
from tests.integration.api.world import NOW, World

PATH = "/api/v1/resolute/limits"


@pytest.fixture(autouse=True)
def no_limits(admin: httpx.Client) -> Iterator[None]:
    yield
    for limit in admin.get(PATH).json()["limits"]:
        admin.delete(f"{PATH}/{limit['id']}")


def put(client: httpx.Client, **body: Any) -> httpx.Response:
    return client.put(PATH, json=body)


def listed(client: httpx.Client, **query: str) -> list[tuple[str, str, str, int]]:
    """Of limits of slots."""
    found = client.get(PATH, params=query).json()["limits"]
    return [(one["scope"], one["name"], one["resourcePool"], one["slots"]) for one in found]


def error(reply: httpx.Response) -> tuple[int, str]:
    return reply.status_code, reply.json()["error"]["error"]


def test_a_limit_is_set_replaced_and_removed(admin: httpx.Client, user: httpx.Client) -> None:
    made = put(admin, scope="user", name="DETERMINED", slots=8).json()["limit"]
    assert {name: made[name] for name in ("scope", "name", "resourcePool", "slots", "enforce", "used", "left")} == {
        "scope": "user",
        "name": "determined",
        "resourcePool": "",
        "slots": 8,
        "enforce": "wait",
        "used": 0,
        "left": 8,
    }
    assert made["setBy"] == "admin"
    again = put(admin, scope="user", name="determined", slots=4, enforce="preempt").json()["limit"]
    assert (again["id"], again["slots"], again["enforce"]) == (made["id"], 4, "preempt")
    put(admin, scope="user", name="determined", resourcePool="gpus", slots=2)
    assert listed(admin) == [("user", "determined", "", 4), ("user", "determined", "gpus", 2)]
    assert admin.delete(f"{PATH}/{made['id']}").json() == {}
    assert listed(admin) == [("user", "determined", "gpus", 2)]
    assert error(admin.delete(f"{PATH}/{made['id']}")) == (404, f"limit '{made['id']}' not found")


def test_whom_it_concerns_sees_it(admin: httpx.Client, user: httpx.Client) -> None:
    me = user.get("/api/v1/me").json()["user"]
    for group, members in (("theirs", []), ("mine", [me["id"]])):
        admin.post("/api/v1/groups", json={"name": group, "addUsers": members})
        put(admin, scope="group", name=group, slots=20)
    put(admin, scope="user", slots=1)
    put(admin, scope="user", name="admin", slots=2)
    put(admin, scope="user", name=me["username"], slots=3)
    put(admin, scope="workspace", name="Uncategorized", slots=4)
    seen = [
        ("user", "", "", 1),
        ("user", me["username"], "", 3),
        ("group", "mine", "", 20),
        ("workspace", "Uncategorized", "", 4),
    ]
    assert listed(user) == seen
    assert listed(user, scope="group") == [("group", "mine", "", 20)]
    assert sorted(listed(admin)) == sorted([*seen, ("user", "admin", "", 2), ("group", "theirs", "", 20)])
    assert error(put(user, scope="user", slots=9)) == (403, "only admin privileged users can set limits")


def test_limits_of_the_deleted_are_not_shown(admin: httpx.Client) -> None:
    group = admin.post("/api/v1/groups", json={"name": "gone"}).json()["group"]["groupId"]
    put(admin, scope="group", name="gone", slots=1)
    admin.delete(f"/api/v1/groups/{group}")
    assert listed(admin) == []


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        ({"scope": "user", "name": "nobody", "slots": 1}, (404, "user 'nobody' not found")),
        ({"scope": "user", "resourcePool": "none", "slots": 1}, (404, "resource pool 'none' not found")),
        ({"scope": "group", "slots": 1}, (400, "name: a limit of a group needs the name of the group")),
        ({"scope": "user", "slots": -1}, (400, "slots: a number from 0 to 100000000")),
        ({"scope": "user"}, (400, "slots, slotHours: one of both says how much may be held or used")),
        (
            {"scope": "user", "slotHours": 4},
            (400, "period: slotHours are for a day, a week or a month, slots are for none"),
        ),
    ],
)
def test_what_cannot_be_set_is_refused(admin: httpx.Client, body: dict[str, Any], refusal: tuple[int, str]) -> None:
    assert error(put(admin, **body)) == refusal


def test_what_is_held_is_used(admin: httpx.Client, world: World) -> None:
    put(admin, scope="user", name="determined", slots=4)
    put(admin, scope="user", name="determined", resourcePool="cpus", slots=4)
    put(admin, scope="workspace", name="Uncategorized", slots=2)
    put(admin, scope="user", name="determined", slotHours=100, period="week")

    async def hold(connection: Connection) -> None:
        job = await insert_job(connection, owner_id=2, pool="gpus")
        task = await insert_task(connection, job_id=job, owner_id=2)
        held = {"job_id": job, "pool": "gpus", "slots": 3}
        declared = {"time_limit_s": 7200, **held}
        await insert_allocation(connection, task_id=task, state="ASSIGNED", assigned_at=NOW, **declared)
        await insert_allocation(connection, task_id=task, run=2, **held)

    world.in_database(hold)
    limits = admin.get(PATH).json()["limits"]
    found = {(one["scope"], one["resourcePool"], one["period"]): (one["used"], one["left"]) for one in limits}
    assert found == {
        ("user", "", None): (3, 1),
        ("user", "", "week"): (6, 94),
        ("user", "cpus", None): (0, 4),
        ("workspace", "", None): (3, 0),
    }
    [weekly] = [one for one in limits if one["period"]]
    assert (weekly["slots"], weekly["slotHours"], weekly["nextPeriod"][10:]) == (None, 100, "T00:00:00Z")
