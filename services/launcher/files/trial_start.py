"""Prepares a trial up to its first line of user code, with the client imported once instead of for every step.

The steps are the context, the startup hooks, the rendezvous (last, so that the pods of a gang leave it together) and
the launcher. Importing the client takes longer than all of them, so they share one import: a copy of this process goes
through the steps that prepare, and this one becomes the launcher, as if it had been started with ``python -m``: same
process id, environment, arguments and exit code, and nothing of the preparation in it but the files that that leaves.

Hooks may change whatever a shell can change, so they are sourced by the entrypoint, which comes back with
``--after-hooks``. Nearly no trial has any.

The client gives up when the connection to the master breaks in the middle of a request that prepares; a restart of the
master must not end a trial like that. All these requests may be repeated, so the preparation is, for a minute or so.
Only the rendezvous of a gang is not: its pods may have met already, without the one whose answer was lost.

Source: docs/reference/harness-protocol.md 2, 6.1, 6.2 and 12.1. Standard library of Python 3.8, and ``determined``.
"""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # Python 3.8 cannot write these types down while it runs
    from collections.abc import Callable

PREPARE = "determined.exec.prep_container"
LAUNCH = "determined.exec.launch"
ENTRYPOINT = "/run/determined/train/entrypoint.sh"
MASTER_AWAY = 75
"""Exit code of a copy that should be tried again (EX_TEMPFAIL of sysexits.h)."""
PAUSES_S = (1, 2, 4, 8, 15, 15, 15)
"""Between two tries."""
_AWAY_STATUS = (502, 503, 504)


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
    try:
        run(PREPARE, "--rendezvous")
    except Exception as error:
        if os.environ.get("DET_KUBERNETES_JOB_PARALLELISM", "1") != "1":
            raise SystemExit(f"rendezvous failed: {error}") from error
        raise


def is_master_away(error: BaseException) -> bool:
    """Whether the master did not answer, or not to the end, rather than refuse."""
    from determined.common.api import errors  # noqa: PLC0415
    from requests import exceptions  # noqa: PLC0415

    broken = (exceptions.ConnectionError, exceptions.ChunkedEncodingError, exceptions.Timeout)
    seen: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in seen:
        if isinstance(cause, (*broken, errors.MasterNotFoundException)):
            return True
        if getattr(cause, "status_code", None) in _AWAY_STATUS:
            return True
        seen.append(cause)
        cause = cause.__cause__ or cause.__context__
    return False


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
        try:
            step()
        except Exception as error:
            if not is_master_away(error):
                raise
            sys.stderr.write(f"the master does not answer: {error}\n")
            sys.exit(MASTER_AWAY)
        sys.exit(0)
    _, status = os.waitpid(pid, 0)
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def with_retry(step: Callable[[], None]) -> int:
    """Take a step in a copy of this process, again while the master is away; returns the last exit code."""
    for pause_s in PAUSES_S:
        exit_code = in_a_copy(step)
        if exit_code != MASTER_AWAY:
            return exit_code
        time.sleep(pause_s)
    return in_a_copy(step)


def missing_writer() -> str:
    """What ``core.init`` lacks for writing metrics for TensorBoard, and what to do; empty when nothing is missing.

    The trial may have failed for another reason, and the sentence says on which condition it helps.
    """
    if has_module("tensorflow") or (has_module("torch") and has_module("tensorboard")):
        return ""
    needs = "tensorboard" if has_module("torch") else "torch and tensorboard (or tensorflow)"
    return (
        f"INFO: if core.init() failed with ModuleNotFoundError: {sys.executable} does not have {needs}; "
        "install that, or call core.init(tensorboard_mode=core.TensorboardMode.MANUAL)"
    )


def has_module(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def main(args: list[str]) -> None:
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.getcwd()  # where ``python -m`` looks first; for a script it is the script's own folder
    import determined  # noqa: F401, PLC0415

    after_hooks = args == ["--after-hooks"]
    exit_code = with_retry(meet if after_hooks else prepare)
    if exit_code:
        sys.exit(exit_code)
    if not after_hooks and has_hooks():
        os.execv(ENTRYPOINT, [ENTRYPOINT, "--hooks"])  # noqa: S606
    try:
        run(LAUNCH)
    except SystemExit as end:
        missing = missing_writer()
        if end.code and missing:
            # Not behind the error: the capture wrapper takes the last line of that for the reason of the end.
            sys.stdout.write(missing + "\n")
        raise


if __name__ == "__main__":
    main(sys.argv[1:])
