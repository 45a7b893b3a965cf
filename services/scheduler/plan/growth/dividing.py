"""Requests that a plan divides into pods, while a pool grows for one of them: in pods of one size.

How large its pods are is found from what is free, and what comes is not there yet. So the pool grows for pods of one
size, the largest that a new node takes, and until it has stopped growing the request is planned in these.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from libs.cluster.pod_sizes import equal_sizes
from services.scheduler.plan.decisions import Grow
from services.scheduler.plan.nodes.amounts import amounts
from services.scheduler.plan.nodes.requirements import PodRequirements
from services.scheduler.plan.snapshot import Growing, PendingAllocation


def in_equal_pods(request: PendingAllocation, node_slots: int) -> Iterator[PendingAllocation]:
    """``request`` in pods of one size, the largest first, none larger than a node; as it is where it is not divided."""
    if not request.most_per_pod:
        yield request
        return
    for size in equal_sizes(len(request.pods), min(request.most_per_pod, node_slots)):
        yield _in_pods_of(request, size)


def as_asked_for(request: PendingAllocation, asked: Growing) -> PendingAllocation | None:
    """``request`` in the pods for which the pool grows; None where it is asked for in another way by now."""
    if not request.most_per_pod:
        is_same = all(place.slots == request.pods[0] for place in asked.places)
        return request if is_same else None
    size = pod_slots(request, asked)
    if not 0 < size <= request.most_per_pod or any(place.slots != size for place in asked.places):
        return None
    return _in_pods_of(request, size) if len(request.pods) % size == 0 else None


def pod_slots(request: PendingAllocation, asked: Growing | Grow) -> int:
    """Slots of each pod for which nodes are asked."""
    if not request.most_per_pod:
        return request.pods[0]
    return (len(request.pods) - sum(place.slots for place in asked.places)) // max(asked.pods, 1)


def needs_of_pods(request: PendingAllocation, asked: Grow) -> PodRequirements | None:
    """What each of these pods requires: of a request that is divided, those of a pod with one slot are known."""
    needs = request.needs
    if needs is None or needs.slot is None or not request.most_per_pod:
        return needs
    slots = needs.slot.amount * pod_slots(request, asked)
    return msgspec.structs.replace(needs, requests=amounts({**dict(needs.requests), needs.slot.name: slots}))


def _in_pods_of(request: PendingAllocation, size: int) -> PendingAllocation:
    return msgspec.structs.replace(request, pods=(size,) * (len(request.pods) // size), most_per_pod=0)
