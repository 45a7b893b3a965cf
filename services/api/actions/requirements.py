"""Check that nodes of its pool could ever run a task by what its pods require: node selector, affinity, taints, cores,
memory and other resources. The planner belongs to the scheduler, which is asked over the bus.

Slots alone are checked before, from the reported capacity (resource_request.py). Without a scheduler a task
is accepted: why it waits is said as soon as there is one. Source: docs/reference/scheduling.md 2.5 and 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import structlog

from libs.errors import InvalidRequest, NotFound, Unavailable
from libs.events import subjects
from libs.events.requests.queue_checks import EmptyPoolRequest, QueueAnswer, QueueAnswers, QueueCheck
from services.api.actions.resource_request import EXCEEDS
from services.api.app import App
from services.api.wire.experiments.experiments import LaunchWarning

log = structlog.get_logger()

ANSWERS_WITHIN_S: Final = 2.0


async def check_requirements(app: App, asked: EmptyPoolRequest | None) -> list[LaunchWarning]:
    """Warnings about a task that may have to wait for ever; raises InvalidRequest when it certainly would.

    asked  what the scheduler is asked of its pool; None where there is nothing to ask
    Where a pool may grow, or no node of its cluster has come yet, the task is accepted with a warning.
    """
    answer = None if asked is None else next(iter(await answers_about(app, (asked,))), None)
    if asked is None or answer is None or answer.is_possible:
        return []
    if app.cluster.can_grow(asked.pool) or not app.cluster.launch_error:
        return [LaunchWarning.CURRENT_SLOTS_EXCEEDED]
    raise InvalidRequest(f"invalid resource configuration: {EXCEEDS}: {answer.reason}")


def question_about(
    app: App,
    *,
    pool: str,
    task_type: str,
    slots: int,
    num_pods: int,
    pod_spec: Mapping[str, Any] | None,
    topology: Mapping[str, str] | None,
) -> EmptyPoolRequest | None:
    """What the scheduler is asked of one pool; None where there is nothing to ask."""
    capacity = app.capacity.of(pool)
    if capacity is None or not capacity.shapes or not capacity.nodes:
        return None  # nothing is known of nodes but slots, or there is none yet
    if app.cluster.can_grow(pool) and not pod_spec and not topology:
        return None  # it asks for slots alone, of which there may be more tomorrow
    return EmptyPoolRequest(
        pool=pool,
        task_type=task_type,
        slots=slots,
        num_pods=num_pods,
        pod_spec=None if pod_spec is None else dict(pod_spec),
        topology=dict(topology or {}),
    )


async def answers_about(app: App, asked: Sequence[EmptyPoolRequest]) -> Sequence[QueueAnswer]:
    """In the order of ``asked``; () where no scheduler answers, or one that does not know the question.

    NotFound comes from one of before a pool was added, in a release that does not answer for the other pools then.
    """
    question = msgspec.json.encode(QueueCheck(in_empty_pool=tuple(asked)))
    try:
        reply = await app.bus.request(subjects.CHECK_QUEUE, question, timeout_s=ANSWERS_WITHIN_S)
    except (NotFound, Unavailable) as error:
        pools = [one.pool for one in asked]
        log.warning("requirements.unchecked", pools=pools, error=str(error))
        return ()
    return msgspec.json.decode(reply, type=QueueAnswers).in_empty_pool
