"""What this release lacks says so by name; what it has is not shadowed."""

from __future__ import annotations

from typing import Any

import pytest

from libs.errors import Unimplemented
from services.api.http.routing import Route, RouteTable
from services.api.routes.unimplemented import reference_endpoints, unimplemented


async def nothing(_: object) -> None:
    return None


def test_the_reference_is_listed_whole() -> None:
    endpoints = reference_endpoints()
    assert len(endpoints) == 261
    assert len({(endpoint.method, endpoint.path) for endpoint in endpoints}) == 261


def test_routes_cover_endpoints_of_the_same_shape() -> None:
    before = unimplemented([])
    covered = Route(method="GET", path="/api/v1/experiments/{whatever_name}", handler=nothing)
    after = unimplemented([covered])
    gone = {(route.method, route.path) for route in before} - {(route.method, route.path) for route in after}
    assert gone == {("GET", "/api/v1/experiments/{experimentId}")}


def test_everything_fits_into_one_table() -> None:
    table: RouteTable[Route] = RouteTable()
    for route in unimplemented([]):
        assert route.path.startswith("/api/v1/")
        table.add(route.method, route.path, route)


async def test_the_answer_names_the_call() -> None:
    login: Any = next(route for route in unimplemented([]) if route.path == "/api/v1/auth/login")
    with pytest.raises(Unimplemented, match=r"^Login is not available in this release$"):
        await login.handler(None)
