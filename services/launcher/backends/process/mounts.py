"""Gives the calling process a view of the file system of its own: the host's, with some places replaced.

The new root is a tmpfs in which every entry of the host's root is mounted again; directories into which something has
to be put that the host does not have (``/run/determined`` in ``/run``) are remade in the same way. Nothing changes on
the host, and nothing has to exist there. Needs CAP_SYS_ADMIN, or user namespaces; then the user stays who he is.

Only the standard library: this runs in the supervisor. Sources: mount_namespaces(7), user_namespaces(7), pivot_root(2).
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Sequence
from typing import Final, NamedTuple

CLONE_NEWNS: Final = 0x00020000
CLONE_NEWUSER: Final = 0x10000000
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
SYS_PIVOT_ROOT: Final = {"x86_64": 155, "aarch64": 41, "riscv64": 41, "ppc64le": 203, "s390x": 217}

HOST: Final = "/.host"
"""Where the host's root is while the new one is being built."""


class Mount(NamedTuple):
    """``source`` of the host at ``target``; without a source, an empty file system that is gone with the process."""

    target: str
    source: str | None
    read_only: bool = False
    is_private: bool = False
    """Whether the source belongs to this task alone, so that mount points may be made in it."""
    size_bytes: int | None = None
    """Of an empty file system; None is the kernel's default, half the memory."""


class MountError(Exception):
    """The view could not be made; the message says which part and why."""


class _Libc:
    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)

    def unshare(self, flags: int) -> None:
        _check(self._libc.unshare(flags), "unshare")

    def mount(self, source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
        encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
        _check(self._libc.mount(*encoded, ctypes.c_ulong(flags), data.encode() or None), f"mount {target}")

    def detach(self, target: str) -> None:
        _check(self._libc.umount2(os.fsencode(target), MNT_DETACH), f"umount {target}")

    def pivot_root(self, new: str, old: str) -> None:
        number = SYS_PIVOT_ROOT[os.uname().machine]
        _check(self._libc.syscall(ctypes.c_long(number), os.fsencode(new), os.fsencode(old)), "pivot_root")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def enter(scratch: str, mounts: Sequence[Mount], *, with_user_namespace: bool) -> None:
    """Move the calling process, which must have one thread, into its own view of the file system.

    scratch  an existing empty directory of the host, over which the new root is mounted in this view alone
    mounts   applied in order; targets that do not exist are made
    Raises MountError. The working directory is ``/`` afterwards.
    """
    libc = _Libc()
    sources = [None if mount.source is None else os.path.realpath(mount.source) for mount in mounts]
    try:
        _unshare(libc, with_user_namespace)
        # From now on mounts of the host still arrive here, and none of ours gets there.
        libc.mount(None, "/", None, MS_REC | MS_SLAVE)
        view = _View(libc, scratch)
    except (OSError, KeyError) as error:
        raise MountError(f"cannot make a file system view: {error}") from error
    for mount, source in zip(mounts, sources, strict=True):
        try:
            view.apply(mount, source)
        except OSError as error:
            raise MountError(f"cannot mount {mount.source or 'tmpfs'} at {mount.target}: {error}") from error
    libc.detach(HOST)
    os.rmdir(HOST)


def _unshare(libc: _Libc, with_user_namespace: bool) -> None:
    uid, gid = os.getuid(), os.getgid()
    libc.unshare(CLONE_NEWNS | (CLONE_NEWUSER if with_user_namespace else 0))
    if with_user_namespace:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)


class _View:
    """The new root while it is being put together."""

    def __init__(self, libc: _Libc, scratch: str) -> None:
        self._libc = libc
        self._own_devices: set[int] = set()
        """Devices of file systems made here: whatever lies on them is this view's alone."""
        self._is_private: dict[tuple[int, int], bool] = {}
        """By device and inode of its top directory, whether a mounted tree may be changed."""
        self._make_empty(scratch, 0o755)
        os.mkdir(scratch + HOST)
        libc.pivot_root(scratch, scratch + HOST)
        os.chdir("/")
        self._mirror(HOST, "/")

    def apply(self, mount: Mount, source: str | None) -> None:
        """``source`` is the source of ``mount`` without symbolic links."""
        if source is None:
            if not os.path.exists(mount.target):
                self._make_target(mount.target, True)
            self._make_empty(mount.target, 0o1777, mount.size_bytes)
            return
        there = HOST + source
        if not os.path.lexists(there):
            raise FileNotFoundError("no such file or directory on this machine")
        if not os.path.exists(mount.target):
            self._make_target(mount.target, os.path.isdir(there))
        self._libc.mount(there, mount.target, None, MS_BIND | MS_REC)
        self._is_private[_identity(mount.target)] = mount.is_private and not mount.read_only
        if mount.read_only:
            flags = MS_BIND | MS_REMOUNT | MS_RDONLY | _kept_flags(mount.target)
            self._libc.mount(None, mount.target, None, flags)

    def _make_empty(self, target: str, mode: int, size_bytes: int | None = None) -> None:
        size = "" if size_bytes is None else f",size={size_bytes}"
        self._libc.mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV, f"mode={mode:o}{size}")
        self._own_devices.add(os.stat(target).st_dev)

    def _mirror(self, source: str, target: str) -> None:
        """Mount every entry of ``source`` under its name in ``target``, which is empty."""
        for entry in os.scandir(source):
            there = os.path.join(target, entry.name)
            if there == HOST:
                continue
            try:
                if entry.is_symlink():
                    os.symlink(os.readlink(entry.path), there)
                    continue
                _make_mount_point(there, entry.is_dir(follow_symlinks=False))
                self._libc.mount(entry.path, there, None, MS_BIND | MS_REC)
            except FileNotFoundError:
                continue  # it went away in between

    def _make_target(self, target: str, is_directory: bool) -> None:
        """Make a mount point without touching the host: a directory of the host's is first remade in memory."""
        ancestor = os.path.dirname(target)
        while not os.path.isdir(ancestor):
            ancestor = os.path.dirname(ancestor)
        if not self._may_change(ancestor):
            self._remake(ancestor)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        _make_mount_point(target, is_directory)

    def _may_change(self, directory: str) -> bool:
        if os.stat(directory).st_dev in self._own_devices:
            return True
        directory = os.path.realpath(directory)
        while directory != "/":
            if _identity(directory) in self._is_private:
                return self._is_private[_identity(directory)]
            directory = os.path.dirname(directory)
        return False

    def _remake(self, directory: str) -> None:
        below = os.open(directory, os.O_PATH | os.O_DIRECTORY)
        try:
            self._make_empty(directory, stat.S_IMODE(os.fstat(below).st_mode))
            self._mirror(f"/proc/self/fd/{below}", directory)
        finally:
            os.close(below)


def _identity(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino


def _make_mount_point(path: str, is_directory: bool) -> None:
    if is_directory:
        os.mkdir(path, 0o755)
    else:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))


def _kept_flags(path: str) -> int:
    """Flags that a remount must repeat: a user namespace may not take away what the host has set."""
    present = os.statvfs(path).f_flag
    pairs = (
        (os.ST_NOSUID, MS_NOSUID),
        (os.ST_NODEV, MS_NODEV),
        (os.ST_NOEXEC, MS_NOEXEC),
        (os.ST_NOATIME, MS_NOATIME),
        (os.ST_NODIRATIME, MS_NODIRATIME),
        (os.ST_RELATIME, MS_RELATIME),
    )
    return sum(flag for bit, flag in pairs if present & bit)
