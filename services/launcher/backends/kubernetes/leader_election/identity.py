"""The name of this launcher among all that wait for the same lease.

A name of its own for every process would make each restart wait until the lease of its predecessor has run out. So a
process that takes the place of another has the same name: same host, same boot, same network namespace. That never two
have it at once, the kernel sees to: only one process of a network namespace can own an abstract socket address, and it
does so until it is gone. A second one gets a random name, as does every process where there is nothing of that kind.
"""

from __future__ import annotations

import hashlib
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from libs.ids import new_uuid

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_NETWORK: Final = "/proc/self/ns/net"


@contextmanager
def instance_name(scope: str) -> Iterator[str]:
    """A name that no other living process has, for the duration of the block: that of a predecessor, if possible.

    scope  what the name is for: the same for all processes that must not share it
    """
    host = socket.gethostname()
    place = _place()
    with socket.socket(socket.AF_UNIX) as claim:
        if place is not None and _claim(claim, scope):
            yield f"{host}_{place}"
        else:
            yield f"{host}_{new_uuid()}"


def _place() -> str | None:
    """Tells this network namespace of this boot of this machine from all others; None where that cannot be known."""
    if sys.platform != "linux":
        return None
    try:
        boot, network = _BOOT.read_text().strip(), os.readlink(_NETWORK)
    except OSError:
        return None
    return hashlib.sha256(f"{boot}/{network}".encode()).hexdigest()[:16] if boot and network else None


def _claim(claim: socket.socket, scope: str) -> bool:
    try:
        claim.bind(b"\0resolute/launcher/" + hashlib.sha256(scope.encode()).hexdigest().encode())
    except OSError:
        return False
    return True
