"""Where a port of a task is reached. Pure.

A task says its address itself, and training code can say anything. The proxy therefore connects only to what the
launcher has seen of the very allocation: an address of one of its pods, or the gateway in front of it. So no task can
make the api connect to the database or to another task. On the process backend tasks share the address of their
machine, where they may connect to everything anyway.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from typing import NamedTuple

from libs.events.observations import ObservedPod


class Target(NamedTuple):
    host: str
    port: int

    @property
    def authority(self) -> str:
        """As in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def target_of(port: int, *, reported: str | None, pods: Iterable[ObservedPod]) -> Target | None:
    """Where to connect for a port that a task listens on; None when that is not known yet.

    reported  the address that the task has given; of several pods, that of rank 0
    """
    pods = tuple(pods)
    for pod in pods:
        for proxied in pod.proxied:
            if proxied.container_port == port:
                return Target(proxied.host_ip, proxied.host_port)
    if reported is None:
        return None
    seen = {_normal(address) for pod in pods for address in pod.addresses}
    return Target(reported, port) if _normal(reported) in seen else None


def _normal(address: str) -> str:
    try:
        return str(ip_address(address))
    except ValueError:
        return address.lower()
