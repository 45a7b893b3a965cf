"""In which of its pools a task could ever run: its own, and those that it falls back on.

It is refused where it could run in none of them and none of them may get other nodes. Otherwise it is accepted, with a
warning where some of them cannot run it. Source: docs/reference/scheduling.md 2.5 and 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from libs.cluster.resolution import PodSplit, split_in_pool
from libs.db.jobs.pool_offers import PoolOffer
from libs.errors import InvalidRequest
from libs.events.requests.queue_checks import EmptyPoolRequest
from services.api.actions.pool_offers import OfferedTask
from services.api.actions.requirements import answers_about, check_requirements, question_about
from services.api.actions.resource_request import EXCEEDS, check_resources, unfit_slots
from services.api.app import App
from services.api.wire.experiments.experiments import LaunchWarning

REFUSED: Final = "invalid resource configuration"


class UnfitPool(Struct, frozen=True):
    """A pool in which a task could not run if nothing else did, as its nodes are now."""

    pool: str
    reason: str
    may_change: bool
    """Whether it may get other nodes."""


class PossiblePools(Struct, frozen=True):
    warnings: tuple[LaunchWarning, ...] = ()
    unfit: tuple[UnfitPool, ...] = ()
    """Of the pools of a task that has several."""


def names_fallbacks(*layers: Mapping[str, Any]) -> bool:
    """Whether parts of a configuration name fallback pools: then its own pool alone refuses nothing for its nodes."""
    return any((layer.get("resources") or {}).get("fallback_pools") for layer in layers)


async def check_pools(
    app: App,
    task: OfferedTask,
    *,
    task_type: str,
    config: Mapping[str, Any],
    offers: Sequence[PoolOffer],
    warnings: Sequence[LaunchWarning],
) -> PossiblePools:
    """What there is to warn of. Raises InvalidRequest when the task could run in none of its pools, which it names
    where there are several.

    config    the complete one
    offers    of its pools; () where it has but its own
    warnings  that there are already of its own pool
    """
    if offers:
        return await _check_several(app, task, task_type=task_type, config=config, offers=offers)
    check_slots(app, task, offers)
    found = tuple(warnings) or await check_requirements(
        app, _question(app, task, task.pool, task_type=task_type, config=config, offers=offers)
    )
    return PossiblePools(tuple(found))


def check_slots(app: App, task: OfferedTask, offers: Sequence[PoolOffer]) -> PossiblePools:
    """The same by slots alone, which nobody has to be asked about."""
    pools = [offer.pool for offer in offers]
    if pools:
        return _judged(pools, _by_slots(app, task, pools))
    try:
        found = check_resources(
            app.cluster, app.capacity.of(task.pool), pool=task.pool, slots=task.slots, single_pod=task.single_pod
        )
    except InvalidRequest as error:
        raise InvalidRequest(f"{REFUSED}: {error}") from error
    return PossiblePools(tuple(found))


def pod_spec_in(config: Mapping[str, Any], offers: Sequence[PoolOffer], pool: str) -> dict[str, Any] | None:
    """What would be stored of the pods that would run in ``pool``."""
    environment = config["environment"]
    changes = next((offer.changes for offer in offers if offer.rank > 0 and offer.pool == pool), {})
    found: dict[str, Any] | None = {**environment, **changes.get("environment", {})}.get("pod_spec")
    return found


async def _check_several(
    app: App, task: OfferedTask, *, task_type: str, config: Mapping[str, Any], offers: Sequence[PoolOffer]
) -> PossiblePools:
    pools = [offer.pool for offer in offers]
    found = _by_slots(app, task, pools)
    asked = (
        _question(app, task, pool, task_type=task_type, config=config, offers=offers)
        for pool in pools
        if pool not in found
    )
    questions = [question for question in asked if question is not None]
    answers = await answers_about(app, questions) if questions else ()
    for question, answer in zip(questions, answers, strict=False):
        if not answer.is_possible:
            may_change = app.cluster.can_grow(question.pool) or not app.cluster.launch_error
            found[question.pool] = UnfitPool(question.pool, f"{EXCEEDS}: {answer.reason}", may_change)
    return _judged(pools, found)


def _question(
    app: App,
    task: OfferedTask,
    pool: str,
    *,
    task_type: str,
    config: Mapping[str, Any],
    offers: Sequence[PoolOffer],
) -> EmptyPoolRequest | None:
    return question_about(
        app,
        pool=pool,
        task_type=task_type,
        slots=task.slots,
        num_pods=_split(app, task, pool).num_pods,
        pod_spec=pod_spec_in(config, offers, pool),
        topology=config["resources"].get("topology"),
    )


def _judged(pools: Sequence[str], found: Mapping[str, UnfitPool]) -> PossiblePools:
    """``found``: those of ``pools`` that cannot run it."""
    unfit = tuple(found[pool] for pool in pools if pool in found)
    if len(unfit) == len(pools) and not any(one.may_change for one in unfit):
        raise InvalidRequest(f"{REFUSED}: " + "; ".join(f"resource pool {one.pool}: {one.reason}" for one in unfit))
    return PossiblePools((LaunchWarning.CURRENT_SLOTS_EXCEEDED,) if unfit else (), unfit)


def _by_slots(app: App, task: OfferedTask, pools: Sequence[str]) -> dict[str, UnfitPool]:
    found: dict[str, UnfitPool] = {}
    for pool in pools:
        lacks = unfit_slots(app.cluster, app.capacity.of(pool), pool=pool, slots=task.slots, single_pod=task.single_pod)
        if lacks is not None:
            found[pool] = UnfitPool(pool, lacks.reason, lacks.may_change)
    return found


def _split(app: App, task: OfferedTask, pool: str) -> PodSplit:
    return split_in_pool(app.cluster, app.capacity.of(pool), pool=pool, slots=task.slots, single_pod=task.single_pod)
