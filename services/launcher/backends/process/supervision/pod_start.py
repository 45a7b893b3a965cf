"""Turns a process that the supervisor forked into the first process of a pod.

Only the standard library: this runs in the supervisor.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

from services.launcher.backends.process.isolation.mount_sources import MountLimits
from services.launcher.backends.process.isolation.mounts import Mount, build_view, protect_kernel_settings
from services.launcher.backends.process.isolation.namespaces import Way, enter_namespaces
from services.launcher.backends.process.isolation.privileges import User, become_user

HELD_BACK: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH)
"""Until the capture wrapper handles them: process 1 never gets what it does not handle."""


class PodStart:
    """The start of one pod, in two forks: children of the first are in its process namespace."""

    def __init__(self, plan: Mapping[str, Any], *, way: Way, limits: MountLimits) -> None:
        error_reader, error_writer = os.pipe()
        pid_reader, pid_writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            _run_or_report(
                error_writer,
                lambda: _fork_in_namespaces(plan, way, limits, error_writer=error_writer, pid_writer=pid_writer),
            )
        os.close(error_writer)
        os.close(pid_writer)
        first = _read(pid_reader)
        os.waitpid(pid, 0)  # from here on the pod's first process is a child of the supervisor, which adopts orphans
        self.problem = _read(error_reader).decode(errors="replace")
        """Why it could not be started; empty when it runs."""
        self.pid = int(first) if first else None
        if self.problem and self.pid is not None:
            os.waitpid(self.pid, 0)


def _fork_in_namespaces(
    plan: Mapping[str, Any], way: Way, limits: MountLimits, *, error_writer: int, pid_writer: int
) -> None:
    for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    enter_namespaces(way)
    pid = os.fork()
    if pid == 0:
        os.close(pid_writer)
        _run_or_report(error_writer, lambda: _execute(plan, way, limits))
    os.write(pid_writer, b"%d" % pid)


def _execute(plan: Mapping[str, Any], way: Way, limits: MountLimits) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, HELD_BACK)
    os.setsid()
    os.umask(0o022)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.dup2(os.open(plan["wrapper_log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
    user = None if plan["uid"] is None else User(plan["uid"], plan["gid"])
    mounts = [Mount(**mount) for mount in plan["mounts"]]
    build_view(plan["scratch"], mounts, limits=limits, user=user, with_own_proc=way.with_pid_namespace)
    if not way.with_user_namespace:
        protect_kernel_settings()
    become_user(user)
    os.chdir(plan["cwd"])
    try:
        os.execve(plan["argv"][0], plan["argv"], plan["environment"])  # noqa: S606  the task is what the user wrote
    except PermissionError as error:
        raise PermissionError(refusal(plan["argv"][0])) from error


def refusal(program: str) -> str:
    """Why this process may not execute ``program``, for whoever can change that."""
    parts = program.split("/")
    directories = ["/".join(parts[:length]) or "/" for length in range(1, len(parts))]
    closed = next((path for path in directories if not os.access(path, os.X_OK)), program)
    return (
        f"user {os.getuid()} may not execute {program}, because {closed} is closed to that user; "
        "the interpreters that tasks need must be open to everybody ('resolute doctor' looks at them)"
    )


def _run_or_report(error_writer: int, act: Callable[[], None]) -> NoReturn:
    """End this process after ``act``; whatever goes wrong is told to whoever ordered the task."""
    try:
        act()
    except Exception as error:  # noqa: BLE001
        os.write(error_writer, f"cannot start: {error}".encode())
    finally:
        os._exit(0)


def _read(fd: int) -> bytes:
    try:
        return b"".join(iter(lambda: os.read(fd, 4096), b""))
    finally:
        os.close(fd)
