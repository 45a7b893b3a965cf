"""Every call that reads several things is a row of the lists that are compared with what can be had alone."""

from __future__ import annotations

from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from services.api.http.routing import Route
from services.api.routes.table import all_routes
from tests.scenarios.rights_lists import LISTS, NO_LISTS


def reads(route: Route) -> bool:
    """Nothing is written to the audit log of a call that only looks; reports of tasks have no list in their answer."""
    return route.method == "GET" or (route.method == "POST" and route.audit is None)


def has_many(kind: Any) -> bool:
    if get_origin(kind) in (Union, UnionType):
        return any(map(has_many, get_args(kind)))
    return (get_origin(kind) or kind) in (list, tuple, dict)


def may_be_a_list(route: Route) -> bool:
    """What it answers has a collection, or nobody says what it answers."""
    if route.response is None or not issubclass(route.response, msgspec.Struct):
        return route.method == "GET"
    return any(map(has_many, get_type_hints(route.response).values()))


REPORTS = {
    "POST /api/v1/allocations/{allocationId}/all_gather",
    "POST /api/v1/allocations/{allocationId}/notify_container_running",
    "POST /api/v1/runs/{runId}/metadata",
}


def test_every_list_has_a_row() -> None:
    calls = {f"{route.method} {route.path}" for route in all_routes() if reads(route) and may_be_a_list(route)}
    with_row = {row.call for row in LISTS}
    assert not with_row & NO_LISTS.keys()
    assert calls - REPORTS == with_row | NO_LISTS.keys()
