"""Goes on with a plan until it has nothing left to do, so that the next one, made of the same moment, changes nothing.

Room is kept for the first request of a level before those behind it are looked at. Where one of these takes a place of
somebody who leaves, the first may get another place than before, and what was kept for it is open to those that had
been refused. What starts there to end in time is another holder that comes free by then, which leaves more to them.
Where shares decide, shares grow while the queue is looked at, and those that have less by then may pass, or take the
places of others. Whoever looks at the queue again finds that; so a plan does it itself, in as many looks as it takes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from services.scheduler.plan.decisions import Plan, Start
from services.scheduler.plan.lifecycle import started
from services.scheduler.plan.limits.hours import charge_s
from services.scheduler.plan.remembered import remembered
from services.scheduler.plan.snapshot import (
    HeldAllocation,
    HourLimit,
    PendingAllocation,
    PoolPolicy,
    PoolSnapshot,
    SlotLimit,
)

LOOKED_AT_AGAIN: Final = 500
"""Requests that are looked at again: each look costs as much as the first. In longer queues the next plan goes on."""
LOOKS: Final = 16
"""More than any plan is known to need."""


def is_settled(made: Plan, policy: PoolPolicy) -> bool:
    """Whether ``made`` asks nobody to leave, gives no places to anybody or back, and starts nothing by which shares
    grow, or what is kept for a blocked request moves."""
    if made.preempted or made.moved or made.nominated:
        return False
    matters = policy.queue in ("fair_share", "round_robin") or any(one.reserved for one in made.blocked)
    return not (matters and any(made.starts))


def carried_out(pool: PoolSnapshot, made: Plan) -> PoolSnapshot:
    """The pool when ``made`` has been carried out, and nobody has left yet."""
    starts = {start.allocation: start for start in made.starts}
    leaving = {one.allocation for one in made.preempted} | {one.allocation for one in made.moved}
    beginning = [one for one in pool.pending if one.allocation in starts]
    waiting = tuple(one for one in pool.pending if one.allocation not in starts)
    after = {one.allocation: one for one in remembered(made, waiting)}
    places = {one.allocation: tuple((place.node, place.slots) for place in one.placements) for one in made.moved}
    begun = (_started(one, starts[one.allocation], pool) for one in beginning)
    held = (msgspec.structs.replace(one, leaving=True) if one.allocation in leaving else one for one in pool.held)
    return msgspec.structs.replace(
        pool,
        held=(*held, *begun),
        pending=tuple(after.get(one.allocation, one) for one in waiting),
        moving=(
            *pool.moving,
            *(
                msgspec.structs.replace(one, pods=places[one.allocation], leaving=False)
                for one in pool.held
                if one.allocation in places
            ),
        ),
        moves_left=pool.moves_left - len(made.moved),
        limits=_charged(pool.limits, beginning),
    )


def merged(first: Plan, second: Plan) -> Plan:
    """Both as one plan; ``second`` was made when ``first`` had been carried out."""
    decided = {one.allocation: one for one in (*first.decisions, *second.decisions)}
    # Also of what starts now: where a start is left to the next plan, its places are kept until then.
    nominated = {one.allocation: one for one in (*first.nominated, *second.nominated)}
    return Plan(
        decisions=tuple(decided.values()),
        preempted=(*first.preempted, *second.preempted),
        nominated=tuple(nominated.values()),
        blocked=second.blocked,
        moved=(*first.moved, *second.moved),
    )


def _started(request: PendingAllocation, start: Start, pool: PoolSnapshot) -> HeldAllocation:
    return started(
        request,
        ((place.node, place.slots) for place in start.placements),
        started_at=pool.now,
        ends_at=None if request.runs_for is None else pool.now + request.runs_for,
    )


def _charged(
    limits: Mapping[str, SlotLimit | HourLimit], beginning: Iterable[PendingAllocation]
) -> Mapping[str, SlotLimit | HourLimit]:
    """``limits`` when they are charged with what those that begin may use."""
    charged: defaultdict[str, float] = defaultdict(float)
    for request in beginning if limits else ():
        for key in request.limits:
            charged[key] += charge_s(request)
    return {
        key: msgspec.structs.replace(limit, rest_s=limit.rest_s + charged[key])
        if isinstance(limit, HourLimit)
        else limit
        for key, limit in limits.items()
    }
