"""Values that types of columns, encodings and calendars have no place for, in every place of every request."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec.inspect as mi
import pytest

from services.api.http.description.parameters import INTEGERS
from services.api.http.routing import Route
from services.api.routes.table import all_routes
from tests.harness.api import ApiProcess
from tests.integration.api.bodies import least, places
from tests.integration.api.test_garbage import SPARED, Request, fields_of, filled, send_all
from tests.integration.api.world import Rows

BEYOND = [2**31, -(2**31) - 1, 2**63, -(2**63) - 1, 2**64]
"""Beyond 32 bits, 64, and the unsigned ones."""
TIMES = ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "999999-01-01T00:00:00Z"]
"""In UTC they are in no calendar."""
VALUES: list[Any] = [None, "\0", "\ud800", "NaN", -1, 1e308, [], {}, *BEYOND, *TIMES]
DEEP = 10_000
BODIES = [b"[" * DEEP + b"]" * DEEP, b'{"a":' * DEEP + b"1" + b"}" * DEEP, b'{"a": NaN}', b'{"a": -Infinity}']
TEXTS = ["%ED%A0%80", "%C0%80", "-Infinity", *(time.replace("+", "%2B") for time in TIMES), *map(str, BEYOND)]


def in_paths_and_queries(route: Route) -> Iterator[Request]:
    for text in TEXTS if "{" in route.path else ():
        yield Request(route, filled(route.path, text), b"")
    plain = filled(route.path, "1")
    for name in fields_of(route.query):
        for text in TEXTS:
            yield Request(route, f"{plain}?{name}={text}", b"")
        yield Request(route, f"{plain}?{name}=1&{name}=2&{name}=x&{name}.{name}=1", b"")


def in_bodies(route: Route) -> Iterator[Request]:
    if route.body is None:
        return
    plain = filled(route.path, "1")
    for body in BODIES:
        yield Request(route, plain, body)
    for put in places(mi.type_info(route.body)):
        for value in VALUES:
            yield Request(route, plain, json.dumps(put(value)).encode())


@pytest.mark.slow
@pytest.mark.parametrize("requests_to", [in_paths_and_queries, in_bodies])
def test_odd_values_are_no_internal_error(api: ApiProcess, rows: Rows, requests_to: Any) -> None:
    _, job = rows.experiment()
    rows.allocation(job_id=job)
    assert asyncio.run(send_all(api, [one for route in all_routes() for one in requests_to(route)])) == []
    assert "http.unexpected" not in api.process.log()


def test_numbers_in_paths_are_those_of_the_description(admin: httpx.Client) -> None:
    wrong = []
    for route in all_routes():
        names = re.findall(r"{(\w+)", route.path)
        if not names or route.path in SPARED or route.path.startswith(("/scim/", "/oauth2/")):  # off, by default
            continue
        body = None if route.body is None else least(mi.type_info(route.body))
        reply = admin.request(route.method, filled(route.path, "word"), json=body)
        refused = "32-bit integer, got 'word'" in reply.text
        if refused if INTEGERS.isdisjoint(names) else reply.status_code != 400:
            wrong.append(f"{route.method} {route.path}: {reply.text}")
    assert wrong == []
