"""Whatever clients send, wherever they send it: the answer is a refusal, never an internal error."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
import msgspec

from services.api.http.routing import Route
from services.api.routes.table import all_routes
from tests.harness.api import ApiProcess
from tests.harness.no_tls import NO_TLS
from tests.harness.raw_http import RawConnection
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
WAITED_FOR_S = 0.5
REFUSED = "is not available in this release"
"""One such route is as good as another: they all look at nothing."""


class Request(NamedTuple):
    route: Route
    path: str
    body: bytes


def requests_to(route: Route) -> Iterator[Request]:
    """Nothing twice; bodies are for routes that read one."""
    yield from dict.fromkeys(one if route.body else one._replace(body=b"") for one in garbage_for(route))


def garbage_for(route: Route) -> Iterator[Request]:
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
    bad = asyncio.run(send_all(api, [one for route in all_routes() for one in requests_to(route)]))
    assert bad == []
    assert "http.unexpected" not in api.process.log()
    assert httpx.get(f"{api.url}/health", timeout=ENOUGH_S, verify=NO_TLS).status_code == 200


async def send_all(api: ApiProcess, requests: Iterable[Request]) -> list[str]:
    """What is wrong with the answers."""
    headers = {"Authorization": f"Bearer {api.token()}"}
    bad: list[str] = []
    queue = (one for one in requests if one.route.path not in SPARED)

    async def worker() -> None:
        # A client with manners would take longer than the api, and mend what it sends.
        connection = await RawConnection.open(api.url, headers)
        for one in queue:
            if not connection.is_open:
                connection = await RawConnection.open(api.url, headers)
            if (problem := await send(connection, one)) is not None:
                bad.append(problem)
        connection.close()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(8):
            tasks.create_task(worker())
    return bad


async def send(connection: RawConnection, one: Request) -> str | None:
    """What is wrong with the answer."""
    waits = one.route.stream or one.route.path in WAITS
    what = f"{one.route.method} {one.path} {one.body[:60]!r}"
    try:
        async with asyncio.timeout(WAITED_FOR_S if waits else ENOUGH_S):
            answer = await connection.exchange(connection.request(one.path, one.body, method=one.route.method))
    except TimeoutError:
        connection.close()
        return None if waits else f"{what}: no answer"
    except ConnectionError as error:
        return f"{what}: {error!r}"
    if b"\r\nconnection: close" in answer.partition(b"\r\n\r\n")[0].lower():
        connection.close()
    return f"{what}: {answer!r}" if answer.startswith(b"HTTP/1.1 500 ") else None
