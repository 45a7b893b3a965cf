"""Routes as values, and the table that finds the one for a request.

A path is split once and looked up segment by segment, so the cost does not grow with the number of routes; a literal
segment wins over a parameter (``/users/setting`` over ``/users/{userId}``), whatever the order of the table.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeAlias, TypeVar, overload
from urllib.parse import unquote_to_bytes

import msgspec
from starlette.responses import Response

from services.api.access.audit_table import AuditRule
from services.api.access.rights.needs import Needs
from services.api.access.route_permission import USERS, RoutePermission
from services.api.http.call import Call
from services.api.http.errors import ErrorReply
from services.api.http.replies.reply import RawResponse, Reply
from services.api.http.replies.streams import StreamResult
from services.api.http.upgrades import Upgrade

API_PREFIX: Final = "/api/v1/"
MIB: Final = 1024 * 1024
# 96 MiB of context grow to 128 MiB in base64, plus what goes around them (docs/reference/tasks-and-cli.md 1.1).
MAX_BODY_BYTES: Final = 136 * MIB
MAX_ANONYMOUS_BODY_BYTES: Final = 4 * MIB
# Training code asks for the same few paths all the time; they are remembered, as long as they take little room.
_MOST_KNOWN: Final = 4096
_LONGEST_KNOWN: Final = 256

WriteError: TypeAlias = Callable[[Exception, ErrorReply], RawResponse]
HandlerResult: TypeAlias = msgspec.Struct | Reply | RawResponse | StreamResult | Upgrade | Response | None
Handler: TypeAlias = Callable[[Call[Any, Any, Any]], Awaitable[HandlerResult]]
Target = TypeVar("Target")


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One row of the REST interface.

    path            as in docs/reference/rest-endpoints.csv, ``{name}`` for a parameter; ``{name:path}`` at the end
                    takes the rest
    permission      who may call it; that of every route is in access/permission_table.py
    audit           what the audit log has of its calls; that of every route comes from access/audit_table.py
    needs           what it is an action on, under RBAC; that of every route is in access/rights/call_table.py
    query           struct of the query parameters; None ignores them
    body            type of the body: a Message, ``str``, ``list[...]``; ``bytes`` takes it as it came, None not at all
    described_body  type of a body that the handler decodes itself, for the API description
    response        the message of the reply, for the API description; streams name the message of one line
    stream          the handler returns a StreamResult, and errors have the shape streams use
    raw             outside of /api/v1: errors are ``{"message": ...}`` and tokens of allocations do not count
    write_error     what errors look like where neither of these is wanted
    allow_nul       whether text in the body may contain NUL characters
    idempotent      done twice it has the effect of once: for a task it is done again while the database is away
    max_body_bytes  None: 136 MiB for authenticated callers, 4 MiB for others
    max_body_values  of a body of JSON; None for any number
    summary         one line for the API description
    """

    method: str
    path: str
    handler: Handler
    query: type | None = None
    body: Any = None
    described_body: Any = None
    response: type | None = None
    stream: bool = False
    permission: RoutePermission = USERS
    audit: AuditRule | None = None
    needs: Needs | None = None
    raw: bool = False
    write_error: WriteError | None = None
    allow_nul: bool = False
    idempotent: bool = False
    max_body_bytes: int | None = None
    max_body_values: int | None = None
    summary: str = ""

    @property
    def body_limit(self) -> int:
        """The largest body this route reads, in bytes."""
        if self.max_body_bytes is not None:
            return self.max_body_bytes
        return MAX_BODY_BYTES if self.permission.needs_token else MAX_ANONYMOUS_BODY_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteToLoad:
    """A route whose module is imported when it is first called by somebody who may.

    load  returns the route, of which what is said here is true; may be called in any thread
    The others as of ``Route``: what it takes to refuse a call without the module.
    """

    method: str
    path: str
    permission: RoutePermission
    load: Callable[[], Route]
    stream: bool = False
    idempotent: bool = False

    @property
    def raw(self) -> bool:
        return not self.path.startswith(API_PREFIX)


