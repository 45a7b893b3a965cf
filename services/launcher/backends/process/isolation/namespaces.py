"""Namespaces of a pod's own: what it mounts, which processes it sees, what it shares by System V's and POSIX's names.

Only the standard library: this runs in the supervisor. Sources: namespaces(7), user_namespaces(7), pid_namespaces(7).
"""

from __future__ import annotations

import os
from typing import NamedTuple

from services.launcher.backends.process.isolation import kernel


class Way(NamedTuple):
    """How pods are isolated on a machine."""

    with_user_namespace: bool
    """Needed to make the others without root's rights."""
    with_pid_namespace: bool
    """Not everywhere may a ``/proc`` be mounted that shows a pod its own processes; inside a container often not."""


def enter_namespaces(way: Way) -> None:
    """Move the calling process, which must have one thread, into namespaces of its own; the user stays who he is.

    Only its children are in the process namespace, the first of them as its process 1. Raises OSError.
    """
    uid, gid = os.getuid(), os.getgid()
    flags = kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC
    if way.with_pid_namespace:
        flags |= kernel.CLONE_NEWPID
    if way.with_user_namespace:
        flags |= kernel.CLONE_NEWUSER
    kernel.unshare(flags)
    if way.with_user_namespace:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
