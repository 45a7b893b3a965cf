"""Whatever clients send, wherever they send it: the answer is a refusal, never an internal error."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
import msgspec

from services.api.http.routing import Route
from services.api.routes.table import all_routes
from tests.harness.api import ApiProcess
from tests.integration.api.world import Rows

IDS = ["0", "-1", "abc", "99999999999999999999", "2147483647", "1.5", "%00", "%ff", "a b", "x" * 300, "1", "..", "💥"]
BODIES = [
    b"",
    b"not json",
    b"null",
    b"[]",
    b"{}",
    b'"text"',
    b"1e999",
    b'{"a":',
    b"\xff\xfe",
    b"[" * 5000,
    b'{"a": 1' + b"0" * 5000 + b"}",
]
VALUES: list[Any] = [
    None,
    "",
    "\0",
    "x" * 5000,
    -1,
    10**30,
    1.5,
    1e308,
    True,
    [],
    {},
    ["\0"],
    {"\0": "\0"},
    [[1]],
    "NaN",
]
QUERIES = ["", "abc", "-1", "99999999999999999999", "%00", "1e999", "NaN", "%ff"]

WAITS = {"/api/v1/allocations/{allocationId}/all_gather", "/api/v1/allocations/{allocationId}/signals/preemption"}
"""Answered when something happens; the client gives up before."""
SPARED = {"/api/v1/auth/logout"}
"""Would end the session of the test."""
ENOUGH_S = 40.0
"""For an answer; the api itself has patience for half of it."""
REFUSED = "is not available in this release"
"""One such route is as good as another: they all look at nothing."""


class Request(NamedTuple):
    route: Route
    path: str
    body: bytes


def requests_to(route: Route) -> Iterator[Request]:
    if route.summary.endswith(REFUSED):
        yield Request(route, filled(route.path, "7"), b"not json")
        return
    for ident in IDS:
        yield Request(route, filled(route.path, ident), b"{}")
    plain = filled(route.path, "7")
    for body in BODIES:
        yield Request(route, plain, body)
    for name in fields_of(route.body):
        for value in VALUES:
            yield Request(route, plain, json.dumps({name: value}).encode())
    for name in fields_of(route.query):
        for text in QUERIES:
            yield Request(route, f"{plain}?{name}={text}", b"{}")
    yield Request(route, f"{plain}?offset=7&limit=-7&sortBy=9&orderBy=9&=&&a[=%", b"{}")


def filled(path: str, ident: str) -> str:
    # The built-in users stay as they are: their passwords are needed until the end.
    ident = "3" if ident == "1" and path.startswith("/api/v1/users") else ident
    parts = [part if not part.startswith("{") else ident if "%" in ident else quote(ident) for part in path.split("/")]
    return "/".join(parts)


def fields_of(kind: Any) -> list[str]:
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return []
    return [field.encode_name for field in msgspec.structs.fields(kind)]


def test_no_request_is_an_internal_error(api: ApiProcess, rows: Rows) -> None:
    _, job = rows.experiment()
    rows.allocation(job_id=job)
    bad = asyncio.run(send_all(api))
    assert bad == []
    assert "http.unexpected" not in api.process.log()
    assert httpx.get(f"{api.url}/health", timeout=ENOUGH_S).status_code == 200


async def send_all(api: ApiProcess) -> list[str]:
    todo = [one for route in all_routes() if route.path not in SPARED for one in requests_to(route)]
    headers = {"Authorization": f"Bearer {api.token()}"}
    bad: list[str] = []
    async with httpx.AsyncClient(base_url=api.url, headers=headers, timeout=ENOUGH_S) as client:
        queue = iter(todo)

        async def worker() -> None:
            for one in queue:
                if (problem := await send(client, one)) is not None:
                    bad.append(problem)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(8):
                tasks.create_task(worker())
    return bad


async def send(client: httpx.AsyncClient, one: Request) -> str | None:
    """What is wrong with the answer."""
    waits = one.route.stream or one.route.path in WAITS
    what = f"{one.route.method} {one.path} {one.body[:60]!r}"
    request = client.build_request(one.route.method, one.path, content=one.body)
    request.extensions["timeout"] = httpx.Timeout(ENOUGH_S, read=0.5 if waits else ENOUGH_S).as_dict()
    try:
        reply = await client.send(request)
    except httpx.ReadTimeout:
        return None if waits else f"{what}: no answer"
    except httpx.HTTPError as error:
        return f"{what}: {error!r}"
    return f"{what}: {reply.text}" if reply.status_code == 500 else None
