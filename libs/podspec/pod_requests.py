"""Requests of a whole pod, from those of its containers: the most that it needs at one time.

Source: https://kubernetes.io/docs/concepts/workloads/pods/init-containers/#resource-sharing-within-containers;
https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/#resource-sharing-within-containers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from libs.podspec.quantities import units

Requests: TypeAlias = dict[str, int]
"""Resource -> how much of it, as ``units`` counts."""
Quantities: TypeAlias = Mapping[str, str | int | float]


def container_requests(requests: Quantities, limits: Quantities) -> Requests:
    """Of one container: limits where nothing is requested, as the API server fills in.

    Each is rounded up, where Kubernetes rounds their sum: a part of a byte is asked for by nobody.
    """
    return {name: units(name, value) for name, value in {**limits, **requests}.items()}


def pod_requests(
    containers: Iterable[Requests], init_containers: Iterable[tuple[Requests, bool]], overhead: Quantities
) -> Requests:
    """Of the pod, ``overhead`` included.

    init_containers  in their order, each with whether it is a sidecar, which goes on beside all that follow it
    """
    sidecars: Requests = {}
    most: Requests = {}
    for requests, is_sidecar in init_containers:
        beside = _sum(sidecars, requests)
        if is_sidecar:
            sidecars = beside
        most = _larger(most, beside)
    whole = _larger(_sum(*containers, sidecars), most)
    return _sum(whole, container_requests(overhead, {})) if overhead else whole


def _sum(*summands: Requests) -> Requests:
    total: Requests = {}
    for each in summands:
        for name, amount in each.items():
            total[name] = total.get(name, 0) + amount
    return total


def _larger(left: Requests, right: Requests) -> Requests:
    return left | {name: max(amount, left.get(name, 0)) for name, amount in right.items()}
