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
from services.launcher.backends.process.mounts import Mount, MountError, enter

ADVICE: Final = """\
Tasks cannot be isolated on this machine: {problem}
The process backend gives every task a /run/determined of its own in a mount namespace. One of these makes it possible:
  * run the launcher as root; in a container, with the capability SYS_ADMIN (docker run --cap-add SYS_ADMIN
    --security-opt seccomp=unconfined --security-opt apparmor=unconfined)
  * let ordinary users make user namespaces: sysctl -w user.max_user_namespaces=10000; on Debian also
    kernel.unprivileged_userns_clone=1; on Ubuntu from 23.10 on also kernel.apparmor_restrict_unprivileged_userns=0"""


class CannotIsolate(ResoluteError):
    """Neither root's way nor that of user namespaces works; the message says what to do."""


async def find_way(python: str, import_root: str) -> bool:
    """Whether tasks need a user namespace to get a mount namespace. Raises CannotIsolate."""
    process = await asyncio.create_subprocess_exec(
        python,
        *("-S", "-E", "-s", "-m", "services.launcher.backends.process.probe"),
        cwd=import_root,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    answer = output.decode(errors="replace").strip()
    if process.returncode != 0:
        raise CannotIsolate(ADVICE.format(problem=answer))
    return answer == "user namespace"


def main() -> int:
    problems = []
    for with_user_namespace, name in ((False, "directly"), (True, "user namespace")):
        problem = _try(with_user_namespace)
        if problem is None:
            sys.stdout.write(name)
            return 0
        problems.append(f"{name}: {problem}")
    sys.stdout.write("; ".join(problems))
    return 1


def _try(with_user_namespace: bool) -> str | None:
    """Make a view as for a task, in a process that ends afterwards; what went wrong, or None."""
    told, tell = os.pipe()
    with tempfile.TemporaryDirectory() as scratch:
        pid = os.fork()
        if pid == 0:
            try:
                enter(scratch, [Mount("/run/determined", None)], with_user_namespace=with_user_namespace)
                os.write(tell, b"ok")
            except (MountError, OSError) as error:
                os.write(tell, str(error).encode())
            finally:
                os._exit(0)
        os.close(tell)
        answer = b"".join(iter(lambda: os.read(told, 4096), b"")).decode()
        os.close(told)
        os.waitpid(pid, 0)
    return None if answer == "ok" else answer or "the attempt ended without a word"


if __name__ == "__main__":
    sys.exit(main())
