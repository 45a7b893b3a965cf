"""Gives the calling process a view of the file system of its own: the host's, with some places replaced.

The new root is a tmpfs in which every entry of the host's root is mounted again; directories into which something has
to be put that the host does not have (``/run/determined`` in ``/run``) are remade in the same way. Nothing changes on
the host, and nothing has to exist there. No mount heeds set-user-id, and no device works outside ``/dev``.

Only the standard library: this runs in the supervisor. Sources: mount_namespaces(7), pivot_root(2), proc(5).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from services.launcher.backends.process.isolation import kernel
from services.launcher.backends.process.isolation.hidden_directories import covers, is_within
from services.launcher.backends.process.isolation.kernel import (
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_RDONLY,
    MS_REC,
)
from services.launcher.backends.process.isolation.mount_sources import (
    MountLimits,
    Source,
    open_source,
    open_source_of_order,
)
from services.launcher.backends.process.isolation.privileges import User

HOST: Final = "/.host"
"""Where the host's root is while the new one is being built."""
COVER_BYTES: Final = 1 << 20
SYSTEM: Final = ("/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/sbin", "/sys", "/usr")
"""Places that programs trust."""
_KERNEL_SETTINGS: Final = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/sys")
"""Files through which root can change the whole machine, without any capability."""


class Mount(NamedTuple):
    """``source`` of the host at ``target``; without a source, an empty file system that is gone with the process."""

    target: str
    source: str | None
    read_only: bool = False
    is_private: bool = False
    """Whether the source belongs to this task alone, so that mount points may be made in it."""
    is_of_order: bool = False
    """Whether a user chose it, so that ``MountLimits`` apply."""
    size_bytes: int | None = None
    """Of an empty file system; None is the kernel's default, half the memory."""


class MountError(Exception):
    """The view could not be made; the message says which part and why."""


def build_view(
    scratch: str, mounts: Sequence[Mount], *, limits: MountLimits, user: User | None, with_own_proc: bool
) -> None:
    """Give the calling process, which is in a mount namespace of its own, its view of the file system.

    scratch        an existing empty directory of the host, over which the new root is mounted in this view alone
    mounts         applied in order; targets that do not exist are made
    user           with whose rights the mounts of the order are found
    with_own_proc  the process is in a process namespace of its own
    Raises MountError. The working directory is ``/`` afterwards.
    """
    sources: list[Source | None] = []
    try:
        # From now on mounts of the host still arrive here, and none of ours gets there.
        kernel.mount(None, "/", None, MS_REC | kernel.MS_SLAVE)
        for mount in mounts:
            with _explaining(mount):
                sources.append(_open(mount, limits, user))
        view = _View(scratch, limits, with_own_proc=with_own_proc)
        if os.path.ismount("/dev/mqueue"):
            kernel.mount("mqueue", "/dev/mqueue", "mqueue", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    except (OSError, KeyError) as error:
        raise MountError(f"cannot make a file system view: {error}") from error
    for mount, source in zip(mounts, sources, strict=True):
        with _explaining(mount):
            view.apply(mount, source)
    kernel.detach(HOST)
    os.rmdir(HOST)


def protect_kernel_settings() -> None:
    """Make what the machine's root could change without any capability read-only. Raises MountError."""
    try:
        for path in _KERNEL_SETTINGS:
            if os.path.exists(path):
                kernel.mount(path, path, None, MS_BIND | MS_REC)
                kernel.restrict_mounts(path, MS_RDONLY)
    except OSError as error:
        raise MountError(f"cannot protect the settings of the kernel: {error}") from error


@contextmanager
def _explaining(mount: Mount) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise MountError(f"cannot mount {mount.source or 'tmpfs'} at {mount.target}: {error}") from error


def _open(mount: Mount, limits: MountLimits, user: User | None) -> Source | None:
    if mount.source is None:
        return None
    return open_source_of_order(mount.source, limits, user) if mount.is_of_order else open_source(mount.source)


class _View:
    """The new root while it is being put together."""

    def __init__(self, scratch: str, limits: MountLimits, *, with_own_proc: bool) -> None:
        self._limits = limits
        self._with_own_proc = with_own_proc
        self._own_devices: set[int] = set()
        """Devices of file systems made here: whatever lies on them is this view's alone."""
        self._is_private: dict[tuple[int, int], bool] = {}
        """By device and inode of its top directory, whether a mounted tree may be changed."""
        self._make_empty(scratch, 0o755)
        os.mkdir(scratch + HOST)
        kernel.pivot_root(scratch, scratch + HOST)
        os.chdir("/")
        self._mirror(HOST, "/")

    def apply(self, mount: Mount, source: Source | None) -> None:
        """``source`` is that of ``mount``, opened."""
        if source is None:
            if not os.path.exists(mount.target):
                self._make_target(mount.target, True)
            self._make_empty(mount.target, 0o1777, mount.size_bytes)
            return
        if mount.is_of_order:
            self._check_target(mount.target)
        if not os.path.exists(mount.target):
            self._make_target(mount.target, source.is_directory)
        kernel.mount(source.mountable, mount.target, None, MS_BIND | MS_REC)
        self._is_private[_identity(mount.target)] = mount.is_private and not mount.read_only
        if mount.is_of_order:
            self._cover_hidden(mount.target, source.path)
        kernel.restrict_mounts(mount.target, MS_NOSUID | MS_NODEV | (MS_RDONLY if mount.read_only else 0))

    def _check_target(self, target: str) -> None:
        """Refuse what programs trust, and what would take away all of this view; links have been made by then."""
        place = os.path.realpath(target)
        is_system = place == "/" or any(is_within(place, system) for system in SYSTEM)
        if is_system and not any(is_within(place, allowed) for allowed in self._limits.system_targets):
            raise PermissionError("this place belongs to the system")

    def _cover_hidden(self, target: str, source: str) -> None:
        """Hide again what must not be seen of a directory that was mounted with all that is in it.

        A directory in another that is hidden already is gone from view, and needs no cover of its own.
        """
        hidden, mountable = (
            [path for path in paths if is_within(path, source)]
            for paths in (self._limits.hidden, self._limits.mountable)
        )
        wanted = [
            (os.path.normpath(os.path.join(target, os.path.relpath(path, source))), is_hidden)
            for path, is_hidden in covers(hidden, mountable)
        ]
        # What stays visible is opened while it can still be seen.
        shown = {place: open_source(place) for place, is_hidden in wanted if not is_hidden and os.path.exists(place)}
        for place, is_hidden in wanted:
            if is_hidden:
                self._make_empty(place, 0o755, COVER_BYTES)
            elif place in shown:
                os.makedirs(place)
                kernel.mount(shown[place].mountable, place, None, MS_BIND | MS_REC)

    def _make_empty(self, target: str, mode: int, size_bytes: int | None = None) -> None:
        size = "" if size_bytes is None else f",size={size_bytes}"
        kernel.mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV, f"mode={mode:o}{size}")
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
                self._mount_again(entry.path, there)
            except FileNotFoundError:
                continue  # it went away in between

    def _mount_again(self, source: str, target: str) -> None:
        if target == "/proc" and self._with_own_proc:
            kernel.mount("proc", target, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
            return
        kernel.mount(source, target, None, MS_BIND | MS_REC)
        kernel.restrict_mounts(target, MS_NOSUID if is_within(target, "/dev") else MS_NOSUID | MS_NODEV)

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
