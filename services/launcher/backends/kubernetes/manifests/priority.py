"""Names the priority class of pods: one class per priority, shared by all tasks (docs/reference/kubernetes.md 3.10)."""

from __future__ import annotations

import re
from typing import Any, Final

from libs.events.orders import TaskSpec

MEDIUM: Final = "determined-medium-priority"
SYSTEM: Final = "determined-system-priority"
DEFAULT: Final = 50


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
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": class_name(priority)},
        "value": priority,
        "globalDefault": False,
        "preemptionPolicy": "Never",
        "description": "tasks of one priority",
    }
