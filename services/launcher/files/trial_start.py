"""What a trial does before its first line of user code, with the client imported once instead of for every step.

The steps are the context, the startup hooks, the rendezvous (last, so that the pods of a gang leave it together) and
the launcher. Importing the client takes longer than all of them, so they share one import: a copy of this process goes
through the steps that prepare, and this one becomes the launcher, as if it had been started with ``python -m``: same
process id, environment, arguments and exit code, and nothing of the preparation in it but the files that that leaves.

Hooks may change whatever a shell can change, so they are sourced by the entrypoint, which comes back with
``--after-hooks``. Nearly no trial has any.
Source: spec/harness-protocol.md 6.1 and 6.2. Standard library of Python 3.8, and ``determined``.
"""

from __future__ import annotations

import os
import runpy
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # Python 3.8 cannot write these types down while it runs
    from collections.abc import Callable

PREPARE = "determined.exec.prep_container"
LAUNCH = "determined.exec.launch"
ENTRYPOINT = "/run/determined/train/entrypoint.sh"


def run(module: str, *args: str) -> None:
    """Run a module of the client in this process, as ``python -m`` does."""
    sys.argv = [module, *args]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def prepare() -> None:
    """All that comes before the launcher, up to hooks if there are some."""
    run(PREPARE, "--download_context_directory", "--resources", "--proxy")
    if not has_hooks():
        meet()


def meet() -> None:
    run(PREPARE, "--rendezvous")


def has_hooks() -> bool:
    """Whether there is a startup hook, of the cluster or of the context, which must be there already."""
    folder = os.environ.get("DET_RUN_DIR", "/run/determined")
    return any(os.path.isfile(path) for path in (f"{folder}/dynamic-tcd-startup-hook.sh", "./startup-hook.sh"))


def in_a_copy(step: Callable[[], None]) -> int:
    """Take a step in a copy of this process; returns its exit code as a shell gives it."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        step()
        sys.exit(0)
    _, status = os.waitpid(pid, 0)
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def main(args: list[str]) -> None:
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.getcwd()  # where ``python -m`` looks first; for a script it is the script's own folder
    import determined  # noqa: F401, PLC0415

    after_hooks = args == ["--after-hooks"]
    exit_code = in_a_copy(meet if after_hooks else prepare)
    if exit_code:
        sys.exit(exit_code)
    if not after_hooks and has_hooks():
        os.execv(ENTRYPOINT, [ENTRYPOINT, "--hooks"])  # noqa: S606
    run(LAUNCH)


if __name__ == "__main__":
    main(sys.argv[1:])
