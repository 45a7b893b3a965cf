"""System calls that Python has no functions for. Each raises OSError with what failed.

Only the standard library: this runs in the supervisor. Sources: unshare(2), mount(2), mount_setattr(2), pivot_root(2),
prctl(2), capset(2).
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Collection
from typing import Final

CLONE_NEWNS: Final = 0x00020000
CLONE_NEWIPC: Final = 0x08000000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWPID: Final = 0x20000000
MS_RDONLY: Final = 0x1
MS_NOSUID: Final = 0x2
MS_NODEV: Final = 0x4
MS_NOEXEC: Final = 0x8
MS_REMOUNT: Final = 0x20
MS_NOATIME: Final = 0x400
MS_NODIRATIME: Final = 0x800
MS_BIND: Final = 0x1000
MS_REC: Final = 0x4000
MS_SLAVE: Final = 0x80000
MS_RELATIME: Final = 0x200000
MNT_DETACH: Final = 0x2
PR_CAPBSET_DROP: Final = 24
PR_SET_CHILD_SUBREAPER: Final = 36
PR_SET_NO_NEW_PRIVS: Final = 38
_AT_FDCWD: Final = -100
_AT_RECURSIVE: Final = 0x8000
_SYS_MOUNT_SETATTR: Final = 442
_SYS_PIVOT_ROOT: Final = {"x86_64": 155, "aarch64": 41, "riscv64": 41, "ppc64le": 203, "s390x": 217}
_CAPABILITY_VERSION_3: Final = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


class _MountAttr(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("attr_set", "attr_clr", "propagation", "userns_fd")]


class _CapabilityHeader(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _CapabilitySets(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("effective", "permitted", "inheritable")]


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare")


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    _check(_libc.mount(*encoded, ctypes.c_ulong(flags), data.encode() or None), f"mount {target}")


def restrict_mounts(target: str, flags: int) -> None:
    """Add ``flags`` (read-only, nosuid, nodev) to a mount and to all mounts below it.

    Before Linux 5.12 to the mount alone.
    """
    attr = _MountAttr(attr_set=flags)
    found = _libc.syscall(
        ctypes.c_long(_SYS_MOUNT_SETATTR),
        ctypes.c_int(_AT_FDCWD),
        os.fsencode(target),
        ctypes.c_uint(_AT_RECURSIVE),
        ctypes.byref(attr),
        ctypes.c_size_t(ctypes.sizeof(attr)),
    )
    if found != 0 and ctypes.get_errno() == errno.ENOSYS:
        mount(None, target, None, MS_BIND | MS_REMOUNT | flags | _kept_flags(target))
        return
    _check(found, f"restrict {target}")


def detach(target: str) -> None:
    _check(_libc.umount2(os.fsencode(target), MNT_DETACH), f"umount {target}")


def pivot_root(new: str, old: str) -> None:
    number = _SYS_PIVOT_ROOT[os.uname().machine]
    _check(_libc.syscall(ctypes.c_long(number), os.fsencode(new), os.fsencode(old)), "pivot_root")


def adopt_orphans() -> None:
    """Become the parent of all orphans below this process."""
    _check(_libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl: adopt orphans")


def forbid_new_privileges() -> None:
    """No program that is executed from now on gets rights by being set-user-id or by capabilities of its file."""
    _check(_libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl: no new privileges")


def bound_capabilities(kept: Collection[int]) -> None:
    """Leave programs that are executed from now on, as root too, no capabilities but ``kept``."""
    with open("/proc/sys/kernel/cap_last_cap") as file:
        last = int(file.read())
    for capability in range(last + 1):
        if capability not in kept:
            _check(_libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0), f"drop capability {capability}")


def inherit_no_capabilities() -> None:
    """Pass on no capabilities to programs that are executed, except what root gets by being root."""
    header = _CapabilityHeader(_CAPABILITY_VERSION_3, 0)
    sets = (_CapabilitySets * 2)()
    _check(_libc.capget(ctypes.byref(header), sets), "capget")
    for each in sets:
        each.inheritable = 0
    _check(_libc.capset(ctypes.byref(header), sets), "capset")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _kept_flags(path: str) -> int:
    """Flags that a remount must repeat: a user namespace may not take away what the host has set."""
    present = os.statvfs(path).f_flag
    pairs = (
        (os.ST_RDONLY, MS_RDONLY),
        (os.ST_NOSUID, MS_NOSUID),
        (os.ST_NODEV, MS_NODEV),
        (os.ST_NOEXEC, MS_NOEXEC),
        (os.ST_NOATIME, MS_NOATIME),
        (os.ST_NODIRATIME, MS_NODIRATIME),
        (os.ST_RELATIME, MS_RELATIME),
    )
    return sum(flag for bit, flag in pairs if present & bit)
