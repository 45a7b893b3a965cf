"""The rows of a new experiment but for its trials: its job, itself, its files and the state of its search.

One statement writes them all. Source: docs/reference/experiments.md 1.7 (step 15) and 4.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.jobs.pool_offers import PoolOffer
from libs.db.new_trials import Origin
from libs.db.prepared.statements import PreparedStatement, as_document
from libs.errors import NotFound
from libs.events.changes import ExperimentChanged, JobChanged
from libs.events.orders import UsersPod
from libs.ids import new_uuid
from libs.searchers.search_start import SearchStart
from libs.ssh_keys import KeyPair
from libs.tasks.users_pods import to_column
from libs.tracing import current_traceparent
from services.api.access.principal import Principal
from services.api.actions.experiments.new_experiment import created
from services.api.actions.experiments.project import ProjectRef
from services.api.actions.possible_pools import UnfitPool
from services.api.wire.experiments.experiments import LaunchWarning

_INSERT: Final = PreparedStatement("""
    WITH project AS (
        SELECT id FROM projects WHERE id = :project_id FOR KEY SHARE
    ), job AS (
        INSERT INTO jobs (job_id, job_type, owner_id, workspace_id, pool, priority, weight, max_slots, submitted_at,
                          traceparent)
        SELECT :job_id::text, 'EXPERIMENT', :owner_id::bigint, :workspace_id::bigint, :pool::text, :priority::int,
               :weight::float8, :max_slots::int, :now::timestamptz, :traceparent::text
        FROM project
    ), experiment AS (
        INSERT INTO experiments (state, config, users_pod, original_config, owner_id, project_id, parent_id, job_id,
                                 progress, start_time, ssh_private_key, ssh_public_key)
        SELECT :state::text, :config::jsonb, :users_pod::jsonb, :original_config::text, :owner_id, id,
               :parent_id::bigint, :job_id, :progress::float8, :now, :ssh_private_key::text, :ssh_public_key::text
        FROM project
        RETURNING id
    ), files AS (
        INSERT INTO model_definitions (experiment_id, tgz, size_bytes)
        SELECT id, :tgz::bytea, length(:tgz::bytea) FROM experiment
    ), search AS (
        INSERT INTO searcher_snapshots (experiment_id, snapshot) SELECT id, :snapshot::jsonb FROM experiment
    )
    SELECT id FROM experiment
""")


class NewExperiment(Struct, frozen=True, kw_only=True):
    """Everything about an experiment that is ready to be stored."""

    config: dict[str, Any]
    users_pod: UsersPod
    original_config: str
    project: ProjectRef
    pool: str
    model_definition: bytes
    parent_id: int | None
    activate: bool
    search: SearchStart
    warnings: tuple[LaunchWarning, ...] = ()
    unfit: tuple[UnfitPool, ...] = ()
    """Of its pools, where there are several, those in which it cannot run."""
    offers: tuple[PoolOffer, ...] = ()
    """Of pools in which it may start beside its own."""

    @property
    def state(self) -> str:
        return "ACTIVE" if self.activate else "PAUSED"


async def insert_experiment(
    connection: AsyncConnection, new: NewExperiment, principal: Principal, keys: KeyPair, now: datetime
) -> Origin:
    """Insert it with everything but its trials; nothing is announced yet.

    From here on nobody deletes its project until the transaction ends; others may add to it. Raises NotFound when it is
    gone.
    """
    resources = new.config["resources"]
    job_id = new_uuid()
    rows = await _INSERT.rows(
        connection,
        job_id=job_id,
        owner_id=principal.user_id,
        workspace_id=new.project.workspace_id,
        pool=new.pool,
        priority=resources["priority"],
        weight=resources["weight"],
        max_slots=resources["max_slots"],
        now=now,
        traceparent=current_traceparent(),
        state=new.state,
        config=as_document(new.config),
        users_pod=as_document(to_column(new.users_pod)),
        original_config=new.original_config,
        project_id=new.project.project_id,
        parent_id=new.parent_id,
        progress=new.search.progress,
        ssh_private_key=keys.private,
        ssh_public_key=keys.public,
        tgz=new.model_definition,
        snapshot=as_document(new.search.snapshot),
    )
    if not rows:
        raise NotFound("project", new.project.project_id)
    return Origin(
        id=rows[0]["id"],
        project_id=new.project.project_id,
        job_id=job_id,
        owner_id=principal.user_id,
        config=new.config,
    )


def first_events(experiment: Origin, new: NewExperiment, principal: Principal) -> list[ExperimentChanged | JobChanged]:
    """What there is to say of it before its trials."""
    assert experiment.job_id is not None, "it is queued"
    values = {
        "state": new.state,
        "config": new.config,
        "job_id": experiment.job_id,
        "project_id": experiment.project_id,
    }
    event = created(experiment.id, values, principal)
    resources = new.config["resources"]
    return [
        event,
        # Whoever follows states learns the first one too.
        msgspec.structs.replace(event, what="state"),
        JobChanged(
            job_id=experiment.job_id,
            what="submitted",
            pool=new.pool,
            priority=resources["priority"],
            weight=resources["weight"],
        ),
    ]
