"""Creates an experiment: turns what was submitted into the rows that the scheduler takes up.

First everything that only reads and computes, in the order that decides which mistake a user hears of first; then one
short transaction that stores it all, with the first trials of its search, or nothing: clients look for those as soon
as they have the answer. Source: docs/reference/experiments.md 1.7.
"""

from __future__ import annotations

import asyncio
import random
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.config import apply_invariants, build_config, check_unmasked, merge, parse_experiment_config, random_name
from libs.db.jobs.pool_offers import store_offers
from libs.db.new_trials import take_local_ids
from libs.db.transactions import in_transaction
from libs.searchers.search_start import start_search
from libs.ssh_keys import new_key_pair
from libs.states.trial import TrialState
from services.api.access.principal import Principal
from services.api.actions.experiments.first_trials import insert_first_trials
from services.api.actions.experiments.forking import load_parent, model_definition_of
from services.api.actions.experiments.insertion import NewExperiment, first_events, insert_experiment
from services.api.actions.experiments.pool_choice import choose_pool
from services.api.actions.experiments.project import (
    ProjectRef,
    RequireProject,
    check_may_grow,
    choose_project,
    load_project,
)
from services.api.actions.experiments.warm_start import pin_warm_start
from services.api.actions.pod_rules import check_pods_of_users
from services.api.actions.pool_offers import OfferedTask, changes_of_experiment, completed, offers_of
from services.api.actions.possible_pools import check_pools
from services.api.actions.small_configs import computed, is_small, starts_small
from services.api.actions.storage_addresses import check_storage_of_users
from services.api.app import App
from services.api.queries.workspaces.config_policies import Policies, policies_in
from services.api.queries.workspaces.templates import parsed_template
from services.api.wire.experiments.experiments import CreateExperimentRequest

Object = dict[str, Any]


class StoredExperiment(NamedTuple):
    id: int
    created_until: int
    """Number of its last event in the outbox."""


async def prepare_experiment(
    app: App, request: CreateExperimentRequest, *, require: RequireProject, now: datetime
) -> NewExperiment:
    """Check and complete what was submitted; stores nothing.

    require  raises unless the caller may create experiments in the project
    Raises InvalidRequest, NotFound, FailedPrecondition.
    """
    async with app.db.read() as connection:
        parent = await load_parent(connection, request.parent_id) if request.parent_id else None
        small = is_small(request.config)
        user = await computed(
            small, parse_experiment_config, request.config, known_labels=parent.labels if parent else frozenset()
        )
        check_unmasked(user)
        template = await parsed_template(connection, request.template)
        small = small and not template
        asked = await computed(small, merge, user, template)
        project = await choose_project(connection, request.project_id, asked, require=require)
        policies = await policies_in(
            connection,
            project.workspace_id,
            "EXPERIMENT",
            larger_priority_first=app.cluster.resource_manager.larger_priority_first,
        )
        small = small and not policies.invariants
        fixed = await computed(small, apply_invariants, asked, policies.invariants)
        pool, warnings = choose_pool(app, fixed, project)
        config = await computed(small, _complete, app, user, template, project, policies, pool=pool, now=now)
        task = _offered(fixed, config, project, pool)
        config["resources"] = completed(app, task, config["resources"])
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

        async def in_pool(name: str) -> Object:
            there = await computed(small, _complete, app, user, template, project, policies, pool=name, now=now)
            await check_pods_of_users(
                connection,
                app.cluster,
                template,
                user,
                *policies.of_workspace,
                workspace_id=project.workspace_id,
                pool=name,
                gpu=there["resources"]["slots_per_trial"] > 0,
            )
            return there

        offers = await offers_of(
            app, task, config["resources"], own=config, in_pool=in_pool, changes=changes_of_experiment
        )
        await pin_warm_start(connection, config)
    await check_storage_of_users(app, config.get("checkpoint_storage"))
    possible = await check_pools(app, task, task_type="TRIAL", config=config, offers=offers, warnings=warnings)
    return NewExperiment(
        config=config,
        users_pod=users_pod,
        original_config=request.config,
        project=project,
        pool=pool,
        model_definition=await model_definition_of(request, parent),
        parent_id=parent.id if parent else None,
        activate=request.activate,
        search=await computed(small and starts_small(config["searcher"]), start_search, config),
        warnings=possible.warnings,
        unfit=possible.unfit,
        offers=offers,
    )


async def store_experiment(app: App, new: NewExperiment, principal: Principal, *, now: datetime) -> StoredExperiment:
    """Store what was prepared. Raises FailedPrecondition or NotFound when its project is archived or gone meanwhile."""
    ssh = app.cluster.security.ssh
    # An RSA key takes seconds to find, any other one less than the way to a thread.
    keys = await asyncio.to_thread(new_key_pair, ssh) if ssh.key_type == "RSA" else new_key_pair(ssh)

    async def store(connection: AsyncConnection) -> StoredExperiment:
        experiment = await insert_experiment(connection, new, principal, keys, now)
        if new.offers and experiment.job_id is not None:
            await store_offers(connection, experiment.job_id, new.offers, anew=False)
        # Others who create in the project wait from here on, and not while the files are stored.
        first, workspace_id = await take_local_ids(connection, new.project.project_id, len(new.search.creates))
        check_may_grow(await load_project(connection, new.project.project_id))
        last = await insert_first_trials(
            connection,
            experiment,
            new.search,
            first=first,
            workspace_id=workspace_id,
            state=TrialState.ACTIVE if new.activate else TrialState.PAUSED,
            now=now,
            events=first_events(experiment, new, principal),
        )
        return StoredExperiment(experiment.id, last)

    return await in_transaction(app.db, store)


def _offered(asked: Object, config: Object, project: ProjectRef, pool: str) -> OfferedTask:
    """``asked``: what the user, a template and the policies say."""
    return OfferedTask(
        pool=pool,
        slots=config["resources"]["slots_per_trial"],
        single_pod=bool(config["resources"].get("is_single_node")),
        time_limit_s=(asked.get("resources") or {}).get("time_limit"),
        workspace_id=project.workspace_id,
        unavailable_pools=project.unavailable_pools,
    )


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
