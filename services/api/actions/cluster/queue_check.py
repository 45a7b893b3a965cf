"""Asks the scheduler when something would start that is not submitted, and what would make that sooner.

The planner belongs to the scheduler, which knows what else it considers: the api asks it over the bus, and thinks of
the changes that are worth asking about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from libs.cluster.resolution import PodSplit, split_in_pool
from libs.cluster.time_limits import limit_in_pool
from libs.cluster.topology import check_topology, required_level
from libs.errors import InvalidRequest
from libs.events import subjects
from libs.events.requests.queue_checks import MOST, HypotheticalRequest, QueueAnswer, QueueAnswers, QueueCheck
from libs.shapes.time_limits import limit_in_words
from services.api.actions.cluster.submissions import Submission
from services.api.actions.possible_pools import pod_spec_in
from services.api.actions.resource_request import check_resources
from services.api.app import App
from services.api.wire.base import timestamp
from services.api.wire.cluster.check import CheckAlternative, CheckedStart

ANSWERS_WITHIN_S: Final = 20.0
_MOST_POOLS: Final = 5
_MOST_SIZES: Final = 4
_SHORT_S: Final = 3600
"""Of a time limit that is worth trying."""
_NOW: Final = datetime.min.replace(tzinfo=UTC)


class Variant(NamedTuple):
    """A request that is asked about; ``change`` of the configuration leads to it, "" to what was submitted."""

    change: str
    pool: str
    slots: int
    split: PodSplit
    time_limit_s: int | None
    after_s: float = 0.0
    """How long it waits in its own pool before it may start in this one."""
    topology: Mapping[str, str] | None = None
    """In place of the one that was submitted."""


async def check_queue(app: App, submission: Submission, owner_id: int) -> tuple[CheckedStart, list[CheckAlternative]]:
    """When ``submission`` would start, and changes by which it would be sooner, the soonest first.

    Raises Unavailable when no scheduler answers.
    """
    variants = list(islice(variants_of(app, submission), MOST))
    resources = submission.config["resources"]
    asked = QueueCheck(
        requests=tuple(
            HypotheticalRequest(
                task_type=submission.task_type,
                pool=variant.pool,
                slots=variant.slots,
                num_pods=variant.split.num_pods,
                priority=resources["priority"],
                weight=resources["weight"],
                max_slots=submission.max_slots,
                time_limit_s=variant.time_limit_s,
                is_preemptible=submission.is_preemptible,
                preemption_timeout_s=submission.preemption_timeout_s,
                pod_spec=pod_spec_in(submission.config, submission.offers, variant.pool),
                topology=dict(resources.get("topology") or {} if variant.topology is None else variant.topology),
                owner_id=owner_id,
                workspace_id=submission.workspace_id,
            )
            for variant in variants
        )
    )
    reply = await app.bus.request(subjects.CHECK_QUEUE, msgspec.json.encode(asked), timeout_s=ANSWERS_WITHIN_S)
    answers = msgspec.json.decode(reply, type=QueueAnswers).answers
    now = app.clock.now()
    pairs = [(one, _after(one, answer, now)) for one, answer in zip(variants, answers, strict=True)]
    as_asked = _first_to_start([pair for pair in pairs if not pair[0].change])
    others = [pair for pair in pairs if pair[0].change]
    sooner = sorted(
        (pair for pair in others if is_sooner(pair[1], as_asked[1])), key=lambda pair: _start_of(pair[1]) or _NOW
    )
    return _shown(*as_asked), [CheckAlternative(change=one.change, start=_shown(one, answer)) for one, answer in sooner]


def variants_of(app: App, submission: Submission) -> Iterator[Variant]:
    """What was submitted, there and in its fallback pools, then the same with a time limit, where it may leave the
    level of a topology that it requires, with fewer slots, and in other pools."""
    chosen, slots, single = submission.pool, submission.slots, submission.is_single_pod
    limit = submission.config["resources"].get("time_limit")
    split = split_in_pool(app.cluster, app.capacity.of(chosen), pool=chosen, slots=slots, single_pod=single)
    yield Variant("", chosen, slots, split, limit)
    for offer in submission.offers:
        if offer.rank > 0:
            there = PodSplit(offer.num_pods, slots // offer.num_pods)
            yield Variant("", offer.pool, slots, there, offer.time_limit_s, after_s=offer.after_s)
    if limit is None or limit > _SHORT_S:
        change = f"resources.time_limit: {limit_in_words(_SHORT_S)}"
        yield Variant(change, chosen, slots, split, _SHORT_S)
    required = required_level(app.cluster, chosen, submission.config["resources"])
    if required and split.num_pods > 1:
        change = f"resources.topology: {{preferred: {required}}}"
        yield Variant(change, chosen, slots, split, limit, topology={"preferred": required})
    fewer = (_variant(app, f"{submission.slots_field}: {n}", chosen, n, limit, single=single) for n in _halves(slots))
    yield from [found for found in fewer if found is not None][:_MOST_SIZES]
    elsewhere = (
        _variant(app, f"resources.resource_pool: {pool.pool_name}", pool.pool_name, slots, limit, single=single)
        for pool in app.cluster.resource_pools
        if pool.pool_name != chosen
        and pool.pool_name not in submission.unavailable_pools
        and _has_level(app, pool.pool_name, submission)
    )
    yield from [found for found in elsewhere if found is not None][:_MOST_POOLS]


def _has_level(app: App, pool: str, submission: Submission) -> bool:
    """Whether a pool has the level of the topology that is asked for."""
    try:
        check_topology(app.cluster, pool, submission.config["resources"])
    except InvalidRequest:
        return False
    return True


def _after(variant: Variant, answer: QueueAnswer, now: datetime) -> QueueAnswer:
    """``answer`` of a pool in which it may start when it has waited elsewhere."""
    start = now if answer.starts_now else answer.estimated_start
    if not variant.after_s or start is None:
        return answer
    earliest = now + timedelta(seconds=variant.after_s)
    waited = f"in resource pool {variant.pool}, when it has waited for {limit_in_words(int(variant.after_s))}"
    return msgspec.structs.replace(
        answer,
        starts_now=False,
        nodes=(),
        estimated_start=max(start, earliest),
        basis=f"{waited}: {answer.basis}" if answer.basis and start > earliest else waited,
    )


def _first_to_start(pairs: Sequence[tuple[Variant, QueueAnswer]]) -> tuple[Variant, QueueAnswer]:
    """Of its own pool, which comes first, and its fallback pools the one in which it starts; why it waits is what its
    own pool says."""
    own = pairs[0]
    chosen = own
    for pair in pairs[1:]:
        if is_sooner(pair[1], chosen[1]) or (pair[1].is_possible and not chosen[1].is_possible):
            chosen = pair
    if chosen is own or chosen[1].starts_now:
        return chosen
    said = msgspec.structs.replace(chosen[1], reason_code=own[1].reason_code, reason=own[1].reason)
    return chosen[0], said


def _variant(app: App, change: str, pool: str, slots: int, limit: int | None, *, single: bool) -> Variant | None:
    """None where it would be refused."""
    try:
        capacity = app.capacity.of(pool)
        split = split_in_pool(app.cluster, capacity, pool=pool, slots=slots, single_pod=single)
        check_resources(app.cluster, capacity, pool=pool, slots=slots, single_pod=single)
        return Variant(change, pool, slots, split, limit_in_pool(app.cluster, pool, limit))
    except InvalidRequest:
        return None


def _halves(slots: int) -> Iterator[int]:
    while slots > 1:
        slots //= 2
        yield slots


def is_sooner(answer: QueueAnswer, asked: QueueAnswer) -> bool:
    start = _start_of(answer)
    if start is None or asked.starts_now:
        return False
    before = _start_of(asked)
    return before is None or start < before


def _start_of(answer: QueueAnswer) -> datetime | None:
    """None where nobody can say."""
    return _NOW if answer.starts_now else answer.estimated_start


def _shown(variant: Variant, answer: QueueAnswer) -> CheckedStart:
    return CheckedStart(
        resource_pool=variant.pool,
        slots=variant.slots,
        pods=variant.split.num_pods,
        slots_per_pod=variant.split.slots_per_pod,
        starts_now=answer.starts_now,
        possible=answer.is_possible,
        nodes=list(answer.nodes),
        reason_code=answer.reason_code,
        reason=answer.reason,
        ahead=answer.jobs_ahead,
        slots_ahead=answer.slots_ahead,
        estimated_start=timestamp(answer.estimated_start),
        basis=answer.basis,
    )
