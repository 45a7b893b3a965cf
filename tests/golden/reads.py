"""Every GET of the table of routes on the rows that there are: alone, with each parameter, and with several at once."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final
from urllib.parse import quote

import msgspec
import msgspec.inspect as mi
from msgspec import Struct

from services.api.http.routing import Route
from services.api.routes.table import all_routes
from tests.golden.parameters import ALWAYS, IN_QUERIES, LEFT_OUT

_NOT_READ: Final = re.compile(
    # A socket, long polls, what the services say of themselves, and pages that know their moment.
    r"/stream$|/rendezvous$|/all_gather|/det\b|/oidc/|/oauth2/|/scim/|/master/logs$|/context_directory$|/resolute/audit$"
)
_PARAMETER: Final = re.compile(r"\{(\w+)(?::path)?\}")
_VARIED: Final = 2
"""Rows of each path whose parameters are varied; the others are read once."""
_TOGETHER: Final = 8
"""Draws of several parameters for each of them."""


class Read(Struct, frozen=True):
    """``body`` is JSON, None for a GET; ``streams`` whether the answer may go on for ever."""

    method: str
    target: str
    body: Any = None
    streams: bool = False
    caller: str = "admin"

    def __str__(self) -> str:
        body = "" if self.body is None else f" {msgspec.json.encode(self.body).decode()}"
        return f"{self.caller}: {self.method} {self.target}{body}"


def gets(values: Mapping[str, Sequence[str]]) -> Iterator[Read]:
    """``values`` by the names of ``IN_PATHS``. LookupError for a parameter that nobody gives a value."""
    for route in sorted(all_routes(), key=lambda route: route.path):
        if route.method == "GET" and not _NOT_READ.search(route.path):
            yield from _of_route(route, values)


def _of_route(route: Route, values: Mapping[str, Sequence[str]]) -> Iterator[Read]:
    for number, path in enumerate(_paths(route.path, values)):
        for query in _queries(route) if number < _VARIED else [ALWAYS.get(route.path, "")]:
            yield Read("GET", path + (f"?{query}" if query else ""), streams=route.stream)


def _paths(path: str, values: Mapping[str, Sequence[str]]) -> Iterator[str]:
    found = list(_PARAMETER.finditer(path))
    choices = []
    for parameter in found:
        before = path[: parameter.start()].rstrip("/").rpartition("/")[2]
        choices.append(values[parameter[1]] if parameter[1] in values else values[before])
    for chosen in product(*choices):
        remaining = iter(chosen)
        yield _PARAMETER.sub(lambda _: quote(next(remaining), safe=""), path)  # noqa: B023


def _queries(route: Route) -> Iterator[str]:
    always = ALWAYS.get(route.path, "")
    yield always
    if route.query is None:
        return
    choices = {name: values for name, values in parameters_of(route.query) if values}
    alone = [f"{name}={quote(value)}" for name, values in choices.items() for value in values]
    sorts = [
        f"{by}={value}&orderBy={order}"
        for by in ("sortBy", "sortByAttr")
        for value in choices.get(by, ())
        for order in choices.get("orderBy", ())
    ]
    yield from (f"{always}&{each}".strip("&") for each in [*alone, *sorts])
    draw = random.Random(route.path)  # the same each time
    for _ in range(_TOGETHER if len(choices) > 1 else 0):
        names = draw.sample(sorted(choices), k=min(len(choices), draw.randint(2, 4)))
        yield "&".join(filter(None, [always, *(f"{name}={quote(draw.choice(choices[name]))}" for name in names)]))


def parameters_of(query: type, prefix: str = "") -> Iterator[tuple[str, Sequence[str]]]:
    """Names of parameters as in a query string, and the values to try; none for what no value is known for."""
    info = mi.type_info(query)
    assert isinstance(info, mi.StructType)
    for each in info.fields:
        kind, name = _bare(each.type), prefix + each.encode_name
        if isinstance(kind, mi.StructType):
            yield from parameters_of(kind.cls, f"{name}.")
        elif each.encode_name in LEFT_OUT:
            yield name, ()
        elif isinstance(kind, mi.EnumType):
            yield name, [str(member.value) for member in kind.cls]
        elif isinstance(kind, mi.BoolType):
            yield name, ("true", "false")
        else:
            yield name, IN_QUERIES.get(each.encode_name, ())


def _bare(kind: mi.Type) -> mi.Type:
    """Of a list its items, of what may be absent what it is otherwise."""
    if isinstance(kind, mi.ListType):
        return _bare(kind.item_type)
    if isinstance(kind, mi.UnionType):
        return next(_bare(each) for each in kind.types if not isinstance(each, mi.NoneType))
    return kind
