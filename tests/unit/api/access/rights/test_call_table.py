"""Every row of the table takes every body that the call takes: what a client leaves out is refused by the handler."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from services.api.access.route_permission import CallToCheck
from services.api.http.routing import Route
from services.api.routes.table import all_routes

WITH_NEEDS = [route for route in all_routes() if route.needs]


def bodies(shape: Any) -> list[Any]:
    """One without anything, and one that has an empty entry in each of its lists."""
    if shape is None or not isinstance(shape, type) or not issubclass(shape, msgspec.Struct):
        return [None]
    lists = {
        field.encode_name: [{}]
        for field in msgspec.structs.fields(shape)
        if isinstance(found := msgspec.inspect.type_info(field.type), msgspec.inspect.ListType)
        and isinstance(found.item_type, msgspec.inspect.StructType)
    }
    return [msgspec.convert(document, shape) for document in ({}, lists)]


@pytest.mark.parametrize("route", WITH_NEEDS, ids=lambda route: f"{route.method} {route.path}")
def test_needs_can_be_told_of_whatever_the_call_takes(route: Route) -> None:
    assert route.needs
    query = msgspec.convert({}, route.query) if route.query else None
    for body in bodies(route.body):
        call = SimpleNamespace(
            query=query,
            body=body,
            principal=SimpleNamespace(user_id=1),
            path_int=lambda _: 1,
            path_str=lambda _: "x",
        )
        for need in route.needs:
            if need.when is None or need.when(cast(CallToCheck, call)):
                assert need.ids is None or None not in list(need.ids(cast(CallToCheck, call)))
