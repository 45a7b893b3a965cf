"""The rights a pod has: those of its user, and never more than a container has by default.

Only the standard library: this runs in the supervisor. Source: capabilities(7).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from services.launcher.backends.process.isolation import kernel

KEPT: Final = {
    "CAP_CHOWN": 0,
    "CAP_DAC_OVERRIDE": 1,
    "CAP_FOWNER": 3,
    "CAP_FSETID": 4,
    "CAP_KILL": 5,
    "CAP_SETGID": 6,
    "CAP_SETUID": 7,
    "CAP_SETPCAP": 8,
    "CAP_NET_BIND_SERVICE": 10,
    "CAP_NET_RAW": 13,
    "CAP_IPC_LOCK": 14,  # memory for RDMA
    "CAP_SYS_CHROOT": 18,
    "CAP_SYS_NICE": 23,  # placement of memory
    "CAP_AUDIT_WRITE": 29,
    "CAP_SETFCAP": 31,
}
"""What a task of root may do; to mount is not part of it, so that nothing that was hidden can be uncovered."""

_T = TypeVar("_T")


class User(NamedTuple):
    uid: int
    gid: int


def as_user(user: User | None, act: Callable[[], _T]) -> _T:
    """What ``act`` returns when it is done with the rights of ``user``; None is whoever this process runs as."""
    if user is None:
        return act()
    os.setgroups([])
    os.setegid(user.gid)
    os.seteuid(user.uid)
    try:
        return act()
    finally:
        os.seteuid(0)
        os.setegid(0)


def become_user(user: User | None) -> None:
    """Run as ``user`` from now on, for good, and without any way to more rights. Raises OSError."""
    kernel.bound_capabilities(KEPT.values())
    if user is not None:
        os.setgroups([])
        os.setgid(user.gid)
        os.setuid(user.uid)
    kernel.inherit_no_capabilities()
    kernel.forbid_new_privileges()
