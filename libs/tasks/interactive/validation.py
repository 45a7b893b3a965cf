"""Refuses a final configuration that makes no sense: all findings at once, in the texts of docs/reference.

Source: docs/reference/tasks-and-cli.md 2.4 and 2.5; docs/reference/kubernetes.md 5.1.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any, Final

from libs.config.checks import TASK_ENVIRONMENT, FailedCheck, failed_pod_checks, refuse_failed
from libs.tasks.interactive.durations import duration_seconds

IDLE_TYPES: Final = ("kernels_or_terminals", "kernel_connections", "activity")
LONGEST_DESCRIPTION: Final = 1000
"""In characters: it is in every line that says what happens to the task."""
MOST_SHARED_MEMORY: Final = 2**53
"""In bytes; larger numbers are not the same in every JSON."""
_LEAST_PRIORITY, _MOST_PRIORITY = 1, 99
_RESOURCES: Final = "root.Resources"


def check_config(task_type: str, config: Mapping[str, Any]) -> None:
    """Raise InvalidRequest unless a task may have this configuration, which is whole.

    task_type  COMMAND, NOTEBOOK, SHELL, TENSORBOARD or GENERIC
    """
    refuse_failed(task_type, [*_failures(config)])


def _failures(config: Mapping[str, Any]) -> Iterator[FailedCheck]:
    yield from check_resources(config["resources"])
    for index, mount in enumerate(config["bind_mounts"] or ()):
        yield from _mount_failures(mount, f"root.BindMounts[{index}]")
    yield from failed_pod_checks(config["environment"]["pod_spec"] or {}, TASK_ENVIRONMENT)
    if config["notebook_idle_type"] not in IDLE_TYPES:
        detail = f"{config['notebook_idle_type']} is not one of {', '.join(IDLE_TYPES)}"
        yield FailedCheck("root", "invalid notebook idle type", detail)
    if len(config["description"]) > LONGEST_DESCRIPTION:
        detail = f"{len(config['description'])} is greater than {LONGEST_DESCRIPTION}"
        yield FailedCheck("root", "the length of description must be <= 1000", detail)
    if (directory := config["work_dir"]) is not None and not posixpath.isabs(directory):
        yield FailedCheck("root", "work_dir must be an absolute path", f"found {directory}")
    idle = config["idle_timeout"]
    if idle is not None and duration_seconds(idle) < 0:
        yield FailedCheck("root", "idle_timeout must be >= 0", f"{idle} is less than 0")


def check_resources(resources: Mapping[str, Any]) -> Iterator[FailedCheck]:
    weight, priority = resources["weight"], resources["priority"]
    if (slots := resources["slots"]) < 0:
        yield FailedCheck("root", "resources.slots must be >= 0", f"{slots} is less than 0")
        yield FailedCheck(_RESOURCES, "slots must be >= 0", f"{slots} is less than 0")
    if weight <= 0:
        yield FailedCheck(_RESOURCES, "weight must be > 0", f"{weight} is not greater than 0")
    if priority is not None and not _LEAST_PRIORITY <= priority <= _MOST_PRIORITY:
        message = "scheduling priority must be greater than 0 and less than 100"
        yield FailedCheck(_RESOURCES, message, f"{priority} is not in 1 .. 99")
    if (most := resources.get("max_slots")) is not None and most < 0:
        yield FailedCheck(_RESOURCES, "max_slots must be >= 0", f"{most} is less than 0")
    if (size := resources.get("shm_size")) is not None and size > MOST_SHARED_MEMORY:
        yield FailedCheck(_RESOURCES, "shm_size must be <= 2^53", f"{size} is greater than {MOST_SHARED_MEMORY}")
    if resources["is_single_node"] is not None:
        message = "resources.is_single_node cannot be set for NTSCs"
        yield FailedCheck(_RESOURCES, message, f"found {resources['is_single_node']}")


def _mount_failures(mount: Mapping[str, Any], path: str) -> Iterator[FailedCheck]:
    if not posixpath.isabs(mount["host_path"]):
        yield FailedCheck(path, "host_path must be an absolute path", f"found {mount['host_path']}")
    if mount["container_path"] in ("", "."):
        yield FailedCheck(path, 'container_path must not be "."', f"found {mount['container_path']}")
