"""Finds out whether this user may give processes a view of the file system of their own, and how.

``find_way`` asks a process of its own, which this module is when it is run: what it tries cannot be undone.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from typing import Final

from libs.errors import ResoluteError
from services.launcher.backends.process.isolation.mount_sources import MountLimits
from services.launcher.backends.process.isolation.mounts import Mount, MountError, build_view
from services.launcher.backends.process.isolation.namespaces import Way, enter_namespaces

ADVICE: Final = """\
Tasks cannot be isolated on this machine: {problem}
The process backend gives every task a /run/determined of its own in a mount namespace. One of these makes it possible:
  * run the launcher as root; in a container, with the capability SYS_ADMIN (docker run --cap-add SYS_ADMIN
    --security-opt seccomp=unconfined --security-opt apparmor=unconfined)
  * let ordinary users make user namespaces: sysctl -w user.max_user_namespaces=10000; on Debian also
    kernel.unprivileged_userns_clone=1; on Ubuntu from 23.10 on also kernel.apparmor_restrict_unprivileged_userns=0"""


WAYS: Final = {
    "directly": Way(with_user_namespace=False, with_pid_namespace=True),
    "directly, with all processes in view": Way(with_user_namespace=False, with_pid_namespace=False),
    "user namespace": Way(with_user_namespace=True, with_pid_namespace=True),
    "user namespace, with all processes in view": Way(with_user_namespace=True, with_pid_namespace=False),
}
"""Best first."""


class CannotIsolate(ResoluteError):
    """Neither root's way nor that of user namespaces works; the message says what to do."""


async def find_way(python: str, import_root: str) -> Way:
    """The best isolation that this user can give tasks. Raises CannotIsolate."""
    process = await asyncio.create_subprocess_exec(
        python,
        *("-S", "-E", "-s", "-m", "services.launcher.backends.process.isolation.probe"),
        cwd=import_root,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    answer = output.decode(errors="replace").strip()
    if process.returncode != 0:
        raise CannotIsolate(ADVICE.format(problem=answer))
    return WAYS[answer]


def main() -> int:
    problems = []
    for name, way in WAYS.items():
        problem = _try(way)
        if problem is None:
            sys.stdout.write(name)
            return 0
        problems.append(f"{name}: {problem}")
    sys.stdout.write("; ".join(problems))
    return 1


def _try(way: Way) -> str | None:
    """Make a view as for a task, in processes that end afterwards; what went wrong, or None."""
    reader, writer = os.pipe()
    with tempfile.TemporaryDirectory() as scratch:
        pid = os.fork()
        if pid == 0:
            try:
                enter_namespaces(way)
                inner = os.fork()
                if inner:
                    os.waitpid(inner, 0)
                else:
                    mounts = [Mount("/run/determined", None)]
                    build_view(scratch, mounts, limits=MountLimits(), user=None, with_own_proc=way.with_pid_namespace)
                    os.write(writer, b"ok")
            except (MountError, OSError) as error:
                os.write(writer, str(error).encode())
            finally:
                os._exit(0)
        os.close(writer)
        answer = b"".join(iter(lambda: os.read(reader, 4096), b"")).decode()
        os.close(reader)
        os.waitpid(pid, 0)
    return None if answer == "ok" else answer or "the attempt ended without a word"


if __name__ == "__main__":
    sys.exit(main())
