"""Changes the name of an experiment, how it is scheduled and what is kept of it.

Source: docs/reference/experiments.md 6 (edit, labels, retain logs); docs/reference/scheduling.md 6.3.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import UNSET
from sqlalchemy import Row, case, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.config.experiment import overlong_label
from libs.config.stored import count_in, labels_of, number_in, part, text_in
from libs.db.outbox import announce
from libs.db.tables.tasks import jobs
from libs.db.tables.trials import trials
from libs.db.tables.workspaces import projects
from libs.errors import FailedPrecondition, InvalidRequest
from libs.events.changes import JobChanged
from libs.states.experiment import TERMINAL
from services.api.actions.checkpoints.files import apply_retention_policy
from services.api.actions.experiment_lock import change, check_live, lock_experiment
from services.api.queries.experiments.experiments import shown_description
from services.api.queries.workspaces.config_policies import policies_in
from services.api.wire.experiments.experiments import PatchCheckpointStorage, PatchExperiment, PatchResources

KEEP_FOR_EVER: Final = -1
MOST_DAYS: Final = 32767


async def edit(
    connection: AsyncConnection, experiment_id: int, patch: PatchExperiment, *, larger_priority_first: bool
) -> None:
    """Change what ``patch`` sets.

    larger_priority_first  of the resource manager

    Raises InvalidRequest; NotFound also for resources of an experiment that has ended.
    """
    row = await lock_experiment(connection, experiment_id)
    values: dict[str, Any] = {}
    config: dict[str, Any] = copy.deepcopy(row.config)
    _rename(config, patch, shown=shown_description(config, row.error))
    if patch.notes is not UNSET:
        values["notes"] = patch.notes
    if patch.resources is not UNSET:
        check_live(row)
        config["resources"] = changed_resources(part(config, "resources"), patch.resources)
        await _check_policies(connection, row, config["resources"], larger_priority_first)
        await _requeue(connection, row, config["resources"])
    if patch.checkpoint_storage is not UNSET:
        if not part(config, "checkpoint_storage"):  # of an import from long ago
            raise FailedPrecondition(f"experiment {experiment_id} has no checkpoint_storage in its configuration")
        config["checkpoint_storage"] = changed_storage(config["checkpoint_storage"], patch.checkpoint_storage)
    if config != row.config:
        values["config"] = config
    if values:
        await change(connection, row, "edited", **values)
    if patch.checkpoint_storage is not UNSET and row.state in TERMINAL:
        await apply_retention_policy(connection, experiment_id, config)


async def put_label(connection: AsyncConnection, experiment_id: int, label: str) -> list[str]:
    """Add a label, unless it is there; returns all. Raises InvalidRequest for a blank or an overlong one."""
    if not label.strip():
        raise InvalidRequest("a label must not be empty")
    _check_length([label], "label")
    row = await lock_experiment(connection, experiment_id)
    present = labels_of(row.config)
    if label not in present:
        await _set_labels(connection, row, present := [*present, label])
    return present


async def delete_label(connection: AsyncConnection, experiment_id: int, label: str) -> list[str]:
    """Remove a label, if it is there; returns those that are left."""
    row = await lock_experiment(connection, experiment_id)
    present = labels_of(row.config)
    left = [other for other in present if other != label]
    if left != present:
        await _set_labels(connection, row, left)
    return left


async def retain_logs(connection: AsyncConnection, experiment_id: int, num_days: int) -> None:
    """How long the logs of its trials are kept, in days. Raises FailedPrecondition unless it has ended."""
    check_days(num_days)
    row = await lock_experiment(connection, experiment_id)
    if row.state not in TERMINAL:
        raise FailedPrecondition(f"experiment in non terminal state '{row.state}', try again later")
    await connection.execute(
        update(trials).where(trials.c.experiment_id == experiment_id).values(log_retention_days=num_days)
    )


def check_days(num_days: int) -> None:
    """Raise InvalidRequest unless logs can be kept for so many days."""
    if not KEEP_FOR_EVER <= num_days <= MOST_DAYS:
        raise InvalidRequest(f"num days must be between {KEEP_FOR_EVER} and {MOST_DAYS}, where -1 keeps logs for ever")


def changed_resources(resources: Mapping[str, Any], patch: PatchResources) -> dict[str, Any]:
    """The resources section after the change. Raises InvalidRequest for values that no configuration may have."""
    changed = dict(resources)
    if patch.priority is not UNSET:
        if not 1 <= patch.priority <= 99:
            raise InvalidRequest("priority must be between 1 and 99")
        changed["priority"] = patch.priority
    if patch.weight is not UNSET:
        if not (patch.weight > 0 and math.isfinite(patch.weight)):
            raise InvalidRequest("weight must be greater than 0")
        changed["weight"] = patch.weight
    if patch.max_slots is not UNSET:
        slots = count_in(resources, "slots_per_trial") or 0
        if patch.max_slots is not None and patch.max_slots < slots:
            raise InvalidRequest(f"max slots ({patch.max_slots}) must not be less than slots_per_trial ({slots})")
        changed["max_slots"] = patch.max_slots
    return changed


def changed_storage(storage: Mapping[str, Any], patch: PatchCheckpointStorage) -> dict[str, Any]:
    """The checkpoint_storage section after the change."""
    wanted = {
        "save_experiment_best": patch.save_experiment_best,
        "save_trial_best": patch.save_trial_best,
        "save_trial_latest": patch.save_trial_latest,
    }
    return {**storage, **{key: value for key, value in wanted.items() if value is not UNSET}}


def _rename(config: dict[str, Any], patch: PatchExperiment, *, shown: str) -> None:
    if patch.name is not UNSET:
        if not patch.name.strip():
            raise InvalidRequest("`name` must not be an empty or whitespace string")
        config["name"] = patch.name
    # Clients send back what they got: "" for a description that was never given, and the reason of a failure with it.
    if patch.description is not UNSET and patch.description not in (text_in(config, "description"), shown):
        config["description"] = patch.description
    if patch.labels is not UNSET:
        _check_length(patch.labels, "labels")
        config["labels"] = list(dict.fromkeys(patch.labels))


def _check_length(labels: Sequence[str], field: str) -> None:
    if problem := overlong_label(labels):
        raise InvalidRequest(f"{field}: {problem}")


async def _set_labels(connection: AsyncConnection, row: Row[Any], labels: Sequence[str]) -> None:
    await change(connection, row, "edited", config={**row.config, "labels": list(labels)})


async def _check_policies(
    connection: AsyncConnection, row: Row[Any], resources: Mapping[str, Any], larger_priority_first: bool
) -> None:
    """Raises InvalidRequest when what is to change is fixed or limited in its workspace."""
    before = part(row.config, "resources")
    changed = {key: value for key, value in resources.items() if value != before.get(key)}
    workspace = select(projects.c.workspace_id).where(projects.c.id == row.project_id)
    workspace_id: int = (await connection.execute(workspace)).scalar_one()
    policies = await policies_in(connection, workspace_id, "EXPERIMENT", larger_priority_first=larger_priority_first)
    policies.check_change(changed)


async def _requeue(connection: AsyncConnection, row: Row[Any], resources: Mapping[str, Any]) -> None:
    """What the planner goes by is in the row of the job."""
    priority, weight = count_in(resources, "priority"), number_in(resources, "weight") or 1
    # Among those of another priority it has been moved nowhere.
    position = case((jobs.c.priority.is_not_distinct_from(priority), jobs.c.queue_position))
    await connection.execute(
        update(jobs)
        .where(jobs.c.job_id == row.job_id)
        .values(priority=priority, weight=weight, max_slots=count_in(resources, "max_slots"), queue_position=position)
    )
    pool = text_in(resources, "resource_pool")
    await announce(
        connection, JobChanged(job_id=row.job_id, what="changed", pool=pool, priority=priority, weight=weight)
    )
