"""Creates a generic task: from a configuration, or from another task with what is to be different.

First everything that only reads and computes; then one short transaction that stores it all with the request for its
first allocation, or nothing. Source: docs/reference/tasks-and-cli.md 6.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.cluster.resolution import resolve_pool, split_in_pool
from libs.config.secrets import mask_secrets
from libs.db.jobs.pool_offers import PoolOffer, store_offers
from libs.db.outbox import announce
from libs.db.tables.tasks import allocations, generic_tasks, jobs, tasks
from libs.db.task_lines import add_task_line
from libs.db.transactions import in_transaction
from libs.errors import InvalidRequest
from libs.events.changes import AllocationChanged, JobChanged, TaskChanged
from libs.ids import allocation_id, new_uuid
from libs.states.allocation import AllocationState
from libs.states.generic_task import GenericTaskState
from libs.tasks.generic import (
    TASK_TYPE,
    GenericRequest,
    complete,
    read_request,
    stored_generic_task,
    submitted_config,
)
from libs.tasks.stored import StoredTask, to_document
from libs.tasks.users_pods import lines_at_first_start
from services.api.access.principal import Principal
from services.api.actions.experiments.project import (
    DEFAULT_PROJECT,
    ProjectRef,
    RequireProject,
    check_may_grow,
    keep_project,
    load_project,
)
from services.api.actions.generic_tasks.control import lock_tree
from services.api.actions.generic_tasks.tree import check_may_have_children
from services.api.actions.pod_rules import check_pods_of_users
from services.api.actions.pool_offers import OfferedTask, completed, offers_of
from services.api.actions.possible_pools import UnfitPool, check_pools, names_fallbacks
from services.api.actions.resource_request import check_resources
from services.api.app import App
from services.api.contexts.pack import pack_context
from services.api.queries.generic_tasks.generic_tasks import StoredGenericTask, load_generic_task
from services.api.queries.workspaces.config_policies import policies_in
from services.api.wire.experiments.experiments import LaunchWarning
from services.api.wire.generic_tasks.generic_tasks import CreateGenericTaskRequest

Object = dict[str, Any]


class NewGenericTask(Struct, frozen=True, kw_only=True):
    """Everything about a task that is ready to be stored."""

    task_id: str
    submitted: Object
    """The configuration as it is shown, and as forks begin with it."""
    config: Object
    """The complete one."""
    task: StoredTask
    context_tgz: bytes
    project: ProjectRef
    pool: str
    num_pods: int
    is_single_pod: bool
    parent_id: str | None
    forked_from: str | None
    no_pause: bool | None
    warnings: tuple[LaunchWarning, ...] = ()
    unfit: tuple[UnfitPool, ...] = ()
    """Of its pools, where there are several, those in which it cannot run."""
    offers: tuple[PoolOffer, ...] = ()
    """Of pools in which it may start beside its own."""


async def prepare_generic_task(
    app: App, request: CreateGenericTaskRequest, principal: Principal, *, require: RequireProject
) -> NewGenericTask:
    """Check and complete what was submitted; stores nothing. Raises InvalidRequest, NotFound, FailedPrecondition.

    require  raises unless the caller may create tasks in the project
    """
    _check_sources(request)
    async with app.db.read() as connection:
        forked = await _source(connection, request.forked_from)
        parent = await _source(connection, request.parent_id)
        project = await load_project(connection, request.project_id or DEFAULT_PROJECT)
        require(project)
        policies = await policies_in(
            connection,
            project.workspace_id,
            "NTSC",
            larger_priority_first=app.cluster.resource_manager.larger_priority_first,
        )
    check_may_grow(project)
    base = None if forked is None else mask_secrets(forked.config, to_owner=forked.owner_id == principal.user_id)
    submitted = await asyncio.to_thread(submitted_config, request.config, base)
    wanted = await asyncio.to_thread(read_request, submitted)
    pool, num_pods, warnings = _choose_pool(app, wanted, project)
    context = await _context(request, forked=forked, parent=parent)
    config = await asyncio.to_thread(
        complete,
        wanted,
        defaults=app.cluster.defaults_of(pool),
        pool=pool,
        default_priority=app.cluster.default_priority(pool),
        has_files=bool(context),
    )
    offered = OfferedTask(
        pool=pool,
        slots=wanted.pool.slots,
        single_pod=wanted.single_pod,
        time_limit_s=config["resources"].get("time_limit"),
        workspace_id=project.workspace_id,
        unavailable_pools=project.unavailable_pools,
    )
    config["resources"] = completed(app, offered, config["resources"])
    policies.check_launch(config["resources"])
    async with app.db.read() as connection:
        users_pod = await check_pods_of_users(
            connection,
            app.cluster,
            *wanted.layers,
            workspace_id=project.workspace_id,
            pool=pool,
            gpu=wanted.pool.slots > 0,
        )
    task_id = new_uuid()
    slot_type = app.cluster.slot_type if wanted.pool.slots else "cpu"
    task = await asyncio.to_thread(stored_generic_task, task_id, config, slot_type=slot_type, users_pod=users_pod)

    async def in_pool(name: str) -> Object:
        there = await asyncio.to_thread(
            complete,
            wanted,
            defaults=app.cluster.defaults_of(name),
            pool=name,
            default_priority=app.cluster.default_priority(name),
            has_files=bool(context),
        )
        async with app.db.read() as connection:
            judged = await check_pods_of_users(
                connection,
                app.cluster,
                *wanted.layers,
                workspace_id=project.workspace_id,
                pool=name,
                gpu=wanted.pool.slots > 0,
            )
        return to_document(stored_generic_task(task_id, there, slot_type=slot_type, users_pod=judged))

    offers = await offers_of(app, offered, config["resources"], own=to_document(task), in_pool=in_pool)
    possible = await check_pools(app, offered, task_type=TASK_TYPE, config=config, offers=offers, warnings=warnings)
    return NewGenericTask(
        task_id=task_id,
        submitted=submitted,
        config=config,
        task=task,
        context_tgz=context,
        project=project,
        pool=pool,
        num_pods=num_pods,
        is_single_pod=wanted.single_pod,
        parent_id=request.parent_id or None,
        forked_from=request.forked_from or None,
        no_pause=request.no_pause,
        warnings=possible.warnings,
        unfit=possible.unfit,
        offers=offers,
    )


async def store_generic_task(app: App, new: NewGenericTask, principal: Principal, *, now: datetime) -> None:
    """Store what was prepared. Raises NotFound and FailedPrecondition for what has changed meanwhile."""

    async def store(connection: AsyncConnection) -> None:
        await keep_project(connection, new.project)
        check_may_grow(await load_project(connection, new.project.project_id))
        root = new.task_id if new.parent_id is None else await _join_tree(connection, new.parent_id)
        job_id = await _insert_job(connection, new, principal, now)
        await store_offers(connection, job_id, new.offers, anew=False)
        await connection.execute(
            insert(tasks).values(
                task_id=new.task_id,
                task_type=TASK_TYPE,
                job_id=job_id,
                owner_id=principal.user_id,
                workspace_id=new.project.workspace_id,
                start_time=now,
                spec=to_document(new.task),
                context_tgz=new.context_tgz,
            )
        )
        await connection.execute(
            insert(generic_tasks).values(
                task_id=new.task_id,
                root_id=root,
                parent_id=new.parent_id,
                forked_from=new.forked_from,
                no_pause=new.no_pause,
                state=GenericTaskState.ACTIVE,
                config=new.submitted,
            )
        )
        await _request_allocation(connection, new, job_id, now)

    await in_transaction(app.db, store)


def _check_sources(request: CreateGenericTaskRequest) -> None:
    if request.inherit_context and not request.parent_id:
        raise InvalidRequest("could not inherit config directory since no parent task id provided")
    if request.inherit_context and request.context_directory:
        raise InvalidRequest("contextDirectory has to be empty when inheritContext takes the files of the parent")


async def _source(connection: AsyncConnection, task_id: str) -> StoredGenericTask | None:
    return await load_generic_task(connection, task_id) if task_id else None


async def _context(
    request: CreateGenericTaskRequest, *, forked: StoredGenericTask | None, parent: StoredGenericTask | None
) -> bytes:
    """What is submitted, or that of the task named; nothing when there are no files at all."""
    if request.context_directory:
        return await asyncio.to_thread(pack_context, request.context_directory)
    if request.inherit_context and parent is not None:
        return parent.context_tgz
    return b"" if forked is None else forked.context_tgz


def _choose_pool(app: App, wanted: GenericRequest, project: ProjectRef) -> tuple[str, int, list[LaunchWarning]]:
    """The pool, in how many pods the task runs there, and warnings."""
    slots, single = wanted.pool.slots, wanted.single_pod
    try:
        pool = resolve_pool(
            app.cluster,
            name=wanted.pool.pool,
            slots=slots,
            workspace_compute=project.default_compute_pool,
            workspace_aux=project.default_aux_pool,
            workspace_id=project.workspace_id,
            unavailable=project.unavailable_pools,
        )
        capacity = app.capacity.of(pool)
        warnings = check_resources(
            app.cluster,
            capacity,
            pool=pool,
            slots=slots,
            single_pod=single,
            has_fallbacks=names_fallbacks(*wanted.layers),
        )
        split = split_in_pool(app.cluster, capacity, pool=pool, slots=slots, single_pod=single)
    except InvalidRequest as error:
        raise InvalidRequest(f"invalid resource configuration: {error}") from error
    return pool, split.num_pods, warnings


async def _join_tree(connection: AsyncConnection, parent_id: str) -> str:
    """The root of the tree of a parent, which is locked and may have children."""
    tree = await lock_tree(connection, parent_id)
    check_may_have_children(tree[parent_id])
    query = select(generic_tasks.c.root_id).where(generic_tasks.c.task_id == parent_id)
    root: str = (await connection.execute(query)).scalar_one()
    return root


async def _insert_job(connection: AsyncConnection, new: NewGenericTask, principal: Principal, now: datetime) -> str:
    resources = new.config["resources"]
    job_id = new_uuid()
    await connection.execute(
        insert(jobs).values(
            job_id=job_id,
            job_type=TASK_TYPE,
            owner_id=principal.user_id,
            workspace_id=new.project.workspace_id,
            pool=new.pool,
            priority=resources["priority"],
            weight=resources["weight"],
            submitted_at=now,
        )
    )
    await announce(
        connection,
        JobChanged(
            job_id=job_id,
            what="submitted",
            pool=new.pool,
            priority=resources["priority"],
            weight=resources["weight"],
        ),
        TaskChanged(task_id=new.task_id, task_type=TASK_TYPE, what="created", state=GenericTaskState.ACTIVE),
    )
    return job_id


_FIRST_RUN: Final = 1


async def _request_allocation(connection: AsyncConnection, new: NewGenericTask, job_id: str, now: datetime) -> None:
    """The first one may be preempted only if its owner says so: nobody knows yet whether the task resumes."""
    ident, name = allocation_id(new.task_id, _FIRST_RUN), f"Generic Task {new.task_id}"
    await connection.execute(
        insert(allocations).values(
            allocation_id=ident,
            task_id=new.task_id,
            job_id=job_id,
            name=name,
            pool=new.pool,
            slots=new.config["resources"]["slots"],
            num_pods=new.num_pods,
            preemptible=bool(new.config["resources"].get("preemptible")),
            preemption_timeout_s=new.config["preemption_timeout"],
            time_limit_s=new.config["resources"].get("time_limit"),
            state=AllocationState.PENDING,
            requested_at=now,
        )
    )
    await add_task_line(
        connection, task=new.task_id, allocation=ident, text=f"Scheduling {name} (id: {ident})", now=now
    )
    for text in lines_at_first_start(new.task.users_pod):
        await add_task_line(connection, task=new.task_id, allocation=ident, text=text, now=now, level="WARNING")
    await announce(
        connection,
        AllocationChanged(
            allocation_id=ident, task_id=new.task_id, what="requested", state=AllocationState.PENDING, pool=new.pool
        ),
    )
