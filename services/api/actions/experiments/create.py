"""Creates an experiment: turns what was submitted into the rows that the scheduler takes up.

First everything that only reads and computes, in the order that decides which mistake a user hears of first; then one
short transaction that stores it all, with the first trials of its search, or nothing: clients look for those as soon
as they have the answer. Source: docs/reference/experiments.md 1.7.
"""

from __future__ import annotations

import asyncio
import random
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.config import apply_invariants, build_config, check_unmasked, merge, parse_experiment_config, random_name
from libs.db.new_trials import Origin
from libs.db.outbox import announce
from libs.db.tables.experiments import experiments
from libs.db.tables.tasks import jobs
from libs.db.transactions import in_transaction
from libs.events.changes import JobChanged
from libs.events.orders import UsersPod
from libs.ids import new_uuid
from libs.searchers.search_start import SearchStart, start_search
from libs.ssh_keys import KeyPair, new_key_pair
from libs.states.trial import TrialState
from libs.tasks.users_pods import to_column
from services.api.access.principal import Principal
from services.api.actions.experiments.first_trials import insert_first_trials
from services.api.actions.experiments.forking import load_parent, model_definition_of
from services.api.actions.experiments.new_experiment import created, insert_model_definition
from services.api.actions.experiments.pool_choice import choose_pool
from services.api.actions.experiments.project import (
    ProjectRef,
    RequireProject,
    choose_project,
    keep_project,
    lock_project,
)
from services.api.actions.experiments.warm_start import pin_warm_start
from services.api.actions.pod_rules import check_pods_of_users
from services.api.actions.storage_addresses import check_storage_of_users
from services.api.app import App
from services.api.queries.workspaces.config_policies import Policies, policies_in
from services.api.queries.workspaces.templates import parsed_template
from services.api.wire.experiments.experiments import CreateExperimentRequest, LaunchWarning

Object = dict[str, Any]


class NewExperiment(Struct, frozen=True, kw_only=True):
    """Everything about an experiment that is ready to be stored."""

    config: Object
    users_pod: UsersPod
    original_config: str
    project: ProjectRef
    pool: str
    model_definition: bytes
    parent_id: int | None
    activate: bool
    search: SearchStart
    warnings: tuple[LaunchWarning, ...] = ()


async def prepare_experiment(
    app: App, request: CreateExperimentRequest, *, require: RequireProject, now: datetime
) -> NewExperiment:
    """Check and complete what was submitted; stores nothing.

    require  raises unless the caller may create experiments in the project
    Raises InvalidRequest, NotFound, FailedPrecondition.
    """
    async with app.db.read() as connection:
        parent = await load_parent(connection, request.parent_id) if request.parent_id else None
        user = await asyncio.to_thread(
            parse_experiment_config, request.config, known_labels=parent.labels if parent else frozenset()
        )
        check_unmasked(user)
        template = await parsed_template(connection, request.template)
        asked = await asyncio.to_thread(merge, user, template)
        project = await choose_project(connection, request.project_id, asked, require=require)
        policies = await policies_in(
            connection,
            project.workspace_id,
            "EXPERIMENT",
            larger_priority_first=app.cluster.resource_manager.larger_priority_first,
        )
        fixed = await asyncio.to_thread(apply_invariants, asked, policies.invariants)
        pool, warnings = choose_pool(app, fixed, project)
        config = await asyncio.to_thread(_complete, app, user, template, project, policies, pool=pool, now=now)
        policies.check_launch(config["resources"])
        users_pod = await check_pods_of_users(
            connection,
            app.cluster,
            template,
            user,
            *policies.of_workspace,
            workspace_id=project.workspace_id,
            pool=pool,
            gpu=config["resources"]["slots_per_trial"] > 0,
        )
        await pin_warm_start(connection, config)
    await check_storage_of_users(app, config.get("checkpoint_storage"))
    return NewExperiment(
        config=config,
        users_pod=users_pod,
        original_config=request.config,
        project=project,
        pool=pool,
        model_definition=await model_definition_of(request, parent),
        parent_id=parent.id if parent else None,
        activate=request.activate,
        search=await asyncio.to_thread(start_search, config),
        warnings=tuple(warnings),
    )


async def store_experiment(app: App, new: NewExperiment, principal: Principal, *, now: datetime) -> int:
    """Store what was prepared, and return its id. Raises FailedPrecondition when its project was archived meanwhile."""
    keys = await asyncio.to_thread(new_key_pair, app.cluster.security.ssh)

    async def store(connection: AsyncConnection) -> int:
        await keep_project(connection, new.project)
        experiment = await _insert(connection, new, principal, keys, now)
        # Others who create in the project wait from here on, and not while the files are stored.
        await lock_project(connection, new.project)
        state = TrialState.ACTIVE if new.activate else TrialState.PAUSED
        await insert_first_trials(connection, experiment, new.search, state=state, now=now)
        return experiment.id

    return await in_transaction(app.db, store)


def _complete(
    app: App, user: Object, template: Object, project: ProjectRef, policies: Policies, *, pool: str, now: datetime
) -> Object:
    return build_config(
        user,
        template=template,
        pool_defaults=msgspec.to_builtins(app.cluster.defaults_of(pool)),
        workspace_storage=project.checkpoint_storage,
        master_storage=app.cluster.checkpoint_storage,
        invariants=policies.invariants,
        resource_pool=pool,
        priority_default=app.cluster.default_priority(pool),
        seed=int(now.timestamp()),
        name=random_name(random.Random()),  # noqa: S311  (a name, not a secret)
    )


async def _insert(
    connection: AsyncConnection, new: NewExperiment, principal: Principal, keys: KeyPair, now: datetime
) -> Origin:
    resources = new.config["resources"]
    job_id = new_uuid()
    await connection.execute(
        insert(jobs).values(
            job_id=job_id,
            job_type="EXPERIMENT",
            owner_id=principal.user_id,
            workspace_id=new.project.workspace_id,
            pool=new.pool,
            priority=resources["priority"],
            weight=resources["weight"],
            max_slots=resources["max_slots"],
            submitted_at=now,
        )
    )
    row = {
        "state": "ACTIVE" if new.activate else "PAUSED",
        "config": new.config,
        "users_pod": to_column(new.users_pod),
        "original_config": new.original_config,
        "owner_id": principal.user_id,
        "project_id": new.project.project_id,
        "parent_id": new.parent_id,
        "job_id": job_id,
        "progress": new.search.progress,
        "start_time": now,
        "ssh_private_key": keys.private,
        "ssh_public_key": keys.public,
    }
    inserted = await connection.execute(insert(experiments).values(row).returning(experiments.c.id))
    experiment_id: int = inserted.scalar_one()
    await insert_model_definition(connection, experiment_id, new.model_definition)
    event = created(experiment_id, row, principal)
    await announce(
        connection,
        event,
        # Whoever follows states learns the first one too.
        msgspec.structs.replace(event, what="state"),
        JobChanged(
            job_id=job_id,
            what="submitted",
            pool=new.pool,
            priority=resources["priority"],
            weight=resources["weight"],
        ),
    )
    return Origin(
        id=experiment_id,
        project_id=new.project.project_id,
        job_id=job_id,
        owner_id=principal.user_id,
        config=new.config,
    )
