"""The last two steps of a trial's entrypoint, ``prep_container --rendezvous`` and ``exec.launch``, with one import.

Importing the client takes most of the time between a free slot and the first line of user code. So it is imported
once, a copy of the process meets the other pods, and this one becomes the launcher, as if it had been started with
``python -m``: same process id, environment, arguments and exit code, and nothing of the rendezvous in it but its file.
Source: spec/harness-protocol.md 6.2.
"""

from __future__ import annotations

import os
import runpy
import sys


def run(module: str, *args: str) -> None:
    """Run a module of the client in this process, as ``python -m`` does."""
    sys.argv = [module, *args]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def in_a_copy(module: str, *args: str) -> int:
    """Run a module of the client in a copy of this process; returns its exit code as a shell gives it."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        run(module, *args)
        sys.exit(0)
    _, status = os.waitpid(pid, 0)
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def main() -> None:
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.getcwd()  # where ``python -m`` looks first; for a script it is the script's own folder
    import determined  # noqa: F401, PLC0415

    exit_code = in_a_copy("determined.exec.prep_container", "--rendezvous")
    if exit_code:
        sys.exit(exit_code)
    run("determined.exec.launch")


if __name__ == "__main__":
    main()
