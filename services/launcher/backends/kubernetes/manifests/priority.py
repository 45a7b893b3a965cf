"""Names the priority class of pods: one class per priority, shared by all tasks (docs/reference/kubernetes.md 3.10)."""

from __future__ import annotations

import re
from typing import Any, Final

from libs.events.orders import TaskSpec

MEDIUM: Final = "determined-medium-priority"
SYSTEM: Final = "determined-system-priority"
DEFAULT: Final = 50


PLACEHOLDER: Final = "determined-placeholder-priority"
PLACEHOLDER_VALUE: Final = -10
"""The lowest for which the Cluster Autoscaler adds nodes, unless ``--expendable-pods-priority-cutoff`` is set."""

_OF_OURS: Final = re.compile(r"determined-priority-(\d+)")


def class_name(priority: int) -> str:
    return f"determined-priority-{priority}"


def priority_of(name: str) -> int | None:
    """The priority that a class is for, or None when it is not one of those that ``class_name`` names."""
    found = _OF_OURS.fullmatch(name)
    return int(found[1]) if found else None


def preferred_classes(spec: TaskSpec) -> tuple[str, ...]:
    """Names of classes, the best first: the first one that exists is the one to use."""
    if spec.task_type == "CHECKPOINT_GC":
        return (SYSTEM, MEDIUM)
    return (class_name(spec.priority or DEFAULT), MEDIUM)


def priority_class(priority: int) -> dict[str, Any]:
    """The class of a priority; larger is more important, as everywhere in Kubernetes."""
    return _class(class_name(priority), priority, "tasks of one priority")


def placeholder_class() -> dict[str, Any]:
    """The class of placeholders, which make room for everything else."""
    return _class(PLACEHOLDER, PLACEHOLDER_VALUE, "room that is held for tasks")


def _class(name: str, value: int, description: str) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "globalDefault": False,
        "preemptionPolicy": "Never",
        "description": description,
    }
