"""Host names: which of them a request came to, the main one or that of the pages of tasks. Pure.

A page in a task is somebody's program. On the address of the api it would act with the login of whoever looks at it, so
pages of tasks have a host name of their own: browsers keep cookies and pages of different host names apart, those of
different ports they do not (RFC 6265 8.5). It is ``tasks.address`` of the cluster configuration. Whoever comes by a
loopback name is sent to ``tasks.localhost``, which browsers resolve without any name server (RFC 6761 6.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from libs.cluster.config import TasksConfig

LOOPBACK_HOST: Final = "tasks.localhost"


class HostRole(Enum):
    MAIN = auto()
    """The api is served here, and pages of tasks are elsewhere."""
    TASKS = auto()
    """Pages of tasks are served here, and nothing else."""
    BOTH = auto()
    """There is one host name for everything: pages of tasks can act as whoever looks at them."""


class VisitedHost(NamedTuple):
    """Where a request came to, and the origins (RFC 6454) of both host names; empty where there is one only.

    main   first the one that people are sent to
    """

    role: HostRole
    main: tuple[str, ...] = ()
    tasks: str = ""


class Hosts:
    """The host names of one installation."""

    def __init__(self, config: TasksConfig) -> None:
        self._config = config
        self._configured = (urlsplit(config.address).hostname or "").encode()

    def is_of_tasks(self, headers: Sequence[tuple[bytes, bytes]]) -> bool:
        """Whether a request came to the host name of the pages of tasks."""
        for name, value in headers:
            if name in (b"host", b"x-forwarded-host"):
                host = _host_name(value)
                if host == LOOPBACK_HOST.encode() or (self._configured and host == self._configured):
                    return True
        return False

    def place(self, headers: Sequence[tuple[bytes, bytes]], *, scheme: str, by_proxy: bool) -> VisitedHost:
        """Where a request came to.

        scheme    that the client used: http or https
        by_proxy  whether it came by a proxy, whose ``Host`` may be of the machine that it is on
        """
        host = next((value for name, value in headers if name == b"host"), b"")
        of_tasks = self.is_of_tasks(headers)
        if _host_name(host) == LOOPBACK_HOST.encode() or (
            # No certificate of a loopback name can be expected to have this other one.
            scheme == "http" and not of_tasks and not by_proxy and _is_loopback(host)
        ):
            port = _port(host)
            main = tuple(f"{scheme}://{name}{port}" for name in ("localhost", "127.0.0.1"))
            return VisitedHost(HostRole.TASKS if of_tasks else HostRole.MAIN, main, f"{scheme}://{LOOPBACK_HOST}{port}")
        if not self._configured:
            return VisitedHost(HostRole.BOTH)
        return VisitedHost(
            HostRole.TASKS if of_tasks else HostRole.MAIN,
            (self._config.main_address.rstrip("/"),),
            self._config.address.rstrip("/"),
        )


def _host_name(value: bytes) -> bytes:
    """Of the first that a header names, without its port."""
    host = value.partition(b",")[0].strip().lower()
    if host.startswith(b"["):
        return host.partition(b"]")[0] + b"]"
    return host.partition(b":")[0].rstrip(b".")


def _port(host: bytes) -> str:
    """With its colon; empty where the client named none."""
    _, colon, port = host.rpartition(b":")
    return f":{port.decode('ascii')}" if colon and port.isdigit() else ""


def _is_loopback(host: bytes) -> bool:
    name = _host_name(host)
    return name in (b"localhost", b"[::1]") or name.endswith(b".localhost") or name.startswith(b"127.")
