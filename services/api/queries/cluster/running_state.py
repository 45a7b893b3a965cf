"""What runs where, as pairs of ids: by them dashboards tell which container, task, experiment and label a number of a
GPU or of a container belongs to.

The id of a container is the name of its pod, as in the log of its task, so the containers of one allocation differ.
Source: docs/reference/platform.md 14.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from sqlalchemy import Select, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.config.stored import labels_of
from libs.db.tables.experiments import experiments
from libs.db.tables.tasks import accelerator_data, allocations, tasks
from libs.events.observations import ObservedPod
from libs.states.experiment import LIVE
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.access.rights.task_rows import visible_tasks

_HOLDS_SLOTS: Final = (allocations.c.released_at.is_(None), allocations.c.assigned_at.is_not(None))


class RunningState(msgspec.Struct, frozen=True, kw_only=True):
    """Relations without duplicates; each tuple has its ids in the order of its name."""

    containers_and_allocations: frozenset[tuple[str, str]]
    allocations_tasks_names_and_jobs: frozenset[tuple[str, str, str, str]]
    runtime_ids_and_containers: frozenset[tuple[str, str]]
    jobs_and_experiments: frozenset[tuple[str, str]]
    experiments_and_labels: frozenset[tuple[str, str]]
    gpus_and_containers: frozenset[tuple[str, str]]


async def running_state(connection: AsyncConnection, *, rights: UserRights) -> RunningState:
    """Of allocations that hold slots, and of experiments that have not ended: those that the caller may see."""
    columns = allocations.c
    query = (
        select(columns.allocation_id, columns.task_id, columns.name, columns.job_id, columns.pods)
        .join(tasks, tasks.c.task_id == columns.task_id)
        .where(*_HOLDS_SLOTS, visible_tasks(rights))
    )
    held = (await connection.execute(query)).all()
    pods = {row.allocation_id: _live_pods(row.pods) for row in held}
    lives = {(pod.name, allocation) for allocation, live in pods.items() for pod in live}
    found = (await connection.execute(_experiments(rights))).all()
    return RunningState(
        containers_and_allocations=frozenset(lives),
        allocations_tasks_names_and_jobs=frozenset(
            (row.allocation_id, row.task_id, row.name, row.job_id) for row in held
        ),
        runtime_ids_and_containers=frozenset(
            (pod.runtime_id, pod.name) for live in pods.values() for pod in live if pod.runtime_id
        ),
        jobs_and_experiments=frozenset((row.job_id, str(row.id)) for row in found),
        experiments_and_labels=frozenset(
            (str(row.id), label) for row in found for label in labels_of({"labels": row.labels})
        ),
        gpus_and_containers=frozenset(
            (uuid, row.container_id)
            for row in await connection.execute(_accelerators(rights))
            if (row.container_id, row.allocation_id) in lives
            for uuid in row.accelerator_uuids
        ),
    )


def _live_pods(pods: object) -> list[ObservedPod]:
    return [pod for pod in msgspec.convert(pods, tuple[ObservedPod, ...]) if pod.state != "TERMINATED"]


def _experiments(rights: UserRights) -> Select[Any]:
    columns = experiments.c
    return select(columns.id, columns.job_id, columns.config["labels"].label("labels")).where(
        columns.state.in_(LIVE),
        rights.where_project(Action.VIEW_EXPERIMENT, columns.project_id),
    )


def _accelerators(rights: UserRights) -> Select[Any]:
    """As the containers of allocations have reported them."""
    columns = accelerator_data.c
    return (
        select(columns.allocation_id, columns.container_id, columns.accelerator_uuids)
        .join(allocations, allocations.c.allocation_id == columns.allocation_id)
        .join(tasks, tasks.c.task_id == allocations.c.task_id)
        .where(*_HOLDS_SLOTS, visible_tasks(rights))
    )
