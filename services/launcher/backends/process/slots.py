"""Gives slots of this machine to allocations, and computes the capacity that this makes (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from libs.events.node_shapes import ReportedShape


def device_ids(slots: int) -> tuple[str, ...]:
    """``000``, ``001``, ..."""
    return tuple(f"{index:03d}" for index in range(slots))


def take_devices(
    devices: Sequence[str], held: Iterable[str], *, pod_slots: Sequence[int]
) -> tuple[tuple[str, ...], ...]:
    """Free devices for each pod in rank order, lowest first; each has so many slots as ``pod_slots`` says.

    The scheduler counts slots, and knows when they are free again. Where it is ahead of what is seen here, or the
    number of slots was reduced, pods get fewer devices than they asked for, which costs a process nothing.
    """
    taken = set(held)
    free = [device for device in devices if device not in taken]
    ends = tuple(accumulate(pod_slots))
    return tuple(tuple(free[end - slots : end]) for slots, end in zip(pod_slots, ends, strict=True))


def node_capacity(
    *,
    name: str,
    address: str,
    registered_at: str,
    slots: int,
    holders: Iterable[tuple[str, Sequence[str], Sequence[Sequence[str]]]],
) -> NodeCapacity:
    """This machine as a node.

    holders  of every allocation that runs: its id, the names of its pods, and the devices of each pod
    """
    by_device: dict[str, tuple[str, str]] = {}
    aux: list[str] = []
    for allocation, pods, devices in holders:
        for pod, held in zip(pods, devices, strict=True):
            by_device.update(dict.fromkeys(held, (allocation, pod)))
        if not any(devices):
            aux.append(allocation)
    return NodeCapacity(
        name=name,
        addresses=(address,),
        registered_at=registered_at,
        slot_type="cpu",
        devices=tuple(
            Device(id=device, allocation=by_device[device][0], container=by_device[device][1])
            if device in by_device
            else Device(id=device)
            for device in device_ids(slots)
        ),
        aux_containers=tuple(sorted(aux)),
        shape=0,
    )


def pool_capacity(pool: str, node: NodeCapacity, seen_at: str, *, linked_users_blocked_by: str = "") -> PoolCapacity:
    """A pool of this machine alone; one pod can have all of its slots."""
    return PoolCapacity(
        pool=pool,
        backend="process",
        nodes=(node,),
        slot_type="cpu",
        max_slots_per_pod=node.slots,
        shapes=(ReportedShape(),),
        linked_users_blocked_by=linked_users_blocked_by,
        uneven_pods=True,
        seen_at=seen_at,
    )
