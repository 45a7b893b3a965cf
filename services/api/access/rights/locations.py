"""Where an object is: the workspace in which rights on it count."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, func, null, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.any_of import any_of
from libs.db.tables.checkpoints import checkpoints
from libs.db.tables.experiments import experiments
from libs.db.tables.tasks import allocations, tasks
from libs.db.tables.templates import templates
from libs.db.tables.trials import trials
from libs.db.tables.workspaces import project_keys, projects


class ObjectKind(Enum):
    """A member's value is what refusals call it."""

    WORKSPACE = "workspace"
    PROJECT = "project"
    PROJECT_KEY = "project "
    EXPERIMENT = "experiment"
    EXTERNAL_EXPERIMENT = "experiment "
    TRIAL = "trial"
    RUN = "run"
    TASK = "task"
    NOTEBOOK = "notebook"
    SHELL = "shell"
    COMMAND = "command"
    TENSORBOARD = "tensorboard"
    ALLOCATION = "allocation"
    CHECKPOINT = "checkpoint"
    TEMPLATE = "template"

    @property
    def noun(self) -> str:
        return self.value.strip()


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is.

    of_experiment  it belongs to an experiment, as the tasks of trials do
    """

    workspace_id: int
    of_experiment: bool = False


_of_task: Final[ColumnElement[int]] = func.coalesce(projects.c.workspace_id, tasks.c.workspace_id)


def _of_experiment(key: ColumnElement[Any]) -> Select[Any]:
    return select(key.label("key"), projects.c.workspace_id.label("workspace_id"), experiments.c.id.label("experiment"))


def _experiments(key: ColumnElement[Any]) -> Select[Any]:
    return _of_experiment(key).select_from(experiments.join(projects, projects.c.id == experiments.c.project_id))


def _trials() -> Select[Any]:
    joined = trials.join(experiments, experiments.c.id == trials.c.experiment_id)
    return _of_experiment(trials.c.id).select_from(joined.join(projects, projects.c.id == experiments.c.project_id))


def _tasks() -> Select[Any]:
    joined = tasks.outerjoin(experiments, experiments.c.id == tasks.c.experiment_id)
    return select(
        tasks.c.task_id.label("key"), _of_task.label("workspace_id"), tasks.c.experiment_id.label("experiment")
    ).select_from(joined.outerjoin(projects, projects.c.id == experiments.c.project_id))


def _allocations() -> Select[Any]:
    joined = (
        allocations.join(tasks, tasks.c.task_id == allocations.c.task_id)
        .outerjoin(experiments, experiments.c.id == tasks.c.experiment_id)
        .outerjoin(projects, projects.c.id == experiments.c.project_id)
    )
    return select(
        allocations.c.allocation_id.label("key"),
        _of_task.label("workspace_id"),
        tasks.c.experiment_id.label("experiment"),
    ).select_from(joined)


def _checkpoints() -> Select[Any]:
    joined = (
        checkpoints.outerjoin(tasks, tasks.c.task_id == checkpoints.c.task_id)
        .outerjoin(experiments, experiments.c.id == checkpoints.c.experiment_id)
        .outerjoin(projects, projects.c.id == experiments.c.project_id)
    )
    return select(
        checkpoints.c.uuid.label("key"), _of_task.label("workspace_id"), experiments.c.id.label("experiment")
    ).select_from(joined)


def _plain(key: ColumnElement[Any], workspace: ColumnElement[int], source: Any) -> Select[Any]:
    nothing = select(key.label("key"), workspace.label("workspace_id"), null().label("experiment"))
    return nothing.select_from(source)


_KEYS: Final = project_keys.join(projects, projects.c.id == project_keys.c.project_id)

_QUERIES: Final[Mapping[ObjectKind, tuple[Callable[[], Select[Any]], ColumnElement[Any]]]] = {
    ObjectKind.PROJECT: (lambda: _plain(projects.c.id, projects.c.workspace_id, projects), projects.c.id),
    ObjectKind.PROJECT_KEY: (
        lambda: _plain(project_keys.c.key, projects.c.workspace_id, _KEYS),
        project_keys.c.key,
    ),
    ObjectKind.EXPERIMENT: (lambda: _experiments(experiments.c.id), experiments.c.id),
    ObjectKind.EXTERNAL_EXPERIMENT: (lambda: _experiments(experiments.c.external_id), experiments.c.external_id),
    ObjectKind.TRIAL: (_trials, trials.c.id),
    ObjectKind.RUN: (_trials, trials.c.id),
    ObjectKind.TASK: (_tasks, tasks.c.task_id),
    ObjectKind.NOTEBOOK: (_tasks, tasks.c.task_id),
    ObjectKind.SHELL: (_tasks, tasks.c.task_id),
    ObjectKind.COMMAND: (_tasks, tasks.c.task_id),
    ObjectKind.TENSORBOARD: (_tasks, tasks.c.task_id),
    ObjectKind.ALLOCATION: (_allocations, allocations.c.allocation_id),
    ObjectKind.CHECKPOINT: (_checkpoints, checkpoints.c.uuid),
    ObjectKind.TEMPLATE: (lambda: _plain(templates.c.name, templates.c.workspace_id, templates), templates.c.name),
}


async def places(
    connection: AsyncConnection, kind: ObjectKind, idents: Collection[int | str]
) -> Mapping[int | str, Place]:
    """Id -> place. What is not there is left out; that a workspace is there, nobody looks."""
    if kind is ObjectKind.WORKSPACE:
        return {ident: Place(int(ident)) for ident in idents}
    query, key = _QUERIES[kind]
    rows = await connection.execute(query().where(any_of(key, idents)))
    return {row.key: Place(row.workspace_id, row.experiment is not None) for row in rows if row.workspace_id}
