"""Files of a task container: every file and directory that is placed into it, with mode and owner, for each task type.

The table of docs/reference/harness-protocol.md 5, as data. Backends differ only in how the files get there.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Final, Literal

from msgspec import Struct

from libs.errors import InvalidRequest
from libs.events.orders import Owner, TaskSpec, TaskType, TrialTask
from services.launcher.container.paths import LOG_DIR, MASTER_CERT, RUN_DIR, WORK_DIR, work_dir


class Placed(Struct, frozen=True):
    """A file, or a directory when ``content`` is None."""

    path: str
    mode: int
    content: bytes | None = None
    owner: Literal["user", "root"] = "user"


Scripts = Mapping[str, bytes]
"""Content by file name below ``services/launcher/files``."""

_JUPYTER: Final = f"{RUN_DIR}/jupyter"
_SSH: Final = f"{RUN_DIR}/ssh"

# task type -> (path, mode, script; None for a directory)
_BY_TYPE: Final[Mapping[TaskType, tuple[tuple[str, int, str | None], ...]]] = {
    "TRIAL": (
        (f"{RUN_DIR}/train", 0o700, None),
        (f"{RUN_DIR}/train/model", 0o700, None),
        (f"{RUN_DIR}/train/entrypoint.sh", 0o744, "trial-entrypoint.sh"),
        (f"{RUN_DIR}/train/start.py", 0o744, "trial_start.py"),
        (_SSH, 0o700, None),
        (f"{_SSH}/sshd_config", 0o600, "sshd.conf"),
    ),
    "COMMAND": ((f"{RUN_DIR}/command-entrypoint.sh", 0o700, "command-entrypoint.sh"),),
    "GENERIC": ((f"{RUN_DIR}/generic-task-entrypoint.sh", 0o700, "command-entrypoint.sh"),),
    "SHELL": (
        (_SSH, 0o700, None),
        (f"{_SSH}/shell-entrypoint.sh", 0o700, "shell-entrypoint.sh"),
        (f"{_SSH}/authorize_keys.py", 0o700, "authorize_keys.py"),
        (f"{_SSH}/sshd_config", 0o644, "sshd.conf"),
        (f"{RUN_DIR}/check_ready_logs.py", 0o700, "check_ready_logs.py"),
    ),
    "NOTEBOOK": (
        (_JUPYTER, 0o700, None),
        (f"{_JUPYTER}/config", 0o700, None),
        (f"{_JUPYTER}/data", 0o700, None),
        (f"{_JUPYTER}/runtime", 0o700, None),
        (f"{_JUPYTER}/notebook-entrypoint.sh", 0o700, "notebook-entrypoint.sh"),
        (f"{_JUPYTER}/check_idle.py", 0o700, "check_idle.py"),
        (f"{RUN_DIR}/check_ready_logs.py", 0o700, "check_ready_logs.py"),
        (f"{WORK_DIR}/README.ipynb", 0o644, "welcome.ipynb"),
    ),
    "TENSORBOARD": (
        (f"{RUN_DIR}/tensorboard", 0o700, None),
        (f"{RUN_DIR}/tensorboard/tensorboard-entrypoint.sh", 0o700, "tensorboard-entrypoint.sh"),
        (f"{RUN_DIR}/check_ready_logs.py", 0o700, "check_ready_logs.py"),
    ),
    "CHECKPOINT_GC": (
        (f"{RUN_DIR}/checkpoint_gc", 0o700, None),
        (f"{RUN_DIR}/checkpoint_gc/gc-checkpoints-entrypoint.sh", 0o700, "gc-checkpoints-entrypoint.sh"),
    ),
}


def container_files(spec: TaskSpec, *, scripts: Scripts, master_cert: bytes | None = None) -> tuple[Placed, ...]:
    """Everything to place, directories before what is in them; a later entry replaces an earlier one of its path.

    Raises InvalidRequest when a file of the order would lie outside ``/run/determined``.
    """
    placed: dict[str, Placed] = {}
    for item in _in_order(spec, scripts, master_cert):
        for parent in _parents(item.path):
            placed.setdefault(parent, Placed(parent, 0o755 if item.owner == "root" else 0o700, owner=item.owner))
        placed[item.path] = item
    return tuple(placed.values())


def _in_order(spec: TaskSpec, scripts: Scripts, master_cert: bytes | None) -> Iterator[Placed]:
    yield Placed(RUN_DIR, 0o700)
    yield Placed(f"{RUN_DIR}/info", 0o755)
    yield Placed(f"{RUN_DIR}/pythonuserbase", 0o700)
    yield Placed(LOG_DIR, 0o700)
    if work_dir(spec) == WORK_DIR or spec.task_type == "NOTEBOOK":
        yield Placed(WORK_DIR, 0o700)
    yield Placed(f"{RUN_DIR}/task-setup.sh", 0o744, scripts["task-setup.sh"])
    yield Placed(f"{RUN_DIR}/capture.py", 0o755, scripts["capture.py"])
    if spec.startup_hook:
        yield Placed(f"{RUN_DIR}/dynamic-tcd-startup-hook.sh", 0o744, spec.startup_hook.encode())
    for path, mode, script in _BY_TYPE[spec.task_type]:
        yield Placed(path, mode, None if script is None else scripts[script])
    if spec.trial is not None:
        yield from _trial_keys(spec.trial)
        yield Placed("/etc/ssh/ssh_config", 0o644, scripts["ssh.conf"], "root")
    if spec.task_type == "SHELL":
        # The last of its directory: others may put together a PATH of their own there.
        yield Placed("/etc/profile.d/zz-determined.sh", 0o644, scripts["login-profile.sh"], "root")
    yield from _users(spec.owner, work_dir(spec))
    if master_cert is not None:
        yield Placed(MASTER_CERT, 0o644, master_cert, "root")
    for file in spec.files:
        yield Placed(_below_run_dir(file.path), file.mode, file.content)


def _trial_keys(trial: TrialTask) -> Iterator[Placed]:
    yield Placed(f"{_SSH}/authorized_keys", 0o600, trial.ssh_public_key.encode())
    yield Placed(f"{_SSH}/id_rsa", 0o600, trial.ssh_private_key.encode())
    yield Placed(f"{_SSH}/id_rsa.pub", 0o600, trial.ssh_public_key.encode())


def _users(owner: Owner, home: str) -> Iterator[Placed]:
    """Read by images with an NSS plugin for it, and by nothing else (spec 5.1)."""
    etc = f"{RUN_DIR}/etc"
    passwd = f"{owner.user}:x:{owner.uid}:{owner.gid}::{home}:/bin/bash\n"
    yield Placed(f"{etc}/passwd", 0o644, passwd.encode(), "root")
    yield Placed(f"{etc}/shadow", 0o600, f"{owner.user}:*:::::::\n".encode(), "root")
    yield Placed(f"{etc}/group", 0o644, f"{owner.group}:x:{owner.gid}:\n".encode(), "root")


def _below_run_dir(path: str) -> str:
    absolute = posixpath.normpath(posixpath.join(RUN_DIR, path))
    if not absolute.startswith(f"{RUN_DIR}/"):
        raise InvalidRequest(f"file '{path}' of the task is not below {RUN_DIR}")
    return absolute


def _parents(path: str) -> list[str]:
    """Directories between ``/run/determined`` and ``path``, outermost first; none for paths elsewhere."""
    if not path.startswith(f"{RUN_DIR}/"):
        return []
    names = path.removeprefix(f"{RUN_DIR}/").split("/")[:-1]
    return [f"{RUN_DIR}/{'/'.join(names[: depth + 1])}" for depth in range(len(names))]