class LoadedRoutes(Sequence[Route]):
    """Routes of which those are loaded that are looked at."""

    def __init__(self, routes: Sequence[Route | RouteToLoad]) -> None:
        self._routes = routes

    @overload
    def __getitem__(self, index: int) -> Route: ...
    @overload
    def __getitem__(self, index: slice) -> LoadedRoutes: ...
    def __getitem__(self, index: int | slice) -> Route | LoadedRoutes:
        if isinstance(index, slice):
            return LoadedRoutes(self._routes[index])
        route = self._routes[index]
        return route.load() if isinstance(route, RouteToLoad) else route

    def __len__(self) -> int:
        return len(self._routes)


def shape_of(path: str) -> tuple[str, ...]:
    """The segments of a path with the names of parameters left out: paths of equal shape answer the same requests."""
    return tuple("{}" if segment.startswith("{") else segment for segment in path.strip("/").split("/"))


@dataclass(slots=True)
class _Node(Generic[Target]):
    literals: dict[str, _Node[Target]] = field(default_factory=dict)
    parameter: _Node[Target] | None = None
    targets: dict[str, tuple[tuple[str, ...], Target]] = field(default_factory=dict)
    rest: dict[str, tuple[tuple[str, ...], Target]] = field(default_factory=dict)


class RouteTable(Generic[Target]):
    """Finds what was registered for a method and a path."""

    def __init__(self) -> None:
        self._root: _Node[Target] = _Node()
        self._known: dict[tuple[str, bytes], tuple[dict[str, str], Target]] = {}
        self._methods: set[str] = set()

    def add(self, method: str, path: str, target: Target) -> None:
        """Raises ValueError when the same method and shape of path is registered already."""
        node = self._root
        names: list[str] = []
        into = None
        for segment in path.split("/")[1:]:
            if into is not None:
                raise ValueError(f"{path}: only the last parameter of a path can take the rest")
            if not segment.startswith("{"):
                node = node.literals.setdefault(segment, _Node())
                continue
            name, _, kind = segment[1:-1].partition(":")
            names.append(name)
            if kind == "path":
                into = node.rest
                continue
            if node.parameter is None:
                node.parameter = _Node()
            node = node.parameter
        into = node.targets if into is None else into
        if method in into:
            raise ValueError(f"{method} {path} is registered twice")
        into[method] = (tuple(names), target)
        self._methods.add(method)
        self._known.clear()

    def find(self, method: str, raw_path: bytes) -> tuple[dict[str, str], Target] | None:
        """Parameters by name and what was registered, or None.

        raw_path  as sent, still percent-encoded: an encoded slash is part of a segment
        The parameters are shared by all requests to the path; nobody may change them.
        """
        known = self._known.get((method, raw_path))
        if known is not None:
            return known
        found = self._find(method, raw_path)
        if found is not None and len(raw_path) <= _LONGEST_KNOWN:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[method, raw_path] = found
        return found

    def methods(self, raw_path: bytes) -> tuple[str, ...]:
        """The methods that are registered for a path, by name; none for a path that is unknown."""
        return tuple(method for method in sorted(self._methods) if self._find(method, raw_path) is not None)

    def _find(self, method: str, raw_path: bytes) -> tuple[dict[str, str], Target] | None:
        text = raw_path.decode("latin-1")
        segments = text.split("/")[1:]
        if "%" in text:
            segments = [unquote_to_bytes(segment).decode("utf-8", "replace") for segment in segments]
        found = _search(self._root, method, segments, ())
        if found is None:
            return None
        values, (names, target) = found
        return dict(zip(names, values, strict=True)), target


Found: TypeAlias = tuple[tuple[str, ...], tuple[tuple[str, ...], Target]]


def _search(node: _Node[Target], method: str, segments: Sequence[str], values: tuple[str, ...]) -> Found[Target] | None:
    if not segments:
        return (values, node.targets[method]) if method in node.targets else None
    head, tail = segments[0], segments[1:]
    if (child := node.literals.get(head)) is not None:
        found = _search(child, method, tail, values)
        if found is not None:
            return found
    if node.parameter is not None and head:
        found = _search(node.parameter, method, tail, (*values, head))
        if found is not None:
            return found
    if method in node.rest:
        return (*values, "/".join(segments)), node.rest[method]
    return None
