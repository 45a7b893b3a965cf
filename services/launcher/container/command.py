"""Command of a task container: the capture wrapper around the entrypoint of the task type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from libs.events.orders import TaskSpec, TaskType
from services.launcher.container.paths import LOG_DIR, RUN_DIR

ENTRYPOINT: Final[Mapping[TaskType, str]] = {
    "TRIAL": f"{RUN_DIR}/train/entrypoint.sh",
    "COMMAND": f"{RUN_DIR}/command-entrypoint.sh",
    "GENERIC": f"{RUN_DIR}/generic-task-entrypoint.sh",
    "SHELL": f"{RUN_DIR}/ssh/shell-entrypoint.sh",
    "NOTEBOOK": f"{RUN_DIR}/jupyter/notebook-entrypoint.sh",
    "TENSORBOARD": f"{RUN_DIR}/tensorboard/tensorboard-entrypoint.sh",
    "CHECKPOINT_GC": f"{RUN_DIR}/checkpoint_gc/gc-checkpoints-entrypoint.sh",
}


def entrypoint(spec: TaskSpec) -> tuple[str, ...]:
    """The entrypoint script of the task type and its arguments; trials have none, theirs is in the configuration."""
    return (ENTRYPOINT[spec.task_type], *(() if spec.task_type == "TRIAL" else spec.argv))


def container_argv(
    spec: TaskSpec, *, python: str | None, when_full: Literal["block", "stored", "drop"], cap_bytes: int
) -> tuple[str, ...]:
    """Command line of the container.

    python     runs the capture wrapper; None takes what ``DET_PYTHON_EXECUTABLE`` names in the container
    when_full  ``block`` where the shipper deletes what it has sent, ``stored`` where the wrapper has to, ``drop`` where
               nobody reads the files
    """
    flags = ("--dir", LOG_DIR, "--cap-bytes", str(cap_bytes), "--when-full", when_full, "--")
    capture = ("-I", "-S", f"{RUN_DIR}/capture.py", *flags)
    if python is not None:
        return (python, *capture, *entrypoint(spec))
    find_python = 'exec "${DET_PYTHON_EXECUTABLE:-python3}" "$@"'
    return ("/bin/sh", "-c", find_python, "capture", *capture, *entrypoint(spec))
