"""Maintenance over the REST API: everybody sees it, administrators announce it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.api.experiments.conftest import Api

pytestmark = pytest.mark.asyncio(loop_scope="module")

ALL = "/api/v1/resolute/maintenance"
TIMES = {"startTime": "2099-01-31T12:00:00Z", "endTime": "2099-01-31T14:00:00Z"}


async def announced(api: Api, **body: Any) -> dict[str, Any]:
    reply = await api.admin.post(ALL, json={**TIMES, **body})
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()["maintenance"]
    return found


async def test_announced_seen_changed_and_taken_back(api: Api) -> None:
    made = await announced(api, nodes=["b", "a", "a"], message="new switches")
    ident = made.pop("id")
    assert made == {"resourcePool": "", "nodes": ["a", "b"], **TIMES, "message": "new switches"}
    seen = (await api.ok("GET", ALL))["maintenance"]
    assert {"id": ident, **made} in seen
    reply = await api.admin.patch(f"{ALL}/{ident}", json={"endTime": "2099-01-31T13:00:00Z", "message": ""})
    assert reply.json()["maintenance"] == {"id": ident, **made, "endTime": "2099-01-31T13:00:00Z", "message": ""}
    assert (await api.admin.delete(f"{ALL}/{ident}")).status_code == 200
    assert (await api.admin.delete(f"{ALL}/{ident}")).status_code == 404
    assert (await api.admin.patch(f"{ALL}/{ident}", json={})).status_code == 404
    assert ident not in [one["id"] for one in (await api.ok("GET", ALL))["maintenance"]]


async def test_others_may_only_look(api: Api) -> None:
    made = await announced(api, resourcePool="other")
    await api.refused(403, "POST", ALL, json={**TIMES, "resourcePool": "default"})
    await api.refused(403, "PATCH", f"{ALL}/{made['id']}", json={"message": "mine"})
    await api.refused(403, "DELETE", f"{ALL}/{made['id']}")
    assert made in (await api.ok("GET", ALL))["maintenance"]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "resourcePool, nodes: name either a resource pool or nodes"),
        ({"resourcePool": "default", "nodes": ["a"]}, "resourcePool, nodes: name either a resource pool or nodes"),
        ({"resourcePool": "default", "endTime": None}, "startTime, endTime: both are required"),
        ({"resourcePool": "nowhere"}, "resourcePool: resource pool nowhere does not exist"),
        ({"nodes": [""]}, "nodes: must be names of 1000 nodes at most"),
        ({"nodes": ["a"], "endTime": TIMES["startTime"]}, "endTime: must be after startTime"),
        (
            {"nodes": ["a"], "startTime": "2001-01-01T00:00:00Z", "endTime": "2002-01-01T00:00:00Z"},
            "endTime: must be in the future",
        ),
        ({"nodes": ["a"], "startTime": "0001-01-01T00:00:00Z"}, "startTime: must not be more than a year ago"),
        ({"nodes": ["a"], "endTime": "9999-12-31T23:59:59Z"}, "endTime: must not be more than a hundred years ahead"),
        ({"nodes": ["a"], "message": "x" * 251}, "message: must be one line of 250 characters at most"),
        ({"nodes": ["a"], "message": "one\ntwo"}, "message: must be one line of 250 characters at most"),
    ],
)
async def test_what_makes_no_sense_is_refused_with_its_field(api: Api, body: dict[str, Any], says: str) -> None:
    reply = await api.admin.post(ALL, json={**TIMES, **body})
    assert reply.status_code == 400, reply.text
    assert reply.json()["error"]["error"] == says
