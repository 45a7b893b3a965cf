"""The four kinds of interactive tasks, and what differs between them in one table.

Source: docs/reference/tasks-and-cli.md 2.4 (description) and 3 (ports, proxy entry).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

InteractiveType = Literal["COMMAND", "NOTEBOOK", "SHELL", "TENSORBOARD"]


class TaskService(NamedTuple):
    """What the task serves, under its own id, behind the proxy."""

    ports: range
    """One of these, by chance: tasks may share the network of their node."""
    is_tcp: bool = False
    """Raw bytes, rather than HTTP."""
    is_open: bool = False
    """The proxy asks nobody who they are: the service does it itself."""


class InteractiveKind(NamedTuple):
    noun: str
    """As in messages, paths and answers."""
    title: str
    """As in generated descriptions."""
    service: TaskService | None = None


KINDS: Final[Mapping[InteractiveType, InteractiveKind]] = {
    "COMMAND": InteractiveKind("command", "Command"),
    "NOTEBOOK": InteractiveKind("notebook", "JupyterLab", TaskService(range(2900, 3199))),
    "SHELL": InteractiveKind("shell", "Shell", TaskService(range(3200, 3499), is_tcp=True, is_open=True)),
    "TENSORBOARD": InteractiveKind("tensorboard", "TensorBoard", TaskService(range(2600, 2899))),
}
