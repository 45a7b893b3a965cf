"""An honest answer for the parts of the reference interface that this release does not have.

``endpoints.csv`` lists every endpoint of the reference (method, path, rpc). What no route covers answers 501 with the
name of the call, which clients show as it stands. Source: docs/reference/rest-endpoints.csv,
docs/reference/platform.md 1.3.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from libs.errors import Unimplemented
from services.api.access.route_permission import ANYBODY
from services.api.http.call import Call
from services.api.http.routing import Handler, Route, shape_of

API_PREFIX: Final = "/api/v1/"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One endpoint of the reference."""

    method: str
    path: str
    rpc: str


def reference_endpoints() -> list[Endpoint]:
    """All endpoints of the reference, in the order of the file."""
    with Path(__file__).with_name("endpoints.csv").open(newline="", encoding="utf-8") as file:
        return [Endpoint(row["method"], row["path"], row["rpc"]) for row in csv.DictReader(file)]


def unimplemented(routes: Sequence[Route]) -> list[Route]:
    """Routes that answer 501 for every endpoint under /api/v1 that ``routes`` do not cover.

    Paths are compared by shape, because they name the same parameter differently here and there. They ask for no
    token: what is not there is not there for anybody.
    """
    covered = {(route.method, shape_of(route.path)) for route in routes}
    missing: list[Route] = []
    for endpoint in reference_endpoints():
        key = (endpoint.method, shape_of(endpoint.path))
        if endpoint.path.startswith(API_PREFIX) and key not in covered:
            covered.add(key)
            missing.append(
                Route(
                    method=endpoint.method,
                    path=endpoint.path,
                    handler=_refuse(endpoint.rpc),
                    permission=ANYBODY,
                    summary=f"{endpoint.rpc} is not available in this release",
                )
            )
    return missing


def _refuse(rpc: str) -> Handler:
    async def refuse(_: Call[object, None, None]) -> None:
        raise Unimplemented(f"{rpc} is not available in this release")

    return refuse
