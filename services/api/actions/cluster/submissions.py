"""What the scheduler is asked about something that was prepared and not stored: the request that it would make."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from libs.config.stored import count_in
from libs.config.task_container_defaults import PREEMPTION_TIMEOUT_S
from libs.db.jobs.pool_offers import PoolOffer
from libs.tasks.generic import TASK_TYPE as GENERIC
from services.api.actions.experiments.insertion import NewExperiment
from services.api.actions.generic_tasks.create import NewGenericTask
from services.api.actions.interactive.prepare import Prepared
from services.api.actions.possible_pools import UnfitPool

_EXPERIMENTS_SLOTS: Final = "resources.slots_per_trial"
_TASKS_SLOTS: Final = "resources.slots"


class Submission(Struct, frozen=True, kw_only=True):
    """The first request of an experiment or of another task, as its configuration says it."""

    task_type: str
    config: dict[str, Any]
    """The complete one."""
    pool: str
    slots: int
    slots_field: str
    """Of the configuration."""
    is_single_pod: bool
    is_preemptible: bool
    preemption_timeout_s: int
    max_slots: int | None
    workspace_id: int
    unavailable_pools: frozenset[str]
    """Of other workspaces."""
    offers: tuple[PoolOffer, ...] = ()
    """Of pools in which it may start beside its own."""
    unfit: tuple[UnfitPool, ...] = ()
    """Of its pools, where there are several, those in which it cannot run."""


def of_experiment(new: NewExperiment) -> Submission:
    resources = new.config["resources"]
    timeout = count_in(new.config, "preemption_timeout")
    return Submission(
        task_type="TRIAL",
        config=new.config,
        pool=new.pool,
        slots=resources["slots_per_trial"],
        slots_field=_EXPERIMENTS_SLOTS,
        is_single_pod=bool(resources.get("is_single_node")),
        is_preemptible=True,
        preemption_timeout_s=PREEMPTION_TIMEOUT_S if timeout is None else timeout,
        max_slots=resources["max_slots"],
        workspace_id=new.project.workspace_id,
        unavailable_pools=new.project.unavailable_pools,
        offers=new.offers,
        unfit=new.unfit,
    )


def of_interactive_task(prepared: Prepared) -> Submission:
    resources = prepared.config["resources"]
    return Submission(
        task_type=prepared.task_type,
        config=prepared.config,
        pool=resources["resource_pool"],
        slots=resources["slots"],
        slots_field=_TASKS_SLOTS,
        is_single_pod=True,
        is_preemptible=bool(resources.get("preemptible")),
        preemption_timeout_s=0,
        max_slots=None,
        workspace_id=prepared.home.workspace_id,
        unavailable_pools=prepared.home.unavailable_pools,
        offers=prepared.offers,
        unfit=prepared.unfit,
    )


def of_generic_task(new: NewGenericTask) -> Submission:
    resources = new.config["resources"]
    return Submission(
        task_type=GENERIC,
        config=new.config,
        pool=new.pool,
        slots=resources["slots"],
        slots_field=_TASKS_SLOTS,
        is_single_pod=new.is_single_pod,
        is_preemptible=bool(resources.get("preemptible")),
        preemption_timeout_s=new.config["preemption_timeout"],
        max_slots=None,
        workspace_id=new.project.workspace_id,
        unavailable_pools=new.project.unavailable_pools,
        offers=new.offers,
        unfit=new.unfit,
    )
