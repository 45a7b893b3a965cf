"""Which tasks of a tree a kill, a pause or an unpause reaches, and which state each of them gets. Pure.

A task that has others below it takes them along, except through one that is closed: what that left behind is on its
own. Source: docs/reference/tasks-and-cli.md 6 and 12.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from libs.errors import FailedPrecondition
from libs.states.generic_task import GenericTaskState, TaskTrigger, step

CLOSED: Final = frozenset({GenericTaskState.COMPLETED, GenericTaskState.CANCELED})


class TreeNode(Struct, frozen=True, kw_only=True):
    task_id: str
    parent_id: str | None = None
    state: GenericTaskState
    no_pause: bool | None = None
    """None when nobody said."""


Tree = Mapping[str, TreeNode]
"""All tasks with the same root, by their ids; some in between may be gone."""
Changes = dict[str, GenericTaskState]
"""The new state of every task that gets another one."""


def topmost(tree: Tree, task_id: str) -> str:
    """The task at the head of the branch that ``task_id`` is in: the root, unless that is gone."""
    node = tree[task_id]
    while node.parent_id is not None and node.parent_id in tree:
        node = tree[node.parent_id]
    return node.task_id


def reached(tree: Tree, top: str) -> list[TreeNode]:
    """``top`` and what is below it, parents first."""
    below: dict[str, list[TreeNode]] = {}
    for node in sorted(tree.values(), key=lambda node: node.task_id):
        below.setdefault(node.parent_id or "", []).append(node)
    found = [tree[top]]
    for node in found:
        found += (child for child in below.get(node.task_id, ()) if child.state not in CLOSED)
    return found


def kill(tree: Tree, task_id: str, *, from_root: bool = False) -> Changes:
    """Kill a task and everything below it, or the whole tree it is in. Raises FailedPrecondition when it is closed."""
    top = topmost(tree, task_id) if from_root else task_id
    _check(tree[top], TaskTrigger.KILL, f"cannot cancel task {top} as it is in state '{tree[top].state}'")
    return _moved(reached(tree, top), TaskTrigger.KILL)


def pause(tree: Tree, task_id: str) -> Changes:
    """Pause a task, and of those below it the ones that agreed to that.

    Raises FailedPrecondition when it does not run, or said that it must not be paused.
    """
    top = tree[task_id]
    _check(top, TaskTrigger.PAUSE, f"cannot pause task {task_id} as it is in state '{top.state}'")
    if top.no_pause:
        raise FailedPrecondition(f"cannot pause task {task_id} with `no_pause` set to true")
    _, *below = reached(tree, task_id)
    return _moved([top, *(node for node in below if node.no_pause is False)], TaskTrigger.PAUSE)


def unpause(tree: Tree, task_id: str) -> Changes:
    """Let a task go on, and everything below it that is paused. Raises FailedPrecondition when it is not paused."""
    _check(tree[task_id], TaskTrigger.UNPAUSE, f"cannot unpause task {task_id} as it is not in paused state")
    return _moved(reached(tree, task_id), TaskTrigger.UNPAUSE)


def check_may_have_children(parent: TreeNode) -> None:
    """Raise FailedPrecondition when ``parent`` was killed: what it starts while it ends would outlive it unseen."""
    if parent.state in (GenericTaskState.STOPPING_CANCELED, GenericTaskState.CANCELED):
        raise FailedPrecondition(f"cannot create a task below task {parent.task_id} as it is in state '{parent.state}'")


def _check(node: TreeNode, trigger: TaskTrigger, otherwise: str) -> None:
    if step(node.state, trigger) is None:
        raise FailedPrecondition(otherwise)


def _moved(nodes: list[TreeNode], trigger: TaskTrigger) -> Changes:
    moves = ((node, step(node.state, trigger)) for node in nodes)
    return {node.task_id: state for node, state in moves if state is not None and state != node.state}
