"""Decoders of queries and bodies: there is one for each route, made when a client first uses it."""

from __future__ import annotations

import pytest

from services.api.access.credentials import Credentials
from services.api.access.principal import Principal
from services.api.http import bound_route
from services.api.http.bound_route import BoundRoute
from services.api.http.decoding.body import BodyDecoder
from services.api.http.decoding.query import QueryDecoder
from services.api.http.decoding.upload_memory import UploadMemory
from services.api.routes.table import all_routes


def test_there_is_one_for_whatever_a_route_takes() -> None:
    for route in all_routes():
        if route.query is not None:
            QueryDecoder(route.query)
        if route.body is not None and route.body is not bytes:
            BodyDecoder(route.body, allow_nul=route.allow_nul)


def test_none_is_made_before_a_request_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    monkeypatch.setattr(bound_route, "QueryDecoder", made.append)
    monkeypatch.setattr(bound_route, "BodyDecoder", lambda kind, **_: made.append(kind))

    async def authenticate(credentials: Credentials) -> Principal:
        raise AssertionError("nobody asked")

    uploads = UploadMemory(1)
    routes = [BoundRoute(route, None, authenticate, 1.0, uploads, silence_s=1.0) for route in all_routes()]
    assert len(routes) > 300
    assert made == []
