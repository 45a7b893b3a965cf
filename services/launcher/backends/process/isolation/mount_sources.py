"""Finds what is to be mounted, with the rights of whoever asked for it, and keeps hold of it.

Between the look at a path and the mount somebody may put a link into it. So it is what was opened that is looked at,
and that is mounted. Only the standard library: this runs in the supervisor. Source: open(2), O_PATH.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from services.launcher.backends.process.isolation.hidden_directories import is_hidden, is_within
from services.launcher.backends.process.isolation.privileges import User, as_user


class MountLimits(NamedTuple):
    """What users may mount, and over what."""

    hidden: Sequence[str] = ()
    """Directories of the host whose content no task may see, without symbolic links."""
    mountable: Sequence[str] = ()
    """Directories in those that may be mounted all the same."""
    system_targets: Sequence[str] = ()
    """Places of the system that may be mounted over."""


class Source(NamedTuple):
    """A file or directory of the host, as long as the descriptor is open."""

    fd: int
    path: str
    """Without symbolic links."""

    @property
    def is_directory(self) -> bool:
        return os.path.isdir(self.mountable)

    @property
    def mountable(self) -> str:
        return f"/proc/self/fd/{self.fd}"


def open_source(path: str) -> Source:
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    return Source(fd, os.readlink(f"/proc/self/fd/{fd}"))


def open_source_of_order(path: str, limits: MountLimits, user: User | None) -> Source:
    """What a user chose: found with his rights, and not in a directory that is hidden. Raises OSError.

    What may be mounted out of a hidden directory he needs not reach by himself.
    """
    if _is_open_to_all(os.path.realpath(path), limits):
        source = open_source(path)
    else:
        source = as_user(user, lambda: open_source(path))
    if is_hidden(source.path, limits.hidden, limits.mountable):
        os.close(source.fd)
        raise PermissionError("tasks may not see this directory")
    return source


def _is_open_to_all(path: str, limits: MountLimits) -> bool:
    is_mountable = any(is_within(path, directory) for directory in limits.mountable)
    return is_mountable and not is_hidden(path, limits.hidden, limits.mountable)
