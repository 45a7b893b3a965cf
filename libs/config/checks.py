"""Checks the settings of a task or of the cluster: all failures at once, in one sorted text.

Experiments have a form of their own (libs/shapes/problems.py); these texts are those of every other task, and of a
cluster configuration that no service starts with. Clients show them as they are.
Source: docs/reference/kubernetes.md 5.1; docs/reference/tasks-and-cli.md 2.5 (validation errors).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from libs import podspec
from libs.errors import InvalidRequest

TASK_ENVIRONMENT: Final = "root.Environment"
_WHAT_IS_INVALID: Final = {
    "COMMAND": "invalid command config: ",
    "NOTEBOOK": "invalid notebook config: ",
    "SHELL": "",
    "TENSORBOARD": "invalid TensorBoard config: ",
    "GENERIC": "invalid generic task config: ",
}


class FailedCheck(NamedTuple):
    path: str
    """From the root, for example ``root.Environment``."""
    message: str
    detail: str
    """What was found, compared with what should have been."""

    def __str__(self) -> str:
        return f"error found at {self.path}: {self.message}: {self.detail}"


def check_failed(failures: Iterable[FailedCheck]) -> str:
    """The text of one or more failures, sorted."""
    lines = sorted(str(failure) for failure in failures)
    return "".join((f"Check Failed! {len(lines)} errors found:", *(f"\n\t{line}" for line in lines)))


def failed_pod_checks(pod: Mapping[str, Any], path: str) -> list[FailedCheck]:
    """Everything in a pod spec that its author may not set; ``path`` is where the pod spec is found."""
    return [FailedCheck(path, refusal.message, refusal.detail) for refusal in podspec.refusals(pod)]


def refuse_failed(task_type: str, failures: Sequence[FailedCheck]) -> None:
    """Raise InvalidRequest with the failures of a task other than an experiment's, if there are any.

    task_type  COMMAND, NOTEBOOK, SHELL, TENSORBOARD or GENERIC
    """
    if failures:
        raise InvalidRequest(f"{_WHAT_IS_INVALID[task_type]}{check_failed(failures)}")


def check_task_pod_spec(task_type: str, pod: Mapping[str, Any]) -> None:
    """Raise InvalidRequest unless a task other than an experiment's may have this pod spec."""
    refuse_failed(task_type, failed_pod_checks(pod, TASK_ENVIRONMENT))
