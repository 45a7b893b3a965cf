"""Paths of proxied requests: ``/proxy/<service id>/<rest>``. Pure.

Source: docs/reference/tasks-and-cli.md 4.1 and 4.2.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote

PREFIX: Final = b"/proxy/"
_LONGEST_KEPT: Final = 80
"""Of the names of services; longer ones are made up."""


class ProxyPath(NamedTuple):
    """Where a request wants to go.

    service_id  ``<task id>`` or ``<task id>:<port>``, percent-decoded
    base        of the service as the client spells it, with a slash at its end; cookies are limited to it
    is_whole    whether there is a slash behind the service id
    """

    service_id: str
    base: str
    is_whole: bool


def parse(raw_path: bytes) -> ProxyPath | None:
    """What a path leads to, as it was sent; None when it names no service."""
    if not raw_path.startswith(PREFIX):
        return None
    segment, slash, _ = raw_path[len(PREFIX) :].partition(b"/")
    read = _read_again if len(segment) <= _LONGEST_KEPT else _read
    return read(segment, bool(slash))


def _read(segment: bytes, is_whole: bool) -> ProxyPath | None:
    service_id = unquote(segment.decode("latin-1"), errors="replace")
    if not service_id or "\0" in service_id:
        return None
    return ProxyPath(service_id, (PREFIX + segment + b"/").decode("latin-1"), is_whole)


_read_again = lru_cache(maxsize=1000)(_read)
"""A page is many requests to the same service."""


def task_of(service_id: str) -> str:
    """The task that a service id belongs to: the port comes after the last colon."""
    task, colon, port = service_id.rpartition(":")
    return task if colon and port.isascii() and port.isdecimal() else service_id
