"""Stores an interactive task that was prepared: all of its rows in one transaction, which the scheduler then takes up.

Source: docs/reference/tasks-and-cli.md 2.1.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any, Final

from msgspec import UNSET, structs
from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.config.differences import difference, overlaid
from libs.db.jobs.pool_offers import PoolOffer, store_offers
from libs.db.outbox import announce
from libs.db.tables.interactive import interactive_tasks
from libs.db.tables.tasks import allocations, jobs, tasks
from libs.db.task_lines import add_task_line
from libs.db.transactions import in_transaction
from libs.events.changes import AllocationChanged, JobChanged, TaskChanged
from libs.ids import allocation_id, new_uuid
from libs.ssh_keys import KeyPair, new_key_pair
from libs.tasks.interactive.containers import Launch, stored_task
from libs.tasks.interactive.idle import idle_timeout_s
from libs.tasks.stored import to_document
from libs.tasks.users_pods import lines_at_first_start
from services.api.access.principal import Principal
from services.api.actions.interactive.home import load_home
from services.api.actions.interactive.ports import reserve_port
from services.api.actions.interactive.prepare import Prepared
from services.api.app import App
from services.api.wire.interactive.common import LaunchRequest
from services.api.wire.interactive.tensorboards import LaunchTensorboardRequest

Row = dict[str, Any]
_PENDING: Final = "PENDING"


async def store(app: App, prepared: Prepared, request: LaunchRequest, principal: Principal, *, now: datetime) -> str:
    """Store the task of ``principal``, and return its id.

    Raises InvalidRequest when it is too large, NotFound when its workspace was archived meanwhile.
    """
    task_id = new_uuid()
    keys = await asyncio.to_thread(new_key_pair, app.cluster.security.ssh) if prepared.task_type == "SHELL" else None
    launch = Launch(
        task_id=task_id,
        slot_type=app.cluster.slot_type if prepared.config["resources"]["slots"] else "cpu",
        keys=keys,
        server_token=app.proxy_tokens.for_server(task_id),
        sources=prepared.sources,
        users_pod=prepared.users_pod,
    )
    own: Row = {
        "description": prepared.config["description"],
        "config": prepared.config,
        "idle_timeout_s": idle_timeout_s(prepared.task_type, prepared.config["idle_timeout"], app.cluster),
        **_keys(keys),
        **_shown(prepared, request),
    }

    async def insert_all(connection: AsyncConnection) -> None:
        await load_home(connection, prepared.home.workspace_id, keep=True)
        placed = structs.replace(launch, port=await reserve_port(connection, prepared))
        spec = to_document(stored_task(prepared.task_type, prepared.config, placed))
        job_id = await _insert(connection, task_id, prepared, principal, spec=spec, own=own, now=now)
        offers = [_of_spec(offer, prepared, placed, spec) for offer in prepared.offers]
        await store_offers(connection, job_id, offers, anew=False)

    await in_transaction(app.db, insert_all)
    return task_id


async def _insert(
    connection: AsyncConnection,
    task_id: str,
    prepared: Prepared,
    principal: Principal,
    *,
    spec: Row,
    own: Row,
    now: datetime,
) -> str:
    """Returns the id of its job."""
    resources, kind, name = prepared.config["resources"], prepared.task_type, prepared.config["description"]
    attempt, job_id, pool = allocation_id(task_id, 1), new_uuid(), resources["resource_pool"]
    common = {"job_id": job_id, "owner_id": principal.user_id, "workspace_id": prepared.home.workspace_id}
    # max_slots limits what a job may have of its pool, and here only what a policy allows to ask for.
    queued = {"pool": pool, "priority": resources["priority"], "weight": resources["weight"], "submitted_at": now}
    await connection.execute(insert(jobs).values(job_type=kind, **queued, **common))
    described = {"task_id": task_id, "task_type": kind, "start_time": now, "spec": spec}
    await connection.execute(insert(tasks).values(**described, context_tgz=prepared.context_tgz, **common))
    await connection.execute(insert(interactive_tasks).values(task_id=task_id, **own))
    wanted = {"name": name, "pool": pool, "slots": resources["slots"], "state": _PENDING, "requested_at": now}
    wanted["time_limit_s"] = resources.get("time_limit")
    if resources.get("preemptible"):
        # Its program asks nobody whether to leave, so there is nothing to wait for before it gets SIGTERM.
        wanted |= {"preemptible": True, "preemption_timeout_s": 0}
    await connection.execute(
        insert(allocations).values(allocation_id=attempt, task_id=task_id, job_id=job_id, **wanted)
    )
    await add_task_line(
        connection, task=task_id, allocation=attempt, text=f"Scheduling {name} (id: {attempt})", now=now
    )
    for text in lines_at_first_start(prepared.users_pod):
        await add_task_line(connection, task=task_id, allocation=attempt, text=text, now=now, level="WARNING")
    await announce(
        connection,
        JobChanged(
            job_id=job_id, what="submitted", pool=pool, priority=resources["priority"], weight=resources["weight"]
        ),
        TaskChanged(task_id=task_id, task_type=kind, what="created"),
        AllocationChanged(allocation_id=attempt, task_id=task_id, what="requested", state=_PENDING, pool=pool),
    )
    return job_id


def _of_spec(offer: PoolOffer, prepared: Prepared, launch: Launch, spec: Row) -> PoolOffer:
    """``offer`` with what is different there of the specification, in place of the configuration."""
    if not offer.changes:
        return offer
    there = to_document(stored_task(prepared.task_type, overlaid(prepared.config, offer.changes), launch))
    return structs.replace(offer, changes=difference(spec, there))


def _keys(keys: KeyPair | None) -> Row:
    return {} if keys is None else {"private_key": keys.private, "public_key": keys.public}


def _shown(prepared: Prepared, request: LaunchRequest) -> Row:
    """What a TensorBoard was asked to show; of filters, what they have found."""
    if not isinstance(request, LaunchTensorboardRequest):
        return {}
    found = request.experiment_ids if request.filters is UNSET else prepared.shows
    return {"experiment_ids": list(found), "trial_ids": list(request.trial_ids)}
