"""Records of an allocation on disk, so that a restarted launcher knows what its predecessor knew.

One directory per allocation, one file per writer; every file is replaced as a whole. ``plan.json`` and ``status.json``
are also spoken by the supervisor, which has no msgspec: ``supervisor.py`` names the same fields.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from libs.events.observations import FailureKind, PodState
from libs.events.orders import Order
from libs.events.subjects import token
from services.launcher.backends.process.replacing import keep_space, replace_file

_S = TypeVar("_S", bound=Struct)


class Assignment(Struct, frozen=True, kw_only=True):
    """``assignment.json``: what the launcher decided when it took the order. Written once."""

    order: Order
    pods: tuple[str, ...]
    """Names, in rank order."""
    devices: tuple[tuple[str, ...], ...]
    """Slots each pod holds."""
    refusal: str = ""
    """Why nothing of it was started; empty when something was."""


class MountPlan(Struct, frozen=True, kw_only=True):
    """Fields of ``mounts.Mount``."""

    target: str
    source: str | None
    read_only: bool = False
    is_private: bool = False
    is_of_order: bool = False
    size_bytes: int | None = None


class PodPlan(Struct, frozen=True, kw_only=True):
    name: str
    run_dir: str
    scratch: str
    wrapper_log: str
    argv: tuple[str, ...]
    environment: dict[str, str]
    cwd: str
    mounts: tuple[MountPlan, ...]
    uid: int | None
    """None leaves the pod the launcher's own user and groups."""
    gid: int | None


class SupervisorPlan(Struct, frozen=True, kw_only=True):
    """``plan.json``: what the supervisor runs."""

    with_user_namespace: bool
    with_pid_namespace: bool
    hidden: tuple[str, ...]
    """Fields of ``mount_sources.MountLimits``, like the next two."""
    mountable: tuple[str, ...]
    system_targets: tuple[str, ...]
    changes: str
    """Named pipe into which the supervisor writes the directory's name when something changed."""
    pods: tuple[PodPlan, ...]


class StopRecord(Struct, frozen=True, kw_only=True):
    """``stop.json``: end everything, and kill what remains at ``deadline`` (Unix time, seconds)."""

    deadline: float
    ordered: bool


class ProcessPodStatus(Struct, frozen=True, kw_only=True):
    state: PodState
    exit_code: int | None = None
    failure: FailureKind = ""
    message: str = ""


class StatusRecord(Struct, frozen=True, kw_only=True):
    """``status.json``: how it stands, by the supervisor, or by the launcher when there is none any more."""

    pods: tuple[ProcessPodStatus, ...]
    stopped: bool
    ended: bool


_FILE_NAMES: Final[dict[type[Struct], str]] = {
    Assignment: "assignment.json",
    SupervisorPlan: "plan.json",
    StopRecord: "stop.json",
    StatusRecord: "status.json",
}


class PodFiles:
    """Paths of one pod."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.run = root / "run"
        """``/run/determined`` of the pod."""
        self.logs = root / "logs"
        """``/run/determined/logs`` of the pod: mounted there, so that tasks cannot put another in its place."""
        self.opt = root / "opt"
        self.tmp = root / "tmp"
        self.work = root / "work"
        self.files = root / "files"
        self.scratch = root / "scratch"
        self.ship = root / "ship"
        self.trusted = self.ship / "trusted.pem"
        """Certificates that its shipper trusts; not there where tasks get none."""
        self.wrapper_log = root / "wrapper.log"


class AllocationFiles:
    """The directory of one allocation."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lock = root / "supervisor.lock"
        self.supervisor_log = root / "supervisor.log"

    def pod(self, rank: int) -> PodFiles:
        return PodFiles(self.root / "pods" / str(rank))

    def read(self, kind: type[_S]) -> _S | None:
        """The file of this kind, or None when it was not written yet."""
        try:
            return msgspec.json.decode(self._path(kind).read_bytes(), type=kind)
        except FileNotFoundError:
            return None

    def write(self, record: Struct) -> None:
        """Replace the file of this kind of record; it is on the disk when this returns.

        Raises OSError, as when the disk is full; the file is what it was then.
        """
        path = self._path(type(record))
        replace_file(str(path), msgspec.json.encode(record))

    def keep_space(self, kind: type[Struct]) -> None:
        """Take the space of a small record of this kind now, so that it can be written while the disk is full.

        Raises OSError.
        """
        keep_space(str(self._path(kind)))

    def written_at(self, kind: type[Struct]) -> float | None:
        """When the file of this kind was written last (Unix time, seconds), or None."""
        try:
            return self._path(kind).stat().st_mtime
        except FileNotFoundError:
            return None

    def _path(self, kind: type[Struct]) -> Path:
        return self.root / _FILE_NAMES[kind]


class StateFiles:
    """The state directory of a launcher."""

    def __init__(self, root: str) -> None:
        self.root = Path(os.path.abspath(root))
        self.allocations = self.root / "allocations"
        self.trash = self.root / "trash"
        """Directories that have been given up, until they are deleted."""
        self.changes = self.root / "changes"
        self.lock = self.root / "launcher.lock"

    def allocation(self, allocation: str) -> AllocationFiles:
        return AllocationFiles(self.allocations / token(allocation))

    def found(self) -> list[AllocationFiles]:
        """Directories of all allocations, sorted."""
        return [AllocationFiles(path) for path in sorted(self.allocations.iterdir())]

    def make(self) -> None:
        for directory in (self.root, self.allocations, self.trash):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self.changes.is_fifo():
            os.mkfifo(self.changes, 0o600)


def try_lock(path: Path) -> int | None:
    """Take the lock file ``path``; returns a descriptor that holds it until closed, None when another process does."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd


def holder(path: Path) -> int | None:
    """Pid of the process that holds the lock file ``path``; 0 when it has not written it yet, None when none does."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        # Shared, so that two who only look do not take each other for the holder.
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.pread(fd, 32, 0).strip()
        return int(text) if text.isdigit() else 0
    else:
        return None
    finally:
        os.close(fd)
