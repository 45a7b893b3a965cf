"""Who listens on a port of this machine, in words for whoever wanted it. Source: proc(5), ``/proc/net/tcp``."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_LISTENING: Final = "0A"
_SUPERVISOR: Final = "deploy.local.supervision.supervisor"
_SETTINGS: Final = "--settings"


@dataclass(frozen=True)
class PortHolder:
    pid: int
    command: tuple[str, ...]
    """Its command line; empty when it has ended meanwhile."""

    @property
    def state(self) -> Path | None:
        """The state folder, if it is a part of a system that ``resolute up`` started."""
        command = self.command
        if _SUPERVISOR in command[:-1]:
            return Path(command[command.index(_SUPERVISOR) + 1])
        if _SETTINGS in command[:-1] and any(word.startswith("services.") for word in command):
            return Path(command[command.index(_SETTINGS) + 1]).parents[1]
        return None

    def __str__(self) -> str:
        if self.state is not None:
            return f"the Resolute of {self.state} (pid {self.pid})"
        return f"{Path(self.command[0]).name if self.command else 'a program'} (pid {self.pid})"


def listeners(port: int) -> list[PortHolder]:
    """Processes that listen on the port at any address, as far as we may see them."""
    wanted = {f"socket:[{inode}]" for inode in _sockets(port)}
    return [PortHolder(pid, _command(pid)) for pid in _processes() if wanted & set(_files(pid))] if wanted else []


def foreign(port: int, *, ours: Collection[int]) -> PortHolder | None:
    """One of those that listen on the port; None when none can be seen, or one of ``ours``, process ids, does."""
    found = listeners(port)
    return None if not found or any(each.pid in ours for each in found) else found[0]


def _sockets(port: int) -> Iterator[str]:
    """Inodes of the sockets that listen there."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue  # no IPv6 here
        for line in lines:
            _, local, _, state, *rest = line.split()
            if state == _LISTENING and int(local.rpartition(":")[2], 16) == port:
                yield rest[5]


def _processes() -> list[int]:
    return sorted(map(int, filter(str.isdigit, os.listdir("/proc"))))


def _files(pid: int) -> Iterator[str]:
    """What its descriptors stand for; nothing for processes of others."""
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        try:
            yield os.readlink(f"{folder}/{name}")
        except OSError:
            continue  # it was closed meanwhile


def _command(pid: int) -> tuple[str, ...]:
    try:
        return tuple(os.fsdecode(part) for part in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1])
    except OSError:
        return ()
