"""Creates experiments that run elsewhere: without a pool, a job, or a search; they wait for their trials to report.

Source: docs/reference/experiments.md 12.
"""

from __future__ import annotations

import asyncio
import random
from datetime import datetime
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.config import build_config, check_unmasked, merge, parse_experiment_config, random_name
from libs.config.stored import part
from libs.db.outbox import announce
from libs.db.tables.experiments import experiments
from libs.db.transactions import in_transaction
from libs.errors import FailedPrecondition, InvalidRequest
from libs.ids import new_uuid
from libs.states.experiment import ExperimentState
from services.api.access.principal import Principal
from services.api.actions.experiment_lock import change, lock_experiment
from services.api.actions.experiments.forking import load_parent, model_definition_of
from services.api.actions.experiments.new_experiment import created, insert_model_definition
from services.api.actions.experiments.project import (
    ProjectRef,
    RequireProject,
    choose_project,
    keep_project,
    lock_project,
)
from services.api.actions.unmanaged.external_ids import check_external_id
from services.api.app import App
from services.api.queries.workspaces.templates import parsed_template
from services.api.wire.experiments.experiments import CreateExperimentRequest

Object = dict[str, Any]
_GOING: Final = frozenset({ExperimentState.DELETING, ExperimentState.DELETE_FAILED})


class NewUnmanaged(Struct, frozen=True, kw_only=True):
    """Everything about an experiment that is ready to be stored; ``model_definition`` is tar.gz."""

    config: Object
    original_config: str
    project: ProjectRef
    model_definition: bytes
    parent_id: int | None


async def prepare_unmanaged(
    app: App, request: CreateExperimentRequest, *, require: RequireProject, now: datetime
) -> NewUnmanaged:
    """Check and complete what was submitted; stores nothing. Raises InvalidRequest, NotFound, FailedPrecondition.

    require  raises unless the caller may create experiments in the project
    """
    async with app.db.read() as connection:
        parent = await load_parent(connection, request.parent_id) if request.parent_id else None
        user = await asyncio.to_thread(
            parse_experiment_config, request.config, known_labels=parent.labels if parent else frozenset()
        )
        check_unmasked(user)
        template = await parsed_template(connection, request.template)
        project = await choose_project(connection, request.project_id, merge(user, template), require=require)
    config = await asyncio.to_thread(
        build_config,
        user,
        template=template,
        workspace_storage=project.checkpoint_storage,
        master_storage=app.cluster.checkpoint_storage,
        priority_default=app.cluster.default_priority(app.cluster.representative_pool),
        seed=int(now.timestamp()),
        name=random_name(random.Random()),  # noqa: S311  (a name, not a secret)
        managed=False,
    )
    return NewUnmanaged(
        config=config,
        original_config=request.config,
        project=project,
        model_definition=await model_definition_of(request, parent),
        parent_id=parent.id if parent else None,
    )


def check_upsert(request: CreateExperimentRequest, external_id: str) -> None:
    """Raise InvalidRequest for what cannot be created under a name of its own."""
    check_external_id("externalExperimentId", external_id)
    if not request.unmanaged:
        raise InvalidRequest("only unmanaged experiments are supported")
    if request.parent_id:
        raise InvalidRequest("parentId: an experiment with an external id cannot be a fork")


async def store_unmanaged(
    app: App, new: NewUnmanaged, principal: Principal, *, external_id: str | None = None, now: datetime
) -> int:
    """Store what was prepared, and return its id.

    external_id  of an experiment that may be there already, which then gets the new configuration
    Raises FailedPrecondition when it, or the project, is being deleted.
    """

    async def store(connection: AsyncConnection) -> int:
        await keep_project(connection, new.project)
        found = await _known(connection, external_id)
        if found is None:
            await lock_project(connection, new.project)
            created = await _insert(connection, new, principal, external_id, now)
            if created is not None:
                return created
            found = await _known(connection, external_id)  # somebody else has just created it
            assert found is not None, "nothing else conflicts"
        await _replace_config(connection, found, new)
        return found

    return await in_transaction(app.db, store)


async def _known(connection: AsyncConnection, external_id: str | None) -> int | None:
    if external_id is None:
        return None
    found: int | None = await connection.scalar(
        select(experiments.c.id).where(experiments.c.external_id == external_id)
    )
    return found


async def _replace_config(connection: AsyncConnection, experiment_id: int, new: NewUnmanaged) -> None:
    row = await lock_experiment(connection, experiment_id)
    if row.state in _GOING:
        raise FailedPrecondition(f"experiment {row.id} with external id '{row.external_id}' is being deleted")
    config = {**new.config, "reproducibility": part(row.config, "reproducibility") or new.config["reproducibility"]}
    await change(connection, row, "edited", config=config, original_config=new.original_config)


async def _insert(
    connection: AsyncConnection, new: NewUnmanaged, principal: Principal, external_id: str | None, now: datetime
) -> int | None:
    """None when there is one with that external id."""
    row = {
        "state": ExperimentState.PAUSED.value,
        "config": new.config,
        "original_config": new.original_config,
        "owner_id": principal.user_id,
        "project_id": new.project.project_id,
        "parent_id": new.parent_id,
        "job_id": new_uuid(),  # clients expect one; nobody queues it
        "progress": 0.0,
        "unmanaged": True,
        "external_id": external_id,
        "start_time": now,
    }
    inserted = await connection.execute(
        upsert(experiments)
        .values(row)
        .on_conflict_do_nothing(index_elements=["external_id"])
        .returning(experiments.c.id)
    )
    experiment_id: int | None = inserted.scalar_one_or_none()
    if experiment_id is None:
        return None
    await insert_model_definition(connection, experiment_id, new.model_definition)
    await announce(connection, created(experiment_id, row, principal))
    return experiment_id
